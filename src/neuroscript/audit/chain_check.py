"""A chain followed line by line: what was edited, taken out, put in, moved or cut off, in memory that does not grow.

Source: issue "Authority", audit: verify finds any edited, removed, inserted or reordered record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.audit.chain import ZEROS, Line, Seal, line_of
from neuroscript.audit.reader import data_of

What = Literal[
    "edited", "removed", "inserted", "reordered", "cut tail", "torn tail", "torn tail repaired", "wrong key", "damaged"
]
"""What can be wrong with a trail."""

LISTED: Final = 1000
"""How many problems are kept; further ones are counted."""


@attrs.frozen
class Found:
    """Something that is wrong with a trail.

    Attributes:
        line: The number of the line, from 1; where lines are missing, of the one behind them. 0 means the whole file.
        what: One of the words of `What`.
        text: What it is, in a sentence.
    """

    line: int
    what: What
    text: str


@attrs.frozen
class OpenCall:
    """A call that began and of which no outcome stands in the trail.

    Attributes:
        tool: The canonical name of the tool.
        run: The id of the engine.
        call: The number of the call within the run.
        line: Of the record that it began; of a database the id of the row.
    """

    tool: str
    run: str
    call: int
    line: int


@attrs.define
class Findings:
    """The problems so far, as many as are kept."""

    listed: list[Found] = attrs.field(factory=list)
    unlisted: int = 0

    def add(self, line: int, what: What, text: str) -> None:
        """Keep a problem, or count it."""
        if len(self.listed) < LISTED:
            self.listed.append(Found(line, what, text))
        else:
            self.unlisted += 1


@attrs.define
class Pending:
    """Lines in a row that are no record of the chain; what they are, the next one tells."""

    lines: list[int] = attrs.field(factory=list)
    count: int = 0
    size: int = 0
    digest: Any = attrs.field(factory=hashlib.sha256)

    def add(self, number: int, raw: bytes) -> None:
        """Take one more."""
        if len(self.lines) < LISTED:
            self.lines.append(number)
        self.count += 1
        self.size += len(raw)
        self.digest.update(raw)

    def is_cut_by(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a record says of exactly these bytes that they are a torn tail."""
        told = (record.get("kind"), record.get("cut"), record.get("sha256"))
        return told == ("recovered", self.size, self.digest.hexdigest())


@attrs.define
class Chain:
    """A chain as far as it was followed.

    Attributes:
        seal: What the hashes must fit; None where the key is not known, and the links alone are looked at.
        head: The number and the hash of a record that must be there, or None.
        findings: What is wrong so far.
        records: How many records were well.
        first: The number of the first of them, 0 where there is none.
        seq: The number of the last of them, or of lines behind it that take the place of a record.
        hash: The hash of the last record, or None where it is not known.
        good: The number and the hash of the last record that was well.
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
        """Follow the chain over one line."""
        self._last = number
        line, record = line_of(raw), data_of(raw)
        if line is None or record is None or not (self.seal is None or self.seal.fits(line)):
            if not raw.endswith(b"\n"):
                text = (
                    "the file ends within a record, as after a crash; the next FileAudit on it will say so in a record"
                )
                self.findings.add(number, "torn tail", text)
                return
            self._pending.add(number, raw)
            return
        if self._pending.count:
            self._settle(line, record)
        elif self._pending.is_cut_by(record):
            text = "the record before it had lost the end of its line: a crash or a full disk cut a write"
            self.findings.add(number, "torn tail repaired", text)
        elif record.get("kind") == "recovered" and record.get("cut"):
            self.findings.add(number, "removed", "the torn bytes of which it tells are missing before it")
        if self._link(number, line):
            self._note(number, line, record)

    def end(self) -> None:
        """Tell what can only be told at the end."""
        self.seq += self._pending.count
        self._report_pending(self._pending.count)
        for number, low, high in self._gaps:
            self.findings.add(number, "removed", f"{_records(low, high)} missing before it")
        if self.head is not None and self.seq < self.head[0]:
            text = f"{_records(self.seq + 1, self.head[0])} missing at the end"
            self.findings.add(self._last + 1, "cut tail", text)
        self.findings.listed.sort(key=lambda found: found.line)

    def _settle(self, line: Line, record: Mapping[str, Any]) -> None:
        """Tell what the lines before a good one are: a torn tail, edited records, or more lines than records."""
        pending = self._pending
        missing = max(0, line.seq - self.seq - 1)
        if not missing and pending.is_cut_by(record):
            text = (
                f"{pending.size} bytes are no record: a crash or a full disk cut a write, and the next writer said so"
            )
            self.findings.add(pending.lines[0], "torn tail repaired", text)
            self._pending = Pending()
            return
        self._report_pending(missing)
        if missing:
            self.seq, self.hash = self.seq + min(missing, pending.count), None

    def _report_pending(self, missing: int) -> None:
        """Report the lines that are no records, as many of them as edited as there are records *missing*."""
        pending, self._pending = self._pending, Pending()
        for index, number in enumerate(pending.lines):
            if index < missing:
                self.findings.add(number, "edited", "it does not have its hash, or is no record at all")
            else:
                self.findings.add(number, "inserted", "it is no record of this chain, and none is missing here")
        self.findings.unlisted += pending.count - len(pending.lines)

    def _link(self, number: int, line: Line) -> bool:
        """Look at where a good line stands, and tell whether it is one of the chain's."""
        expected = self.seq + 1
        if line.seq < expected:
            return self._earlier(number, line.seq)
        if line.seq > expected:
            self._gap(number, expected, line.seq - 1)
        elif self.hash not in (None, line.prev):
            self.findings.add(number, "edited", "it does not follow the record before it: one of them was made anew")
        self.seq, self.hash = line.seq, line.hash
        self.good = (line.seq, line.hash)
        if self.head is not None and line.seq == self.head[0] and line.hash != self.head[1]:
            text = f"record {line.seq} is another one than the head names: the trail was cut and written anew"
            self.findings.add(number, "cut tail", text)
        return True

    def _gap(self, number: int, low: int, high: int) -> None:
        if len(self._gaps) < LISTED:
            self._gaps.append((number, low, high))
        else:
            self.findings.unlisted += 1

    def _earlier(self, number: int, seq: int) -> bool:
        """Tell whether a record with a number that was passed is one that was missing, or stands here once more."""
        for index, (at, low, high) in enumerate(self._gaps):
            if low <= seq <= high:
                rest = [(at, low, seq - 1), (at, seq + 1, high)]
                self._gaps[index : index + 1] = [gap for gap in rest if gap[1] <= gap[2]]
                self.findings.add(number, "reordered", f"record {seq} stands behind later ones")
                return True
        self.findings.add(number, "inserted", f"record {seq} stands here once more")
        return False

    def _note(self, number: int, line: Line, record: Mapping[str, Any]) -> None:
        """Count a record, and remember a call until its outcome comes."""
        self.records += 1
        self.first = self.first or line.seq
        match record:
            case {"kind": "intent", "run": str(run), "call": int(call), "tool": str(tool)}:
                self.open[run, call] = OpenCall(tool, run, call, number)
            case {"kind": "outcome" | "refused", "run": str(run), "call": int(call)}:
                self.open.pop((run, call), None)


def _records(low: int, high: int) -> str:
    return f"record {low} is" if low == high else f"records {low} to {high} are"
