"""Two tools in place of a long list: ``search_tools`` finds tools, and ``call_tool`` calls one of them.

A search returns what ``tools/list`` would contain, so only tools that the client may call. A call through ``call_tool``
becomes the call of that tool before anything else sees it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.interop.mcp.server.results import to_result
from neuroscript.io.text import sendable
from neuroscript.llm.tool_search import NOTHING, SEARCH_ARGS
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import ToolInfo, ToolResult
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.binding import bind_named
from neuroscript.spec.tool_spec import ArgSpec, ToolSpec
from neuroscript.tools.search import ToolIndex

if TYPE_CHECKING:
    from neuroscript.interop.mcp.server.client_session import Client

MAX_GROUPS_CHARS: Final = 500
"""Maximum length of the list of groups in the description of ``search_tools``, in characters."""

FOUND: Final = ArgSpec(
    "result",
    ArgType.MAP,
    keys=(ArgSpec("tools", ArgType.SLICE_MAP, description="The tools, best first, as in tools/list."),),
)
SEARCH: Final = ToolSpec("search_tools", "catalog", SEARCH_ARGS, returns=FOUND)
CALL: Final = ToolSpec(
    "call_tool",
    "catalog",
    (
        ArgSpec("name", ArgType.STRING, description="The name of a tool, as search_tools returns it."),
        ArgSpec(
            "arguments",
            ArgType.MAP,
            required=False,
            description="The arguments of the tool by name, as in its inputSchema.",
        ),
    ),
    description="Call a tool that search_tools has found. Its result is the result of that tool.",
)
OWN_SPECS: Final = {spec.name: spec for spec in (SEARCH, CALL)}
"""The two tools by their names, which no other tool of such a server has."""

OWN_NAMES: Final = WireNames.under({spec.full_name: name for name, spec in OWN_SPECS.items()})
LOOKS_UP: Final = ToolPolicy(effects=("reads", "idempotent"))
CALL_DEFINITION: Final = {**to_mcp([CALL], names=OWN_NAMES, structured=False)[0], "title": "Call a tool"}


@attrs.define(eq=False, repr=False)
class ToolSearch:
    """The search of one server; its clients share the index, because they all may call the same tools.

    Attributes:
        above: The number of tools above which a client receives the two tools instead of the list.
    """

    above: int
    _indexes: dict[bool, tuple[Mapping[str, ToolInfo], ToolIndex[ToolInfo]]] = attrs.field(factory=dict)
    _lock: Lock = attrs.field(factory=Lock)

    def replaces(self, tools: list[ToolInfo]) -> bool:
        """Return whether a client with these tools receives the two tools instead."""
        return len(tools) > self.above

    def definitions(self, tools: list[ToolInfo]) -> list[dict[str, Any]]:
        """Return the two tools in the wire format of MCP.

        Args:
            tools: The tools that can be found; the description says how many there are, and in which groups.
        """
        spec = attrs.evolve(
            SEARCH,
            description=f"Search {len(tools)} tools, and return the definitions of those that fit best. "
            f"Call them with {CALL.name}. Groups of tools: {_groups(tools)}.",
        )
        listed = to_mcp([ToolInfo(spec, LOOKS_UP, "host")], names=OWN_NAMES)
        return [{**listed[0], "title": "Search for tools"}, CALL_DEFINITION]

    async def respond(
        self, client: Client, name: str, arguments: Mapping[str, Any]
    ) -> dict[str, Any] | tuple[str, Any]:
        """Return the result of a call of one of the two tools, or the name and arguments of the call it stands for.

        Invalid arguments return an error with every problem.

        Args:
            name: A key of `OWN_SPECS`.
        """
        try:
            if name == CALL.name:
                return _target(arguments)
            return await self._found(client, *bind_named(SEARCH, arguments))
        except ArgumentError as error:
            return to_result(ToolResult("", OWN_SPECS[name].full_name, error=error))

    async def _found(self, client: Client, query: str, limit: int) -> dict[str, Any]:
        """Return the found tools: their definitions as structured content, and what a model needs as text."""
        index = await self._index(client)
        found = client.definitions(index.search(query, limit))
        content = [{"type": "text", "text": model_text(found) if found else NOTHING}]
        return {"content": content, "isError": False, "structuredContent": {"tools": found}}

    async def _index(self, client: Client) -> ToolIndex[ToolInfo]:
        """Return the index of the client's tools, which is made once for each set of tools, on a thread."""
        infos, kind = client.session.infos, client.is_lasting  # the two kinds of clients have different tools
        known = self._indexes.get(kind)
        if known is not None and _is_same(known[0], infos):
            return known[1]
        return await asyncio.to_thread(self._made, kind, infos, client.listed())

    def _made(self, kind: bool, infos: Mapping[str, ToolInfo], tools: list[ToolInfo]) -> ToolIndex[ToolInfo]:
        with self._lock:  # searches at the same time wait for one index
            known = self._indexes.get(kind)
            if known is None or not _is_same(known[0], infos):
                known = self._indexes[kind] = infos, ToolIndex(tools)
            return known[1]


def _is_same(before: Mapping[str, ToolInfo], now: Mapping[str, ToolInfo]) -> bool:
    return before is now or dict(before) == dict(now)


def _target(arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name and the arguments of the call that ``call_tool`` stands for.

    The arguments are passed on unchanged, as a map or as JSON text, and converted to the types of the tool later.

    Raises:
        ArgumentError: With every problem of the two arguments.
    """
    passed = arguments.get("arguments")
    is_readable = isinstance(passed, (dict, str))
    name, _ = bind_named(CALL, {**arguments, "arguments": {}} if is_readable else arguments)
    return name, passed if is_readable else {}


def model_text(definitions: Sequence[Mapping[str, Any]]) -> str:
    """Return what a model needs of tool definitions, as JSON text: names, descriptions and schemas of arguments."""
    shown = [{key: each[key] for key in ("name", "description", "inputSchema") if key in each} for each in definitions]
    return sendable(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))


def _groups(tools: list[ToolInfo]) -> str:
    """Return the groups of tools, as far as there is room for them."""
    return ", ".join(_that_fit(sorted({tool.spec.group for tool in tools}), MAX_GROUPS_CHARS))


def _that_fit(names: list[str], chars: int) -> Iterator[str]:
    for at, name in enumerate(names):
        chars -= len(name) + 2
        if chars < 0:
            yield f"and {len(names) - at} more"
            return
        yield name
