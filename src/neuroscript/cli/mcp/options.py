"""The words of ``neuroscript mcp``: tools for clients that speak MCP, the Model Context Protocol."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.cli.env.options import add_keeping, add_world
from neuroscript.cli.terminal.arguments import add_subparser, seconds

NAME: Final = "neuroscript"
"""What a server calls itself unless it is told."""

ADDRESS: Final = "127.0.0.1:8000"
"""Where ``--http`` serves unless it is told."""

CLIENTS: Final = ("claude", "cursor", "gemini", "vscode", "windsurf", "zed")
"""The clients that ``config`` knows; they stand here too, so that no help loads what writes their files."""

SERVE: Final = """\
One client is served over the standard streams until it goes, or any number over HTTP at /mcp, each
with variables of its own. What tools print goes to stderr. A call that needs an approval is put to the
user of the client, where the client can ask; --suspend puts it aside instead.

HTTP is served to this machine alone, unless another address is named, and then a token has to be
asked for. Pages of other origins than this machine's are refused."""

CONFIG: Final = """\
Prints the JSON by which a client starts this server. Words behind -- are given to mcp serve; name files
in them by their whole paths, for a client starts it wherever it is."""

TOOLS: Final = """\
Starts the program whose words stand behind --, or reaches a server over HTTP, and shows what it says its
tools are. NAME is a server of your policy file, a table [mcp.NAME]. What is not as it was accepted, of NAME
or in --file, ends with exit code 1; --accept writes it down anew, once you have read it."""


def add_mcp(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "mcp", "serve tools to clients that speak MCP, and look at servers")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in ACTIONS.values():
        add(actions, layout)


def _add_serve(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "serve", "serve the tools", description=SERVE)
    parser.add_argument(
        "--tools", metavar="PATTERN", action="append", default=[], help="serve only these tools, as in 'math.*'"
    )
    parser.add_argument("--name", metavar="NAME", default=NAME, help="what the server calls itself")
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        nargs="?",
        const=ADDRESS,
        type=address,
        help=f"serve over HTTP, at {ADDRESS} unless another address stands behind it",
    )
    parser.add_argument("--token-from", metavar="VARIABLE", help="ask for the token that this variable holds")
    parser.add_argument(
        "--origin", metavar="ORIGIN", action="append", default=[], help="let pages of this origin in, too"
    )
    parser.add_argument("--strict", action="store_true", help="take exact types alone, and repair nothing")
    add_world(parser, None)
    add_keeping(parser)


def _add_config(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "config", "print what a client has to be told", description=CONFIG)
    parser.usage = "neuroscript mcp config [--client CLIENT] [--name NAME] [-- WORD ...]"
    parser.add_argument("--client", metavar="CLIENT", choices=CLIENTS, default="claude", help=", ".join(CLIENTS))
    parser.add_argument("--name", metavar="NAME", default=NAME, help="what the client calls the server")
    parser.add_argument("words", nargs="*", metavar="WORD", help="the words of mcp serve")


def _add_tools(actions: Any, layout: Any) -> None:
    help = "look at the tools of a server, and accept them"
    parser = add_subparser(actions, layout, "tools", help, json_help="print a JSON object", description=TOOLS)
    parser.usage = (
        "neuroscript mcp tools [--accept] [--timeout S] [--json] "
        "([--policy FILE] NAME | [--group NAME] [--file FILE] (--url URL | -- WORD ...))"
    )
    parser.add_argument("--policy", metavar="FILE", help="the file of TOML that names the server; else your own")
    parser.add_argument("--url", metavar="URL", default="", help="the address of a server over HTTP")
    parser.add_argument("--group", metavar="NAME", help="the group of the tools; mcp otherwise")
    parser.add_argument("--file", metavar="FILE", help="what was accepted of the server")
    parser.add_argument("--accept", action="store_true", help="write to the file what the server says now")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="how many seconds to wait; 30 otherwise")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a server of the policy file")
    parser.set_defaults(server=[])


ACTIONS: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "serve": _add_serve,
    "config": _add_config,
    "tools": _add_tools,
}
"""What adds each action."""


def address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address.

    Raises:
        argparse.ArgumentTypeError: It is none.

    >>> address("[::1]:8000")
    ('::1', 8000)
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65_535:
        raise argparse.ArgumentTypeError(f"expected an address such as {ADDRESS}")
    return host.removeprefix("[").removesuffix("]"), int(port)
