"""Options of ``neuroscript openapi``, which serves tools over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.cli.env.authorization import add_authorization
from neuroscript.cli.env.http_options import ADDRESS, add_access, address
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.terminal.argument_parser import add_subparser

SERVE: Final = """\
Serves each tool at POST /GROUP/NAME, with its arguments as a JSON object, and the OpenAPI document at
/openapi.json, until interrupted. What tools print goes to stderr. No user can be asked, so a call that
needs approval is refused; with --suspend it is saved instead.

By default, the service is reachable only from this machine. Any other address requires a token. Requests
from web pages of other origins are refused. With --issuer, each client needs an access token for --audience,
and may do what the scopes of its token permit."""


def add_openapi(commands: Any, layout: Any) -> None:
    """Add ``openapi`` with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "openapi", "serve tools over HTTP, described by an OpenAPI document")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in ACTIONS.values():
        add(actions, layout)


def _add_serve(actions: Any, layout: Any) -> None:
    parser = add_subparser(actions, layout, "serve", "serve the tools over HTTP", description=SERVE)
    parser.add_argument(
        "--tools", metavar="PATTERN", action="append", default=[], help="serve only matching tools, such as 'math.*'"
    )
    parser.add_argument("--title", metavar="TITLE", default="neuroscript", help="title of the document")
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        nargs="?",
        const=ADDRESS,
        default=("127.0.0.1", 8000),
        type=address,
        help=f"address; default {ADDRESS}",
    )
    add_access(parser)
    add_authorization(parser)
    add_environment(parser, None)
    add_recording(parser)


ACTIONS: Final[Mapping[str, Callable[[Any, Any], None]]] = {"serve": _add_serve}
"""The functions that add the actions."""
