"""An MCP server for the tools of an engine, over standard streams or HTTP.

Each client has its own session. Arguments are coerced by the engine, not validated by the SDK. The server supports the
protocol versions that begin with a handshake, because only these identify a client, which can then have variables,
handles and prompts. Newer clients fall back to one of these versions.

See MCP 2025-11-25, "Lifecycle", "Tools" and "Cancellation".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from logging import getLogger
from typing import Any, Final

from neuroscript import __version__
from neuroscript._imports import missing_extra
from neuroscript.calls.steps import GRACE_SECONDS
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
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.mcp.server.client_session import Client, open_client
from neuroscript.interop.mcp.server.logs import forward_logs
from neuroscript.interop.mcp.server.request import CURRENT, Request, message
from neuroscript.interop.mcp.server.results import to_result

CLIENT: Final = "neuroscript.client"
"""The key for the client in the state of an SDK connection."""

CLIENT_GONE: Final = "neuroscript.gone"
"""The key for the disconnect event, an `asyncio.Event`, in the scope of an HTTP request."""

POLL_SECONDS: Final = 0.5
"""Interval of the checks for added and removed tools, in seconds."""


def serve(engine: Engine, *, tools: str | Iterable[str] = "*", name: str = "neuroscript") -> Service:
    """Return a service that offers an engine's tools to MCP clients, under the engine's policy.

    Args:
        tools: Patterns of canonical names, such as ``math.*``; other tools are not listed and cannot be called.
        name: The name of the server.

    Raises:
        SpecError: One of *tools* is not a pattern.
        ModuleNotFoundError: The extra ``mcp`` is not installed.
    """
    return Service(engine, (tools,) if isinstance(tools, str) else tuple(tools), name)


class Service:
    """An engine as an MCP server; `serve` creates it.

    Attributes:
        server: The low-level server of the SDK, for custom transports.
        clients: The connected clients.
    """

    def __init__(self, engine: Engine, tools: tuple[str, ...], name: str) -> None:
        engine.policy.narrowed(allow=tools)  # raise an error for invalid patterns now
        self._engine = engine
        self._tools = tools
        self.clients: set[Client] = set()
        self.server: Server[Any] = Server(name, version=__version__, lifespan=self._lifespan)
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        self.server.add_request_handler("tools/call", CallToolRequestParams, self._call)
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self.server.middleware.append(_greeted)

    async def stdio(self) -> None:
        """Serve the client at the other end of the standard streams until it disconnects.

        Meanwhile, stdout is reserved for the protocol: output of tools and their programs goes to stderr.
        """
        try:
            async with stdio_server() as (read, write), self._lifespan(self.server) as state:
                await serve_loop(self.server, read, write, lifespan_state=state)
        except* (BrokenPipeError, anyio.BrokenResourceError):
            pass  # the client disconnected during a message
        finally:
            await self._settled()

    async def _settled(self) -> None:
        """Wait for the threads of cancelled calls, because they end with the process."""
        threads = self._engine._shared.threads
        with anyio.move_on_after(GRACE_SECONDS):
            while threads.abandoned:
                await anyio.sleep(0.01)

    # Requests of clients

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
        CURRENT.set(request)  # for this task and everything it starts
        try:
            on_item = request.item if request.wants_progress else None
            result = await self._carried_out(client, call, on_item, _disconnection(context))
            await request.settle()
        finally:
            request.end()
        return to_result(result, client.spec(result.tool), names)

    async def _carried_out(
        self,
        client: Client,
        call: ToolCall,
        on_item: Callable[[Any], object] | None,
        disconnected: asyncio.Event | None,
    ) -> ToolResult:
        """Return the result of a call; it ends early if its client cancels it or disconnects."""
        task = asyncio.create_task(client.session.aexecute(call, on_item=on_item))
        leaving = None if disconnected is None else asyncio.create_task(disconnected.wait())
        try:
            await asyncio.wait({task, leaving} if leaving else {task}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            await self._stop_call(client, call, task)
            raise
        finally:
            if leaving is not None:
                leaving.cancel()
        error = task.exception()
        if isinstance(error, GeneratorExit):  # it would end the server for all clients
            failed = ToolFailed(f"the tool failed ({type_name(error)})", tool=call.name)
            return ToolResult(call.id, call.name, error=failed)
        return task.result()

    async def _stop_call(self, client: Client, call: ToolCall, task: asyncio.Task[ToolResult]) -> None:
        """Stop a call as far as possible, and log the outcome."""
        with anyio.CancelScope(shield=True):
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
            if task.done() and not task.cancelled():
                task.exception()
            is_stopped = task.done() and self._is_coroutine(call.name)
            state = "was stopped" if is_stopped else "may still run until the tool checks for it"
            text = f"{call.name}: the call was cancelled, and {state}"
            self._engine._logger_of("mcp").info("%s", text)
            if client.wants("info"):
                with suppress(Exception), anyio.move_on_after(GRACE_SECONDS):
                    notification = message("info", "neuroscript.mcp", text).model_dump(by_alias=True, mode="json")
                    await client.connection.notify(notification["method"], notification["params"])

    def _is_coroutine(self, name: str) -> bool:
        """Return whether a tool runs on the loop, where it can be stopped; a thread cannot be stopped."""
        from inspect import isasyncgenfunction, iscoroutinefunction

        tool = self._engine.tools.get(self._engine.aliases.get(name, name))
        return tool is not None and (iscoroutinefunction(tool.func) or isasyncgenfunction(tool.func))

    # Clients

    def _client(self, context: Any) -> Client:
        """Return the client of a request; its session ends with its connection."""
        connection = context.session._connection  # nothing public in the SDK lasts as long as a client
        client: Client | None = connection.state.get(CLIENT)
        if client is None:
            client = connection.state[CLIENT] = open_client(self._engine, self._tools, connection)
            self.clients.add(client)
            connection.exit_stack.callback(self._close_client, client)
        return client

    def _close_client(self, client: Client) -> None:
        self.clients.discard(client)
        client.session.close()

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        with forward_logs(self._engine.host.logger or getLogger(APPLICATION)):
            watching = asyncio.create_task(self._watch())
            try:
                yield {}
            finally:
                watching.cancel()

    async def _watch(self) -> None:
        """Notify clients when the tools change."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for client in tuple(self.clients):
                with suppress(Exception), anyio.move_on_after(GRACE_SECONDS):  # one client must not block the others
                    if client.has_news():
                        await client.connection.send_tool_list_changed()


async def _greeted(ctx: Any, call_next: Any) -> Any:
    """Declare in the response to ``initialize`` that the server reports changes of its tools."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        result["capabilities"]["tools"]["listChanged"] = True
    return result


def _disconnection(context: Any) -> asyncio.Event | None:
    """Return the event for the disconnection of an HTTP client."""
    request = context.request
    event: asyncio.Event | None = None if request is None else request.scope.get(CLIENT_GONE)
    return event
