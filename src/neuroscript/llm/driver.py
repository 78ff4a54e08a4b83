"""Execution of conversation steps: ask the model, run its tool calls, and notify the listener.

Work runs on daemon threads, so a call that was abandoned does not keep the process alive.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError, is_interrupt
from neuroscript.llm.events import (
    CallEnded,
    CallStarted,
    Event,
    ItemProduced,
    ReplyReceived,
    RetryScheduled,
    TextReceived,
)
from neuroscript.llm.offered_tools import refuse_unoffered
from neuroscript.llm.steps import AskStep, CallStep
from neuroscript.llm.tool_search import FoundTools
from neuroscript.runtime.interfaces import AnyModel, ToolCall, ToolResult, Turn
from neuroscript.runtime.redacting_proxies import redacted_call
from neuroscript.runtime.replies import Reply, RetriedRequest, reply_of, turn_of

if TYPE_CHECKING:
    from concurrent.futures import Future  # imports logging, which the root package must not

T = TypeVar("T")


POLL_SECONDS: Final = 0.2
"""Seconds between two checks for an interrupt during a wait."""


def run_concurrently(acts: Sequence[Callable[[], T]], max_threads: int) -> tuple[T, ...]:
    """Run functions at the same time and return their results in order.

    If the wait ends early, functions that have not started do not start.

    Args:
        max_threads: Maximum number of functions that run at once.

    Raises:
        BaseException: The exception of the first function, in order, that fails.
    """
    from concurrent.futures import Future

    jobs = deque((Future[T](), copy_context(), act) for act in acts)
    futures = [future for future, _, _ in jobs]

    def work() -> None:
        with suppress(IndexError):  # no jobs are left
            while True:
                future, context, act = jobs.popleft()
                context.run(_settle, future, act)

    try:
        for _ in range(min(max_threads, len(futures))):
            Thread(target=work, name="neuroscript-calls", daemon=True).start()
        return tuple(map(_result, futures))
    finally:
        jobs.clear()


def _result(future: Future[T]) -> T:
    """Wait for *future* in short intervals, so that an interrupt that arrives just before a wait is noticed."""
    from concurrent.futures import wait

    while not future.done():
        wait((future,), POLL_SECONDS)
    return future.result()


async def run_in_thread(act: Callable[[], T]) -> T:
    """Run a function on its own thread and return its result; a cancelled caller does not wait for it."""
    import asyncio
    from concurrent.futures import Future

    future = Future[T]()
    Thread(target=copy_context().run, args=(_settle, future, act), name="neuroscript-model", daemon=True).start()
    return await asyncio.wrap_future(future)


def _settle(future: Future[T], act: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        value = act()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(value)


MAX_PARALLEL_CALLS: Final = 8
"""Maximum number of calls of one turn that run at the same time."""


Listener = Callable[[Event], object]


class Cancelled(BaseException):
    """Stops the reading of a reply that no caller waits for any more."""


class Model(Protocol):
    """A model that streams, counts tokens and retries, like the clients of `neuroscript.llm`. Any `LLM` works too."""

    def reply(
        self,
        turns: Any,
        tools: Any = (),
        on_text: Callable[[str], object] | None = None,
        on_retry: Callable[[RetriedRequest], object] | None = None,
    ) -> Reply:
        """Return the reply after *turns*; pass its text to *on_text* as it arrives."""


@attrs.define
class ConversationDriver:
    """Runs the steps of one conversation.

    Attributes:
        session: The session that runs the tool calls.
        model: The model.
        listener: Receives events, or None.
        search: The search that the model is offered, or None.
        is_over: Whether the conversation has ended. The listener receives no events after that.
    """

    session: Session
    model: AnyModel | Model
    listener: Listener | None
    search: FoundTools | None = None
    is_over: bool = False
    _has_listener_failed: bool = attrs.field(default=False, init=False)

    def ask(self, step: AskStep) -> Reply:
        """Return the model's reply."""
        reply = self._reply(step, self.tell)
        self.tell(ReplyReceived(reply))
        return reply

    async def aask(self, step: AskStep) -> Reply:
        """Return the model's reply; the request runs on a thread."""
        import asyncio

        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            if self.is_over:
                raise Cancelled
            loop.call_soon_threadsafe(self.tell, event)

        reply = await run_in_thread(lambda: self._reply(step, tell))
        self.tell(ReplyReceived(reply))
        return reply

    def run(self, step: CallStep) -> tuple[ToolResult, ...]:
        """Run the calls of one turn, each with ``execute``."""
        calls = [partial(self._called, call, step) for call in step.calls]
        return run_concurrently(calls, MAX_PARALLEL_CALLS) if step.together else tuple(call() for call in calls)

    async def arun(self, step: CallStep) -> tuple[ToolResult, ...]:
        """Run the calls of one turn, each with ``aexecute``."""
        import asyncio

        if not step.together:
            return tuple([await self._acalled(call, step) for call in step.calls])
        free = asyncio.Semaphore(MAX_PARALLEL_CALLS)

        async def called(call: ToolCall) -> ToolResult:
            async with free:
                return await self._acalled(call, step)

        return tuple(await asyncio.gather(*map(called, step.calls)))

    def tell(self, event: Event) -> None:
        """Pass an event to the listener and log the listener's first failure."""
        if self.listener is None or self.is_over:
            return
        try:
            self.listener(event)
        except Exception as error:
            if not self._has_listener_failed:
                self._has_listener_failed = True
                self.session._log_failure("the listener of a conversation", error)

    def _called(self, call: ToolCall, step: CallStep) -> ToolResult:
        self.tell(CallStarted(call))
        result = self._without_tool(call)
        if result is None:
            result = self.session.execute(call, step.seconds, on_item=self._item_callback(call))
        return self._report_end(call, result)

    async def _acalled(self, call: ToolCall, step: CallStep) -> ToolResult:
        self.tell(CallStarted(call))
        result = self._without_tool(call)
        if result is None:
            result = await self.session.aexecute(call, step.seconds, on_item=self._item_callback(call))
        return self._report_end(call, result)

    def _without_tool(self, call: ToolCall) -> ToolResult | None:
        """Return the result of a call for which no tool runs: a search, or a tool that is not offered."""
        result = None if self.search is None else self.search.result(call)
        return refuse_unoffered(self.session, call) if result is None else result

    def _item_callback(self, call: ToolCall) -> Callable[[Any], object] | None:
        """Return a function that reports each stream item, or None without a listener."""
        return None if self.listener is None else lambda item: self.tell(ItemProduced(call, item))

    def _report_end(self, call: ToolCall, result: ToolResult) -> ToolResult:
        secrets = self.session.secrets
        self.tell(CallEnded(call if secrets is None else redacted_call(secrets, call), result))
        return result

    def _reply(self, step: AskStep, listen: Callable[[Event], object]) -> Reply:
        return request_reply(self.model, step, listen, partial(self.session._log_failure, "the model"))


def request_reply(
    model: AnyModel | Model,
    step: AskStep,
    listen: Callable[[Event], object],
    log_failure: Callable[[BaseException], object],
) -> Reply:
    """Return a model's reply.

    Args:
        listen: Receives the text and the retries. An exception of it ends the request.
        log_failure: Receives an exception of the model that is not an `LLMError`.

    Raises:
        LLMError: The model's own error, or ``llm.failed`` for any other exception of the model.
    """
    started = time.perf_counter()
    ended_by: list[BaseException] = []

    def tell(event: Event) -> None:
        try:
            listen(event)
        except BaseException as error:
            ended_by.append(error)
            raise

    try:
        if hasattr(model, "reply"):
            return reply_of(
                model.reply(
                    step.turns,
                    step.tools,
                    on_text=lambda text: tell(TextReceived(text)),
                    on_retry=lambda retried: tell(RetryScheduled(retried)),
                )
            )
        turn = _turn(model, step)
    except (LLMError, Cancelled):
        raise
    except BaseException as error:  # SystemExit and CancelledError too: a model must end only its conversation
        if is_interrupt(error) or error in ended_by:  # raised by the listener, not by the model
            raise
        log_failure(error)
        failed = LLMError(f"the model failed ({type_name(error)})", code="llm.failed")
        raise failed from error
    if turn.content:
        tell(TextReceived(turn.content))
    return Reply(turn, "tools" if turn.tool_calls else "end", seconds=time.perf_counter() - started)


def _turn(model: Any, step: AskStep) -> Turn:
    """Return the turn of a model that has no ``reply`` method."""
    if step.tools:
        return turn_of(model.ask_with_tools(step.turns, step.tools), "ask_with_tools")
    return turn_of(model.ask(step.turns), "ask")
