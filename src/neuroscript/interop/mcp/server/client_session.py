"""One client of a server: its session, its log level and its view of the tools."""

from __future__ import annotations

from typing import Any

import attrs

from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Session
from neuroscript.interop.mcp.schema import to_mcp
from neuroscript.interop.mcp.server.elicitation import ClientPrompter
from neuroscript.interop.mcp.server.logs import LEVELS
from neuroscript.interop.mcp.server.request import CURRENT
from neuroscript.runtime.host import Host, Progress
from neuroscript.runtime.wire_names import WireNames


@attrs.define(eq=False, repr=False)
class Client:
    """One connected client.

    Attributes:
        connection: The `Connection` of the SDK.
        session: The session for its calls.
        level: The minimum level of the log messages that it receives.
    """

    connection: Any
    session: Session
    level: str = "info"
    _known: Any = attrs.field(default=attrs.Factory(lambda self: self.session.infos, takes_self=True))
    _names: Any = None

    def wants(self, level: str) -> bool:
        """Return whether it receives log messages of a level."""
        return LEVELS.index(level) >= LEVELS.index(self.level)

    @property
    def names(self) -> WireNames:
        """The client's names for the current tools."""
        infos = self.session.infos
        if self._names is None or self._names[0] is not infos:
            self._names = infos, WireNames.of(infos.values())
        names: WireNames = self._names[1]
        return names

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that it may call, in the wire format of MCP."""
        self._known = self.session.infos
        return to_mcp(self._known.values(), names=self.names, structured=not self.session.spills)

    def spec(self, tool: str) -> Any:
        """Return the spec of a tool that it may call, or None; also None if results have no schemas."""
        info = self.session.infos.get(tool)
        return None if info is None or self.session.spills else info.spec

    def has_news(self) -> bool:
        """Return whether the tools have changed since the last notification; each change is reported once."""
        before, self._known = self._known, self.session.infos
        return before is not self._known and dict(before) != dict(self._known)


def open_client(engine: Engine, tools: tuple[str, ...], connection: Any) -> Client:
    """Return a client with its own session.

    Args:
        tools: Patterns of the tools that it may call, among those that the engine permits.
    """
    policy = engine.policy if tools == ("*",) else engine.policy.narrowed(allow=tools, otherwise="refuse")
    return Client(connection, engine.session(policy=policy, host=_host(engine.host)))


def _host(host: Host) -> Host:
    """Return a host that sends prompts and progress to the client of each call."""

    def tell(progress: Progress) -> None:
        current = CURRENT.get()
        if current is not None:
            current.progress(progress.done, progress.total, progress.text)
        if host.progress is not None:
            host.progress(progress)

    return attrs.evolve(host, prompter=ClientPrompter(), progress=tell)
