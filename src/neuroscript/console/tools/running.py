"""One running call: its progress, log, items and result, for its page and as events for the browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event
from time import monotonic, time
from typing import Any, Final

import attrs

from neuroscript.console.activities import Activity
from neuroscript.console.caller_host import listening
from neuroscript.console.tools.results import ResultView, item_text, view_of
from neuroscript.console.work_threads import WorkThreads
from neuroscript.engine.session import Session
from neuroscript.io.text import one_line
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.host import Progress
from neuroscript.runtime.interfaces import ToolCall, ToolResult

MAX_LINES: Final = 1_000
"""Maximum number of messages, and of items of a stream, that a page shows."""

MAX_MESSAGE_CHARS: Final = 500
MAX_ITEM_CHARS: Final = 300_000
"""Maximum number of characters of all items of a stream that a page shows."""

MIN_SECONDS_BETWEEN: Final = 0.05
"""Seconds between two events about progress, or about items that are not shown."""

Emit = Callable[[str, Any], None]
"""Renders a part of the page, such as ``item``, for a value, and sends it to the browser."""


class _Cancelled(Exception):
    """The user has cancelled the call, so no further item of its stream is received."""


@attrs.define(eq=False)
class RunningCall:
    """What the page of a call shows.

    Attributes:
        tool: The canonical name of the tool.
        arguments: The arguments, with placeholders for secrets.
        json: The same as JSON text.
        needs_approval: Whether the policy asks an approver first.
        progress: The last progress that the tool has reported, or None.
        messages: Level and text of what the tool has logged and printed.
        items: The items of a stream as text.
        item_count: The number of all items.
        result: The result without its value, or None while the call runs, or after it was cancelled.
        view: The result in the forms that suit it, or None.
        is_cancelled: Whether the user has cancelled the call.
        started: When, in seconds since 1970.
        seconds: The duration, or None while it runs.
    """

    tool: str
    arguments: dict[str, Any] = attrs.field(repr=False)
    json: str = attrs.field(repr=False)
    needs_approval: bool = False
    progress: Progress | None = None
    messages: list[tuple[str, str]] = attrs.field(factory=list, repr=False)
    items: list[str] = attrs.field(factory=list, repr=False)
    item_count: int = 0
    result: ToolResult | None = attrs.field(default=None, repr=False)
    view: ResultView | None = attrs.field(default=None, repr=False)
    is_cancelled: bool = False
    started: float = attrs.field(factory=time)
    seconds: float | None = None
    _chars: int = 0

    @property
    def state(self) -> str:
        """The state: ``running``, ``cancelled``, ``failed`` or ``done``."""
        if self.is_cancelled:
            return "cancelled"
        if self.result is None:
            return "running"
        return "done" if self.result.ok else "failed"

    def add_item(self, text: str) -> bool:
        """Add an item of a stream, and return whether the page shows it."""
        self.item_count += 1
        if len(self.items) >= MAX_LINES or self._chars + len(text) > MAX_ITEM_CHARS:
            return False
        self._chars += len(text)
        self.items.append(text)
        return True


class CallWork:
    """Runs one call as an activity.

    Args:
        threads: Run tools that would delay all other requests.
        policy: The policy of the tool, which says whether it may block.
        call: The state of the page.
        emit: Sends a part of the page to the browser.
    """

    def __init__(
        self,
        session: Session,
        threads: WorkThreads,
        policy: ToolPolicy,
        sent: ToolCall,
        call: RunningCall,
        emit: Emit,
    ) -> None:
        self._session = session
        self._threads = threads
        self._policy = policy
        self._sent = sent
        self._call = call
        self._emit = emit
        self._is_stopped = Event()
        self._shown_at = 0.0
        self._loop = asyncio.get_running_loop()

    async def __call__(self, activity: Activity) -> None:
        """Run the call until it ends or is cancelled."""
        try:
            with listening(self):
                result = await self._run()
            view = await asyncio.to_thread(view_of, result.value) if result.ok else None
            self._finish(attrs.evolve(result, value=None), view)
        except asyncio.CancelledError:
            self._call.is_cancelled = True
            self._finish(None, None)
            raise

    async def _run(self) -> ToolResult:
        if self._policy.waits:
            return await self._session.aexecute(self._sent, on_item=self._item)
        # A tool that does not wait runs on the thread of its caller, where it would delay all other requests
        return await self._threads.run(self._session.execute, self._sent, on_item=self._item)

    def _finish(self, result: ToolResult | None, view: ResultView | None) -> None:
        self._is_stopped.set()
        call = self._call
        call.seconds = time() - call.started
        call.result, call.view = result, view
        self._emit("outcome", call)

    # What the tools report, from any thread. The state of the page changes on the event loop together with the event,
    # so a page that is rendered in between contains exactly what the events until then say.

    def _item(self, item: Any) -> None:
        if self._is_stopped.is_set():
            raise _Cancelled
        self._loop.call_soon_threadsafe(self._add_item, item_text(item))

    def _add_item(self, text: str) -> None:
        if self._call.add_item(text):
            self._emit("item", text)
        elif self._is_due():
            self._emit("omitted", self._call.item_count - len(self._call.items))

    def progress(self, progress: Progress) -> None:
        """Show the progress of a tool."""
        self._call.progress = progress
        if self._is_due():
            self._loop.call_soon_threadsafe(self._show_progress)

    def _show_progress(self) -> None:
        if not self._is_stopped.is_set():
            self._emit("progress", self._call.progress)

    def log(self, level: str, text: str) -> None:
        """Show a message of a tool."""
        message = level, one_line(text, MAX_MESSAGE_CHARS)
        self._loop.call_soon_threadsafe(self._add_message, message)

    def _add_message(self, message: tuple[str, str]) -> None:
        if len(self._call.messages) < MAX_LINES and not self._is_stopped.is_set():
            self._call.messages.append(message)
            self._emit("message", message)

    def _is_due(self) -> bool:
        """Return whether enough time has passed since the last event that may be left out."""
        now = monotonic()
        if now - self._shown_at < MIN_SECONDS_BETWEEN:
            return False
        self._shown_at = now
        return True
