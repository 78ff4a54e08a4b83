"""Verification of an audit log, from its first line to a head that was stored elsewhere."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import chain, islice
from typing import BinaryIO, Final

import attrs

from neuroscript.audit.chain import KEY, START, Seal, head_of, line_of
from neuroscript.audit.chain_check import Chain, ChainProblem, Findings, OpenCall
from neuroscript.audit.reader import is_database, number_lines, open_database, open_log, unreadable_error
from neuroscript.coercion.parameters import PATH, STRING, optional, require
from neuroscript.errors import SpecError

KEY_CHECK_LINES: Final = 3
"""Number of leading lines that must all mismatch a key to conclude that the key is wrong and the lines not edited."""

OPEN_CALLS: Final = "SELECT tool, run, call, id FROM calls WHERE kind = 'intent' ORDER BY id"
COUNT_ROWS: Final = "SELECT count(*) FROM calls"


@attrs.frozen
class VerificationReport:
    """The result of verifying an audit log.

    Attributes:
        records: The number of valid records; for a database, the number of rows.
        problems: The problems by line, up to the maximum number.
        unlisted: The number of further problems.
        without_outcome: The calls that began and did not end: they are still running, or a crash interrupted them.
        first: The number of the first record, or 0.
        last: The number of the last record.
        head: ``seq:hash`` of the last record, or ``""`` for a database. Store it where it cannot be changed.
        keyed: Whether a key was used and the records match it, so that forgery would have been detected.
        chained: Whether there is a hash chain; databases have none.
    """

    records: int
    problems: tuple[ChainProblem, ...] = ()
    unlisted: int = 0
    without_outcome: tuple[OpenCall, ...] = ()
    first: int = 0
    last: int = 0
    head: str = ""
    keyed: bool = False
    chained: bool = True

    @property
    def is_intact(self) -> bool:
        """Whether every record is unchanged; a torn tail that was repaired does not count as a change."""
        return not self.unlisted and all(problem.kind == "torn tail repaired" for problem in self.problems)

    @property
    def guarantee(self) -> str:
        """What this result proves, in one sentence."""
        if not self.chained:
            return "a database has no hash chain, so neither damage nor forgery is detected"
        if not self.keyed:
            return "without a key, damage is detected but not forgery, because every hash can be recomputed"
        return "with this key, forgery is detected too"


def verify(path: str | os.PathLike[str], *, key: bytes | None = None, head: str | None = None) -> VerificationReport:
    """Verify that an audit log is complete and unchanged, and find the calls without outcome.

    The file is read once, in memory that grows only with the number of calls without outcome. Records that are appended
    meanwhile are included.

    Args:
        path: The path of the audit log.
        key: The key that it was written with.
        head: An earlier value of `FileAudit.head`, to detect a truncated file.

    Raises:
        SpecError: If the key is too short, the head is invalid, or either is passed for a database.
        AuditError: If a line is too long, or the database is not an audit log.
        OSError: If the file cannot be read.
    """
    require("verify", path=(path, PATH), key=(key, optional(KEY)), head=(head, optional(STRING)))
    seal, known = Seal(key), None if head is None else head_of(head)
    with open_log(path) as stream:
        if not is_database(stream):
            return _followed(stream, seal, known)
    if key is not None or head is not None:
        raise SpecError("audit", ["a database has no hash chain; omit key and head"])
    return _counted(path)


def _followed(stream: BinaryIO, seal: Seal, head: tuple[int, str] | None) -> VerificationReport:
    lines = number_lines(stream)
    first = tuple(islice(lines, KEY_CHECK_LINES))
    fault = _key_fault([raw for _, raw in first], seal)
    findings = Findings()
    if fault:
        findings.add(0, "wrong key", fault)
    followed = Chain(None if fault else seal, head, findings)
    for number, raw in chain(first, lines):
        followed.take(number, raw)
    followed.end()
    if first and not first[0][1].startswith(START) and not followed.records:
        findings.listed[:], findings.unlisted = (
            [ChainProblem(0, "damaged", "no line is a record: the file is not an audit log")],
            0,
        )
    return VerificationReport(
        followed.records,
        tuple(findings.listed),
        findings.unlisted,
        tuple(followed.open.values()),
        followed.first,
        followed.good[0],
        "{}:{}".format(*followed.good),
        keyed=seal.is_keyed and not fault,
    )


def _key_fault(raws: list[bytes], seal: Seal) -> str:
    """Return why none of the first lines matches the key, or ``""``."""
    lines = [line for line in map(line_of, raws) if line is not None]
    if not lines or any(map(seal.fits, lines)):
        return ""
    if not seal.is_keyed:
        return "no record at the beginning matches its plain SHA-256: the audit log needs its key, or was edited"
    if any(map(Seal().fits, lines)):
        return "the audit log was written without a key"
    return "no record at the beginning matches this key: the audit log has another key, or was edited"


def _counted(path: str | os.PathLike[str]) -> VerificationReport:
    """Return the problems that SQLite itself finds in a database, and the calls without outcome."""
    findings = Findings()
    try:
        with closing(open_database(path)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                findings.add(0, "damaged", "SQLite reports that the database is damaged")
            (records,) = connection.execute(COUNT_ROWS).fetchone()
            calls = tuple(OpenCall(*row) for row in connection.execute(OPEN_CALLS))
    except sqlite3.Error as error:
        raise unreadable_error(error) from None
    return VerificationReport(records, tuple(findings.listed), without_outcome=calls, chained=False)
