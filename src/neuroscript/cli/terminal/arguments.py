"""Add a subcommand with its help and the options that every command has."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentTypeError
from typing import Any, Final

TRACEBACK: Final = "--traceback"
"""The option that shows the Python traceback of a failure."""


def add_subparser(
    commands: Any, layout: Any, name: str, help: str, *, json_help: str = "", description: str = ""
) -> Any:
    """Add a subcommand and return its parser, which has the class of the parent parser.

    Args:
        commands: The return value of ``add_subparsers`` of the parent parser.
        layout: The formatter class of the help.
        help: One line in lower case that says what the command does; it also opens the description.
        json_help: The help of ``--json``; without it the command has no such option.
        description: Further paragraphs of the description.
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
    """Return a string as a number of seconds above 0.

    Raises:
        argparse.ArgumentTypeError: It is not a finite number above 0.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ArgumentTypeError("expected a number of seconds above 0")
    return number
