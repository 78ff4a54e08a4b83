"""Validation of database rows, which other programs may have written.

Each invalid row raises one `SpecError` that names the table, the row and what to do. It contains no value of the row
except its id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any, Final

from neuroscript.coercion.parameters import (
    COUNT,
    DURATION,
    SECONDS,
    STRING,
    WHOLE,
    WORD,
    Form,
    one_of,
    optional,
    problems,
)
from neuroscript.errors import MAX_LISTED_PROBLEMS, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.state.heartbeat import MAX_LEASE_SECONDS
from neuroscript.workflow.durable.database import CALLS, RUNS, sa

MAX_TIME_SECONDS: Final = 253_402_300_799
"""The last second of the year 9999, since 1970-01-01 UTC."""

REMEDY: Final = "restore the row from a backup, or delete it"

STATUSES: Final = ("running", "succeeded", "failed", "cancelled")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


TIME: Final = Form("a time in seconds since 1970", _is_number, lambda value: 0 <= value <= MAX_TIME_SECONDS)
LEASE: Final = Form(
    f"a number of seconds above 0, at most {MAX_LEASE_SECONDS:.0f}",
    _is_number,
    lambda value: 0 < value <= MAX_LEASE_SECONDS,
)
BIT: Final = Form("a boolean", lambda value: value in (0, 1), lambda value: type(value) in (bool, int))

RUN: Final[Mapping[str, Form]] = {
    "id": WORD,
    "name": STRING,
    "digest": STRING,
    "plan": STRING,
    "inputs": STRING,
    "parallel": COUNT,
    "status": one_of(*STATUSES),
    "error": optional(STRING),
    "started": TIME,
    "ended": optional(TIME),
    "seen": TIME,
    "lease": LEASE,
    "tools": optional(STRING),
}

CALL: Final[Mapping[str, Form]] = {
    "id": WORD,
    "run": WORD,
    "node": WORD,
    "item": optional(WHOLE),
    "number": COUNT,
    "tool": WORD,
    "arguments": STRING,
    "timeout": optional(SECONDS),
    "patience": Form(DURATION.words, _is_number, lambda value: 0 <= value < inf),
    "rerun": BIT,
    "worker": optional(STRING),
    "token": optional(STRING),
    "takes": WHOLE,
    "begun": optional(TIME),
    "ended": optional(TIME),
    "code": optional(WORD),
    "outcome": optional(STRING),
    "queued": optional(TIME),
    "digest": optional(STRING),
    "suspect": BIT,
}

CALL_COLUMNS: Final = tuple(
    sa.type_coerce(column, sa.Integer).label("rerun") if column.name == "rerun" else column for column in CALLS.c
)
"""The columns of a call. SQLite stores a boolean as a number, and SQLAlchemy fails on anything else in its place."""


def fault(table: sa.Table, id: object, found: Iterable[str]) -> SpecError:
    """Return the error of an invalid row.

    Args:
        found: The problems, one sentence each.
    """
    name = quote_untrusted(id) if isinstance(id, str) else f"({type(id).__name__})"
    return SpecError(f"{table.name} row {name}", [*found, REMEDY])


def check_run(row: Mapping[str, Any]) -> None:
    """Raise a `SpecError` if a row of `RUNS` is invalid."""
    _check(RUNS, RUN, row, ())


def check_call(row: Mapping[str, Any]) -> None:
    """Raise a `SpecError` if a row of `CALLS` is invalid."""
    _check(CALLS, CALL, row, _contradictions(row))


def place_id(run: str, node: str, item: int | None, number: int) -> str:
    """Return the database id of an attempt, which stays the same when the run is repeated."""
    parts: list[object] = [run, node]
    parts += [] if item is None else [item]
    parts += [] if number == 1 else [number]
    return ".".join(map(str, parts))


def _contradictions(row: Mapping[str, Any]) -> Iterator[str]:
    if row["id"] != place_id(row["run"], row["node"], row["item"], row["number"]):
        yield "its id does not match its run, node, item and number"
    if len({row[name] is None for name in ("ended", "code", "outcome")}) > 1:
        yield "it must have all of ended, code and outcome, or none of them"


def _check(table: sa.Table, forms: Mapping[str, Form], row: Mapping[str, Any], more: Iterable[str]) -> None:
    found = [*problems(**{name: (row[name], form) for name, form in forms.items() if name in row})]
    found += [] if found else more
    if found:
        raise fault(table, row["id"], found[:MAX_LISTED_PROBLEMS])
