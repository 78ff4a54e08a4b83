"""One running call of a client: sends notifications and questions to that client, from any thread.

See MCP 2025-11-25, "Progress", "Logging" and "Elicitation".
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
    from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.coercion.plain_data import to_plain
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

    Attributes:
        loop: The loop that serves the client.
        thread: The thread of that loop, which must not be blocked.
    """

    def __init__(self, context: Any, listens: Callable[[str], bool]) -> None:
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
        self._post(partial(self._context.session.report_progress, done, total, sendable(text) or None))

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

    @property
    def can_ask(self) -> bool:
        """Whether the client can ask its user."""
        session = self._context.session
        return bool(session.can_send_request) and offers_forms(session.client_capabilities)

    async def ask(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the answer of the client's user, or None if the user does not answer; can be awaited on any loop."""
        asking = self._context.session.elicit_form(text, dict(schema), related_request_id=self._id)
        if asyncio.get_running_loop() is self.loop:
            return _content(await asking)
        return _content(await asyncio.wrap_future(self._start(asking)))

    def ask_and_wait(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Do the same as `ask`, blocking the calling thread; must not be called in `thread`."""
        asking = self._context.session.elicit_form(text, dict(schema), related_request_id=self._id)
        return _content(self._start(asking).result())

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


def _content(answer: Any) -> dict[str, Any] | None:
    return dict(answer.content or {}) if answer.action == "accept" else None


CURRENT: Final[ContextVar[Request | None]] = ContextVar("neuroscript.interop.mcp", default=None)
"""The client's call that is running in this context; threads that run the call inherit it."""
