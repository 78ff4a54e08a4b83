"""One subcommand as argparse knows it: its help, its layout, and the options that every command has."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from typing import Any, Final

TRACEBACK: Final = "--traceback"
"""The option that shows the Python traceback of a failure."""


def add_subparser(
    commands: Any, layout: Any, name: str, help: str, *, json_help: str = "", description: str = ""
) -> Any:
    """Add a subcommand and return its parser, which is of the same class as the parser above.

    Args:
        commands: What ``add_subparsers`` of the parser above returned.
        layout: How its help is laid out.
        help: What it does, as one line that begins in lower case; the description opens with it.
        json_help: What it prints with ``--json``; without it there is no such option.
        description: What else there is to say.
    """
    parser = commands.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.\n\n{description}".strip(),
        formatter_class=layout,
        allow_abbrev=False,
    )
    if json_help:
        parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument(
        TRACEBACK, action="store_true", default=SUPPRESS, help="show the Python traceback of each failure on stderr"
    )
    return parser


def seconds(text: str) -> float:
    """Return a number of seconds above 0.

    Raises:
        argparse.ArgumentTypeError: It is not such a number.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError("expected a number of seconds above 0")
    return number
