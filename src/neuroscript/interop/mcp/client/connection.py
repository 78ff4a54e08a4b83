"""A connection to a server, on an event loop in its own thread, that is reopened, with limits, after it breaks.

An open connection is an `OpenConnection`: a thread with a loop, both of which end with the connection. Its `Dialogue`
may be used only in that loop. Requests come from other threads, and results go back to them.
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
from neuroscript.interop.mcp.client.log_filter import IS_FILTERED
from neuroscript.interop.mcp.client.results import Unusable, response_error

T = TypeVar("T")

MAX_OPENINGS: Final = 5
OPENINGS_PERIOD_SECONDS: Final = 60.0
"""Maximum number of times a connection is opened, and the period for it in seconds."""

CLOSE_TIMEOUT_SECONDS: Final = 10.0
"""Maximum duration of closing, in seconds: a child has 2 seconds to exit, 2 seconds to terminate, then it is killed."""

Connect = Callable[[Callable[[], None]], AbstractAsyncContextManager[Any]]
"""Opens a connection; its argument is called when the other side closes the connection."""


def connection_closed_error() -> ToolFailed:
    """Return the error for a call whose connection ended before the response."""
    text = "the connection to the server ended before the response; the tool may have had effects"
    return ToolFailed(text, code="mcp.closed", retry="later")


def closed_by_host_error() -> ToolFailed:
    """Return the error for a call of a server whose connection the host has closed permanently."""
    return ToolFailed("the connection to the server was closed by the host", code="mcp.closed", retry="host")


class Openings(Protocol):
    """Decides when a connection may be opened, and learns when it is open and when it ends. Any thread may call it."""

    def begin(self, end: Callable[[], None]) -> None:
        """Record that the connection is opened now, or raise a `ToolFailed` if it must not be.

        Args:
            end: Ends the connection permanently, without waiting for it.
        """

    def opened(self) -> None:
        """Record that the connection is open."""

    def ended(self, error: ToolFailed | None) -> None:
        """Record that the connection has ended, with the error if it could not be opened."""


class OpeningLimit:
    """Permits `MAX_OPENINGS` openings within `OPENINGS_PERIOD_SECONDS`."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=MAX_OPENINGS)

    def begin(self, end: Callable[[], None]) -> None:
        """Record an opening.

        Raises:
            ToolFailed: ``mcp.start``: there were too many.
        """
        now = monotonic()
        if len(self._times) == MAX_OPENINGS and now - self._times[0] < OPENINGS_PERIOD_SECONDS:
            starts = f"{MAX_OPENINGS} times within {OPENINGS_PERIOD_SECONDS:g} s"
            text = f"the server was started {starts}; it is not restarted for a while"
            raise ToolFailed(text, code="mcp.start", retry="later")
        self._times.append(now)

    def opened(self) -> None:
        """Do nothing, because only openings count."""

    def ended(self, error: ToolFailed | None) -> None:
        """Do nothing, because only openings count."""


class OpenConnection:
    """A connection from opening to closing.

    Attributes:
        opened: The `Dialogue`, or the reason why the connection failed.
        is_over: Whether it accepts no more requests.
    """

    def __init__(self, dial: Connect, seconds: float, openings: Openings | None = None) -> None:
        self.opened: Future[Any] = Future()
        self.opened.set_running_or_notify_cancel()  # so that a cancelled caller does not cancel it for the others
        self.is_over = False
        self._dial = dial
        self._seconds = seconds
        self._openings = openings or OpeningLimit()
        self._is_reported = False
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._ending: asyncio.Event | None = None
        self._asking: set[asyncio.Task[Any]] = set()
        self.thread = threading.Thread(target=self._run, name="neuroscript-mcp", daemon=True)
        atexit.register(self.close)
        self.thread.start()

    def submit(self, work: Callable[[Any], Awaitable[T]]) -> Future[T]:
        """Run a request in the loop; the future belongs to the calling thread, and may be cancelled.

        Raises:
            ToolFailed: ``mcp.closed``: the connection has ended.
        """
        with self._lock:
            if self.is_over or self._loop is None:
                raise connection_closed_error()
            return asyncio.run_coroutine_threadsafe(self._run_request(work), self._loop)

    async def _run_request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        IS_FILTERED.set(True)  # for this task: the SDK sends the request and reads the response in the caller's context
        task: Any = asyncio.current_task()
        self._asking.add(task)
        task.add_done_callback(self._forget_task)
        try:
            return await work(self.opened.result())
        except asyncio.CancelledError:
            if self.is_over:  # otherwise the caller has cancelled
                raise connection_closed_error() from None
            raise

    def _forget_task(self, task: asyncio.Task[Any]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # retrieve it, so that asyncio does not log it if the caller has cancelled

    def end(self) -> None:
        """Request the end of the connection, from any thread."""
        with self._lock:
            self.is_over = True
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._end)
        if self.opened.done():  # otherwise the reason is not known yet
            self._report_end()

    def _report_end(self) -> None:
        """Report the end once, before anything opens the next connection."""
        with self._lock:
            is_reported, self._is_reported = self._is_reported, True
        if not is_reported:
            error = self.opened.exception()
            self._openings.ended(error if isinstance(error, ToolFailed) else None)

    def _end(self) -> None:
        if self._ending is not None:
            self._ending.set()
        if self._task is not None and not self.opened.done():
            self._task.cancel()

    def close(self) -> None:
        """End the connection, and wait until its thread has ended."""
        self.end()
        if threading.current_thread() is not self.thread:
            self.thread.join(CLOSE_TIMEOUT_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._lived())
        except BaseException as error:
            self._fail(error)
        finally:
            self.is_over = True
            self._fail(connection_closed_error())
            self._report_end()
            atexit.unregister(self.close)

    def _fail(self, error: BaseException) -> None:
        if not self.opened.done():
            self.opened.set_exception(start_error(error))

    async def _lived(self) -> None:
        with self._lock:
            if self.is_over:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            self._ending = asyncio.Event()
        try:
            dialled = self._dial(self.end)  # before the timeout starts, because the SDK may have to be imported
            async with asyncio.timeout(self._seconds) as clock, dialled as dialogue:
                clock.reschedule(None)
                self.opened.set_result(dialogue)
                self._openings.opened()
                await self._ending.wait()
        except BaseException as error:
            self._fail(error)  # now, because the loop may have to wait for a thread that resolves a name
            raise
        finally:
            with self._lock:
                self.is_over = True
            self._report_end()
            await asyncio.sleep(0)  # start what was submitted until now, so that it is cancelled below
            asking = {each for each in self._asking if each.cancel()}
            if asking:
                await asyncio.wait(asking)


def start_error(error: BaseException) -> ToolFailed:
    """Return the error for a connection that could not be opened; it contains only the type of the cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolFailed):
        return error
    data = getattr(error, "data", None)
    if isinstance(data, Unusable):
        return response_error(data.reason)
    text = f"the server could not be reached: {REASONS.get(type(error).__name__, type(error).__name__)}"
    found = ToolFailed(text, code="mcp.start", retry="later")
    found.__cause__ = error
    return found


REASONS: Final = {
    "CancelledError": "it ended, or was stopped, before it responded",
    "MCPError": "it refused the connection, or ended before it responded",
    "TimeoutError": "it did not respond in time",
}
"""Descriptions of errors by type name, so that `failed` does not import the SDK."""


def timeout_error(seconds: float) -> ToolFailed:
    """Return the error for a server that has not responded in time."""
    return ToolFailed(f"the server did not respond within {seconds:g} s", code="mcp.start", retry="later")


def copy_error(error: ToolFailed) -> ToolFailed:
    """Return a copy of an error for one of several callers, because each adds its own tool name."""
    return ToolFailed(error.text, code=error.code, retry=error.retry)


class RequestSender(Protocol):
    """Sends requests to one server."""

    @property
    def seconds(self) -> float:
        """Timeout of a call, in seconds."""
        ...

    async def request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run *work* with the dialogue of the server, and return its result."""
        ...


class Unconnected:
    """A placeholder connection for tools from a definition alone: they can be inspected, but not called."""

    seconds: Final = 30.0

    async def request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Raise a `ToolFailed`."""
        text = "the tool was created from a definition alone, without a connection to its server"
        raise ToolFailed(text, code="mcp.closed", retry="host")


class Connection:
    """Sends requests to one server; opens the connection when needed, and again after it breaks.

    Args:
        dial: Opens a connection.
        seconds: Timeout for opening, and for a response outside a call, in seconds.
        openings: Decides when the connection may be opened again; by default an `OpeningLimit`.
    """

    def __init__(self, dial: Connect, seconds: float, openings: Openings | None = None) -> None:
        self.seconds = seconds
        self._dial = dial
        self._lock = threading.Lock()
        self._life: OpenConnection | None = None
        self._openings = openings or OpeningLimit()
        self._is_closed = False

    async def request(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run *work* with the dialogue and return its result; cancelling this cancels it in the server's loop too."""
        life = self._living()
        try:
            if life.opened.done():  # waiting for it would wake this loop through a socket
                life.opened.result()
            else:
                await asyncio.wrap_future(life.opened)
        except ToolFailed as error:
            raise copy_error(error) from error.__cause__
        return await asyncio.wrap_future(life.submit(work))

    def asked_now(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Do the same as `asked`, blocking the thread, with the timeout applied to each step."""
        life = self._living()
        self._awaited(life.opened, self.seconds + CLOSE_TIMEOUT_SECONDS)
        return self._awaited(life.submit(work), self.seconds)

    def _awaited(self, future: Future[T], seconds: float) -> T:
        try:
            return future.result(min(seconds, threading.TIMEOUT_MAX))
        except TimeoutError:
            raise timeout_error(self.seconds) from None
        finally:
            future.cancel()

    def open(self) -> None:
        """Start to open the connection if it is not open, without waiting for it.

        Raises:
            ToolFailed: It must not be opened now.
        """
        self._living()

    def _living(self) -> OpenConnection:
        """Return a connection that is open or opening."""
        with self._lock:
            if self._is_closed:
                raise closed_by_host_error()
            if self._life is None or self._life.is_over:
                self._life = self._start_connection()
            return self._life

    def _start_connection(self) -> OpenConnection:
        self._openings.begin(self.end)
        life = OpenConnection(self._dial, self.seconds, self._openings)
        weakref.finalize(self, life.end).atexit = False
        return life

    def end(self) -> None:
        """Request its permanent end, from any thread, without waiting for it."""
        with self._lock:
            self._is_closed = True
        if self._life is not None:
            self._life.end()

    def close(self) -> None:
        """Close it permanently; the child process, the thread and all descriptors are gone when this returns."""
        self.end()
        if self._life is not None:
            self._life.close()
