"""One running call of a client: sends notifications and questions to that client, from any thread.

See MCP 2025-11-25, "Progress", "Logging" and "Elicitation", and `tasks` for a call that continues as a task.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from math import inf
from threading import get_ident
from typing import Any, Final

from neuroscript._imports import missing_extra

try:
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import ServerMessageMetadata
    from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import PromptError
from neuroscript.interop.http_server import CLIENT_GONE
from neuroscript.interop.mcp.server.rounds import CAPABILITIES, ELICITATION, TASKS, Round
from neuroscript.interop.mcp.server.tasks import MESSAGES, Task
from neuroscript.io.text import sendable

MAX_PENDING_NOTIFICATIONS: Final = 1_000
"""Maximum number of queued notifications of one call; further ones are dropped."""

MAX_ITEM_CHARS: Final = 1_000
"""Maximum length of a stream item in a progress notification, in characters."""

Send = Callable[[], Awaitable[object]]


class Request:
    """One call of a client.

    Args:
        context: The `ServerRequestContext` of the SDK.
        listens: Returns whether the client receives log messages of a level.
        round: The questions and answers of the request, if the client makes it again with its answers.
        begin_task: Returns a new task for the call, or None; None if the client does not support tasks.

    Attributes:
        round: See above; None once the call has become a task.
        task: The task that the call has become, or None.
        has_become_task: Is set when the call has become a task.
        missing: The capabilities that the client would need and lacks.
        loop: The loop that serves the client.
        thread: The thread of that loop, which must not be blocked.
    """

    def __init__(
        self,
        context: Any,
        listens: Callable[[str], bool],
        round: Round | None = None,
        begin_task: Callable[[], Task | None] | None = None,
    ) -> None:
        self.round = round
        self.task: Task | None = None
        self.has_become_task = asyncio.Event()
        self.missing: dict[str, Any] = {}
        self._begin_task = begin_task
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self._context = context
        self._listens = listens
        self._waiting: deque[Send] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._requests: set[Any] = set()
        self._furthest = -inf
        self._items = 0
        self._is_over = False

    # Notifications

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Notify the client of progress if it has requested that; never block.

        Progress that does not exceed the last value is dropped, because the protocol requires increasing values, and a
        nested call may start at 0 again.
        """
        if not self._furthest < done < inf:
            return
        self._furthest = done
        if self.task is not None:
            self.task.message = _truncate(sendable(text))
        self._post(partial(self._context.session.report_progress, done, total, sendable(text) or None))

    @property
    def disconnection(self) -> asyncio.Event | None:
        """The event for the disconnection of an HTTP client."""
        request = self._context.request
        event: asyncio.Event | None = None if request is None else request.scope.get(CLIENT_GONE)
        return event

    @property
    def wants_progress(self) -> bool:
        """Whether the client requested progress notifications."""
        return (self._context.meta or {}).get("progress_token") is not None

    async def item(self, item: Any) -> None:
        """Send a stream item as text, with the number of items so far, and wait until it is sent.

        If the tool has reported greater progress, the number is one more than that, so that no item is dropped.
        """
        self._items += 1
        done = max(self._items, self._furthest + 1)
        self.progress(
            done, None, _truncate(item if type(item) is str else json.dumps(to_plain(item), ensure_ascii=False))
        )
        await asyncio.sleep(0)  # let the loop queue what was posted
        if self._sender is not None:
            await asyncio.wait({self._sender})

    def log(self, level: str, logger: str, text: str) -> None:
        """Send a log message to the client if its level permits; never block."""
        if self._listens(level):
            self._post(partial(self._context.session.send_notification, message(level, logger, text), self._id))

    @property
    def _id(self) -> Any:
        return self._context.request_id

    def _post(self, send: Send) -> None:
        if not self._is_over and len(self._waiting) < MAX_PENDING_NOTIFICATIONS:
            with suppress(RuntimeError):  # the loop has been closed
                self.loop.call_soon_threadsafe(self._take, send)

    def _take(self, send: Send) -> None:
        if self._is_over:
            return
        self._waiting.append(send)
        if self._sender is None:
            self._sender = self.loop.create_task(self._send())

    async def _send(self) -> None:
        while self._waiting:
            with suppress(Exception):  # the client has disconnected
                await self._waiting.popleft()()
        self._sender = None

    # Questions

    def accepts(self, method: str) -> bool:
        """Return whether the client has declared that it accepts a request of a method."""
        session = self._context.session
        capabilities = session.client_capabilities
        if capabilities is None or not (self.round is not None or self.task is not None or session.can_send_request):
            return False
        if method == ELICITATION:
            return offers_forms(capabilities)
        return method in CAPABILITIES and getattr(capabilities, CAPABILITIES[method][0]) is not None

    def can_ask(self, method: str) -> bool:
        """Return what `accepts` returns, and record what the client lacks."""
        is_accepted = self.accepts(method)
        if not is_accepted:
            name, capability = CAPABILITIES[method]
            self.missing[name] = capability
        return is_accepted

    async def ask(self, key: str, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the client's user to a form; can be awaited on any loop."""
        asking = self._answers({key: (ELICITATION, form)})
        if asyncio.get_running_loop() is self.loop:
            return (await asking)[0]
        return (await asyncio.wrap_future(self._start(asking)))[0]  # type: ignore[no-any-return]

    def ask_and_wait(self, requests: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """Return the answers to requests, blocking the calling thread; must not be called in `thread`.

        Args:
            requests: The method and the parameters of each, by key.

        Raises:
            PromptError: ``prompt.eof``: the client responds with an error.
        """
        try:
            answers: list[dict[str, Any]] = self._start(self._answers(requests)).result()
        except MCPError as error:
            raise PromptError(f"the client did not answer (error {error.code})", code="prompt.eof") from None
        return answers

    async def _answers(self, requests: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        if self.task is not None:
            return await asyncio.gather(*(self.task.ask(key, *request) for key, request in requests.items()))
        return [await self._answer(method, params) for method, params in requests.values()]

    async def _answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        request, result = MESSAGES[method]
        sent = request.model_validate({"method": method, "params": dict(params)})
        related = ServerMessageMetadata(related_request_id=self._id)
        answer = await self._context.session.send_request(sent, result, metadata=related)
        found: dict[str, Any] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return found

    def become_task(self) -> bool:
        """Continue the call as a task, and return whether that is possible; may be called in any thread.

        A call that waits for the answers of another request, and a client without tasks, make it impossible.
        """
        if self._begin_task is None:
            return False
        if self.thread != get_ident():
            is_begun: bool = self._start(self._become_task()).result()
            return is_begun
        return self._begun()

    @property
    def may_become_task(self) -> bool:
        """Whether the client supports tasks, so that the call can continue as one."""
        return self._begin_task is not None

    def require_tasks(self) -> None:
        """Record that the call needs a client with tasks."""
        if self._begin_task is None:
            self.missing["extensions"] = {TASKS: {}}

    async def _become_task(self) -> bool:
        return self._begun()

    def _begun(self) -> bool:
        is_asking = self.round is not None and self.round.asked
        if self.task is None and self._begin_task is not None and not is_asking and not self._is_over:
            self.task = self._begin_task()
            if self.task is not None:
                self.round = None
                self.has_become_task.set()
        return self.task is not None

    def _start(self, asking: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(asking, self.loop)
        self._requests.add(future)
        future.add_done_callback(self._requests.discard)
        return future

    # End of the call

    async def settle(self) -> None:
        """Wait until all notifications of the call are sent, and drop further ones."""
        await asyncio.sleep(0)  # let the loop queue what was posted from this thread
        self._is_over = True
        if self._sender is not None:
            await self._sender

    def end(self) -> None:
        """Drop all further notifications, and cancel the questions without an answer."""
        self._is_over = True
        self._waiting.clear()
        for future in tuple(self._requests):
            future.cancel()


def offers_forms(capabilities: Any) -> bool:
    """Return whether a client can show forms to its user; a client that only opens URLs cannot.

    Args:
        capabilities: The client's capabilities from the SDK; None if it sent none.
    """
    offered = getattr(capabilities, "elicitation", None)
    return offered is not None and (offered.form is not None or offered.url is None)


def message(level: str, logger: str, text: str) -> Any:
    """Return the notification for a log message."""
    params: Any = {"level": level, "logger": sendable(logger), "data": sendable(text)}
    return LoggingMessageNotification(params=LoggingMessageNotificationParams(**params))


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_ITEM_CHARS else f"{text[: MAX_ITEM_CHARS - 1]}…"


CURRENT: Final[ContextVar[Request | None]] = ContextVar("neuroscript.interop.mcp", default=None)
"""The client's call that is running in this context; threads that run the call inherit it."""
