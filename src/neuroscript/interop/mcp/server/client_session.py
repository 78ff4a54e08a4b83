"""One client of a server: a session of its own, and what it knows of the tools.

Source: issue "MCP", each client has its own session, list-changed.
"""

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
    """One client, as long as it is connected.

    Attributes:
        connection: The SDK's, a `Connection`.
        session: Its way to the tools.
        level: The least level of which it wants log messages.
    """

    connection: Any
    session: Session
    level: str = "info"
    _known: Any = attrs.field(default=attrs.Factory(lambda self: self.session.infos, takes_self=True))
    _names: Any = None

    def wants(self, level: str) -> bool:
        """Tell whether it wants log messages of a level."""
        return LEVELS.index(level) >= LEVELS.index(self.level)

    @property
    def names(self) -> WireNames:
        """What it calls the tools that there are."""
        infos = self.session.infos
        if self._names is None or self._names[0] is not infos:
            self._names = infos, WireNames.of(infos.values())
        names: WireNames = self._names[1]
        return names

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that it may call, as it is told of them."""
        self._known = self.session.infos
        return to_mcp(self._known.values(), names=self.names, structured=not self.session.spills)

    def spec(self, tool: str) -> Any:
        """Return the spec of a tool that it may call, or None; none where results have no schemas."""
        info = self.session.infos.get(tool)
        return None if info is None or self.session.spills else info.spec

    def has_news(self) -> bool:
        """Tell whether the tools are others than when it was last told; the same change is told once."""
        before, self._known = self._known, self.session.infos
        return before is not self._known and dict(before) != dict(self._known)


def opened(engine: Engine, tools: tuple[str, ...], connection: Any) -> Client:
    """Return a client with a session of its own.

    Args:
        tools: Patterns of the tools that it may call, of those that the engine permits.
    """
    policy = engine.policy if tools == ("*",) else engine.policy.narrowed(allow=tools)
    return Client(connection, engine.session(policy=policy, host=_host(engine.host)))


def _host(host: Host) -> Host:
    """Return a host whose questions and progress go to the client of each call."""

    def tell(progress: Progress) -> None:
        current = CURRENT.get()
        if current is not None:
            current.progress(progress.done, progress.total, progress.text)
        if host.progress is not None:
            host.progress(progress)

    return attrs.evolve(host, prompter=ClientPrompter(), progress=tell)
