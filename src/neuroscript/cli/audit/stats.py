"""``neuroscript audit stats``: calls by tool, with their outcomes, durations and refusals."""

from __future__ import annotations

from argparse import Namespace
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

import attrs

from neuroscript.audit.reader import read
from neuroscript.cli.audit.rows import Entry, entry_of
from neuroscript.cli.audit.show import Unread
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.io.text import duration


@attrs.define
class ToolStats:
    """The numbers of one tool.

    Attributes:
        calls: The number of calls, including refused ones.
        codes: The number of calls by outcome.
        seconds: The duration of each call that ran.
    """

    calls: int = 0
    codes: Counter[str] = attrs.field(factory=Counter)
    seconds: array[float] = attrs.field(factory=lambda: array("d"))

    def spans(self) -> tuple[float, float, float] | None:
        """Return the minimum, median and maximum duration in seconds, or None if no call ran."""
        return (min(self.seconds), median(self.seconds), max(self.seconds)) if self.seconds else None


@attrs.define
class AuditStats:
    """The numbers of an audit log."""

    records: int = 0
    tools: dict[str, ToolStats] = attrs.field(factory=dict)
    refusals: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    begun: set[tuple[str, int]] = attrs.field(factory=set)

    def take(self, entries: Iterable[Entry]) -> None:
        """Count entries; a call counts once, even if only its intent or only its outcome is recorded."""
        for entry in entries:
            self.records += 1
            if entry.kind not in ("intent", "outcome", "refused"):
                continue
            tool = self.tools.setdefault(entry.tool, ToolStats())
            if entry.key not in self.begun:
                tool.calls += 1
            if entry.kind == "intent":
                self.begun.add(entry.key)
                continue
            self.begun.discard(entry.key)
            tool.codes[entry.code] += 1
            if entry.kind == "refused":
                self.refusals[entry.rule, entry.code] += 1
            else:
                tool.seconds.append(entry.seconds)


def stats(options: Namespace, output: Output) -> int:
    """Show the numbers of an audit log and return the exit code."""
    unread, numbers = Unread(), AuditStats()
    numbers.take(map(entry_of, read(options.file, unread=unread)))
    unread.report(options.file, numbers.records, output)
    if options.json:
        output.json(_data(numbers))
    elif numbers.records:
        show(_blocks(numbers), output)
    return OK


def _data(numbers: AuditStats) -> dict[str, Any]:
    tools = {}
    for name, tool in sorted(numbers.tools.items()):
        tools[name] = {"calls": tool.calls, "codes": dict(tool.codes.most_common())}
        spans = tool.spans()
        if spans is not None:
            tools[name]["seconds"] = dict(zip(("min", "median", "max"), spans, strict=True))
    refusals = [{"rule": rule, "code": code, "calls": n} for (rule, code), n in numbers.refusals.most_common()]
    return {
        "records": numbers.records,
        "calls": sum(tool.calls for tool in numbers.tools.values()),
        "without_outcome": len(numbers.begun),
        "tools": tools,
        "refusals": refusals,
    }


def _blocks(numbers: AuditStats) -> Iterator[Rows]:
    calls = sum(tool.calls for tool in numbers.tools.values())
    yield line(f"{_counted(calls, 'call')} in {_counted(numbers.records, 'record')}", "title")
    if numbers.tools:
        yield EMPTY
        head = (
            Cell("tool", "title"),
            Cell("calls", "title"),
            Cell("min / median / max", "title"),
            Cell("ended", "title"),
        )
        yield Rows((head, *(_row(name, tool) for name, tool in sorted(numbers.tools.items()))))
    if numbers.refusals:
        yield from (EMPTY, line("refusals by rule", "title"), Rows(tuple(_refusals(numbers.refusals))))
    if numbers.begun:
        yield from (
            EMPTY,
            line(f"{_counted(len(numbers.begun), 'call')} without outcome; see neuroscript audit verify"),
        )


def _row(name: str, tool: ToolStats) -> tuple[Cell, ...]:
    spans = tool.spans()
    took = " / ".join(map(duration, spans)) if spans else "-"
    ended = ", ".join(f"{code} {count}" for code, count in tool.codes.most_common())
    return cell(name, "name"), Cell(f"{tool.calls:>5}"), Cell(took), cell(ended)


def _refusals(refusals: Counter[tuple[str, str]]) -> Iterator[tuple[Cell, ...]]:
    for (rule, code), count in refusals.most_common():
        yield Cell(f"{count:>5}"), cell(rule or "-"), cell(code, "bad")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
