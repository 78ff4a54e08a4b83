"""The time to write 1,000 tools as schemas and for model APIs: once, again, and as JSON text."""

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
"""The maximum ratio of the first time to `json.dumps` of its result."""

AGAIN_GOAL: Final = 0.05
"""The maximum ratio of the second time to the first one."""

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
    description="Count tags in a post.",
    when_to_use="When a post has tags.",
)


CLOSED: Final = attrs.evolve(SPEC, args=SPEC.args[:-1], examples=(Example({"text": "a b a", "tags": ["a"]}, 2),))
"""The same without free-form values, so strict modes accept it, and with an example."""

Write = Callable[[list[ToolSpec]], list[Any]]
"""A function that writes tools."""


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
"""A function that writes tools, by model API."""


class Least(NamedTuple):
    """The minimum time of each part, in seconds."""

    first: Seconds
    again: Seconds
    text: Seconds


def fastest(rounds: int, write: Write = schemas) -> Least:
    """Return the minimum times of *rounds* rounds, each with specs that were never written before."""
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
