"""What happened in the store before: an audit log of three days, and a copy of it in which one record was changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import attrs

from neuroscript import CallRecord, FileAudit, ToolFacts

CULPRIT: Final = "cleanup-job"
DELETED: Final = "orders/2026-10.csv"
"""The session that deleted a file yesterday, and the file."""

DAYS: Final = 3
CALLS_PER_DAY: Final = 150
POLICY: Final = "5d" * 32


@attrs.frozen
class Habit:
    """A kind of call that the log contains.

    Attributes:
        needs: The needs of such calls.
        code: The code of the outcome, ``ok``, or that of an error.
        weight: How often it happens, relative to the others.
        milliseconds: The usual duration.
    """

    tool: str
    distribution: str
    effects: tuple[str, ...]
    needs: tuple[str, ...] = ()
    code: str = "ok"
    weight: int = 10
    milliseconds: float = 0.4
    types: tuple[type, ...] = (str,)

    @property
    def facts(self) -> ToolFacts:
        """The data that all its records share."""
        kind = "store_plugin.py" if self.tool.startswith("store.") else self.distribution
        digest = self.tool.encode().hex().ljust(64, "0")[:64]
        return ToolFacts(self.tool, digest, kind, "0.1.0", f"{self.tool.split('.')[0]}.*", effects=self.effects)


HABITS: Final = (
    Habit("fs.read", "neuroscript-fs", ("reads",), ("fs:read:orders/2026-11.csv",), weight=30, types=(str, int, int)),
    Habit("fs.list", "neuroscript-fs", ("reads",), ("fs:read:orders",), weight=12, types=(str, bool)),
    Habit("fs.write", "neuroscript-fs", ("writes",), ("fs:write:orders/2026-11.csv",), weight=8, types=(str, str)),
    Habit("store.quote", "", ("pure",), weight=30, milliseconds=0.1, types=(dict, str)),
    Habit("store.refund", "", ("writes",), weight=4, milliseconds=14_000, types=(int, float, str)),
    Habit("store.refund", "", ("writes",), code="policy.rejected", weight=2, types=(int, float, str)),
    Habit(
        "http.get", "neuroscript-http", ("net", "reads"), ("net:read:shop.example:443",), weight=14, milliseconds=210
    ),
    Habit(
        "http.get", "neuroscript-http", ("net", "reads"), ("net:read:203.0.113.9:80",), "policy.capability", weight=4
    ),
    Habit("git.push", "neuroscript-git", ("net", "writes"), ("net:write:git.example:443",), "policy.denied", weight=2),
    Habit("math.divide", "neuroscript-std", ("pure",), code="tool.failed", weight=3, types=(float, float)),
    Habit("store.ship", "", ("reads",), ("fs:read:carrier.txt",), "timeout", weight=2, milliseconds=30_000),
    Habit("crypto.hash", "neuroscript-std", ("pure",), weight=9, milliseconds=0.05, types=(str, str)),
)
SESSIONS: Final = ("agent-support", "agent-orders", "nightly-report", "web-anna")
DELETE: Final = Habit("fs.delete", "neuroscript-fs", ("deletes",), (f"fs:delete:{DELETED}",))
OTHER_DELETE: Final = attrs.evolve(DELETE, needs=("fs:delete:orders/draft.csv",))


def write_log(path: Path, key: bytes | None = None, *, now: datetime | None = None) -> None:
    """Write an audit log whose last record is some minutes old."""
    log = FileAudit(path, key=key)
    for record in records(datetime.now(UTC) if now is None else now):
        log.write(record)
    log.close()


def write_damaged_copy(path: Path, copy: Path, line: int) -> None:
    """Copy a log, with another session in one of its records, as an attacker would who wants to hide a call."""
    lines = path.read_text().splitlines(keepends=True)
    changed = lines[line - 1].replace(CULPRIT, SESSIONS[0])
    assert changed != lines[line - 1]
    copy.write_text("".join([*lines[: line - 1], changed, *lines[line:]]))


def line_of_deletion(path: Path) -> int:
    """Return the number of the line with yesterday's deletion."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if DELETED in line)


def records(now: datetime) -> Iterator[CallRecord]:
    """Yield the records in the order of their times."""
    chance = random.Random(7)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    deletions = [
        (today - timedelta(hours=31), OTHER_DELETE, "nightly-report"),
        (today - timedelta(hours=9.5), DELETE, CULPRIT),
        (today + (now - today) / 3, OTHER_DELETE, "web-anna"),
    ]
    planned = [*_usual(chance, now, today), *deletions]
    for number, (moment, habit, session) in enumerate(sorted(planned, key=lambda each: each[0]), 1):
        yield _record(chance, number, moment, habit, session)


def _usual(chance: random.Random, now: datetime, today: datetime) -> Iterator[tuple[datetime, Habit, str]]:
    weights = [habit.weight for habit in HABITS]
    first = today - timedelta(days=DAYS - 1)
    for _ in range(DAYS * CALLS_PER_DAY):
        moment = first + timedelta(days=DAYS - 1) * chance.random() + (now - today) * chance.random()
        yield moment, chance.choices(HABITS, weights)[0], chance.choice(SESSIONS)


def _record(chance: random.Random, call: int, moment: datetime, habit: Habit, session: str) -> CallRecord:
    is_refused = habit.code.startswith("policy.")
    about: dict[str, Any] = {"code": habit.code, "rule": habit.facts.rule}
    return CallRecord(
        kind="refused" if is_refused else "outcome",
        about=habit.facts,
        run=f"run-{session}",
        session=session,
        call=call,
        parent=0,
        depth=1,
        policy=POLICY,
        time=moment.timestamp(),
        needs=habit.needs,
        types=habit.types,
        sizes=tuple(chance.randrange(1, 400) for _ in habit.types),
        digest=chance.randbytes(16),
        repairs=(),
        spent={},
        seconds=0.0 if is_refused else habit.milliseconds / 1000 * chance.lognormvariate(0, 0.5),
        **about,
    )
