"""One client of a server: its session, its log level and its view of the tools.

A client with a handshake has a session until it disconnects. In protocol 2026-07-28, each request has a session of its
own; see `http_server.request_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.interop.http_server.request_session import Stateless, request_session, session_id, uses_handles
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.interop.mcp.server.elicitation import ClientPrompter
from neuroscript.interop.mcp.server.logs import LEVELS
from neuroscript.interop.mcp.server.request import CURRENT
from neuroscript.interop.mcp.server.tool_search import OWN_SPECS, ToolSearch
from neuroscript.llm.offered_tools import offered_infos
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host, Progress
from neuroscript.runtime.interfaces import ToolInfo
from neuroscript.runtime.wire_names import NameStyle, WireNames

NO_SESSION: Final = Stateless(
    "mcp.stateless", "requests of protocol 2026-07-28 have no session; use a client of 2025-11-25"
)
"""Why nothing is stored between the requests of a client without a handshake."""


@attrs.define(eq=False, repr=False)
class Client:
    """One connected client, or one request of a client without a handshake.

    Attributes:
        connection: The `Connection` of the SDK.
        session: The session for its calls.
        level: The minimum level of the log messages that it receives; None means none.
        is_lasting: Whether the session lasts for more than one request.
        is_task: Whether a task uses the session, which then ends with the task.
        style: How its tools are named.
        name: The name under which the host knows it, or ``""``.
        search: What replaces a long list of tools, or None.
    """

    connection: Any
    session: Session
    level: str | None = "info"
    is_lasting: bool = True
    is_task: bool = False
    style: NameStyle = "grouped"
    name: str = ""
    search: ToolSearch | None = None
    _known: Any = attrs.field(default=attrs.Factory(lambda self: self.session.infos, takes_self=True))
    _names: tuple[Mapping[str, Any], WireNames] | None = None

    def wants(self, level: str) -> bool:
        """Return whether it receives log messages of a level."""
        return self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level)

    @property
    def names(self) -> WireNames:
        """The client's names for the current tools."""
        infos = self.session.infos
        if self._names is None or self._names[0] is not infos:
            reserved = () if self.search is None else OWN_SPECS
            self._names = infos, WireNames.of(infos.values(), self.style, reserved)
        return self._names[1]

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that it may call, or those that find and call them, in the wire format of MCP."""
        self._known = self.session.infos
        listed = self.listed()
        if self.search is not None and self.search.replaces(listed):
            return self.search.definitions(listed)
        return self.definitions(listed)

    def listed(self) -> list[ToolInfo]:
        """Return the tools that it may call."""
        return [each for each in offered_infos(self.session) if self.is_lasting or not uses_handles(each.spec)]

    def definitions(self, tools: Iterable[ToolInfo]) -> list[dict[str, Any]]:
        """Return tools in the wire format of MCP."""
        return to_mcp(tools, names=self.names, structured=not self.session.spills)

    def spec(self, tool: str) -> Any:
        """Return the spec of a tool that it may call, or None; also None if results have no schemas."""
        info = self.session.infos.get(tool)
        return None if info is None or self.session.spills else info.spec

    def has_news(self) -> bool:
        """Return whether the tools have changed since the last notification; each change is reported once."""
        before, self._known = self._known, self.session.infos
        return before is not self._known and dict(before) != dict(self._known)

    def for_request(self, connection: Any, level: str | None) -> Client:
        """Return a client with the same tools, for one request.

        Args:
            level: The minimum level of the log messages that it receives; None means none.
        """
        session = request_session(self.session, NO_SESSION, session_id(self.name))
        return Client(
            connection,
            session,
            level,
            is_lasting=False,
            style=self.style,
            name=self.name,
            search=self.search,
            names=(self.session.infos, self.names),
        )


@attrs.frozen(eq=False)
class Access:
    """What the clients of one server may do.

    Attributes:
        engine: The engine whose tools are served.
        policy: What is permitted, inside what the engine permits.
        style: How tools are named.
        name: The name of the client if all connections come from the same one, otherwise ``""``. Such connections have
            their own sessions, and share the limits of the policy.
        search: What replaces a long list of tools, or None.
    """

    engine: Engine
    policy: ExecutionPolicy
    style: NameStyle
    name: str
    search: ToolSearch | None
    _shared: Session | None

    @classmethod
    def of(
        cls,
        engine: Engine,
        tools: tuple[str, ...],
        style: NameStyle = "grouped",
        policy: ExecutionPolicy | None = None,
        name: str = "",
        search: ToolSearch | None = None,
    ) -> Access:
        """Return the access to the tools that match patterns, among those that a policy and the engine permit."""
        permitted = engine.policy if policy is None else policy
        if tools != ("*",):
            permitted = permitted.narrowed(allow=tools, otherwise="refuse")
        shared = engine.session(policy=permitted, id=name) if name else None
        return cls(engine, permitted, style, name, search, shared)

    def open(self, connection: Any) -> Client:
        """Return a client with its own session."""
        host = _host(self.engine.host)
        if self._shared is None:
            session = self.engine.session(policy=self.policy, host=host)
        else:
            counted = self._shared.ledger
            session = Session(self._shared._entries, session_id(self.name), host=host, ledger=counted)
        return Client(connection, session, style=self.style, name=self.name, search=self.search)


def _host(host: Host) -> Host:
    """Return a host that sends prompts and progress to the client of each call."""

    def tell(progress: Progress) -> None:
        current = CURRENT.get()
        if current is not None:
            current.progress(progress.done, progress.total, progress.text)
        if host.progress is not None:
            host.progress(progress)

    return attrs.evolve(host, prompter=ClientPrompter(), progress=tell)
