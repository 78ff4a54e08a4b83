"""Filters of calls in an audit log, for entries in Python and for rows in SQL."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from json import dumps, loads
from typing import Final, Literal

import attrs

from neuroscript.audit.entries import COMPLETED, Entry

Outcome = Literal["", "ok", "failed", "refused", "unfinished"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("ok", "failed", "refused", "unfinished")
"""How calls end: a call is ``unfinished`` if its outcome is not in the log."""

MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?Z?", re.ASCII)
FORMS: Final = "expected a date such as 2026-11-27, or a time such as 2026-11-27T14:30, in UTC"
DAY: Final = timedelta(days=1)


Conditions = tuple[list[str], list[object]]
"""Conditions on rows in SQL, which must all hold, and their parameters."""


@attrs.frozen
class RecordFilter:
    """Which calls of an audit log are selected; an empty string and None select all.

    Attributes:
        tool: A pattern of names in lower case, such as ``fs.*``; ``*`` also matches dots.
        code: A pattern of codes, such as ``policy.*``.
        label: A pattern; one of the labels of the call must match.
        effect: One of the effects of the tool.
        session: The id of the session.
        outcome: How the call ended.
        since: The earliest time when the call began, in seconds since 1970.
        until: The time before which the call began, in seconds since 1970.
    """

    tool: str = ""
    code: str = ""
    label: str = ""
    effect: str = ""
    session: str = ""
    outcome: Outcome = ""
    since: float | None = None
    until: float | None = None

    def matches(self, entry: Entry) -> bool:
        """Return whether an entry is selected."""
        return (
            (not self.tool or fnmatchcase(entry.tool, self.tool))
            and (not self.code or fnmatchcase(entry.code, self.code))
            and (not self.label or any(fnmatchcase(each, self.label) for each in entry.labels))
            and (not self.effect or self.effect in entry.effects)
            and (not self.session or entry.session == self.session)
            and (not self.outcome or entry.outcome == self.outcome)
            and (self.since is None or entry.time >= self.since)
            and (self.until is None or entry.time < self.until)
        )

    @property
    def uses_index(self) -> bool:
        """Whether the index of tools, which contains times, finds some of the conditions."""
        return bool(self.tool) or self.since is not None or self.until is not None

    def indexed_conditions(self, tools: list[str], *, is_hinted: bool = True) -> Conditions:
        """Return the conditions on tools and times, which the index of both can find.

        Args:
            tools: All names of tools in the table. A pattern becomes a list of names, because an index can find those.
            is_hinted: Whether SQLite may use the index; otherwise it reads the rows in the order of their ids.
        """
        found: list[tuple[str, list[object]]] = []
        plus = "" if is_hinted else "+"  # a column with a sign is an expression, which no index finds
        if self.tool or (is_hinted and self.uses_index):
            chosen = [each for each in tools if not self.tool or fnmatchcase(each, self.tool)]
            found.append(_one_of(f"{plus}tool", chosen))
        if self.since is not None:
            found.append((f"{plus}time >= ?", [self.since]))
        if self.until is not None:
            found.append((f"{plus}time < ?", [self.until]))
        return _joined(found)

    def other_conditions(self, codes: list[str], labels: list[str]) -> Conditions:
        """Return the other conditions.

        Args:
            codes: All codes in the table.
            labels: All values of the column ``labels`` that are in the table.
        """
        found: list[tuple[str, list[object]]] = []
        if self.code:
            found.append(_one_of("code", [each for each in codes if fnmatchcase(each, self.code)]))
        if self.label:
            found.append(_one_of("labels", [each for each in labels if _has_label(each, self.label)]))
        if self.effect:
            found.append(("instr(effects, ?) > 0", [dumps(self.effect)]))
        if self.session:
            found.append(("session = ?", [self.session]))
        if self.outcome:
            found.append(OUTCOME_CONDITIONS[self.outcome])
        return _joined(found)


_PLACES: Final = ", ".join("?" * len(COMPLETED))

OUTCOME_CONDITIONS: Final[dict[str, tuple[str, list[object]]]] = {
    "ok": (f"kind = 'outcome' AND code IN ({_PLACES})", [*COMPLETED]),
    "failed": (f"kind = 'outcome' AND code NOT IN ({_PLACES})", [*COMPLETED]),
    "refused": ("kind = 'refused'", []),
    "unfinished": ("kind = 'intent'", []),
}


def _joined(found: list[tuple[str, list[object]]]) -> Conditions:
    return [condition for condition, _ in found], [each for _, parameters in found for each in parameters]


def _one_of(column: str, values: list[str]) -> tuple[str, list[object]]:
    if not values:
        return "0", []  # databases of earlier releases have no column for labels
    return f"{column} IN (SELECT value FROM json_each(?))", [dumps(values)]  # noqa: S608


def _has_label(text: str, pattern: str) -> bool:
    """Return whether a JSON array contains a string that matches a pattern."""
    try:
        labels = loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(labels, list) and any(isinstance(each, str) and fnmatchcase(each, pattern) for each in labels)


def parse_moment(text: str, *, is_end: bool = False) -> float:
    """Return a date or a time in UTC as seconds since 1970.

    Args:
        is_end: Whether a date stands for its end; otherwise it stands for its beginning.

    Raises:
        ValueError: If *text* has another form.

    >>> parse_moment("1970-01-02"), parse_moment("1970-01-02", is_end=True), parse_moment("1970-01-01T00:01")
    (86400.0, 172800.0, 60.0)
    """
    found = MOMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError(FORMS)
    try:
        moment = datetime.fromisoformat(found[1] if found[2] is None else f"{found[1]}T{found[2]}").replace(tzinfo=UTC)
        return float(timegm((moment + DAY if is_end and found[2] is None else moment).timetuple()))
    except (ValueError, OverflowError):
        raise ValueError(FORMS) from None
