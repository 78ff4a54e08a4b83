"""What it takes to write 1,000 tools, as schemas and as the APIs of models take them: once, again, and as JSON text.

Source: issues "Authoring" and "Models", done when.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from time import perf_counter, process_time
from typing import Any, Final, NamedTuple

import attrs

from neuroscript import ArgSpec, ArgType, Example, ToolSpec, spec_to_schema
from neuroscript.llm.wire import anthropic as anthropic_api
from neuroscript.llm.wire import gemini as gemini_api
from neuroscript.llm.wire.openai import to_tools

from .harness import Seconds, quiet_memory

TOOLS: Final = 1_000
FIRST_GOAL: Final = 20.0
"""At most how many times `json.dumps` of what is written the first time takes."""

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


CLOSED: Final = attrs.evolve(SPEC, args=SPEC.args[:-1], examples=(Example({"text": "a b a", "tags": ["a"]}, 2),))
"""The same without what is free, so that strict modes take it, and with an example."""

Write = Callable[[list[ToolSpec]], list[Any]]
"""What writes tools."""


def schemas(specs: list[ToolSpec]) -> list[Any]:
    """Write tools as schemas."""
    return [spec_to_schema(spec) for spec in specs]


def openai(specs: list[ToolSpec]) -> list[Any]:
    """Write tools for OpenAI, every second one in strict mode."""
    return to_tools(specs)


def anthropic(specs: list[ToolSpec]) -> list[Any]:
    """Write tools for Anthropic, every second one with an example."""
    return anthropic_api.to_tools(specs)


def gemini(specs: list[ToolSpec]) -> list[Any]:
    """Write tools for Gemini."""
    declared: list[Any] = gemini_api.to_tools(specs)[0]["functionDeclarations"]
    return declared


WRITERS: Final[Mapping[str, Write]] = {"OpenAI": openai, "Anthropic": anthropic, "Gemini": gemini}
"""What writes tools for the APIs of models."""


class Least(NamedTuple):
    """The least time of each part, in seconds."""

    first: Seconds
    again: Seconds
    text: Seconds


def fastest(rounds: int, write: Write = schemas) -> Least:
    """Return the least times of so many rounds, each with specs that were never written before."""
    with quiet_memory():
        found = [_round(write) for _ in range(rounds)]
    return Least(*(Seconds(*map(min, zip(*part, strict=True))) for part in zip(*found, strict=True)))


def _round(write: Write) -> Least:
    kinds = (SPEC, SPEC if write is schemas else CLOSED)
    specs = [attrs.evolve(kinds[index % 2], name=f"tool_{index}") for index in range(TOOLS)]
    started = _now()
    first = write(specs)
    written = _now()
    again = write(specs)
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
