"""Options of ``neuroscript mcp``, which uses the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.cli.env.authorization import add_authorization
from neuroscript.cli.env.http_options import ADDRESS, add_access, address
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.terminal.argument_parser import add_subparser, seconds, whole

NAME: Final = "neuroscript"
"""The default name of the server."""

CLIENTS: Final = ("claude", "claude-code", "claude-desktop", "cursor", "gemini", "vscode", "windsurf", "zed")
"""The clients of ``config``; repeated here so that the help does not import the module that configures them."""

SERVE: Final = """\
Serves one client over stdin and stdout until it disconnects, or with --http any number of clients at
/mcp. A client of a protocol with a handshake has its own variables; each request of a client of 2026-07-28
stands alone. What tools print goes to stderr. If a call needs approval, the client asks its user if it can;
with --suspend the call is saved instead.

A client of 2026-07-28 returns an encrypted state with the answer of its user. Only this process accepts it,
and only once. For several processes that answer for each other, pass the same keys and the same record.

By default, HTTP is reachable only from this machine. Any other address requires a token. Requests from
web pages of other origins are refused. With --issuer, each client needs an access token for --audience, and
may do what the scopes of its token permit."""

LOGIN: Final = """\
Opens the login page of the issuer of a server in the browser, and stores the access tokens in a private
file. NAME is a server in your policy file, a table [mcp.NAME] with oauth."""

LOGOUT: Final = """\
Removes the access tokens for a server, and the registration of this client. The issuer may accept the
tokens until they expire."""

CONFIG: Final = """\
Prints the JSON with which a client starts this server. Arguments after -- are passed to mcp serve; use
absolute paths in them, because the client chooses the working directory."""

TOOLS: Final = """\
Starts the server whose command line follows --, or connects to a server over HTTP, and shows its tools.
NAME is a server in your policy file, a table [mcp.NAME]. If the tools differ from the accepted ones (of
NAME, or in --file), the exit code is 1. Review the changes, then accept them with --accept."""


def add_mcp(commands: Any, layout: Any) -> None:
    """Add ``mcp`` with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "mcp", "serve tools over MCP, or inspect MCP servers")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in ACTIONS.values():
        add(actions, layout)


def _add_serve(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "serve", "serve the tools to MCP clients", description=SERVE)
    parser.add_argument(
        "--tools", metavar="PATTERN", action="append", default=[], help="serve only matching tools, such as 'math.*'"
    )
    parser.add_argument(
        "--resources",
        metavar="PATTERN",
        action="append",
        default=[],
        help="serve files of the sandbox as resources, such as 'docs/**', as far as fs:read is granted",
    )
    parser.add_argument("--name", metavar="NAME", default=NAME, help=f"name of the server; default {NAME}")
    parser.add_argument(
        "--names", choices=("grouped", "bare"), default="grouped", help="name tools math__add (default), or just add"
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        nargs="?",
        const=ADDRESS,
        type=address,
        help=f"serve over HTTP; default address {ADDRESS}",
    )
    add_access(parser, " (HTTP)")
    parser.add_argument(
        "--state-key-env", metavar="VARIABLE", help="encrypt states with the keys in this environment variable"
    )
    parser.add_argument(
        "--state-key-file", metavar="FILE", help="encrypt states with the keys in this file, one a line"
    )
    parser.add_argument(
        "--tasks",
        metavar="PATTERN",
        action="append",
        default=[],
        help="let clients poll the calls of matching tools, if they support tasks",
    )
    parser.add_argument(
        "--search-above",
        metavar="N",
        type=whole,
        help="if there are more tools, list only search_tools and call_tool, with which clients find and call them",
    )
    parser.add_argument("--used-states", metavar="FILE", help="record the used states in this file (SQLite)")
    parser.add_argument("--strict", action="store_true", help="accept only exact types; convert nothing")
    add_authorization(parser, " (HTTP)")
    add_environment(parser, None)
    add_recording(parser)


def _add_config(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "config", "print the configuration of a client", description=CONFIG)
    parser.usage = "neuroscript mcp config [--client CLIENT] [--name NAME] [-- ARGUMENT ...]"
    parser.add_argument(
        "--client", metavar="CLIENT", choices=CLIENTS, default="claude", help=f"{', '.join(CLIENTS)}; default claude"
    )
    parser.add_argument(
        "--name", metavar="NAME", default=NAME, help=f"name of the server in the client; default {NAME}"
    )
    parser.add_argument("words", nargs="*", metavar="ARGUMENT", help="arguments of mcp serve")


def _add_tools(actions: Any, layout: Any) -> None:
    help = "show the tools of a server, and accept changes"
    parser = add_subparser(actions, layout, "tools", help, json_help="print a JSON object", description=TOOLS)
    parser.usage = (
        "neuroscript mcp tools [--accept] [--timeout S] [--json] "
        "([--policy FILE] NAME | [--group NAME] [--file FILE] (--url URL | -- COMMAND ...))"
    )
    parser.add_argument("--policy", metavar="FILE", help="policy file that defines the server; default: your own file")
    parser.add_argument("--url", metavar="URL", default="", help="URL of a server over HTTP")
    parser.add_argument("--group", metavar="NAME", help="group of the tools; default mcp")
    parser.add_argument("--file", metavar="FILE", help="file with the accepted tools of the server")
    parser.add_argument("--accept", action="store_true", help="accept the current tools and write them to the file")
    parser.add_argument("--timeout", metavar="S", type=seconds, help="time limit in seconds; default 30")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a server in the policy file")
    parser.set_defaults(server=[])


def _add_login(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "login", "log in to an MCP server", description=LOGIN)
    _add_server(parser)
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="only print the address of the login page"
    )
    parser.add_argument("--timeout", metavar="S", type=seconds, help="time limit in seconds; default 300")


def _add_logout(actions: Any, layout: Any) -> None:
    _add_server(add_subparser(actions, layout, "logout", "remove the access tokens for a server", description=LOGOUT))


def _add_server(parser: Any) -> None:
    parser.add_argument("--policy", metavar="FILE", help="policy file that defines the server; default: your own file")
    parser.add_argument("--url", metavar="URL", default="", help="URL of a server that no policy file defines")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a server in the policy file")


ACTIONS: Final[Mapping[str, Callable[[Any, Any], None]]] = {
    "serve": _add_serve,
    "config": _add_config,
    "tools": _add_tools,
    "login": _add_login,
    "logout": _add_logout,
}
"""The functions that add the actions."""
