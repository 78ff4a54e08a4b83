"""A trace as text: how the plan ended, and a row for each node; of values as much as fits a line.

A trace may come from a file of somebody else, so nothing of it reaches a terminal unescaped.

Source: issue "Plans", ``neuroscript trace show``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from neuroscript.coercion.plain_data import plain
from neuroscript.io.text import duration, json_text, one_line
from neuroscript.workflow.trace.timeline import Timeline
from neuroscript.workflow.trace.trace import NodeTrace, Trace

LONGEST: Final = 120
"""How many characters of a value are shown."""


class Row(NamedTuple):
    """What is told of a node.

    Attributes:
        name: Its name.
        status: How it has ended.
        tool: The name of its tool.
        attempts: How many calls were made, ``""`` where none was.
        start: How long after the beginning of the run its first call began, likewise.
        took: How long it took, likewise.
        what: What it gave, or why it failed or did not run.
    """

    name: str
    status: str
    tool: str
    attempts: str
    start: str
    took: str
    what: str


HEAD: Final = Row("node", "status", "tool", "attempts", "start", "took", "what came of it")


def rows(trace: Trace) -> Iterator[Row]:
    """Yield a row for each node of a trace."""
    times = Timeline.of(trace)
    for node in trace.nodes:
        offset = times.offset(node)
        start = "" if offset is None else f"+{duration(offset)}"
        count = str(len(node.attempts) or "")
        took = duration(node.seconds) if node.attempts else ""
        yield Row(one_line(node.name), node.status, one_line(node.tool, LONGEST), count, start, took, _what(node))


def _what(node: NodeTrace) -> str:
    if node.error is not None:
        return error_text(node.error)
    return one_line(node.reason, LONGEST) if node.status != "succeeded" else shortened(node.result)


def error_text(error: Any) -> str:
    """Return the code and the message of an error that is plain data, as one line."""
    return ": ".join(filter(None, (one_line(error.get(key), 4 * LONGEST) for key in ("code", "message"))))


def shortened(value: Any, longest: int = LONGEST) -> str:
    """Return a value as one line of JSON that is cut.

    >>> shortened({"a": [1, 2, 3]}, 9)
    '{"a": [1…'
    """
    try:
        text = json_text(plain(value))
    except (TypeError, ValueError, RecursionError):
        text = "…"
    return one_line(text, longest)


def headline(trace: Trace) -> str:
    """Return in one line how a plan has ended."""
    name, run = one_line(trace.plan, LONGEST) or "plan", one_line(trace.run, LONGEST)
    return f"{name}: {trace.status}, {duration(trace.seconds)}{f', run {run}' if run else ''}"


def endings(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield what there is to tell of the whole: its inputs, why it failed or what it gave, and what a model said."""
    if trace.inputs:
        yield "inputs", shortened(trace.inputs)
    if trace.error is not None:
        yield "error", error_text(trace.error)
    else:
        yield "output", shortened(trace.output)
    if trace.answer:
        yield "answer", one_line(trace.answer, 4 * LONGEST)


def trace_text(trace: Trace) -> str:
    """Return a trace as text of several lines: how the plan ended, a row for each node, and what the plan gave.

    >>> from neuroscript.workflow.trace.trace import Attempt
    >>> print(trace_text(Trace(run="", plan="p", digest="", inputs={}, status="succeeded", nodes=(
    ...     NodeTrace("a", "math.add", "succeeded", result=3, attempts=(Attempt(1, None, 5.0, 0.5),)),
    ... ), output=3, started=5.0, seconds=0.5)))
    p: succeeded, 500 ms
    <BLANKLINE>
    node  status     tool      attempts  start  took    what came of it
    a     succeeded  math.add  1         +0 ms  500 ms  3
    <BLANKLINE>
    output: 3
    """
    table = [HEAD, *rows(trace)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(f"{cell:<{room}}" for cell, room in zip(row, widths, strict=True)).rstrip() for row in table)
    ends = [f"{name}: {text}" for name, text in endings(trace)]
    return "\n".join([headline(trace), "", *lines, "", *ends])
