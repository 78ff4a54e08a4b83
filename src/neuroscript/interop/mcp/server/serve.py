"""An MCP server for the tools of an engine, over standard streams or HTTP.

Arguments are coerced by the engine, not validated by the SDK. A client of a protocol version with a handshake has its
own session. Protocol 2026-07-28 does not identify clients, so each of its requests has a session of its own.

See MCP 2025-11-25, "Lifecycle", "Tools" and "Cancellation", and MCP 2026-07-28, "Subscriptions" and "Caching".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from logging import getLogger
from typing import Any, Final

from neuroscript import __version__
from neuroscript._imports import missing_extra
from neuroscript.calls.steps import GRACE_SECONDS, CallFrame
from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import STRING, WHOLE, Form, instance, is_number, optional, require
from neuroscript.engine.engine import Engine
from neuroscript.errors import CallError, PolicyError, SpecError, ToolFailed
from neuroscript.io.text import sendable
from neuroscript.io.user_cache import APPLICATION
from neuroscript.llm.offered_tools import refuse_unoffered
from neuroscript.llm.wire.tools import input_schema
from neuroscript.names import canonical
from neuroscript.policy.execution_policy import POLICY, ExecutionPolicy
from neuroscript.policy.scopes import tool_matcher
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.result_text import result_text
from neuroscript.runtime.wire_names import NAMES, NameStyle, WireNames
from neuroscript.tools.fingerprints import fingerprint, policy_digest

try:
    import anyio
    from mcp.server.caching import CacheHint
    from mcp.server.lowlevel import Server
    from mcp.server.runner import serve_dual_era_loop
    from mcp.server.stdio import stdio_server
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        LOG_LEVEL_META_KEY,
        MISSING_REQUIRED_CLIENT_CAPABILITY,
        CallToolRequestParams,
        PaginatedRequestParams,
        SetLevelRequestParams,
        SubscriptionsListenRequestParams,
    )
    from mcp_types.methods import CacheableMethod
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.interop.http_server.principals import Principal
from neuroscript.interop.http_server.request_session import uses_handles
from neuroscript.interop.http_server.scope_policies import ScopePolicies, ScopeTable
from neuroscript.interop.mcp.server.client_session import NO_SESSION, Access, Client
from neuroscript.interop.mcp.server.files import ServedFiles
from neuroscript.interop.mcp.server.logs import forward_logs
from neuroscript.interop.mcp.server.principals import Principals
from neuroscript.interop.mcp.server.prompts import Prompts
from neuroscript.interop.mcp.server.request import CURRENT, Request, message
from neuroscript.interop.mcp.server.request_states import RequestStates, changed
from neuroscript.interop.mcp.server.resources import Resources
from neuroscript.interop.mcp.server.results import known_block, to_result
from neuroscript.interop.mcp.server.rounds import Round
from neuroscript.interop.mcp.server.served_calls import COMPLETE
from neuroscript.interop.mcp.server.standard_input import protocol_input
from neuroscript.interop.mcp.server.tasks import Task, Tasks, supports_tasks
from neuroscript.interop.mcp.server.tool_search import OWN_SPECS, ToolSearch

CLIENT: Final = "neuroscript.client"
"""The key for the client in the state of an SDK connection."""

POLL_SECONDS: Final = 0.5
"""Interval of the checks for added and removed tools, in seconds."""

DEFAULT_CACHE_SECONDS: Final = 10.0
"""Time for which a client may use a list without asking again, in seconds."""

UNASKED: Final = ("policy.rejected", "prompt.noninteractive")
"""The codes of calls that fail because the client cannot be asked."""

LISTS: Final[tuple[CacheableMethod, ...]] = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""The methods whose results clients may store."""


def serve(
    engine: Engine,
    *,
    tools: str | Iterable[str] = "*",
    name: str = "neuroscript",
    names: NameStyle = "grouped",
    states: RequestStates | None = None,
    cache_seconds: float = DEFAULT_CACHE_SECONDS,
    tasks: str | Iterable[str] = (),
    resources: str | Iterable[str] = (),
    search_above: int | None = None,
    policy: ExecutionPolicy | None = None,
    client: str = "",
    instructions: str = "",
    scopes: Mapping[str, ScopeTable] | Iterable[tuple[str, ScopeTable]] | None = None,
) -> Service:
    """Return a service that offers an engine's tools, resources and prompts to MCP clients, under the engine's policy.

    Args:
        tools: Patterns of canonical names, such as ``math.*``; other tools, and resources and prompts with other names,
            are not listed and cannot be called.
        name: The name of the server.
        names: ``grouped`` for names such as ``math__add``, or ``bare`` for ``add`` where no other tool has this name.
        states: How the server protects what clients of protocol 2026-07-28 return with the answers of their users. By
            default, it has a key of its own, so that only this process accepts them.
        cache_seconds: Time for which such clients may use a list without asking again, in seconds.
        tasks: Patterns of the tools whose calls such clients poll as tasks, if they support that: for example streams,
            and tools that run plans. A tool can also decide for itself, with `continue_as_task`.
        resources: Patterns of files of the sandbox that are served as resources, such as ``docs/**``. The policy must
            grant ``fs:read`` for them. This adds the tools ``resources.read_file`` and ``resources.list_files`` to the
            engine, which read and list the files.
        search_above: The number of tools above which ``tools/list`` contains ``search_tools`` and ``call_tool`` instead
            of the tools; clients can also still call each tool by its own name. None always lists the tools. With a
            number, no other tool has one of these two names, so a tool with such a bare name has its group.
        policy: What the clients of this service may do; it can only narrow what the engine permits.
        client: The name of the client, if all connections come from the same one. The ids of its sessions begin with
            it, as in ``alice/3f9a1c2b``, and all its connections share the limits of *policy*.
        instructions: What a client learns about the server; most pass it to their model.
        scopes: What each scope of an access token permits, inside what the service permits: patterns of tools, or
            fields of an `ExecutionPolicy` by name. A client has the sum of its scopes; see `http.app`. Pairs instead of
            a mapping can contain a scope several times.

    Raises:
        SpecError: One of *tools*, *tasks* or *resources* is not a pattern, or a parameter has the wrong type. *states*
            has keys, and the policy has rules about information flow, which apply within one process only.
        RegistryError: The engine has other tools with the names of the added ones.
        ModuleNotFoundError: The extra ``mcp`` is not installed.
    """
    require("serve", names=(names, NAMES), states=(states, optional(STATES)), cache_seconds=(cache_seconds, CACHE))
    require("serve", policy=(policy, optional(POLICY)), client=(client, STRING), instructions=(instructions, STRING))
    require("serve", search_above=(search_above, optional(WHOLE)))
    permitted = engine.policy if policy is None else policy.inside(engine.policy)
    if states is not None and states.keys and permitted.has_flow_rules:
        raise SpecError("serve", [f"states: {ONE_PROCESS}"])
    return Service(
        engine,
        _patterns(tools),
        name,
        names,
        states or RequestStates(),
        cache_seconds,
        _patterns(tasks),
        _patterns(resources),
        search_above,
        permitted,
        client,
        instructions,
        None if scopes is None else ScopePolicies(scopes),
    )


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


ONE_PROCESS: Final = (
    "rules about information flow need all requests of a client in one process; serve from one process, without keys"
)
STATES: Final = instance(RequestStates)
CACHE: Final = Form("a number of seconds from 0 to 86400", is_number, lambda value: 0 <= value <= 86_400)


class Service:
    """An engine as an MCP server; `serve` creates it.

    Attributes:
        server: The low-level server of the SDK, for custom transports.
        clients: The connected clients with a handshake.
        changes: The bus for changes that clients of protocol 2026-07-28 subscribe to, a ``SubscriptionBus`` of the SDK.
        tasks: The calls that continue after the response to their request.
        resources: The resources, and what has changed in them.
        principals: What each principal may do.
    """

    def __init__(
        self,
        engine: Engine,
        tools: tuple[str, ...],
        name: str,
        names: NameStyle,
        states: RequestStates,
        cache_seconds: float = DEFAULT_CACHE_SECONDS,
        tasks: tuple[str, ...] = (),
        resources: tuple[str, ...] = (),
        search_above: int | None = None,
        policy: ExecutionPolicy | None = None,
        client: str = "",
        instructions: str = "",
        scopes: ScopePolicies | None = None,
    ) -> None:
        engine.policy.narrowed(allow=(*tools, *tasks))  # raise an error for invalid patterns now
        files = ServedFiles(resources)
        if resources:
            added = files.add_tools(engine)
            tools = tools if tools == ("*",) else (*tools, *added)
        self._engine = engine
        self._states = states
        self._search = None if search_above is None else ToolSearch(search_above)
        self._access = Access.of(engine, tools, names, policy, client, self._search)
        self.principals = Principals(self._access, scopes)
        self._is_task = [tool_matcher(pattern) for pattern in tasks]
        self._common: Client | None = None
        self._stopping: set[asyncio.Task[None]] = set()
        self.clients: set[Client] = set()
        self.changes = InMemorySubscriptionBus()
        self._listening = ListenHandler(self.changes)
        self._streams = 0
        self.server: Server[Any] = Server(
            name,
            version=__version__,
            instructions=instructions or None,
            lifespan=self._lifespan,
            cache_hints=dict.fromkeys(LISTS, CacheHint(ttl_ms=round(cache_seconds * 1_000))),
            get_tool_input_schema=self._input_schema,
        )
        self.server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        self.server.add_request_handler("tools/call", CallToolRequestParams, self._call)
        self.server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        self.server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        self.tasks = Tasks(self.server)
        self.server.middleware += [_greeted, states.boundary(name)]
        self.resources = Resources(self, files)
        Prompts(self, files)

    async def stdio(self) -> None:
        """Serve the client at the other end of the standard streams until it disconnects.

        Meanwhile, stdout is reserved for the protocol: output of tools and their programs goes to stderr.
        """
        try:
            with protocol_input(self._engine._logger_of("mcp").error) as stdin:
                async with stdio_server(stdin) as (read, write), self._lifespan(self.server) as state:
                    await serve_dual_era_loop(self.server, read, write, lifespan_state=state)
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
        return {**COMPLETE, "tools": self._client(context).tools()}

    async def _set_level(self, context: Any, params: SetLevelRequestParams) -> dict[str, Any]:
        self._client(context).level = params.level
        return {}

    async def _listen(self, context: Any, params: SubscriptionsListenRequestParams) -> Any:
        common = self._common_client()  # from now on, what it has is compared with what there is
        own = self.principals.common(context) or common
        asked = params.notifications.resource_subscriptions
        if asked is not None:  # the bus publishes what another principal listens to
            asked = params.notifications.resource_subscriptions = self.resources.subscribable(own.session, asked)
        self._streams += 1
        try:
            async with self.resources.listening(common, asked or ()):
                return await self._listening(context, params)
        finally:
            self._streams -= 1

    def _input_schema(self, name: str) -> Any:
        """Return the schema of a tool's arguments, with which the SDK checks the headers of a request."""
        if self._search is not None and name in OWN_SPECS:
            return input_schema(OWN_SPECS[name])
        common = self._common_client()
        info = common.session.infos.get(common.names.tool(name))
        return None if info is None else input_schema(info.spec)

    async def _call(self, context: Any, params: CallToolRequestParams) -> dict[str, Any]:
        client = self._client(context)
        names = client.names
        name, arguments = params.name, params.arguments or {}
        if self._search is not None and name in OWN_SPECS:
            found = await self._search.respond(client, name, arguments)
            if isinstance(found, dict):
                return {**COMPLETE, **found}
            name, arguments = found
        call = ToolCall(names.tool(name), arguments, id=str(context.request_id))
        refused = refuse_unoffered(client.session, call)  # otherwise the patterns of served files would not apply
        result = await self.execute(context, params, call) if refused is None else refused
        if isinstance(result, dict):
            return result
        facts = to_result(result, client.spec(result.tool), names)
        known = [known_block(each, context.protocol_version) for each in facts["content"]]
        return {**COMPLETE, **facts, "content": known}

    async def execute(self, context: Any, params: Any, call: ToolCall) -> ToolResult | dict[str, Any]:
        """Carry out a call for a request, and return its result, or the response that asks the client first.

        Args:
            context: The context of the request, from the SDK.
            params: Its parameters; those of ``tools/call``, ``prompts/get`` and ``resources/read`` can contain answers.

        Raises:
            Exception: An ``MCPError`` of the SDK: the client returned a state that was already used, or lacks a
                capability that the call needs.
        """
        client = self._client(context)
        if client.is_lasting:
            return await self._run(client, call, Request(context, client.wants))
        round = self._states.opened(params, self._effects(call.name))
        refusal = self._refusal(client, call, round)
        if refusal is not None:
            return ToolResult(call.id, call.name, error=refusal)
        if round.state is not None:
            await self._states.use(round.state)
        begin = (
            partial(self.tasks.begin, context) if context.method == "tools/call" and supports_tasks(context) else None
        )
        request = Request(context, client.wants, round, begin)
        if begin is not None and any(matches(canonical(call.name)) for matches in self._is_task):
            request.become_task()
        result = await self._run(client, call, request)
        if request.task is not None:
            return {"resultType": "task", **request.task.state()}
        if round.asked:
            return self._states.question(round, self._subject(client, call.name))
        error = _missing(result, request, client.names)
        if error is not None:
            raise error
        return result

    async def _run(self, client: Client, call: ToolCall, request: Request) -> ToolResult:
        """Return the result of a call, or a result without meaning if it continues as a task."""
        CURRENT.set(request)  # for this task and everything it starts
        try:
            on_item = request.item if request.wants_progress else None
            result = await self._carried_out(client, call, on_item, request)
            await request.settle()
        finally:
            if request.task is None:
                request.end()
        return result

    def _refusal(self, client: Client, call: ToolCall, round: Round) -> CallError | None:
        """Return why a request of a client without a handshake must not run, or None."""
        info = client.session.infos.get(canonical(call.name))
        if info is not None and uses_handles(info.spec):
            return NO_SESSION.refuse_handles(call.name)
        new = "" if round.state is None else changed(round.state, self._subject(client, call.name))
        if not new:
            return None
        text = f"needs a new approval because these have changed: {new}"
        stale = PolicyError(text, tool=call.name, code="policy.stale", need="approval", rule="approver", retry="later")
        return client.session._refused(CallFrame(client.session, call.name), stale)

    def _subject(self, client: Client, name: str) -> dict[str, str]:
        """Return the digests of what an answer is bound to, in addition to the arguments."""
        tool = self._tool(name)
        definition = "" if tool is None else fingerprint(tool)
        return {"policy": policy_digest(client.session.policy), "definition": definition}

    def _effects(self, name: str) -> tuple[str, ...]:
        tool = self._tool(name)
        return () if tool is None else tool.policy.effects

    def _tool(self, name: str) -> Any:
        name = canonical(name)
        return self._engine.tools.get(self._engine.aliases.get(name, name))

    async def _carried_out(
        self, client: Client, call: ToolCall, on_item: Callable[[Any], object] | None, request: Request
    ) -> ToolResult:
        """Return the result of a call; it ends early if its client cancels it or disconnects."""
        running = asyncio.create_task(client.session.aexecute(call, on_item=on_item))
        events = [*filter(None, [request.disconnection])]
        if request.may_become_task:
            events.append(request.has_become_task)
        waiting = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait({running, *waiting}, return_when=asyncio.FIRST_COMPLETED)
            if request.task is not None:
                self._continue(client, call, request, request.task, running)
                return ToolResult(call.id, call.name)
            if not running.done():
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            request.end()  # it cannot become a task anymore
            if request.task is not None:  # its client does not know it
                self.tasks.forget(request.task)
            await self._stop_call(client, call, running)
            raise
        finally:
            for each in waiting:
                each.cancel()
        return _result_of(running, call)

    def _continue(
        self, client: Client, call: ToolCall, request: Request, task: Task, running: asyncio.Task[ToolResult]
    ) -> None:
        """Continue a call as a task, after the response to its request."""
        client.is_task = True
        spec, names = client.spec(canonical(call.name)), client.names

        def stop() -> None:
            stopping = asyncio.create_task(self._stop_call(client, call, running))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

        def ended(_: object) -> None:
            request.end()
            client.session.close()
            if running.cancelled():
                task.end("cancelled")
                return
            result = _result_of(running, call)
            error = _missing(result, request, names)
            if error is not None:
                task.end("failed", {"error": error.error.model_dump(exclude_none=True)})
            else:
                task.end("completed", {"result": {**COMPLETE, **to_result(result, spec, names)}})

        task.stop = stop
        running.add_done_callback(ended)

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
            if client.is_lasting and client.wants("info"):
                with suppress(Exception), anyio.move_on_after(GRACE_SECONDS):
                    notification = message("info", "neuroscript.mcp", text).model_dump(by_alias=True, mode="json")
                    await client.connection.notify(notification["method"], notification["params"])

    def _is_coroutine(self, name: str) -> bool:
        """Return whether a tool runs on the loop, where it can be stopped; a thread cannot be stopped."""
        from inspect import isasyncgenfunction, iscoroutinefunction

        tool = self._tool(name)
        return tool is not None and (iscoroutinefunction(tool.func) or isasyncgenfunction(tool.func))

    # Clients

    def _client(self, context: Any) -> Client:
        """Return the client of a request; its session ends with its connection, or with the request."""
        connection = context.session._connection  # nothing public in the SDK lasts as long as a client
        client: Client | None = connection.state.get(CLIENT)
        if client is None:
            if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                shared = self.principals.common(context) or self._common_client()
                client = shared.for_request(connection, (context.meta or {}).get(LOG_LEVEL_META_KEY))
            else:
                client = self.principals.access(context).open(connection)
                self.clients.add(client)
            connection.state[CLIENT] = client
            connection.exit_stack.callback(self._close_client, client)
        return client

    def _common_client(self) -> Client:
        """Return what the clients without a handshake have in common, which makes no calls itself."""
        if self._common is None:
            self._common = self._access.open(None)
        return self._common

    def missing_scopes(self, name: str, principal: Principal) -> tuple[str, ...]:
        """Return the scope that a principal needs for a tool, by its name on the wire; see `Principals`."""
        common = self._common_client()
        tool = common.names.tool(name)
        return self.principals.missing_scopes(tool, principal) if tool in common.session.infos else ()

    def _close_client(self, client: Client) -> None:
        self.clients.discard(client)
        if not client.is_task:
            client.session.close()

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        with forward_logs(self._engine.host.logger or getLogger(APPLICATION)):
            watching = asyncio.create_task(self._watch())
            try:
                yield {}
            finally:
                watching.cancel()
                self._listening.close()
                self.tasks.close()

    async def _watch(self) -> None:
        """Notify clients when the tools, resources or prompts change."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for client in tuple(self.clients):
                with suppress(Exception), anyio.move_on_after(GRACE_SECONDS):  # one client must not block the others
                    self.resources.notify(client)
                    if client.has_news():
                        await client.connection.send_tool_list_changed()
            self.tasks.expire()
            with suppress(Exception):
                if self._common is not None and self._streams:  # looking for changes costs time
                    self.resources.publish(self._common, self.changes)
                    if self._common.has_news():
                        await self.changes.publish(ToolsListChanged())


def _result_of(running: asyncio.Task[ToolResult], call: ToolCall) -> ToolResult:
    """Return the result of a call that has ended."""
    error = running.exception()
    if isinstance(error, GeneratorExit):  # it would end the server for all clients
        failed = ToolFailed(f"the tool failed ({type_name(error)})", tool=call.name)
        return ToolResult(call.id, call.name, error=failed)
    return running.result()


def _missing(result: ToolResult, request: Request, names: WireNames) -> MCPError | None:
    """Return the protocol error for a call that failed because the client lacks a capability, or None."""
    if result.error is None or result.error.code not in UNASKED or not request.missing:
        return None
    data = {"requiredCapabilities": request.missing}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, sendable(result_text(result, names)), data)


async def _greeted(ctx: Any, call_next: Any) -> Any:
    """Declare in the response to ``initialize`` that the server reports changes of its lists."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        for kind in ("tools", "resources", "prompts"):
            result["capabilities"][kind]["listChanged"] = True
    return result
