"""Verification of a hash chain line by line, in constant memory: finds changed, missing, added and moved records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.audit.chain import ZEROS, Line, Seal, line_of
from neuroscript.audit.reader import data_of

Kind = Literal[
    "edited", "removed", "inserted", "reordered", "cut tail", "torn tail", "torn tail repaired", "wrong key", "damaged"
]
"""The kinds of problems of an audit log."""

MAX_LISTED_PROBLEMS: Final = 1000
"""Maximum number of problems that are stored; further ones are only counted."""


@attrs.frozen
class ChainProblem:
    """A problem in an audit log.

    Attributes:
        line: The number of the line, from 1. If lines are missing, the number of the next line; 0 is the whole file.
        kind: The kind of problem, one of `Kind`.
        text: A description.
    """

    line: int
    kind: Kind
    text: str


@attrs.frozen
class OpenCall:
    """A call that began and has no outcome in the audit log.

    Attributes:
        tool: The canonical name of the tool.
        run: The id of the engine.
        call: The number of the call within the run.
        line: The line of the record of its beginning; in a database the id of the row.
    """

    tool: str
    run: str
    call: int
    line: int


@attrs.define
class Findings:
    """The problems found so far, up to the maximum number."""

    listed: list[ChainProblem] = attrs.field(factory=list)
    unlisted: int = 0

    def add(self, line: int, kind: Kind, text: str) -> None:
        """Store a problem, or only count it."""
        if len(self.listed) < MAX_LISTED_PROBLEMS:
            self.listed.append(ChainProblem(line, kind, text))
        else:
            self.unlisted += 1


@attrs.define
class Pending:
    """Consecutive lines that are not records of the chain; the next record determines what they are."""

    lines: list[int] = attrs.field(factory=list)
    count: int = 0
    size: int = 0
    digest: Any = attrs.field(factory=hashlib.sha256)

    def add(self, number: int, raw: bytes) -> None:
        """Add a line."""
        if len(self.lines) < MAX_LISTED_PROBLEMS:
            self.lines.append(number)
        self.count += 1
        self.size += len(raw)
        self.digest.update(raw)

    def is_cut_by(self, record: Mapping[str, Any]) -> bool:
        """Return whether a ``recovered`` record declares exactly these bytes as the torn end of a line."""
        fields = (record.get("kind"), record.get("cut"), record.get("sha256"))
        return fields == ("recovered", self.size, self.digest.hexdigest())


@attrs.define
class Chain:
    """The state of the verification of a chain.

    Attributes:
        seal: Computes the expected hashes; None if the key is unknown and only links are verified.
        head: The number and the hash of a record that must exist, or None.
        findings: The problems found so far.
        records: The number of valid records.
        first: The number of the first valid record, or 0.
        seq: The number of the last valid record, or of later lines that take the place of a record.
        hash: The hash of the last record, or None if unknown.
        good: The number and the hash of the last valid record.
        open: The calls without outcome, by run and number.
    """

    seal: Seal | None
    head: tuple[int, str] | None = None
    findings: Findings = attrs.field(factory=Findings)
    records: int = 0
    first: int = 0
    seq: int = 0
    hash: str | None = ZEROS
    good: tuple[int, str] = (0, ZEROS)
    open: dict[tuple[str, int], OpenCall] = attrs.field(factory=dict)
    _gaps: list[tuple[int, int, int]] = attrs.field(factory=list, init=False)
    _pending: Pending = attrs.field(factory=Pending, init=False)
    _last: int = attrs.field(default=0, init=False)

    def take(self, number: int, raw: bytes) -> None:
        """Verify one line."""
        self._last = number
        line, record = line_of(raw), data_of(raw)
        if line is None or record is None or not (self.seal is None or self.seal.fits(line)):
            if not raw.endswith(b"\n"):
                text = (
                    "the file ends within a record, as after a crash; the next FileAudit that opens it will record this"
                )
                self.findings.add(number, "torn tail", text)
                return
            self._pending.add(number, raw)
            return
        if self._pending.count:
            self._settle(line, record)
        elif self._pending.is_cut_by(record):
            text = "the end of the previous line was lost: a crash or a full disk interrupted a write"
            self.findings.add(number, "torn tail repaired", text)
        elif record.get("kind") == "recovered" and record.get("cut"):
            self.findings.add(number, "removed", "the truncated bytes that it reports are missing before it")
        if self._link(number, line):
            self._note(number, line, record)

    def end(self) -> None:
        """Report the problems that are known only at the end."""
        self.seq += self._pending.count
        self._report_pending(self._pending.count)
        for number, low, high in self._gaps:
            self.findings.add(number, "removed", f"{_records(low, high)} missing before it")
        if self.head is not None and self.seq < self.head[0]:
            text = f"{_records(self.seq + 1, self.head[0])} missing at the end"
            self.findings.add(self._last + 1, "cut tail", text)
        self.findings.listed.sort(key=lambda found: found.line)

    def _settle(self, line: Line, record: Mapping[str, Any]) -> None:
        """Determine what the lines before a valid record are: a torn tail, edited records, or added lines."""
        pending = self._pending
        missing = max(0, line.seq - self.seq - 1)
        if not missing and pending.is_cut_by(record):
            text = (
                f"{pending.size} bytes are not a record: a crash or a full disk interrupted a write, and the next "
                "writer recorded it"
            )
            self.findings.add(pending.lines[0], "torn tail repaired", text)
            self._pending = Pending()
            return
        self._report_pending(missing)
        if missing:
            self.seq, self.hash = self.seq + min(missing, pending.count), None

    def _report_pending(self, missing: int) -> None:
        """Report invalid lines: as edited as many as there are records *missing*, and the others as inserted."""
        pending, self._pending = self._pending, Pending()
        for index, number in enumerate(pending.lines):
            if index < missing:
                self.findings.add(number, "edited", "its hash does not match, or it is not a record")
            else:
                self.findings.add(number, "inserted", "it is not a record of this chain, and no record is missing here")
        self.findings.unlisted += pending.count - len(pending.lines)

    def _link(self, number: int, line: Line) -> bool:
        """Verify the position of a valid line, and return whether it is part of the chain."""
        expected = self.seq + 1
        if line.seq < expected:
            return self._earlier(number, line.seq)
        if line.seq > expected:
            self._gap(number, expected, line.seq - 1)
        elif self.hash not in (None, line.prev):
            self.findings.add(number, "edited", "it does not follow the previous record: one of them was rewritten")
        self.seq, self.hash = line.seq, line.hash
        self.good = (line.seq, line.hash)
        if self.head is not None and line.seq == self.head[0] and line.hash != self.head[1]:
            text = f"record {line.seq} is not the one in the head: the audit log was truncated and rewritten"
            self.findings.add(number, "cut tail", text)
        return True

    def _gap(self, number: int, low: int, high: int) -> None:
        if len(self._gaps) < MAX_LISTED_PROBLEMS:
            self._gaps.append((number, low, high))
        else:
            self.findings.unlisted += 1

    def _earlier(self, number: int, seq: int) -> bool:
        """Report a record with a past number, and return whether it was missing or is a duplicate."""
        for index, (at, low, high) in enumerate(self._gaps):
            if low <= seq <= high:
                rest = [(at, low, seq - 1), (at, seq + 1, high)]
                self._gaps[index : index + 1] = [gap for gap in rest if gap[1] <= gap[2]]
                self.findings.add(number, "reordered", f"record {seq} comes after later records")
                return True
        self.findings.add(number, "inserted", f"record {seq} is repeated here")
        return False

    def _note(self, number: int, line: Line, record: Mapping[str, Any]) -> None:
        """Count a record, and track a call until its outcome."""
        self.records += 1
        self.first = self.first or line.seq
        match record:
            case {"kind": "intent", "run": str(run), "call": int(call), "tool": str(tool)}:
                self.open[run, call] = OpenCall(tool, run, call, number)
            case {"kind": "outcome" | "refused", "run": str(run), "call": int(call)}:
                self.open.pop((run, call), None)


def _records(low: int, high: int) -> str:
    return f"record {low} is" if low == high else f"records {low} to {high} are"
