"""One connection to a server, kept on a loop of a thread of its own, and opened again, with limits, when it has broken.

A connection that is open is a `Life`: a thread with a loop, which ends with it, so that nothing is left of either. Its
`Dialogue` may be used in that loop alone; what is asked of it comes from other threads, and what came of it goes back.

Source: issue "MCP", timeouts and reconnects; reliability.md part 4.2.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Any, Final, Protocol, TypeVar

from neuroscript.errors import ToolFailed
from neuroscript.interop.mcp.client.log_filter import HUSHED
from neuroscript.interop.mcp.client.results import Unusable, unlike

T = TypeVar("T")

OPENINGS: Final = 5
WITHIN: Final = 60.0
"""How often a connection is opened within so many seconds."""

LEAVING: Final = 10.0
"""Seconds that an end may take: a child is asked to end for 2 seconds, told to for 2, and killed then."""

Dial = Callable[[Callable[[], None]], AbstractAsyncContextManager[Any]]
"""What opens a connection; its argument is to be called when the other side has ended it."""


def over() -> ToolFailed:
    """Return the error of a call whose connection ended before its answer came."""
    text = "the connection to the server ended before its answer; whether it did anything is not known"
    return ToolFailed(text, code="mcp.closed", retry="later")


class Life:
    """A connection from its opening to its end.

    Attributes:
        opened: The `Dialogue`, or why there is none.
        is_over: Whether nothing can be asked any more.
    """

    def __init__(self, dial: Dial, seconds: float) -> None:
        self.opened: Future[Any] = Future()
        self.opened.set_running_or_notify_cancel()  # so that no caller that goes away cancels it for the others
        self.is_over = False
        self._dial = dial
        self._seconds = seconds
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._ending: asyncio.Event | None = None
        self._asking: set[asyncio.Task[Any]] = set()
        self.thread = threading.Thread(target=self._run, name="neuroscript-mcp", daemon=True)
        atexit.register(self.close)
        self.thread.start()

    def submit(self, work: Callable[[Any], Awaitable[T]]) -> Future[T]:
        """Have something asked in the loop; the future is of the caller's threads, and may be cancelled.

        Raises:
            ToolFailed: ``mcp.closed``, it is over.
        """
        with self._lock:
            if self.is_over or self._loop is None:
                raise over()
            return asyncio.run_coroutine_threadsafe(self._asked(work), self._loop)

    async def _asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        HUSHED.set(True)  # of this task: the SDK sends, and reads the answer, in the context of whoever asks
        task: Any = asyncio.current_task()
        self._asking.add(task)
        task.add_done_callback(self._answered)
        try:
            return await work(self.opened.result())
        except asyncio.CancelledError:
            if self.is_over:  # else the caller has gone
                raise over() from None
            raise

    def _answered(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # which is looked at here, so that nothing is logged of it where whoever asked has gone

    def end(self) -> None:
        """Have it end soon; from any thread."""
        with self._lock:
            self.is_over = True
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.set()
        if self._task is not None and not self.opened.done():
            self._task.cancel()

    def close(self) -> None:
        """End it, and wait until nothing is left of it."""
        self.end()
        if threading.current_thread() is not self.thread:
            self.thread.join(LEAVING)

    def _run(self) -> None:
        try:
            asyncio.run(self._lived())
        except BaseException as error:
            self._fail(error)
        finally:
            self.is_over = True
            self._fail(over())
            atexit.unregister(self.close)

    def _fail(self, error: BaseException) -> None:
        if not self.opened.done():
            self.opened.set_exception(failed(error))

    async def _lived(self) -> None:
        with self._lock:
            if self.is_over:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            self._ending = asyncio.Event()
        try:
            dialled = self._dial(self.end)  # before the clock runs: what speaks to servers may have to be loaded
            async with asyncio.timeout(self._seconds) as clock, dialled as dialogue:
                clock.reschedule(None)
                self.opened.set_result(dialogue)
                await self._ending.wait()
        except BaseException as error:
            self._fail(error)  # now, for the loop may have to wait for a thread that looks a name up
            raise
        finally:
            with self._lock:
                self.is_over = True
            await asyncio.sleep(0)  # what was submitted until now begins, and is cancelled
            asking = {each for each in self._asking if each.cancel()}
            if asking:
                await asyncio.wait(asking)


def failed(error: BaseException) -> ToolFailed:
    """Return the error of a connection that could not be opened; of what went wrong it says the type alone."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolFailed):
        return error
    data = getattr(error, "data", None)
    if isinstance(data, Unusable):
        return unlike(data.reason)
    text = f"the server could not be reached: {REASONS.get(type(error).__name__, type(error).__name__)}"
    found = ToolFailed(text, code="mcp.start", retry="later")
    found.__cause__ = error
    return found


REASONS: Final = {
    "CancelledError": "it ended, or was ended, before it answered",
    "MCPError": "it refused, or ended before it answered",
    "TimeoutError": "it did not answer in time",
}
"""What the types of some errors mean here; `failed` knows no SDK."""


def late(seconds: float) -> ToolFailed:
    """Return the error of a server that has not answered within so many seconds."""
    return ToolFailed(f"the server did not answer within {seconds:g} s", code="mcp.start", retry="later")


def again(error: ToolFailed) -> ToolFailed:
    """Return an error for one caller of several, each of whom has a tool of its own to put into it."""
    return ToolFailed(error.text, code=error.code, retry=error.retry)


class Asking(Protocol):
    """What carries questions to one server."""

    @property
    def seconds(self) -> float:
        """How many seconds a call may take."""
        ...

    async def asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return what *work* makes of the dialogue with the server."""
        ...


class Unconnected:
    """In place of a connection, for tools that were read off a definition alone: they can be looked at, not called."""

    seconds: Final = 30.0

    async def asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Raise a `ToolFailed`."""
        text = "the tool was read off a definition alone, and there is no connection to its server"
        raise ToolFailed(text, code="mcp.closed", retry="host")


class Connection:
    """What is asked of one server; opened when it is first needed, and again when it has broken.

    Args:
        dial: What opens a connection.
        seconds: How long that may take, and how long whoever is not in a call waits for an answer.
    """

    def __init__(self, dial: Dial, seconds: float) -> None:
        self.seconds = seconds
        self._dial = dial
        self._lock = threading.Lock()
        self._life: Life | None = None
        self._openings: deque[float] = deque(maxlen=OPENINGS)
        self._is_closed = False

    async def asked(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return what *work* makes of the dialogue; whoever cancels this cancels it in the loop of the server too."""
        life = self._living()
        try:
            await asyncio.wrap_future(life.opened)
        except ToolFailed as error:
            raise again(error) from error.__cause__
        return await asyncio.wrap_future(life.submit(work))

    def asked_now(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Return what `asked` does to whoever waits here, but no longer than so many seconds for each step."""
        life = self._living()
        self._awaited(life.opened, self.seconds + LEAVING)
        return self._awaited(life.submit(work), self.seconds)

    def _awaited(self, future: Future[T], seconds: float) -> T:
        try:
            return future.result(min(seconds, threading.TIMEOUT_MAX))
        except TimeoutError:
            raise late(self.seconds) from None
        finally:
            future.cancel()

    def _living(self) -> Life:
        """Return a connection that is open, or is about to be."""
        with self._lock:
            if self._is_closed:
                raise ToolFailed("the connection to the server was closed here", code="mcp.closed", retry="host")
            if self._life is None or self._life.is_over:
                self._life = self._begun()
            return self._life

    def _begun(self) -> Life:
        now = monotonic()
        if len(self._openings) == OPENINGS and now - self._openings[0] < WITHIN:
            text = f"the server was started {OPENINGS} times within {WITHIN:g} s, and is left alone for a while"
            raise ToolFailed(text, code="mcp.start", retry="later")
        self._openings.append(now)
        life = Life(self._dial, self.seconds)
        weakref.finalize(self, life.end).atexit = False
        return life

    def close(self) -> None:
        """Close it for good: the child, the thread and all descriptors are gone when this returns."""
        with self._lock:
            self._is_closed = True
            life = self._life
        if life is not None:
            life.close()
