"""The MCP servers behind a gateway: loaded, started, started again after they end, and compared with what was accepted.

A server that cannot be used does not affect the others. One thread starts servers that are due; each wait for a server
has a thread of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Literal

import attrs

from neuroscript.config.mcp_servers import ServerTable
from neuroscript.engine.engine import Engine
from neuroscript.errors import CallError, NeuroScriptError
from neuroscript.gateway.restarts import Restarts
from neuroscript.interop.mcp.client.accepted_definitions import Difference
from neuroscript.interop.mcp.client.connection import CLOSE_TIMEOUT_SECONDS
from neuroscript.interop.mcp.client.load import McpServer
from neuroscript.interop.mcp.client.servers import try_server
from neuroscript.runtime.interfaces import Logger
from neuroscript.tools.hookspecs import hookimpl

START_WAIT_SECONDS: Final = 10.0
"""Maximum time that a gateway waits for the tools of new servers before it serves, in seconds."""

NOT_ACCEPTED: Final = "its tools are not accepted; review them with --review, and accept them with --accept"
"""Why a new server is not used if its tools must be reviewed first."""

Status = Literal["idle", "starting", "running", "waiting", "unusable"]
"""The state of a server, see `Restarts`; ``unusable`` if its table or its tools cannot be used at all."""


@attrs.frozen
class ServerState:
    """What the operator of a gateway sees of a server.

    Attributes:
        name: The name of its table.
        group: The group of its tools.
        status: Whether it runs.
        restarts: How often it was started again.
        tools: The number of its tools that are served.
        problem: Why it or some of its tools cannot be used, or ``""``.
        changes: The differences from what was accepted, as text, found when it was last started.
    """

    name: str
    group: str
    status: Status
    restarts: int
    tools: int
    problem: str
    changes: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether its tools can be called: it runs, or starts with the first call."""
        return self.status in ("idle", "running") and not self.problem and not self.changes


@attrs.define(eq=False)
class _Managed:
    table: ServerTable
    restarts: Restarts
    server: McpServer | None = None
    problem: str = ""
    changes: tuple[Difference, ...] = ()
    thread: threading.Thread | None = None
    is_loading: bool = False
    is_unusable: bool = False
    compared: int = 0

    @property
    def state(self) -> ServerState:
        problem = self.problem if self.server is not None or self.is_unusable else self.restarts.error or self.problem
        return ServerState(
            self.table.name,
            self.table.group,
            "unusable" if self.is_unusable else self.restarts.status,
            self.restarts.restarts,
            0 if self.server is None else len(self.server.toolset),
            problem or self.restarts.error,
            tuple(map(str, self.changes)),
        )


class Servers:
    """The servers of a gateway; a plugin of its engine.

    Args:
        engine: The engine that gets their tools.
        tables: Their settings.
        log: Receives what the operator should know. It contains no values of calls.
        accepts_new: Whether a server without accepted tools is started, and its tools accepted.
    """

    def __init__(self, engine: Engine, tables: Iterable[ServerTable], log: Logger, accepts_new: bool = True) -> None:
        self._engine = engine
        self._accepts_new = accepts_new
        self._log = log
        self._wake = threading.Event()
        self._is_closed = False
        self._managed = [_Managed(each, Restarts(self._wake.set)) for each in tables]
        self._thread = threading.Thread(target=self._run, name="neuroscript-gateway", daemon=True)

    @property
    def states(self) -> tuple[ServerState, ...]:
        """The state of each server, in the order of the file."""
        return tuple(each.state for each in self._managed)

    def start(self, wait: float = START_WAIT_SECONDS) -> None:
        """Load the servers; those without accepted definitions are started now, all at once.

        Args:
            wait: The maximum time to wait for servers that are started now, in seconds.
        """
        self._engine.add_hooks(self)
        loading = [self._in_thread(self._load, each) for each in self._managed]
        _join(loading, wait)
        self._thread.start()

    @hookimpl(tryfirst=True)
    def neuroscript_engine_closed(self) -> None:
        """End all servers at the same time, also those that are just being started."""
        for each in self._managed:
            each.restarts.end()
        _join([each.thread for each in self._managed if each.thread is not None], CLOSE_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Start no server again; those that run end with the engine."""
        self._is_closed = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _in_thread(self, work: Any, managed: _Managed) -> threading.Thread:
        managed.is_loading = True
        thread = threading.Thread(target=work, args=(managed,), name="neuroscript-gateway-server", daemon=True)
        thread.start()
        managed.thread = thread
        return thread

    def _run(self) -> None:
        while not self._is_closed:
            waits = [self._attend(each) for each in self._managed]
            self._wake.wait(min((each for each in waits if each is not None), default=None))
            self._wake.clear()  # before everything is looked at again; later, it could drop the call of `close`

    def _attend(self, managed: _Managed) -> float | None:
        """Do what is due for a server, and return the seconds until something is."""
        restarts = managed.restarts
        if managed.is_loading or managed.is_unusable:
            return None
        if managed.server is not None and restarts.status == "running" and managed.compared != restarts.starts:
            self._in_thread(self._compare, managed)
            return None
        wait = restarts.wait_seconds
        if wait is None or wait > 0:
            return wait
        if managed.server is None:
            self._in_thread(self._load, managed)
        else:
            with suppress(CallError):  # it was started meanwhile, or the gateway is closed
                managed.server.start()
        return None

    def _load(self, managed: _Managed) -> None:
        """Add the tools of a server to the engine."""
        table, restarts, before = managed.table, managed.restarts, managed.problem
        try:
            if not self._accepts_new and not os.path.lexists(table.accepted):
                managed.problem, managed.is_unusable = NOT_ACCEPTED, True
            else:
                managed.server, problem = try_server(self._engine, table, restarts)
                managed.problem = "" if problem is None else problem.reason
                is_retried = problem is not None and problem.code.startswith("mcp.")
                managed.is_unusable = managed.server is None and not is_retried
                if managed.server is None and restarts.wait_seconds is None and is_retried:
                    restarts.ended(None)  # it failed before it was started; try again later
            if managed.problem not in ("", before) and not self._is_closed:
                self._log.warning("mcp.%s: %s", table.name, managed.problem)
        finally:
            managed.is_loading = False
            self._wake.set()

    def _compare(self, managed: _Managed) -> None:
        """Compare what a server lists with what was accepted, and log the differences."""
        managed.compared = managed.restarts.starts
        try:
            if managed.server is not None:
                managed.changes = managed.server.differences
        except NeuroScriptError:
            pass  # it has ended again
        finally:
            managed.is_loading = False
            self._wake.set()
        for each in managed.changes:
            self._log.warning("mcp.%s: %s; the tool is refused until it is accepted", managed.table.name, each)


def _join(threads: Iterable[threading.Thread], seconds: float) -> None:
    """Wait until threads have ended, at most *seconds* for all of them."""
    end = monotonic() + seconds
    for each in threads:
        each.join(max(0.0, end - monotonic()))
