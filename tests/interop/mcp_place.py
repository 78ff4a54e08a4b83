"""An engine that is served over HTTP, on a loop in a thread, by the parts that users have."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from neuroscript import Engine, ExecutionPolicy
from neuroscript.interop.http_server.listener import server as http_server
from neuroscript.interop.mcp import Service, ask_client, serve
from neuroscript.interop.mcp.server.http import app

PLUGIN = Path(__file__).with_name("mcp_plugin.py")


@attrs.frozen(eq=False)
class Place:
    """A running server and its address."""

    engine: Engine
    service: Service
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def served(
    *,
    tools: tuple[str, ...] = ("*",),
    resources: tuple[str, ...] = (),
    plugin: Path = PLUGIN,
    options: Mapping[str, Any] | None = None,
    plugins: str | tuple[str, ...] = "none",
    bounds: Mapping[str, Any] | None = None,
    **words: Any,
) -> Iterator[Place]:
    """Serve the tools of a plugin; one of those of `PLUGIN` is denied.

    Args:
        options: Keyword arguments of the engine.
        bounds: Keyword arguments of the HTTP server.
        words: Keyword arguments of the application.
    """
    policy = ExecutionPolicy(approver=ask_client, deny=("t.refused",))
    with Engine(**{"plugins": plugins, "policy": policy, **(options or {})}) as engine:
        engine.load_plugin(plugin)
        with running(engine, serve(engine, tools=tools, name="tests", resources=resources), bounds, **words) as place:
            yield place


@contextmanager
def running(engine: Engine, service: Service, bounds: Mapping[str, Any] | None = None, **words: Any) -> Iterator[Place]:
    """Serve over HTTP; see `served` for the arguments."""
    with bound() as (listening, port):
        server = http_server(app(service, **words), **(bounds or {}))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            until(lambda: server.started)
            yield Place(engine, service, port)
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


@contextmanager
def bound() -> Iterator[tuple[socket.socket, int]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        yield listening, listening.getsockname()[1]


def until(happens: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
