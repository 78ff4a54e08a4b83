"""A trace as text: the status of the plan and one row for each node, with values cut to a line.

A trace may come from an untrusted file, so everything is escaped for the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from neuroscript.coercion.plain_data import to_plain
from neuroscript.io.text import duration, json_text, one_line
from neuroscript.workflow.trace.timeline import Timeline
from neuroscript.workflow.trace.trace import NodeTrace, Trace

MAX_VALUE_CHARS: Final = 120
"""Maximum characters of a value."""


class Row(NamedTuple):
    """The row of a node.

    Attributes:
        name: The name of the node.
        status: Its status.
        tool: The name of its tool.
        attempts: The number of calls, or ``""``.
        start: When its first call began, relative to the start of the run, or ``""``.
        took: How long it took, or ``""``.
        labels: The labels of its result or its error, or ``""``.
        what: Its result, or why it failed or did not run.
    """

    name: str
    status: str
    tool: str
    attempts: str
    start: str
    took: str
    labels: str
    what: str


HEAD: Final = Row("node", "status", "tool", "attempts", "start", "took", "labels", "outcome")


def table(trace: Trace) -> list[tuple[str, ...]]:
    """Return the heading and a row for each node of a trace, without the column of labels if it is empty."""
    found = [HEAD, *_rows(trace)]
    return [*found] if any(row.labels for row in found[1:]) else [(*row[:-2], row.what) for row in found]


def _rows(trace: Trace) -> Iterator[Row]:
    """Yield a row for each node of a trace."""
    times = Timeline.of(trace)
    for node in trace.nodes:
        offset = times.offset(node)
        start = "" if offset is None else f"+{duration(offset)}"
        count = str(len(node.attempts) or "")
        took = duration(node.seconds) if node.attempts else ""
        yield Row(
            one_line(node.name),
            node.status,
            one_line(node.tool, MAX_VALUE_CHARS),
            count,
            start,
            took,
            labels_text(node),
            _result_text(node),
        )


def labels_text(node: NodeTrace) -> str:
    """Return the names of the labels of a node."""
    return one_line(", ".join(node.labels), MAX_VALUE_CHARS)


def _result_text(node: NodeTrace) -> str:
    if node.error is not None:
        return error_text(node.error)
    return one_line(node.reason, MAX_VALUE_CHARS) if node.status != "succeeded" else short_json(node.result)


def error_text(error: Any) -> str:
    """Return the code and the message of an error as one line."""
    return ": ".join(filter(None, (one_line(error.get(key), 4 * MAX_VALUE_CHARS) for key in ("code", "message"))))


def short_json(value: Any, longest: int = MAX_VALUE_CHARS) -> str:
    """Return a value as one line of JSON, cut to *longest* characters.

    >>> short_json({"a": [1, 2, 3]}, 9)
    '{"a": [1…'
    """
    try:
        text = json_text(to_plain(value))
    except (TypeError, ValueError, RecursionError):
        text = "…"
    return one_line(text, longest)


def headline(trace: Trace) -> str:
    """Return one line with the status of the plan."""
    name, run = one_line(trace.plan, MAX_VALUE_CHARS) or "plan", one_line(trace.run, MAX_VALUE_CHARS)
    return f"{name}: {trace.status}, {duration(trace.seconds)}{f', run {run}' if run else ''}"


def endings(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield the inputs, the error or the output, and the answer of a model."""
    if trace.inputs:
        yield "inputs", short_json(trace.inputs)
    if trace.error is not None:
        yield "error", error_text(trace.error)
    else:
        yield "output", short_json(trace.output)
    if trace.answer:
        yield "answer", one_line(trace.answer, 4 * MAX_VALUE_CHARS)


def trace_text(trace: Trace) -> str:
    """Return a trace as text of several lines: the status, a row for each node, and the output.

    >>> from neuroscript.workflow.trace.trace import Attempt
    >>> print(trace_text(Trace(run="", plan="p", digest="", inputs={}, status="succeeded", nodes=(
    ...     NodeTrace("a", "math.add", "succeeded", result=3, attempts=(Attempt(1, None, 5.0, 0.5),)),
    ... ), output=3, started=5.0, seconds=0.5)))
    p: succeeded, 500 ms
    <BLANKLINE>
    node  status     tool      attempts  start  took    outcome
    a     succeeded  math.add  1         +0 ms  500 ms  3
    <BLANKLINE>
    output: 3
    """
    rows = table(trace)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:<{room}}" for cell, room in zip(row, widths, strict=True)).rstrip() for row in rows)
    ends = [f"{name}: {text}" for name, text in endings(trace)]
    return "\n".join([headline(trace), "", *lines, "", *ends])
