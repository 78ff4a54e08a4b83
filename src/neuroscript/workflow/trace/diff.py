"""Differences between two runs by path: the plan, the status of nodes, their arguments and their results.

Two runs never take exactly the same time, so times are reported only if they differ by much, and marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import MAX_LISTED_PROBLEMS
from neuroscript.io.text import duration
from neuroscript.io.toml import Place
from neuroscript.io.toml_errors import place_name
from neuroscript.workflow.trace.text import error_text, short_json
from neuroscript.workflow.trace.trace import NodeTrace, Trace

MAX_VALUE_CHARS: Final = 80
"""Maximum characters of a value in a difference."""

MIN_TIME_RATIO: Final = 1.5
"""The ratio from which on a difference in time is reported."""

MIN_DIFFERENCE_SECONDS: Final = 0.01
"""The difference in seconds from which on times are reported."""

ABSENT: Final = object()
"""Marks a value that one side lacks."""


@attrs.frozen
class TraceDifference:
    """One difference between two traces.

    Attributes:
        path: The path of the value, such as ``nodes.fetch.arguments.limit``.
        text: The new and the old value.
        is_time: Whether only a duration differs.
    """

    path: str
    text: str
    is_time: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def trace_diff(a: Trace, b: Trace) -> tuple[TraceDifference, ...]:
    """Return all differences between two traces: first those of the whole run, then those of each node.

    Args:
        a: The old trace.
        b: The new trace.
    """
    return tuple(_of_the_whole(a, b)) + tuple(_of_the_nodes(a, b))


def _of_the_whole(a: Trace, b: Trace) -> Iterator[TraceDifference]:
    if a.digest != b.digest:
        yield TraceDifference("plan", "has changed")
    yield from _values(("inputs",), a.inputs, b.inputs)
    yield from _values(("status",), a.status, b.status)
    yield from _values(("error",), _error(a.error), _error(b.error))
    yield from _values(("output",), a.output, b.output)
    yield from _values(("answer",), a.answer, b.answer)
    yield from _times(("seconds",), a.seconds, b.seconds)


def _of_the_nodes(a: Trace, b: Trace) -> Iterator[TraceDifference]:
    old, new = ({node.name: node for node in trace.nodes} for trace in (a, b))
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield TraceDifference(place_name(("nodes", name)), "was removed")
        elif name not in old:
            yield TraceDifference(place_name(("nodes", name)), "was added")
        else:
            yield from _of_a_node(("nodes", name), old[name], new[name])


def _of_a_node(place: Place, a: NodeTrace, b: NodeTrace) -> Iterator[TraceDifference]:
    for part in ("tool", "status", "needs", "arguments", "result", "reason", "labels"):
        yield from _values((*place, part), getattr(a, part), getattr(b, part))
    yield from _values((*place, "error"), _error(a.error), _error(b.error))
    yield from _values((*place, "attempts"), len(a.attempts), len(b.attempts))
    if a.attempts and b.attempts:
        yield from _times((*place, "seconds"), a.seconds, b.seconds)


def _error(error: Mapping[str, Any] | None) -> Any:
    """Return the parts of an error that are compared: its code and its message."""
    return None if error is None else error_text(error)


def _times(place: Place, was: float, now: float) -> Iterator[TraceDifference]:
    low, high = sorted((was, now))
    if high - low < MIN_DIFFERENCE_SECONDS or high < MIN_TIME_RATIO * low:
        return
    ratio = f", {high / low:.3g} times {'as long' if now == high else 'as fast'}" if low > 0 else ""
    yield TraceDifference(place_name(place), f"{duration(now)}, was {duration(was)}{ratio}", True)


def _values(place: Place, was: Any, now: Any) -> Iterator[TraceDifference]:
    """Yield the differences between two values: the first `MAX_LISTED_PROBLEMS`, and the number of further ones."""
    found = [*_iter_differences(place, to_plain(was), to_plain(now))]
    for where, old, new in found[:MAX_LISTED_PROBLEMS]:
        yield TraceDifference(place_name(where), _format_change(old, new))
    if len(found) > MAX_LISTED_PROBLEMS:
        yield TraceDifference(place_name(place), f"differs in {len(found) - MAX_LISTED_PROBLEMS} more places")


def _iter_differences(place: Place, was: Any, now: Any) -> Iterator[tuple[Place, Any, Any]]:
    """Yield the places at which two plain values differ, with both values."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*was, *now)):
            yield from _iter_differences((*place, key), was.get(key, ABSENT), now.get(key, ABSENT))
    elif isinstance(was, list) and isinstance(now, list):
        for index in range(max(len(was), len(now))):
            old, new = (each[index] if index < len(each) else ABSENT for each in (was, now))
            yield from _iter_differences((*place, index), old, new)
    elif type(was) is not type(now) or repr(was) != repr(now):
        yield place, was, now


def _format_change(was: Any, now: Any) -> str:
    if was is ABSENT:
        return f"{_short(now)}, was missing"
    return f"is missing, was {_short(was)}" if now is ABSENT else f"{_short(now)}, was {_short(was)}"


def _short(value: Any) -> str:
    return short_json(value, MAX_VALUE_CHARS)
