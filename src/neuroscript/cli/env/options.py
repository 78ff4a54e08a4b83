"""The words for what a host says in code: further tools, what they may do, who is asked, and what is kept of calls."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

WORLD: Final = (
    *("-p", "--plugin", "--plugins-dir", "--policy", "--profile", "--allow", "--deny", "--grant", "--preapproved"),
    *("--sandbox", "--spill"),
)
"""The options of `add_world` that take a value."""

LOCKED: Final = "--locked"
"""The option of `add_tools` whose value, if it has one, stands behind ``=``."""

LOCK_FILE: Final = "neuroscript.lock"
"""What `LOCKED` means without a value, in the working directory."""

KEEPING: Final = ("--suspend", "--audit", "--audit-key", "--record")
"""The options of `add_keeping`, all of which take a value."""


def add_plugins(parser: argparse.ArgumentParser) -> None:
    """Add the option that brings further tools, or leaves some out."""
    parser.add_argument(
        "-p",
        "--plugin",
        metavar="FILE",
        action="append",
        default=[],
        help="add the tools of a file of Python; no:NAME leaves out an installed distribution, or an entry point",
    )
    parser.add_argument(
        "--plugins-dir", metavar="DIR", action="append", default=[], help="add the tools of each plugin in a directory"
    )


def add_tools(parser: argparse.ArgumentParser) -> None:
    """Add what says which tools are there: further ones, some left out, and none that is not locked."""
    add_plugins(parser)
    parser.add_argument(
        LOCKED,
        metavar="FILE",
        nargs="?",
        help=f"load only what is as this file has it, {LOCK_FILE} if none is named; the name stands behind =",
    )


def add_servers(parser: argparse.ArgumentParser) -> None:
    """Add the file whose servers bring further tools, for commands that read nothing else of it."""
    parser.add_argument("--policy", metavar="FILE", help="add the tools of the MCP servers in this file; else in yours")


def locked_words(argv: Sequence[str]) -> list[str]:
    """Return words in which `LOCKED` always has its value, so that it takes none of the words behind it.

    >>> locked_words(["list", "--locked", "math.*", "--", "--locked"])
    ['list', '--locked=neuroscript.lock', 'math.*', '--', '--locked']
    """
    end = argv.index("--") if "--" in argv else len(argv)
    return [*(f"{LOCKED}={LOCK_FILE}" if word == LOCKED else word for word in argv[:end]), *argv[end:]]


def add_world(parser: argparse.ArgumentParser, tool_names: Callable[..., Iterable[str]] | None) -> None:
    """Add what says which tools are there, what they may do, and where.

    Args:
        tool_names: Completes the name of a tool in a shell.
    """
    add_tools(parser)
    parser.add_argument("--policy", metavar="FILE", help="say with this file of TOML what may run; else one of yours")
    parser.add_argument("--profile", metavar="NAME", help="take this profile of the file")
    for name, metavar, help in (
        ("--allow", "PATTERN", "let only these tools run, as in 'math.*', of those that the file allows"),
        ("--deny", "PATTERN", "let these tools not run either, whatever is allowed"),
        ("--grant", "GRANT", "let tools do this too, as in fs:read:inbox/**"),
        ("--preapproved", "NAME", "do not ask for an approval of this tool either; its exact name"),
    ):
        action: Any = parser.add_argument(name, metavar=metavar, action="append", default=[], help=help)
        if name == "--preapproved":
            action.completer = tool_names
    parser.add_argument("--trusted", action="store_true", help="let tools run that require trust")
    parser.add_argument("--sandbox", metavar="DIR", help="the directory that tools see; else one of yours, apart")
    parser.add_argument("--create", action="store_true", help="create the directory of --sandbox if it does not exist")
    parser.add_argument(
        "--spill",
        metavar="BYTES",
        help="write results that are larger to files of the sandbox, and tell where they are",
    )


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add what says where calls wait for an approval, and what is kept of them."""
    parser.add_argument(
        "--suspend", metavar="DIR", help="put calls that need an approval aside there, instead of asking for it"
    )
    parser.add_argument(
        "--audit", metavar="FILE", help="keep a trail: JSON lines, or SQLite where it ends in .db, .sqlite, .sqlite3"
    )
    parser.add_argument("--audit-key", metavar="KEYFILE", help="chain the lines under the key in this file")
    parser.add_argument("--record", metavar="FILE", help="keep the calls with their content, for replay")
