"""The list of tools: what provides each, whether it may run, and the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

import attrs

from neuroscript.console.effects import is_harmless
from neuroscript.engine.engine import Engine
from neuroscript.engine.explanation.findings import find_refusal
from neuroscript.engine.explanation.tool_sources import source_of
from neuroscript.engine.session import Session
from neuroscript.errors import PluginError
from neuroscript.io.text import one_line
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.tools.search import ToolIndex
from neuroscript.tools.tool import ToolImplementation

PAGE_SIZE: Final = 50
"""Number of tools on one page."""

MAX_SUMMARY_CHARS: Final = 160
MAX_QUERY_CHARS: Final = 500

Status = Literal["granted", "approval", "refused"]


@attrs.frozen
class ListedTool:
    """A tool in the list.

    Attributes:
        name: Its canonical name.
        group: Its toolset.
        summary: The beginning of its description.
        origin: The distribution with its version, the file, or ``host``.
        status: Whether it may run, needs an approval, or is refused.
        reason: Why it is refused, or ``""``.
        policy: Its effects and needs.
        is_deprecated: Whether another tool should be used.
    """

    name: str
    group: str
    summary: str
    origin: str
    status: Status
    reason: str
    policy: ToolPolicy
    is_deprecated: bool

    @property
    def is_harmless(self) -> bool:
        """Whether it declares that it changes nothing."""
        return is_harmless(self.policy)


@attrs.frozen(kw_only=True)
class Query:
    """What to list.

    Attributes:
        text: Words to search for.
        status: A `Status`, or ``""`` for all.
        group: The toolset, or ``""`` for all.
        page: The number of the page, from 1.
    """

    text: str = ""
    status: str = ""
    group: str = ""
    page: int = 1

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Query:
        """Return what the query of an address asks for."""
        page = params.get("page", "1")
        return cls(
            text=params.get("q", "")[:MAX_QUERY_CHARS],
            status=params.get("status", ""),
            group=params.get("group", ""),
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 6 else 1,
        )


@attrs.frozen(kw_only=True)
class ToolPage:
    """One page of the list.

    Attributes:
        tools: The tools on it.
        total: How many tools the query finds.
        first: The number of the first tool on the page, from 1.
        counts: How many tools have each status, among those that the search finds.
        groups: The toolsets, with their origins and their numbers of tools.
    """

    tools: tuple[ListedTool, ...]
    total: int
    first: int
    counts: Mapping[str, int]
    groups: tuple[tuple[str, str, int], ...]

    @property
    def last(self) -> int:
        """The number of the last tool on the page."""
        return self.first + len(self.tools) - 1


class Catalog:
    """The index of an engine's tools; it is made anew when the tools have changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._registry: object = None
        self._tools: tuple[ToolImplementation, ...] = ()
        self._index: ToolIndex[ToolImplementation] | None = None
        self._policy: object = None
        self._listings: dict[str, ListedTool] = {}

    def page(self, session: Session, query: Query) -> ToolPage:
        """Return one page of the tools that a query finds, as the policy of a session permits them."""
        self._refresh()
        listed = self._listed(session)
        found = [listed[tool.name] for tool in self._found(query.text)]
        groups = _groups(found)
        if query.group:
            found = [tool for tool in found if tool.group == query.group]
        counts = {status: sum(tool.status == status for tool in found) for status in ("granted", "approval", "refused")}
        if query.status in counts:
            found = [tool for tool in found if tool.status == query.status]
        start = min(query.page - 1, max(0, len(found) - 1) // PAGE_SIZE) * PAGE_SIZE
        shown = tuple(found[start : start + PAGE_SIZE])
        return ToolPage(tools=shown, total=len(found), first=start + 1, counts=counts, groups=groups)

    def _refresh(self) -> None:
        registry = self._engine._shared.registry
        if registry is not self._registry:
            self._tools = tuple(sorted(_loaded(self._engine), key=lambda tool: tool.name))
            self._index = None
            self._policy = None
            self._registry = registry

    def _found(self, text: str) -> tuple[ToolImplementation, ...]:
        if not text.strip():
            return self._tools
        name = text.strip().casefold()
        named = [tool for tool in self._tools if name in tool.name]  # while the user types, a name is incomplete
        self._index = self._index or ToolIndex(self._tools)
        found = self._index.search(text, max(1, len(self._tools)))
        return tuple({tool.name: tool for tool in (*named, *found)}.values())

    def _listed(self, session: Session) -> dict[str, ListedTool]:
        if session.policy is not self._policy:
            self._listings = {tool.name: list_tool(self._engine, session, tool) for tool in self._tools}
            self._policy = session.policy
        return self._listings


def _loaded(engine: Engine) -> Iterator[ToolImplementation]:
    tools = engine.tools
    for name in tools:
        with suppress(PluginError):  # it is among the errors of plugins
            yield tools[name]


def list_tool(engine: Engine, session: Session, tool: ToolImplementation) -> ListedTool:
    """Return a tool as the list shows it."""
    source = source_of(engine, tool.name)
    refusal = find_refusal(session.policy, tool, source.old)
    status: Status = "refused" if refusal is not None else "granted"
    if refusal is None and session.policy.asks(tool.name, tool.policy):
        status = "approval" if session.policy.approvers(tool.name, tool.policy) else "granted"
    return ListedTool(
        tool.name,
        tool.spec.group,
        one_line(tool.spec.description, MAX_SUMMARY_CHARS),
        source.origin,
        status,
        "" if refusal is None else refusal.text,
        tool.policy,
        bool(tool.spec.deprecated),
    )


def _groups(tools: list[ListedTool]) -> tuple[tuple[str, str, int], ...]:
    found: dict[str, Any] = {}
    for tool in tools:
        origin, count = found.get(tool.group, (tool.origin, 0))
        found[tool.group] = origin, count + 1
    return tuple((group, origin, count) for group, (origin, count) in sorted(found.items()))
