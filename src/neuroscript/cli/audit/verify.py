"""``neuroscript audit verify``: whether an audit log is intact, its problems, and what the check can detect."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any, Final

import attrs

from neuroscript.audit.verification import VerificationReport
from neuroscript.audit.verification import verify as verified
from neuroscript.cli.terminal.exit_codes import FAILED, OK
from neuroscript.cli.terminal.inputs import key_of
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show

MAX_LISTED: Final = 20
"""Maximum problems, and maximum calls without outcome, in the readable output."""


INDENT: Final = 2


def verify(options: Namespace, output: Output) -> int:
    """Print whether an audit log is intact, and return 0 if it is and 1 if not."""
    key = None if options.audit_key is None else key_of(options.audit_key, output)
    found = verified(options.file, key=key, head=options.head)
    if options.json:
        output.json(_data(found))
    else:
        show(_blocks(options.file, found), output)
        if found.head:
            output.write(f"head {found.head}\n")
    return OK if found.is_intact else FAILED


def _data(found: VerificationReport) -> dict[str, Any]:
    return {"intact": found.is_intact, **attrs.asdict(found), "guarantee": found.guarantee}


def _blocks(name: str, found: VerificationReport) -> Iterator[Rows]:
    good = "intact" if found.chained else "no damage"
    yield line(f"{name}: {good}", "good") if found.is_intact else line(f"{name}: NOT intact", "bad")
    span = f", {found.first} to {found.last}" if found.first else ""
    yield line(f"{found.records} record{'' if found.records == 1 else 's'}{span}; {found.guarantee}")
    if found.problems:
        yield from _listed("problems", [*map(_problem, found.problems)], found.unlisted)
    if found.without_outcome:
        yield from _listed("calls without outcome", [*map(_call, found.without_outcome)], 0)
    if found.problems or found.without_outcome:
        yield EMPTY


def _listed(title: str, rows: list[tuple[Cell, ...]], unlisted: int) -> Iterator[Rows]:
    yield from (EMPTY, line(title, "title"), Rows(tuple(rows[:MAX_LISTED]), indent=INDENT))
    more = len(rows) - MAX_LISTED + unlisted
    if more > 0:
        yield line(f"and {more} more", "dim", indent=INDENT)


def _problem(problem: Any) -> tuple[Cell, ...]:
    where = f"line {problem.line}" if problem.line else "the file"
    return Cell(where), Cell(problem.kind, "mended" if problem.kind.endswith("repaired") else "bad"), cell(problem.text)


def _call(call: Any) -> tuple[Cell, ...]:
    return Cell(f"line {call.line}"), cell(f"{call.tool}", "name"), cell(f"call {call.call} of run {call.run}")
