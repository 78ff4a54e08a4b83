"""The list of tools: what provides each, whether it may run, and the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final, Literal

import attrs
from starlette.requests import Request

from neuroscript.console.effects import is_harmless
from neuroscript.console.paging import ListPage, page_number
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
STATUSES: Final = ("granted", "approval", "refused")


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
    def of(cls, request: Request) -> Query:
        """Return what the query of an address asks for."""
        params = request.query_params
        return cls(
            text=params.get("q", "")[:MAX_QUERY_CHARS],
            status=params.get("status", ""),
            group=params.get("group", ""),
            page=page_number(request),
        )


@attrs.frozen(kw_only=True)
class ToolPage:
    """One page of the list.

    Attributes:
        tools: The tools on it.
        counts: How many tools have each status, among those that the search finds.
        groups: The toolsets, with their origins and their numbers of tools.
    """

    tools: ListPage[ListedTool]
    counts: Mapping[str, int]
    groups: tuple[tuple[str, str, int], ...]


@attrs.frozen(slots=False)
class _Snapshot:
    """The tools at one moment, under one policy."""

    registry: object
    policy: object
    tools: tuple[ToolImplementation, ...]
    listed: Mapping[str, ListedTool]

    @cached_property
    def index(self) -> ToolIndex[ToolImplementation]:
        """The index, which is made for the first search."""
        return ToolIndex(self.tools)

    def find(self, text: str) -> tuple[ListedTool, ...]:
        """Return the tools that words find, the best ones first; all of them for a blank query."""
        name = text.strip().casefold()
        if not name:
            return tuple(self.listed.values())
        named = [tool for tool in self.tools if name in tool.name]  # while the user types, a name is incomplete
        found = self.index.search(text, max(1, len(self.tools)))
        return tuple(self.listed[name] for name in dict.fromkeys(tool.name for tool in (*named, *found)))


class Catalog:
    """The tools of an engine, to list and to search; they are read again when the tools have changed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._snapshot = _Snapshot(None, None, (), {})

    def page(self, session: Session, query: Query) -> ToolPage:
        """Return one page of the tools that a query finds, as the policy of a session permits them."""
        found = self._current(session).find(query.text)
        groups = _groups(found)
        if query.group:
            found = tuple(tool for tool in found if tool.group == query.group)
        counts = {status: sum(tool.status == status for tool in found) for status in STATUSES}
        if query.status in counts:
            found = tuple(tool for tool in found if tool.status == query.status)
        return ToolPage(tools=ListPage.of(found, query.page, PAGE_SIZE), counts=counts, groups=groups)

    def _current(self, session: Session) -> _Snapshot:
        registry, snapshot = self._engine._shared.registry, self._snapshot
        if registry is not snapshot.registry or session.policy is not snapshot.policy:
            tools = tuple(sorted(_loaded(self._engine), key=lambda tool: tool.name))
            listed = {tool.name: list_tool(self._engine, session, tool) for tool in tools}
            snapshot = self._snapshot = _Snapshot(registry, session.policy, tools, listed)
        return snapshot


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


def _groups(tools: Iterable[ListedTool]) -> tuple[tuple[str, str, int], ...]:
    found: dict[str, Any] = {}
    for tool in tools:
        origin, count = found.get(tool.group, (tool.origin, 0))
        found[tool.group] = origin, count + 1
    return tuple((group, origin, count) for group, (origin, count) in sorted(found.items()))
