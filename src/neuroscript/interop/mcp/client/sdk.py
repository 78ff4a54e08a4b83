"""The interface to the MCP SDK: requests to a server, their responses, and the server's questions in between.

The client declares elicitation and tasks; roots and sampling only where the host permits them.

Supports MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.config.oauth import OAuth
from neuroscript.errors import Retry, SpecError, ToolFailed
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.interop.mcp.client.accepted_definitions import Definition, Listing
from neuroscript.interop.mcp.client.answers import Answers, Questions, as_data
from neuroscript.interop.mcp.client.call import Caller
from neuroscript.interop.mcp.client.connection import connection_closed_error, copy_error
from neuroscript.interop.mcp.client.location import AnswerSettings, Location
from neuroscript.interop.mcp.client.pending_requests import MAX_TOOLS
from neuroscript.interop.mcp.client.results import Unusable, response_error
from neuroscript.interop.mcp.client.tasks import EXTENSION, MAX_TTL_SECONDS, RemoteTask, read_questions, task_state
from neuroscript.interop.mcp.client.transports import open_transport
from neuroscript.io.text import one_line

try:
    import mcp_types as types
    from mcp.client.client import Client
    from mcp.client.extension import advertise
    from mcp.client.session import ClientRequestContext
    from mcp.client.subscriptions import SubscriptionLost
    from mcp.shared.dispatcher import ProgressFnT
    from mcp.shared.exceptions import MCPError
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import BaseModel, TypeAdapter, ValidationError
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_PAGES: Final = 100
"""Maximum number of pages in a tool list."""

MAX_LIST_ATTEMPTS: Final = 5
"""Maximum number of attempts to list tools that change meanwhile; then the last list is used once."""

MAX_DEFINITION_CHARS: Final = 4 * 1024 * 1024
"""Maximum size of all definitions of a server together, in characters of JSON."""

MAX_INVALID_LINES: Final = 100
"""Maximum number of invalid lines before the connection is ended."""

MAX_IDLE_MESSAGES: Final = 10_000
"""Maximum number of messages between two calls before the connection is ended."""

MAX_ROUNDS: Final = 10
"""Maximum number of times a server may ask for input before it returns the result of a call."""

MAX_STATE_CHARS: Final = 64 * 1024
"""Maximum length of the state that a server gets back with the answers, in characters."""

WAIT_SECONDS: Final = 0.25
"""Time before a call is repeated for a server that has asked nothing, in seconds."""

SESSION_TERMINATED: Final = "Session terminated"
"""The SDK's message when an HTTP server no longer knows the session."""

CLOSED: Final = ("Connection closed", "SSE stream ended", "SSE stream failed")
"""Prefixes of the SDK's message for an ended connection; the error code is ambiguous, because servers also use it."""


@asynccontextmanager
async def open_dialogue(place: Location, ended: Callable[[], None]) -> AsyncIterator[Dialogue]:
    """Open a connection and close it at the end; *ended* is called if the other side closes it."""
    async with AsyncExitStack() as stack:
        auth = place.auth if place.oauth is None else _stored_tokens(place.url, place.oauth)
        made = Dialogue(ended, place.answers, auth)
        transport = await open_transport(place, ended, stack, auth)
        asked = {**made.answers.callbacks(), "extensions": [advertise(EXTENSION)]}
        try:
            made.client = await stack.enter_async_context(
                Client(transport, client_info=CLIENT, message_handler=made.heard, cache=None, **asked)
            )
        except Exception as error:
            raise made.problem or error from None
        listening = asyncio.create_task(made.listen())
        stack.push_async_callback(_cancel_task, listening)
        yield made


def _stored_tokens(url: str, oauth: OAuth) -> Any:
    from neuroscript.interop.mcp.client.oauth import stored_tokens  # most servers need no token

    return stored_tokens(url, oauth)


CLIENT: Final = types.Implementation(name="neuroscript", version="1")
RAW: Final[Any] = TypeAdapter(dict[str, Any])
"""A result as it was received, because calls have results of several kinds."""


async def _cancel_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


class Dialogue:
    """Requests to a server over one connection, in its event loop.

    Args:
        ended: Called if the connection has to be closed.
        settings: What the server may ask, if the client is ours.
        auth: What authorizes the requests, if the client is ours.

    Attributes:
        client: The SDK client, or another client with a ``session`` of the SDK.
        answers: The answers to the server's questions.
    """

    client: Any

    def __init__(self, ended: Callable[[], None], settings: AnswerSettings | None = None, auth: Any = None) -> None:
        self._end = ended
        self._auth = auth
        self._is_ours = settings is not None
        self.answers = Answers(settings or AnswerSettings(""))
        self._need_tasks: set[str] = set()
        self._matching: dict[str, tuple[Definition, Definition]] = {}
        self._listed: Listing | None = None
        self._listing = asyncio.Lock()
        self._garbage = 0
        self._unasked = 0

    @property
    def problem(self) -> ToolFailed | None:
        """The error of a request that got no access token, or None."""
        found: ToolFailed | None = getattr(self._auth, "problem", None)
        return None if found is None else copy_error(found)

    async def _answer(self, request: Awaitable[Any]) -> Any:
        """Return a response; raise any error as a `ToolFailed`, and a missing access token as the reason."""
        try:
            return await _response(request)
        except ToolFailed:
            if self.problem is None:
                raise
            raise self.problem from None

    async def heard(self, message: Any) -> None:
        """Handle an unsolicited message; a changed tool list is requested again before its next use."""
        if isinstance(message, types.ToolListChangedNotification):
            self._listed = None
        if isinstance(message, Exception):
            self._garbage += 1
        elif not self.answers.has_calls:  # the stream of a call that has timed out may have no end
            self._unasked += 1
        if self._garbage > MAX_INVALID_LINES or self._unasked > MAX_IDLE_MESSAGES:
            self._end()

    async def listen(self) -> None:
        """Subscribe to changes of the tool list; servers with protocols since 2026 notify only subscribers."""
        if self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, SubscriptionLost, ValidationError, RuntimeError):
            async with self.client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._listed = None
        self._listed = None

    async def definitions(self) -> Mapping[str, Definition]:
        """Return the current definitions of the server, without tools that cannot be used.

        Raises:
            ToolFailed: The server does not list its tools.
        """
        return (await self.listing()).definitions

    async def listing(self) -> Listing:
        """Return what the server lists now.

        Raises:
            ToolFailed: The server does not list its tools.
        """
        async with self._listing:
            if self._listed is not None:
                return self._listed
            for _ in range(MAX_LIST_ATTEMPTS):
                self._listed = Listing()
                try:
                    found: Listing = await self._answer(self._pages())
                except BaseException:  # the list is still unknown
                    self._listed = None
                    raise
                if self._listed is not None:  # otherwise it has changed meanwhile
                    self._listed = found
                    break
            return found

    async def _pages(self) -> Listing:
        found: dict[str, Definition] = {}
        faults: dict[str, tuple[str, ...]] = {}
        cursor: str | None = None
        size = 0
        self._need_tasks = set()
        for _ in range(MAX_PAGES):
            page = await self.client.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            for each in page.tools:
                if each.name in found or each.name in faults or len(found) + len(faults) == MAX_TOOLS:
                    raise response_error(f"lists a tool twice, or more than {MAX_TOOLS} tools")
                try:
                    found[each.name] = Definition.of_data(_data_of(each))
                except SpecError as error:
                    faults[each.name] = error.problems
                    continue
                if each.execution is not None and each.execution.task_support == "required":
                    self._need_tasks.add(each.name)
                size += len(json.dumps(found[each.name].data))
                if size > MAX_DEFINITION_CHARS:
                    raise response_error(f"lists tools of more than {MAX_DEFINITION_CHARS} characters")
            cursor = page.next_cursor
            if cursor is None:
                return Listing(found, faults)
        raise response_error(f"lists its tools on more than {MAX_PAGES} pages")

    async def call(
        self, definition: Definition, arguments: dict[str, Any], on_progress: ProgressFnT, caller: Caller
    ) -> Mapping[str, Any]:
        """Call a tool if its definition has not changed, and return the result in the wire format of MCP.

        Args:
            caller: Answers the server's questions.

        Raises:
            ToolFailed: ``mcp.changed``: its definition has changed. Other codes: there is no result.
            Exception: Raised by the host's prompter, sandbox or model for a question.
        """
        now = (await self.definitions()).get(definition.name)
        if now is None or not self._is_accepted(definition, now):
            what = "is no longer on the server" if now is None else "differs from its accepted definition"
            raise ToolFailed(f"the tool {what}; review and accept it again", code="mcp.changed", retry="host")
        params = types.CallToolRequestParams(name=definition.name, arguments=arguments)
        if definition.name in self._need_tasks and self._runs_tasks:
            params.task = types.TaskMetadata(ttl=int(min(caller.remaining_seconds, MAX_TTL_SECONDS) * 1000))
        try:
            with self.answers.during(caller) as questions:
                self._unasked = 0
                if self._is_ours:
                    await self.answers.announce_root(self.client.session, caller)
                return await self._result(params, on_progress, questions)
        except ToolFailed as error:
            if error.code == "mcp.closed":
                self._end()
            raise

    def _is_accepted(self, definition: Definition, now: Definition) -> bool:
        """Return whether a definition is the accepted one; the same two objects are compared once."""
        known = self._matching.get(definition.name)
        if known is not None and known[0] is definition and known[1] is now:
            return True
        is_accepted = definition.accepts(now)
        if is_accepted:
            self._matching[definition.name] = definition, now
        return is_accepted

    @property
    def _runs_tasks(self) -> bool:
        """Whether a call can be sent as a task of MCP 2025-11-25."""
        if not self._is_ours:
            return False
        offered = self.client.session.server_capabilities
        requests = getattr(getattr(offered, "tasks", None), "requests", None)
        return getattr(getattr(requests, "tools", None), "call", None) is not None

    async def _result(
        self, params: types.CallToolRequestParams, on_progress: ProgressFnT, questions: Questions
    ) -> Mapping[str, Any]:
        """Return the result of a call, whose request is repeated with the answers to the server's questions."""
        rounds = 0
        result = await self._send(types.CallToolRequest(params=params), on_progress)
        while result.get("resultType") == "input_required":
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise response_error(f"asks for input more than {MAX_ROUNDS} times")
            asked, state = result.get("inputRequests"), result.get("requestState")
            if isinstance(state, str) and len(state) > MAX_STATE_CHARS:
                raise response_error(f"has a request state of more than {MAX_STATE_CHARS} characters")
            if not asked:
                await asyncio.sleep(WAIT_SECONDS)
            params.request_state = state
            params.input_responses = await self._responses(asked, questions) if asked else None
            result = await self._send(types.CallToolRequest(params=params), on_progress)
        created = task_state(result)
        if created is not None:
            state, is_extension = created
            answer = partial(self._answered, questions)
            task = RemoteTask(self._send, state["taskId"], is_extension, on_progress, answer)
            result = await task.finish(state)
        try:
            return _complete(_data_of(types.CallToolResult.model_validate(result, by_name=False)))
        except ValidationError:
            raise response_error("does not conform to the protocol") from None

    async def _send(self, request: Any, on_progress: ProgressFnT | None = None) -> Any:
        return await self._answer(self._sent(request, on_progress))

    async def _sent(self, request: Any, on_progress: ProgressFnT | None) -> Any:
        try:
            return await self.client.session.send_request(request, RAW, progress_callback=on_progress)
        except MCPError as error:
            if error.code == types.HEADER_MISMATCH:  # the schema has changed, so the next call requests it again
                self._listed = None
            raise

    async def _answered(self, questions: Questions, requests: Mapping[str, Any]) -> dict[str, Any]:
        return as_data(await self._responses(requests, questions))

    async def _responses(self, requests: Mapping[str, Any], questions: Questions) -> types.InputResponses:
        """Return the answers to the questions in a result, by key; the client of a host answers them itself."""
        if self._is_ours:
            return {key: await self.answers.answer(each, questions) for key, each in read_questions(requests).items()}
        found = {}
        for key, each in read_questions(requests).items():
            context = ClientRequestContext(session=self.client.session, request_id=key)
            found[key] = await self.client.session.dispatch_input_request(context, each)
            if isinstance(found[key], types.ErrorData):
                raise response_error(f"asks for {each.method}, which the client does not offer")
        return found

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request for resources or prompts, a key of `REQUESTS`, and return the result in the wire format.

        Raises:
            ToolFailed: There is no result.
        """
        request, result = REQUESTS[method]
        message = request.model_validate({"method": method, "params": params})
        return _complete(_data_of(await self._answer(self.client.session.send_request(message, result))))


REQUESTS: Final[Mapping[str, tuple[Any, Any]]] = {
    "prompts/get": (types.GetPromptRequest, types.GetPromptResult),
    "prompts/list": (types.ListPromptsRequest, types.ListPromptsResult),
    "resources/list": (types.ListResourcesRequest, types.ListResourcesResult),
    "resources/read": (types.ReadResourceRequest, types.ReadResourceResult),
    "resources/templates/list": (types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult),
}
"""The request and result types of the methods for resources and prompts."""


def _complete(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result, or raise a `ToolFailed` if its type is unknown, so that what it means cannot be read."""
    if result.get("resultType", "complete") != "complete":
        raise response_error("has an unsupported result type")
    return result


def _data_of(model: BaseModel) -> dict[str, Any]:
    """Return a message with the key names of the protocol; mode ``json`` would turn ``NaN`` into None."""
    return model.model_dump(mode="python", by_alias=True, exclude_unset=True, warnings=False)


async def _response(request: Awaitable[Any]) -> Any:
    """Return a response; raise any error as a `ToolFailed`."""
    try:
        return await request
    except ToolFailed:
        raise
    except MCPError as error:
        raise _mcp_error(error) from None
    except ValidationError:
        raise response_error("does not conform to the protocol") from None
    except Exception as error:
        raise connection_closed_error() from error


def _mcp_error(error: MCPError) -> ToolFailed:
    if isinstance(error.data, Unusable):
        return response_error(error.data.reason)
    is_closed = error.code == types.CONNECTION_CLOSED and error.message.startswith(CLOSED)
    if is_closed or error.message == SESSION_TERMINATED:
        return connection_closed_error()
    return ToolFailed(
        f"the server refused: {one_line(error.message, MAX_DESCRIPTION_CHARS)}", code="mcp.refused", retry=_retry(error)
    )


def _retry(error: MCPError) -> Retry:
    match error.code:
        case types.INVALID_PARAMS:
            return "model"
        case types.INTERNAL_ERROR:
            return "later"
        case _:
            return "host"
