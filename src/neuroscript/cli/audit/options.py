"""Options of ``neuroscript audit``."""

from __future__ import annotations

import argparse
from typing import Any, Final

from neuroscript.cli.terminal.argument_parser import add_subparser

ACTIONS: Final = ("show", "tail", "verify", "stats")

AUDIT: Final = """\
An audit log is a file of JSON lines or an SQLite database, written by --audit or by an application.
show, tail and stats do not check the records; use verify to detect changes."""

VERIFY: Final = """\
Finds records that were changed, removed, inserted or moved, and with --head also records that were cut
off at the end. Without a key it detects accidents but not forgery, because a forger can recompute every
hash. A database has no hash chain. Exits 1 if the audit log is not intact."""

DEFAULT_RECORDS: Final = 10
"""Default number of records that ``tail`` shows."""


def add_audit(commands: Any, layout: Any) -> None:
    """Add the command with its actions to the *commands* of the parser."""
    parser = add_subparser(commands, layout, "audit", "read and verify audit logs", description=AUDIT)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    show = _action(actions, layout, "show", "show the calls in an audit log", "print the records as JSON lines")
    show.add_argument("--tool", metavar="PATTERN", help="show only matching tools, such as 'fs.*'; * also matches dots")
    show.add_argument(
        "--code", metavar="CODE", help="show only calls with this outcome: ok, or an error code such as 'policy.*'"
    )
    show.add_argument(
        "--label", metavar="PATTERN", help="show only calls whose data has a matching label, such as 'private*'"
    )
    show.add_argument("--effect", metavar="EFFECT", help="show only calls of tools with this effect, such as deletes")
    show.add_argument("--session", metavar="ID", help="show only calls of this session")
    show.add_argument("--since", metavar="TIME", help="show only calls from this UTC date or time on: 2026-11-27T14:30")
    show.add_argument("--until", metavar="TIME", help="show only calls before this UTC time, or up to this date")
    tail = _action(actions, layout, "tail", "show the last records and the head", "print the records as JSON lines")
    tail.add_argument(
        "-n",
        metavar="N",
        dest="count",
        type=_count,
        default=DEFAULT_RECORDS,
        help=f"number of records; default {DEFAULT_RECORDS}",
    )
    tail.add_argument("--follow", action="store_true", help="keep printing new records, until interrupted")
    verify = _action(
        actions, layout, "verify", "check that an audit log was not changed", "print the findings as JSON", VERIFY
    )
    verify.add_argument(
        "--audit-key", metavar="KEYFILE", help="the key file: 32 bytes or more, raw or as hexadecimal digits"
    )
    verify.add_argument(
        "--head", metavar="HEAD", help="a head that tail printed before; detects records cut off at the end"
    )
    _action(
        actions, layout, "stats", "count calls, codes, durations and refusals", "print the numbers as a JSON object"
    )


def _action(actions: Any, layout: Any, name: str, help: str, json_help: str, description: str = "") -> Any:
    parser = add_subparser(actions, layout, name, help, json_help=json_help, description=description)
    parser.add_argument("file", metavar="FILE", help="an audit log: JSON lines or an SQLite database")
    return parser


def _count(word: str) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > 6:
        raise argparse.ArgumentTypeError("expected a whole number below a million")
    return int(word)
