"""Work that a browser has started and whose progress it receives as server-sent events: a call, a plan or a chat turn.

The events are stored, so a page that is loaded again, or connects again, receives all of them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from operator import attrgetter
from secrets import token_urlsafe
from time import time
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.context import type_name

MAX_EVENTS: Final = 5_000
"""Maximum number of stored events of one activity; later ones are counted, and not shown, unless they replace one."""

MAX_EVENT_CHARS: Final = 4_000_000
"""Maximum number of stored characters of one activity."""

MAX_FINISHED: Final = 50
"""Maximum number of finished activities that a browser can still look at."""

MAX_RUNNING: Final = 16
"""Maximum number of running activities of one browser."""

KEEP_ALIVE_SECONDS: Final = 15.0
"""Seconds after which an idle stream sends a comment, so that a connection that was lost is noticed."""

LOGGER: Final = logging.getLogger("neuroscript.console")

Mode = Literal["append", "replace"]
Work = Callable[["Activity"], Awaitable[object]]


class TooManyActivities(Exception):
    """This browser runs as much as it may."""


@attrs.frozen
class ActivityEvent:
    """A change of a page.

    Attributes:
        number: Increases with each event of an activity, from 1.
        html: What is added, already escaped.
        target: The id of the element that changes; ``""`` for the element that receives the events.
        mode: Whether the content of the element is replaced, or the event is added at its end.
    """

    number: int
    html: str
    target: str
    mode: Mode


@attrs.define(eq=False)
class Activity:
    """One piece of work.

    Attributes:
        kind: The area that has started it, such as ``tools``.
        title: What it is, for the user.
        view: What the area needs for rendering the activity without JavaScript.
        started: When, in seconds since 1970.
        ended: When, or None while it runs.
    """

    kind: str
    title: str
    view: Any = attrs.field(default=None, repr=False)
    id: str = attrs.field(factory=lambda: token_urlsafe(9))
    started: float = attrs.field(factory=time)
    ended: float | None = None
    events: list[ActivityEvent] = attrs.field(factory=list, repr=False)
    omitted: int = 0
    _number: int = 0
    _chars: int = 0
    _task: asyncio.Task[object] | None = attrs.field(default=None, repr=False)
    _changed: asyncio.Event = attrs.field(factory=asyncio.Event, repr=False)
    _loop: asyncio.AbstractEventLoop = attrs.field(factory=asyncio.get_running_loop, repr=False)

    @property
    def finished(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    def emit(self, html: str, *, target: str = "", mode: Mode = "append") -> None:
        """Add an event, from any thread. An activity with too many events omits it, unless it replaces one.

        Args:
            html: Rendered by a template, so that all text in it is escaped.
        """
        if _running_loop() is self._loop:
            self._add(html, target, mode)
        else:
            self._loop.call_soon_threadsafe(self._add, html, target, mode)

    def _add(self, html: str, target: str, mode: Mode) -> None:
        if mode == "replace":
            self._forget(target)
        if len(self.events) >= MAX_EVENTS or self._chars + len(html) > MAX_EVENT_CHARS:
            self.omitted += 1
            return
        self._number += 1
        self.events.append(ActivityEvent(self._number, html, target, mode))
        self._chars += len(html)
        self._wake()

    def _forget(self, target: str) -> None:
        """Remove what an event replaces; what was added inside of it is then left out by pages that connect later."""
        for index in range(len(self.events) - 1, -1, -1):
            event = self.events[index]
            if event.mode == "replace" and event.target == target:
                self._chars -= len(event.html)
                del self.events[index]
                return

    def cancel(self) -> None:
        """Cancel the work; it ends when its task has ended."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> None:
        """Wait until the work has ended."""
        while not self.finished:
            await self._changed.wait()

    async def stream(self, after: int = 0) -> AsyncGenerator[str, None]:
        """Yield the events after a number as server-sent events, until the work has ended."""
        while True:
            while (at := bisect_right(self.events, after, key=attrgetter("number"))) < len(self.events):
                event = self.events[at]
                after = event.number
                yield f"id: {after}\ndata: {json.dumps(attrs.asdict(event))}\n\n"
            if self.finished:
                yield f"event: end\nid: {after}\ndata: \n\n"
                return
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), KEEP_ALIVE_SECONDS)
            except TimeoutError:
                yield ": keep-alive\n\n"

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def start(self, work: Work) -> None:
        """Run the work in a task of the current event loop."""
        self._task = asyncio.create_task(self._run(work))

    async def _run(self, work: Work) -> None:
        try:
            await work(self)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # its text may contain a value
            LOGGER.error("an activity failed (%s)", type_name(error), exc_info=False)
            self.emit('<p class="notice bad" role="alert">This failed because of an internal error.</p>')
        finally:
            self.ended = time()
            self._wake()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Activities:
    """The activities of one browser, by id."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Activity] = OrderedDict()

    def __iter__(self) -> Any:
        return reversed(tuple(self._known.values()))

    def get(self, id: str) -> Activity | None:
        """Return an activity, or None if it is unknown or was removed."""
        return self._known.get(id)

    def start(self, kind: str, title: str, work: Work, *, view: Any = None) -> Activity:
        """Start an activity in the current event loop.

        Raises:
            TooManyActivities: This browser runs as much as it may.
        """
        running = [each for each in self._known.values() if not each.finished]
        if len(running) >= MAX_RUNNING:
            raise TooManyActivities(f"{MAX_RUNNING} activities are running; wait for one to end, or cancel one")
        activity = Activity(kind, title, view)
        self._known[activity.id] = activity
        finished = [each for each in self._known.values() if each.finished]
        for old in finished[: max(0, len(finished) - MAX_FINISHED)]:
            del self._known[old.id]
        activity.start(work)
        return activity

    def close(self) -> None:
        """Cancel everything that runs."""
        for each in self._known.values():
            each.cancel()
