"""Drivers that run the steps of a call: for a result or for a stream, from sync or from async code.

A coroutine tool runs on the event loop of the caller that awaits it, otherwise on a loop of the engine, in a thread. A
tool that blocks runs on a thread where its caller must not block.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import attrs

from neuroscript.calls.steps import (
    END,
    GRACE_SECONDS,
    LAST,
    CallerGone,
    Invocation,
    Steps,
    StreamClosed,
    StreamItem,
    convert_exception,
)
from neuroscript.errors import CallError, CallTimeout

if TYPE_CHECKING:
    from neuroscript.calls.threads import LoopThread, Threads


@attrs.frozen(eq=False, repr=False)
class Outcome:
    """What a function returned or raised."""

    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """Return what it returned or raise what it raised; if the caller stopped waiting, raise the error for the
        caller."""
        if self.error is None:
            return self.value
        raise self.error.error if isinstance(self.error, CallerGone) else self.error


def call_function(body: Invocation) -> Outcome:
    """Call a function and return its outcome; an exception becomes part of it, so no thread or future sees it."""
    try:
        return Outcome(body.func(*body.values))
    except BaseException as error:
        return error_outcome(body, error)


def error_outcome(body: Invocation, error: BaseException) -> Outcome:
    """Return the outcome of a function that raised *error*; a KeyboardInterrupt interrupts the process only in the main
    thread."""
    return Outcome(error=convert_exception(error, body.tool) if isinstance(error, KeyboardInterrupt) else error)


def timeout_outcome(body: Invocation, has_ended: Callable[[], bool] | None = None, *, stopped: bool) -> Outcome:
    """Return the outcome of a function that has used up its time.

    Args:
        has_ended: Returns whether a function that was abandoned has ended since.
    """
    state = "was stopped" if stopped else "was abandoned and may still run"
    text = f"did not end within {body.limit:g} s and {state}"
    word: Literal["stopped", "abandoned"] = "stopped" if stopped else "abandoned"
    error = CallTimeout(text, tool=body.tool, state=word, seconds=body.limit, has_ended=has_ended)
    return Outcome(error=CallerGone(error))


class ThreadSource(Protocol):
    """The provider of an engine's threads, which are created when a call first has to wait."""

    @property
    def threads(self) -> Threads:
        """The threads."""


BEGIN: Final = Outcome()
NEXT: Final = Outcome()


class Collector(Protocol):
    """Collects the items of a stream for a call."""

    @property
    def items(self) -> Any:
        """The result of the call: the items, or what stands for them."""

    def add(self, item: StreamItem) -> object:
        """Add an item; an async driver awaits what this returns if it is awaitable."""

    def end(self) -> object:
        """Finish after the last item; an async driver awaits what this returns if it is awaitable."""

    def ended(self, error: CallError) -> CallError:
        """Return the error to report for a stream that *error* ended."""


@attrs.frozen(eq=False, repr=False)
class Done:
    """The end of the steps, with what they return: the result, or `END` after the items of a stream."""

    value: Any


def drive(steps: Steps, source: ThreadSource, collected: Collector | None = None) -> Any:
    """Run the steps of one call for a sync caller and return its result; for a stream, the list of its items.

    Args:
        collected: Collects the items; the default is a new `CollectedItems`.
    """
    runner = Runner(source)
    answer = BEGIN
    while True:
        try:
            while True:
                asked = _after(steps, answer)
                if isinstance(asked, Done):
                    return _result(asked, collected)
                if isinstance(asked, StreamItem):
                    collected = collected or _collecting()
                    answer = _taken(collected, asked)
                else:
                    answer = runner.run(asked)
        except BaseException as error:
            if _have_ended(steps):
                raise
            answer = Outcome(error=error)


def _have_ended(steps: Steps) -> bool:
    """Return whether an exception comes from the steps; otherwise it is an interrupt, and they must still clean up."""
    return getattr(steps, "gi_frame", None) is None


async def adrive(steps: Steps, source: ThreadSource, collected: Collector | None = None) -> Any:
    """Run the steps of one call for a caller that awaits it, and return what `drive` returns."""
    asked = _after(steps, BEGIN)
    while not isinstance(asked, Done):
        if isinstance(asked, StreamItem):
            collected = collected or _collecting()
            asked = _after(steps, await _ataken(collected, asked))
        else:
            asked = _after(steps, await _arun(asked, source))
    return _result(asked, collected)


def _collecting() -> Collector:
    from neuroscript.calls.streams import CollectedItems

    return CollectedItems()


def _result(done: Done, collected: Collector | None) -> Any:
    if done.value is not END:
        return done.value
    return [] if collected is None else collected.items


def drive_stream(steps: Steps, source: ThreadSource) -> Generator[Any, None, None]:
    """Run the steps of one call for a sync reader, and yield its items as they come, or its one result."""
    runner = Runner(source)
    answer = BEGIN
    while True:
        try:
            while not isinstance(asked := _after(steps, answer), Done):
                if asked is LAST:
                    answer = NEXT
                elif isinstance(asked, StreamItem):
                    yield asked.value
                    answer = NEXT
                else:
                    answer = runner.run(asked)
            break
        except StreamClosed:
            return
        except GeneratorExit:
            answer = Outcome(error=StreamClosed())
        except BaseException as error:
            if _have_ended(steps):
                raise
            answer = Outcome(error=error)
    if asked.value is not END:
        yield asked.value


async def adrive_stream(steps: Steps, source: ThreadSource) -> AsyncGenerator[Any, None]:
    """Run the steps of one call for an async reader, as `drive_stream` does."""
    asked = _after(steps, BEGIN)
    while not isinstance(asked, Done):
        if asked is LAST:
            answer = NEXT
        elif isinstance(asked, StreamItem):
            try:
                yield asked.value
                answer = NEXT
            except GeneratorExit:
                answer = Outcome(error=StreamClosed())
        else:
            answer = await _arun(asked, source)
        try:
            asked = _after(steps, answer)
        except StreamClosed:
            return
    if asked.value is not END:
        yield asked.value


def _after(steps: Steps, answer: Outcome) -> Invocation | StreamItem | Done:
    """Send an outcome to the steps and return what they ask for next, or what they return."""
    try:
        return steps.send(answer.value) if answer.error is None else steps.throw(answer.error)
    except StopIteration as done:
        return Done(done.value)


def _taken(collected: Collector, item: StreamItem) -> Outcome:
    """Collect an item, or finish after the last one, and return the outcome for the steps."""
    try:
        collected.end() if item is LAST else collected.add(item)
    except BaseException as error:
        return Outcome(error=error)
    return NEXT


async def _ataken(collected: Collector, item: StreamItem) -> Outcome:
    """Do the same, and await what the collector returns."""
    from inspect import isawaitable

    try:
        told = collected.end() if item is LAST else collected.add(item)
        if isawaitable(told):
            await told
    except BaseException as error:
        return Outcome(error=error)
    return NEXT


class Runner:
    """Runs what the steps of one call ask for, for a sync caller; all coroutines of one call share a loop."""

    def __init__(self, source: ThreadSource) -> None:
        self._source = source
        self._loop: LoopThread | None = None

    def run(self, body: Invocation) -> Outcome:
        """Run a function to its end, or until its time is over."""
        if body.run_mode == "coroutine":
            threads = self._source.threads
            with threads.waiting():
                self._loop = self._loop or threads.loop()
                return self._loop.outcome(lambda: _awaited(body))
        return call_function(body) if body.timeout is None else self._source.threads.within(body, body.timeout)


async def _arun(body: Invocation, source: ThreadSource) -> Outcome:
    return await (_awaited(body) if body.run_mode == "coroutine" else source.threads.awaitable(body))


async def _awaited(body: Invocation) -> Outcome:
    """Await a coroutine function; a cancellation that its caller asked for ends the call."""
    import asyncio

    if body.timeout is not None:
        return await _awaited_within(body, body.timeout)
    try:
        return Outcome(await body.func(*body.values))
    except asyncio.CancelledError as error:
        return Outcome(error=CallerGone(error) if _was_asked_to_stop() else error)
    except BaseException as error:
        return error_outcome(body, error)


async def _awaited_within(body: Invocation, seconds: float) -> Outcome:
    import asyncio

    task = asyncio.ensure_future(_awaited(attrs.evolve(body, timeout=None)))
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError as error:
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        return Outcome(error=CallerGone(error))
    if done:
        return task.result()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=GRACE_SECONDS)
    return timeout_outcome(body, stopped=bool(done))


def _was_asked_to_stop() -> bool:
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
