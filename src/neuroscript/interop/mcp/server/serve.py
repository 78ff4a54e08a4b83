"""An engine's tools, served to clients of MCP: over the standard streams, or over HTTP.

Each client has a session of its own, and each of its calls enters the one line: our coercion runs, not the SDK's check.
The server speaks the versions of the protocol that begin with a handshake, for with those a client is somebody: it has
variables and handles, and can be asked. A newer client falls back to one of them by itself.

Source: issue "MCP"; MCP 2025-11-25, "Lifecycle", "Tools", "Cancellation"; ecosystem.md part 9.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from logging import getLogger
from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.calls.steps import GRACE
from neuroscript.coercion.context import type_name
from neuroscript.engine.engine import Engine
from neuroscript.errors import ToolFailed
from neuroscript.io.user_cache import APPLICATION
from neuroscript.runtime.interfaces import ToolCall, ToolResult

try:
    import anyio
    from mcp.server.lowlevel import Server
    from mcp.server.runner import serve_loop
    from mcp.server.stdio import stdio_server
    from mcp_types import CallToolRequestParams, PaginatedRequestParams, SetLevelRequestParams
except ImportError as error:
    raise missing("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.mcp.server.client_session import Client, opened
from neuroscript.interop.mcp.server.logs import told
from neuroscript.interop.mcp.server.request import CURRENT, Request, message
from neuroscript.interop.mcp.server.results import to_result

CLIENT: Final = "neuroscript.client"
"""Where a connection of the SDK keeps the client."""

GONE: Final = "neuroscript.gone"
"""Where the scope of a request over HTTP tells that its client has gone, an `asyncio.Event`."""

LOOK: Final = 0.5
"""Seconds between two looks whether tools have come or gone."""


def serve(engine: Engine, *, tools: str | Iterable[str] = "*", name: str = "neuroscript") -> Service:
    """Return what serves an engine's tools to clients of MCP, under the engine's policy.

    Args:
        tools: Patterns of canonical names, as in ``math.*``: no other tool is listed, or can be called.
        name: What the server calls itself.

    Raises:
        SpecError: One of *tools* is no pattern.
        ModuleNotFoundError: The extra ``mcp`` is not installed.
    """
    return Service(engine, (tools,) if isinstance(tools, str) else tuple(tools), name)


class Service:
    """An engine as a server of MCP; made by `serve`.

    Attributes:
        server: The SDK's low-level server, for transports of your own.
        clients: Those that are connected.
    """

    def __init__(self, engine: Engine, tools: tuple[str, ...], name: str) -> None:
        from neuroscript import __version__

        engine.policy.narrowed(allow=tools)  # what is wrong with them is said now
        self._engine = engine
        self._tools = tools
        self.clients: set[Client] = set()
        self.server: Server[Any] = Server(name, version=__version__, lifespan=self._lifespan)
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        self.server.add_request_handler("tools/call", CallToolRequestParams, self._call)
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self.server.middleware.append(_greeted)

    async def stdio(self) -> None:
        """Serve the client at the other end of the standard streams until it goes.

        Meanwhile stdout belongs to the protocol: what tools and their programs print goes to stderr.
        """
        try:
            async with stdio_server() as (read, write), self._lifespan(self.server) as state:
                await serve_loop(self.server, read, write, lifespan_state=state)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            pass  # the client has gone while it was told something
        finally:
            await self._settled()

    async def _settled(self) -> None:
        """Give the threads of calls that were cancelled the time to see it, before the process ends with them."""
        threads = self._engine._world.threads
        with anyio.move_on_after(GRACE):
            while threads.abandoned:
                await anyio.sleep(0.01)

    # What clients ask

    async def _list(self, context: Any, params: PaginatedRequestParams) -> dict[str, Any]:
        return {"tools": self._client(context).tools()}

    async def _set_level(self, context: Any, params: SetLevelRequestParams) -> dict[str, Any]:
        self._client(context).level = params.level
        return {}

    async def _call(self, context: Any, params: CallToolRequestParams) -> dict[str, Any]:
        client = self._client(context)
        request = Request(context, client.wants)
        names = client.names
        call = ToolCall(names.tool(params.name), params.arguments or {}, id=str(context.request_id))
        CURRENT.set(request)  # of this task, and of whatever it starts
        try:
            on_item = request.item if request.wants_progress else None
            result = await self._carried_out(client, call, on_item, _gone(context))
            await request.settle()
        finally:
            request.end()
        return to_result(result, client.spec(result.tool), names)

    async def _carried_out(
        self, client: Client, call: ToolCall, on_item: Callable[[Any], object] | None, gone: asyncio.Event | None
    ) -> ToolResult:
        """Return what came of a call; it ends when its client cancels it, or goes."""
        task = asyncio.create_task(client.session.aexecute(call, on_item=on_item))
        leaving = None if gone is None else asyncio.create_task(gone.wait())
        try:
            await asyncio.wait({task, leaving} if leaving else {task}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            await self._stopped(client, call, task)
            raise
        finally:
            if leaving is not None:
                leaving.cancel()
        error = task.exception()
        if isinstance(error, GeneratorExit):  # which would end the server, and all its clients
            failed = ToolFailed(f"the tool failed ({type_name(error)})", tool=call.name)
            return ToolResult(call.id, call.name, error=failed)
        return task.result()

    async def _stopped(self, client: Client, call: ToolCall, task: asyncio.Task[ToolResult]) -> None:
        """Stop a call as far as that can be, and say what became of it."""
        with anyio.CancelScope(shield=True):
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE)
            if task.done() and not task.cancelled():
                task.exception()
            is_stopped = task.done() and self._is_coroutine(call.name)
            state = "was stopped" if is_stopped else "was left behind, and may still run until it looks"
            text = f"{call.name}: the call was cancelled, and {state}"
            self._engine._logger_of("mcp").info("%s", text)
            if client.wants("info"):
                with suppress(Exception), anyio.move_on_after(GRACE):
                    notification = message("info", "neuroscript.mcp", text).model_dump(by_alias=True, mode="json")
                    await client.connection.notify(notification["method"], notification["params"])

    def _is_coroutine(self, name: str) -> bool:
        """Tell whether a tool runs on the loop, where it can be stopped; a thread can only be left."""
        from inspect import isasyncgenfunction, iscoroutinefunction

        tool = self._engine.tools.get(self._engine.aliases.get(name, name))
        return tool is not None and (iscoroutinefunction(tool.func) or isasyncgenfunction(tool.func))

    # Who they are

    def _client(self, context: Any) -> Client:
        """Return the client of a request; it ends with its connection."""
        connection = context.session._connection  # nothing else in the SDK lasts as long as a client
        client: Client | None = connection.state.get(CLIENT)
        if client is None:
            client = connection.state[CLIENT] = opened(self._engine, self._tools, connection)
            self.clients.add(client)
            connection.exit_stack.callback(self._ended, client)
        return client

    def _ended(self, client: Client) -> None:
        self.clients.discard(client)
        client.session.close()

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        with told(self._engine.host.logger or getLogger(APPLICATION)):
            watching = asyncio.create_task(self._watch())
            try:
                yield {}
            finally:
                watching.cancel()

    async def _watch(self) -> None:
        """Tell clients when there are other tools."""
        while True:
            await asyncio.sleep(LOOK)
            for client in tuple(self.clients):
                with suppress(Exception), anyio.move_on_after(GRACE):  # no client keeps the others waiting
                    if client.has_news():
                        await client.connection.send_tool_list_changed()


async def _greeted(ctx: Any, call_next: Any) -> Any:
    """Say in the answer to a greeting that it will be told when tools change."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        result["capabilities"]["tools"]["listChanged"] = True
    return result


def _gone(context: Any) -> asyncio.Event | None:
    """Return what tells that the client of a request over HTTP has gone."""
    request = context.request
    gone: asyncio.Event | None = None if request is None else request.scope.get(GONE)
    return gone
