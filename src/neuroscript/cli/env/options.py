"""Options shared by commands: plugins, policy, sandbox, approvals, audit log and recording."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

ENVIRONMENT_OPTIONS: Final = (
    *(
        "-p",
        "--plugin",
        "--plugins-dir",
        "--isolate-plugins",
        "--policy",
        "--profile",
        "--allow",
        "--deny",
        "--grant",
        "--preapproved",
    ),
    *("--isolate", "--sandbox", "--spill"),
)
"""The options of `add_environment` that take a value."""

LOCKED: Final = "--locked"
"""The option of `add_tools` whose optional value follows an ``=``."""

LOCK_FILE: Final = "neuroscript.lock"
"""The default value of `LOCKED`, a file in the working directory."""

RECORDING_OPTIONS: Final = ("--suspend", "--audit", "--audit-key", "--record")
"""The options of `add_recording`, all of which take a value."""


def add_plugins(parser: argparse.ArgumentParser) -> None:
    """Add the options that load further plugins or exclude some."""
    parser.add_argument(
        "-p",
        "--plugin",
        metavar="FILE",
        action="append",
        default=[],
        help="load a plugin from a Python file or package; no:NAME excludes an installed distribution or entry point",
    )
    parser.add_argument(
        "--plugins-dir", metavar="DIR", action="append", default=[], help="load every plugin in a directory"
    )
    parser.add_argument(
        "--isolate-plugins",
        metavar="NAME",
        action="append",
        default=[],
        help="import and run this plugin in processes of its own: a distribution, an entry point or a file",
    )


def add_tools(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the available tools: plugins, exclusions and the lock file."""
    add_plugins(parser)
    parser.add_argument(
        LOCKED,
        metavar="FILE",
        nargs="?",
        help=f"load plugins only if they match this lock file; default {LOCK_FILE}, another with {LOCKED}=FILE",
    )


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Add the policy file option for commands that read only the MCP servers in it."""
    parser.add_argument(
        "--policy", metavar="FILE", help="add the tools of the MCP servers in this policy file; default: your own file"
    )


def with_lock_value(argv: Sequence[str]) -> list[str]:
    """Return *argv* with an explicit value for `LOCKED`, so that it does not consume the next argument.

    >>> with_lock_value(["list", "--locked", "math.*", "--", "--locked"])
    ['list', '--locked=neuroscript.lock', 'math.*', '--', '--locked']
    """
    end = argv.index("--") if "--" in argv else len(argv)
    return [*(f"{LOCKED}={LOCK_FILE}" if word == LOCKED else word for word in argv[:end]), *argv[end:]]


def add_environment(parser: argparse.ArgumentParser, tool_names: Callable[..., Iterable[str]] | None) -> None:
    """Add the options that select the available tools, their authority and their sandbox.

    Args:
        tool_names: Completes the name of a tool in a shell.
    """
    add_tools(parser)
    parser.add_argument("--policy", metavar="FILE", help="use this policy file (TOML); default: your own file")
    parser.add_argument("--profile", metavar="NAME", help="use this profile of the policy file")
    for name, metavar, help in (
        ("--allow", "PATTERN", "run only tools that match, such as 'math.*', and that the policy file allows"),
        ("--deny", "PATTERN", "refuse tools that match, even if they are allowed"),
        ("--grant", "GRANT", "grant tools a capability, such as fs:read:inbox/**"),
        ("--preapproved", "NAME", "run this tool without asking for approval; its exact name"),
        ("--isolate", "PATTERN", "run tools that match in processes of their own, such as 'acme.*'"),
    ):
        action: Any = parser.add_argument(name, metavar=metavar, action="append", default=[], help=help)
        if name == "--preapproved":
            action.completer = tool_names
    parser.add_argument("--trusted", action="store_true", help="run tools that require trust")
    parser.add_argument(
        "--sandbox", metavar="DIR", help="directory that tools may access; default: one in your user data directory"
    )
    parser.add_argument("--create-sandbox", action="store_true", help="create the directory of --sandbox if missing")
    parser.add_argument(
        "--spill",
        metavar="BYTES",
        help="write results larger than BYTES to files in the sandbox, and print a preview and the path",
    )


def add_recording(parser: argparse.ArgumentParser) -> None:
    """Add the options for suspended calls, the audit log and the recording."""
    parser.add_argument(
        "--suspend", metavar="DIR", help="save calls that need approval in DIR instead of asking for approval"
    )
    parser.add_argument(
        "--audit",
        metavar="FILE",
        help="append to an audit log: JSON lines, or SQLite if the name ends in .db, .sqlite or .sqlite3",
    )
    parser.add_argument("--audit-key", metavar="KEYFILE", help="key the hash chain of the audit log with this file")
    parser.add_argument("--record", metavar="FILE", help="record calls with their arguments and results, for replay")
