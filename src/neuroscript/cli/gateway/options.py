"""Options of ``neuroscript gateway``."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.cli.terminal.argument_parser import add_subparser

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "gemini", "vscode", "windsurf", "zed")
"""The clients of ``--client-config``; repeated here so that the help imports no module of MCP."""

GATEWAY: Final = """\
FILE is a policy file with the servers, a table [gateway], and a table [client.NAME] for each client.
Without listen in [gateway], one client is served over stdin and stdout; otherwise all clients over HTTP,
each with its own token. A client sees and calls only what the policy and its own table permit.

The tools of a server are accepted when it is first started. A tool that changes later is refused until
you review it with --review and accept it with --accept."""


def add_gateway(commands: Any, layout: Any) -> None:
    """Add ``gateway`` to the *commands* of the parser."""
    help = "serve MCP servers to clients, under a policy for each client"
    parser = add_subparser(commands, layout, "gateway", help, description=GATEWAY)
    parser.add_argument("file", metavar="FILE", help="the policy file")
    parser.add_argument("--profile", metavar="NAME", help="profile of the policy file")
    parser.add_argument("--client", metavar="NAME", help="the client that is served over stdin and stdout")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--review", metavar="SERVER", help="show how the tools of a server differ from the accepted ones")
    only.add_argument("--accept", metavar="SERVER", help="show the differences, and accept the current tools")
    only.add_argument(
        "--client-config",
        metavar="PROGRAM",
        choices=CLIENTS,
        help=f"print the configuration of a program for --client: {', '.join(CLIENTS)}",
    )
