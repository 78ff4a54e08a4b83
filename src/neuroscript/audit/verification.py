"""Whether a trail is what was written: the whole of it, from its first line to a head that somebody kept.

Source: issue "Authority", audit.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import chain, islice
from typing import BinaryIO, Final

import attrs

from neuroscript.audit.chain import KEY, START, Seal, head_of, line_of
from neuroscript.audit.chain_check import Chain, Findings, Found, OpenCall
from neuroscript.audit.reader import connected, is_database, numbered, opened, unreadable
from neuroscript.coercion.parameters import PATH, STRING, optional, require
from neuroscript.errors import SpecError

TRIED: Final = 3
"""How many lines at the beginning must all not fit a key before it is another key, and not lines that were edited."""

OPEN_CALLS: Final = "SELECT tool, run, call, id FROM calls WHERE kind = 'intent' ORDER BY id"
COUNTED: Final = "SELECT count(*) FROM calls"


@attrs.frozen
class Verified:
    """What was found out about a trail.

    Attributes:
        records: How many records are well; of a database, how many there are.
        problems: What is wrong, by line, as many as are listed.
        unlisted: How many problems there are beyond those.
        without_outcome: The calls that began and did not end in the trail: they run now, or a crash ended them.
        first: The number of the first record, 0 where there is none.
        last: The number of the last record.
        head: ``seq:hash`` of the last record, or ``""`` of a database; to be kept where nobody can change it.
        keyed: Whether a key was used and the records fit it: then a forger would have been found too.
        chained: Whether there is a chain of hashes; a database has none.
    """

    records: int
    problems: tuple[Found, ...] = ()
    unlisted: int = 0
    without_outcome: tuple[OpenCall, ...] = ()
    first: int = 0
    last: int = 0
    head: str = ""
    keyed: bool = False
    chained: bool = True

    @property
    def is_intact(self) -> bool:
        """Whether every record is there as it was written; a torn tail that was repaired takes nothing from that."""
        return not self.unlisted and all(problem.what == "torn tail repaired" for problem in self.problems)

    @property
    def promise(self) -> str:
        """What such an answer is worth, in a sentence."""
        if not self.chained:
            return "a database has no chain of hashes: neither accidents nor forgers are found"
        if not self.keyed:
            return "without a key this finds accidents and not forgers, who can make every hash anew"
        return "under this key it finds forgers too"


def verify(path: str | os.PathLike[str], *, key: bytes | None = None, head: str | None = None) -> Verified:
    """Return whether a trail is whole and unchanged, and which calls in it have no outcome.

    The file is followed once, in memory that grows with the calls without outcome alone. What is appended meanwhile is
    looked at as far as it comes.

    Args:
        path: Of the trail.
        key: The one under which it was written.
        head: What `FileAudit.head` was at some time; with it a tail that was cut off is found.

    Raises:
        SpecError: The key is too short, the head is none, or either is given for a database.
        AuditError: A line is longer than a record can be, or the database is none of a trail.
        OSError: The file can not be read.
    """
    require("verify", path=(path, PATH), key=(key, optional(KEY)), head=(head, optional(STRING)))
    seal, known = Seal(key), None if head is None else head_of(head)
    with opened(path) as stream:
        if not is_database(stream):
            return _followed(stream, seal, known)
    if key is not None or head is not None:
        raise SpecError("audit", ["a database has no chain of hashes; leave out key and head"])
    return _counted(path)


def _followed(stream: BinaryIO, seal: Seal, head: tuple[int, str] | None) -> Verified:
    lines = numbered(stream)
    first = tuple(islice(lines, TRIED))
    fault = _key_fault([raw for _, raw in first], seal)
    findings = Findings()
    if fault:
        findings.add(0, "wrong key", fault)
    followed = Chain(None if fault else seal, head, findings)
    for number, raw in chain(first, lines):
        followed.take(number, raw)
    followed.end()
    if first and not first[0][1].startswith(START) and not followed.records:
        findings.listed[:], findings.unlisted = [Found(0, "damaged", "no line is a record: the file is no trail")], 0
    return Verified(
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
    """Return why none of the first lines fits the key, or ``""``."""
    lines = [line for line in map(line_of, raws) if line is not None]
    if not lines or any(map(seal.fits, lines)):
        return ""
    if not seal.is_keyed:
        return (
            "no record at the beginning has its plain SHA-256: the trail has a key, which is to be given, or was edited"
        )
    if any(map(Seal().fits, lines)):
        return "the trail was written without a key"
    return "no record at the beginning fits this key: the trail has another one, or was edited"


def _counted(path: str | os.PathLike[str]) -> Verified:
    """Return what SQLite itself finds wrong with a database, and its calls without outcome."""
    findings = Findings()
    try:
        with closing(connected(path)) as connection:
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                findings.add(0, "damaged", "SQLite finds that the database is damaged")
            (records,) = connection.execute(COUNTED).fetchone()
            calls = tuple(OpenCall(*row) for row in connection.execute(OPEN_CALLS))
    except sqlite3.Error as error:
        raise unreadable(error) from None
    return Verified(records, tuple(findings.listed), without_outcome=calls, chained=False)
