"""What it takes to write the schemas of 1,000 tools: once, again, and as JSON text.

Source: issue "Authoring", done when.
"""

from __future__ import annotations

import json
from time import perf_counter, process_time
from typing import Final, NamedTuple

import attrs

from neuroscript import ArgSpec, ArgType, ToolSpec, spec_to_schema

from .harness import Seconds, quiet_memory

TOOLS: Final = 1_000
FIRST_GOAL: Final = 20.0
"""At most how many times `json.dumps` of the schemas the first time takes."""

AGAIN_GOAL: Final = 0.05
"""At most how many times the first time the second one takes."""

SPEC: Final = ToolSpec(
    "count_tags",
    "texts",
    (
        ArgSpec("text", ArgType.STRING, description="Where to look.", max_length=10_000),
        ArgSpec("tags", ArgType.SLICE_STRING, default=["a", "b"], description="What to count."),
        ArgSpec("most", ArgType.INT, default=10, minimum=1, maximum=100, description="How many at the most."),
        ArgSpec("how", ArgType.MAP, required=False, keys=(ArgSpec("case", ArgType.BOOL), ArgSpec("at", ArgType.ANY))),
    ),
    return_type=ArgType.INT,
    description="Count tags in a text.",
    when_to_use="When a text has tags.",
)


class Least(NamedTuple):
    """The least time of each part, in seconds."""

    first: Seconds
    again: Seconds
    text: Seconds


def fastest(rounds: int) -> Least:
    """Return the least times of so many rounds, each with specs that were never written before."""
    with quiet_memory():
        found = [_round() for _ in range(rounds)]
    return Least(*(Seconds(*map(min, zip(*part, strict=True))) for part in zip(*found, strict=True)))


def _round() -> Least:
    specs = [attrs.evolve(SPEC, name=f"tool_{index}") for index in range(TOOLS)]
    started = _now()
    first = [spec_to_schema(spec) for spec in specs]
    written = _now()
    again = [spec_to_schema(spec) for spec in specs]
    repeated = _now()
    text = json.dumps(first)
    ended = _now()
    assert len(again) == TOOLS
    assert text
    return Least(_between(started, written), _between(written, repeated), _between(repeated, ended))


def _now() -> Seconds:
    return Seconds(perf_counter(), process_time())


def _between(start: Seconds, end: Seconds) -> Seconds:
    return Seconds(*(later - earlier for earlier, later in zip(start, end, strict=True)))
