"""Options of ``neuroscript web``."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.chat.models import APIS, MODEL, address
from neuroscript.cli.chat.options import clean
from neuroscript.cli.env.options import add_environment, add_recording
from neuroscript.cli.terminal.argument_parser import add_subparser

DEFAULT_PORT: Final = 8321
"""The default port; 0 chooses a free one."""

WEB: Final = f"""\
Serves a web console for the tools, until interrupted: browse and try tools, answer calls that need
approval, and read the audit log, plans and the policy. Prints a link that signs one browser in, once.
Further links are created in the console. The default port is {DEFAULT_PORT}.

Only tools that declare to have no effects can be run, unless you add --run-effects. By default, the
console is reachable only from this machine. With --bind, other machines can reach it; this requires
--certificate, or --plain-http behind a proxy that encrypts, and a --user for each person."""


def add_web(commands: Any, layout: Any) -> None:
    """Add ``web`` to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "web", "serve the web console", description=WEB)
    option = parser.add_argument
    option("--port", metavar="PORT", type=port, default=DEFAULT_PORT, help="port; 0 chooses a free one")
    option("--run-effects", action="store_true", help="permit running tools that have effects, or declare none")
    option("--plans", metavar="DIR", help="show and run the plans in this directory")
    option("--runs", metavar="URL", help="show the durable runs in this database; see neuroscript runs")
    option("--approvals", metavar="DIR", help="show calls that another command has saved here with --suspend")
    option("--bind", metavar="ADDRESS", default="127.0.0.1", help="address to serve on; default 127.0.0.1")
    option("--certificate", metavar="FILE", help="serve HTTPS with the certificate chain in this PEM file")
    option("--certificate-key", metavar="FILE", help="the private key of --certificate, if in another file")
    option("--plain-http", action="store_true", help="permit --bind without --certificate")
    option(
        "--user",
        metavar="NAME:ROLE:VARIABLE",
        action="append",
        default=[],
        type=user,
        help="a user who signs in with the token in an environment variable; the role is viewer, operator or approver",
    )
    option("--model", metavar="NAME", type=clean, help=f"chat with this model; default: {MODEL}, otherwise no chat")
    option("--base-url", metavar="URL", type=address, help="base URL of a model server")
    option("--api", choices=APIS, default="", help=f"API of the model server: {', '.join(APIS)}; default: the first")
    add_environment(parser, None)
    add_recording(parser)
    parser.set_defaults(answer_type=None, timeout=None, no_stream=False)


def port(text: str) -> int:
    """Return a port.

    Raises:
        argparse.ArgumentTypeError: It is not a valid one.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65_536):
        raise argparse.ArgumentTypeError("expected a port from 0 to 65535")
    return int(text)


def user(text: str) -> tuple[str, str, str]:
    """Return the name, the role and the variable of a user.

    Raises:
        argparse.ArgumentTypeError: It is not a valid user.

    >>> user("ada:approver:ADA_TOKEN")
    ('ada', 'approver', 'ADA_TOKEN')
    """
    name, role, variable = (text.split(":") + ["", ""])[:3] if text.count(":") == 2 else ("", "", "")
    if not (name and variable) or role not in ("viewer", "operator", "approver"):
        raise argparse.ArgumentTypeError("expected NAME:ROLE:VARIABLE, where ROLE is viewer, operator or approver")
    return name, role, variable
