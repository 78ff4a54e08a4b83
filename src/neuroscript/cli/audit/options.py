"""The words of ``neuroscript audit``: what is done with a trail, and with which one."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.terminal.arguments import add_subparser

ACTIONS: Final = ("show", "tail", "verify", "stats")

AUDIT: Final = """\
A trail is a file of JSON lines, or an SQLite database, that an application gave to its engine as the
audit. What a trail says is shown as it stands; whether it is true is asked of verify."""

VERIFY: Final = """\
Finds records that were edited, taken out, put in or moved, and with --head a tail that was cut off.
Without a key it finds accidents, and not forgers, who can make every hash anew. A database has no
chain. Exits 1 where the trail is not intact."""

LAST: Final = 10
"""How many records ``tail`` shows, unless it is told."""


def add_audit(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "audit", "read and check a trail of calls", description=AUDIT)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = _action(actions, layout, "show", "show the calls of a trail", "the records as they stand, one in each line")
    show.add_argument("--tool", metavar="PATTERN", help="only tools with such a name, as in 'fs.*'; * crosses dots")
    show.add_argument("--code", metavar="CODE", help="only calls that ended so: ok, or a code such as 'policy.*'")
    tail = _action(actions, layout, "tail", "show the last records, and the head", "the same, one in each line")
    tail.add_argument("-n", metavar="N", dest="count", type=_count, default=LAST, help=f"how many; {LAST} if not given")
    tail.add_argument("--follow", action="store_true", help="go on with what is appended, until it is interrupted")
    verify = _action(actions, layout, "verify", "check that a trail is what was written", "what was found", VERIFY)
    verify.add_argument("--audit-key", metavar="KEYFILE", help="a file of 32 bytes or more, as they are or in hex")
    verify.add_argument("--head", metavar="HEAD", help="what tail printed at some time; finds a tail that was cut off")
    _action(actions, layout, "stats", "count calls, codes, durations and refusals", "the numbers as one object")


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str = "") -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    parser.add_argument("file", metavar="FILE", help="a trail: JSON lines, or an SQLite database")
    return parser


def _count(word: str) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > 6:
        raise argparse.ArgumentTypeError("expected a whole number below a million")
    return int(word)
