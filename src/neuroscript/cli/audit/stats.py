"""``neuroscript audit stats``: calls by tool, with their outcomes, durations and refusals."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from typing import Any

from neuroscript.audit.entries import entry_of
from neuroscript.audit.reader import read
from neuroscript.audit.statistics import AuditStats, ToolStats
from neuroscript.cli.audit.show import Unread
from neuroscript.cli.terminal.exit_codes import OK
from neuroscript.cli.terminal.output import EMPTY, Cell, Output, Rows, cell, line
from neuroscript.cli.terminal.printing import show
from neuroscript.io.text import duration


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
        "calls": numbers.calls,
        "without_outcome": len(numbers.begun),
        "tools": tools,
        "refusals": refusals,
    }


def _blocks(numbers: AuditStats) -> Iterator[Rows]:
    yield line(f"{_counted(numbers.calls, 'call')} in {_counted(numbers.records, 'record')}", "title")
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
