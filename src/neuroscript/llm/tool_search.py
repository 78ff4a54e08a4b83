"""Search in a conversation with many tools: the model is offered a search, and then also the tools that it found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from neuroscript.coercion.context import LAX
from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall, ToolResult, Turn
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.binding import bind_arguments, parse_arguments
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.search import DEFAULT_LIMIT, ToolIndex

MAX_RESULTS: Final = 20
"""Maximum number of tools that one search finds."""

GROUP: Final = "tools"
NAME: Final = "search"

NOTHING: Final = "No tool contains any of these words. Search with other words for what the tool does."
"""What a model reads if a search finds nothing."""

SEARCH_ARGS: Final = (
    ArgSpec("query", ArgType.STRING, description="Words for what the tool does, in English, or its name."),
    ArgSpec(
        "limit",
        ArgType.INT,
        default=DEFAULT_LIMIT,
        minimum=1,
        maximum=MAX_RESULTS,
        description="Maximum number of tools.",
    ),
)
"""The arguments of a search."""


@attrs.define(eq=False, repr=False)
class FoundTools:
    """The tools that a model has found in a conversation; each of them is offered from the next request on.

    Attributes:
        spec: The search as a tool, which the model is always offered.
    """

    spec: ToolSpec
    _index: ToolIndex[ToolSpec]
    _names: WireNames
    _found: dict[str, ToolSpec]

    @classmethod
    def of(cls, tools: Sequence[ToolSpec], history: Iterable[Turn] = ()) -> FoundTools:
        """Return a search over *tools*; those that were called in *history* count as found.

        Raises:
            RegistryError: Two tools would have the same name for the model.
        """
        known = {spec.full_name: spec for spec in tools}
        called = [from_wire(call.name) for turn in history for call in turn.tool_calls if isinstance(call.name, str)]
        found = {name: known[name] for name in called if name in known}
        return cls(_search_spec(known.keys(), len(tools)), ToolIndex(tools), WireNames.of(tools), found)

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The search and the found tools, in the order in which they were found."""
        return (self.spec, *self._found.values())

    def result(self, call: ToolCall) -> ToolResult | None:
        """Return the result of a search, or None if a call is one of a real tool.

        Invalid arguments are an error in the result, with every problem.
        """
        name = self.spec.full_name
        if not isinstance(call.name, str) or from_wire(call.name) != name:
            return None
        try:
            arguments = parse_arguments(call.arguments, name)
            by_name = isinstance(arguments, dict)
            query, limit = bind_arguments(self.spec, LAX, arguments, by_name=by_name)
        except ArgumentError as error:
            return ToolResult(call.id, name, error=error)
        found = self._index.search(query, limit)
        self._found |= {spec.full_name: spec for spec in found}
        listed = ", ".join(self._names.wire(spec.full_name) for spec in found)
        return ToolResult(call.id, name, f"You can now call: {listed}" if listed else NOTHING)


def _search_spec(taken: Iterable[str], count: int) -> ToolSpec:
    """Return the search as a tool, whose name no tool has."""
    names, name = {*taken}, NAME
    while f"{GROUP}.{name}" in names:
        name = f"{name}_tools"
    return ToolSpec(
        name,
        GROUP,
        SEARCH_ARGS,
        return_type=ArgType.STRING,
        description=f"Search {count} more tools. You can call those that it finds.",
    )
