"""One call of a client while it is carried out: the way back to whoever made it, from any thread.

Source: MCP 2025-11-25, "Progress", "Logging", "Elicitation"; issue "MCP", progress, logging, elicitation.
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

from neuroscript._imports import missing

try:
    from mcp_types import LoggingMessageNotification, LoggingMessageNotificationParams
except ImportError as error:
    raise missing("serving over MCP needs its SDK", "mcp", error) from None

from neuroscript.coercion.plain_data import plain
from neuroscript.io.text import sendable

MOST_WAITING: Final = 1_000
"""How many notifications of one call may wait to be sent; further ones are dropped."""

LONGEST: Final = 1_000
"""How many characters of an item of a stream a client is told before it has the result."""

Send = Callable[[], Awaitable[object]]


class Request:
    """One call of a client.

    Args:
        context: What the SDK knows of it, a `ServerRequestContext`.
        listens: Tells whether the client wants log messages of a level.

    Attributes:
        loop: The loop that serves the client.
        thread: The thread of that loop, which nobody may hold up.
    """

    def __init__(self, context: Any, listens: Callable[[str], bool]) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self._context = context
        self._listens = listens
        self._waiting: deque[Send] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._asked: set[Any] = set()
        self._furthest = -inf
        self._items = 0
        self._is_over = False

    # What the client is told

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Tell the client how far the call is, if it wants to know; never waits.

        What is no further than it was is not told, for the numbers of one call have to grow; a call within another one
        may count from 0 again.
        """
        if not self._furthest < done < inf:
            return
        self._furthest = done
        self._post(partial(self._context.session.report_progress, done, total, sendable(text) or None))

    @property
    def wants_progress(self) -> bool:
        """Whether the client wants to know how far the call is."""
        return (self._context.meta or {}).get("progress_token") is not None

    async def item(self, item: Any) -> None:
        """Tell the client an item of a stream, as its text, and how many there were; the next one waits for that.

        Where the tool has told that it is further, the number is one more than that, so that no item is left out.
        """
        self._items += 1
        done = max(self._items, self._furthest + 1)
        self.progress(done, None, _cut(item if type(item) is str else json.dumps(plain(item), ensure_ascii=False)))
        await asyncio.sleep(0)  # what was posted is taken now
        if self._sender is not None:
            await asyncio.wait({self._sender})

    def log(self, level: str, logger: str, text: str) -> None:
        """Tell the client a message of a logger, if it wants to know; never waits."""
        if self._listens(level):
            self._post(partial(self._context.session.send_notification, message(level, logger, text), self._id))

    @property
    def _id(self) -> Any:
        return self._context.request_id

    def _post(self, send: Send) -> None:
        if not self._is_over and len(self._waiting) < MOST_WAITING:
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
            with suppress(Exception):  # the client has gone
                await self._waiting.popleft()()
        self._sender = None

    # What it is asked

    @property
    def can_ask(self) -> bool:
        """Whether the client puts questions to its user."""
        session = self._context.session
        return bool(session.can_send_request) and offers_forms(session.client_capabilities)

    async def ask(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what the client's user answered, or None where nothing was; to be awaited on any loop."""
        asking = self._context.session.elicit_form(text, dict(schema), related_request_id=self._id)
        if asyncio.get_running_loop() is self.loop:
            return _content(await asking)
        return _content(await asyncio.wrap_future(self._begun(asking)))

    def ask_and_wait(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what `ask` gives, to a thread that waits for it; not to be called on `thread`."""
        asking = self._context.session.elicit_form(text, dict(schema), related_request_id=self._id)
        return _content(self._begun(asking).result())

    def _begun(self, asking: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(asking, self.loop)
        self._asked.add(future)
        future.add_done_callback(self._asked.discard)
        return future

    # Its end

    async def settle(self) -> None:
        """Wait until all that the call has told is sent, and let nothing further be."""
        await asyncio.sleep(0)  # what was posted from this very thread is taken now
        self._is_over = True
        if self._sender is not None:
            await self._sender

    def end(self) -> None:
        """Let nothing further be sent, and nobody wait for an answer."""
        self._is_over = True
        self._waiting.clear()
        for future in tuple(self._asked):
            future.cancel()


def offers_forms(capabilities: Any) -> bool:
    """Tell whether a client shows its user a form; one that only opens addresses does not.

    Args:
        capabilities: The SDK's, of the client; None where it told none.
    """
    offered = getattr(capabilities, "elicitation", None)
    return offered is not None and (offered.form is not None or offered.url is None)


def message(level: str, logger: str, text: str) -> Any:
    """Return the notification of a log message."""
    params: Any = {"level": level, "logger": sendable(logger), "data": sendable(text)}
    return LoggingMessageNotification(params=LoggingMessageNotificationParams(**params))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _content(answer: Any) -> dict[str, Any] | None:
    return dict(answer.content or {}) if answer.action == "accept" else None


CURRENT: Final[ContextVar[Request | None]] = ContextVar("neuroscript.interop.mcp", default=None)
"""The call of a client in which something happens; threads that a call is carried out on have it too."""
