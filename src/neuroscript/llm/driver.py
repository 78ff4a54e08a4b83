"""Functions on threads: some at the same time, or one beside a loop that goes on.

All of these threads are daemons: one that nobody waits for any more keeps no process from ending.

What carries out the steps of a conversation: a model is asked, calls are made, and whoever listens is told.

Source: issue "Models", the loop; contract section 2.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, Final, Protocol, TypeVar

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError, is_interrupt
from neuroscript.llm.events import Called, Calling, Event, Gave, Replied, Retrying, Said
from neuroscript.llm.steps import Ask, Run
from neuroscript.runtime.interfaces import LLM, ToolCall, ToolResult, Turn
from neuroscript.runtime.redacting_proxies import redacted_call
from neuroscript.runtime.replies import Reply, Retried, reply_of, turn_of

T = TypeVar("T")


LOOK: Final = 0.2
"""Seconds between two looks whether somebody has interrupted a wait."""


def together(acts: Sequence[Callable[[], T]], most: int) -> tuple[T, ...]:
    """Return what functions return that run at the same time, in order.

    Where the wait for them ends early, what has not begun does not begin.

    Args:
        most: How many run at once, at most.

    Raises:
        BaseException: What the first of them that fails raises.
    """
    jobs = deque((Future[T](), copy_context(), act) for act in acts)
    futures = [future for future, _, _ in jobs]

    def work() -> None:
        with suppress(IndexError):  # there is no more
            while True:
                future, context, act = jobs.popleft()
                context.run(_settle, future, act)

    try:
        for _ in range(min(most, len(futures))):
            Thread(target=work, name="neuroscript-calls", daemon=True).start()
        return tuple(map(_result, futures))
    finally:
        jobs.clear()


def _result(future: Future[T]) -> T:
    """Return what comes of a function; an interrupt just before the wait begins is noticed by the next look."""
    while not future.done():
        wait((future,), LOOK)
    return future.result()


async def beside(act: Callable[[], T]) -> T:
    """Return what a function returns that runs on a thread of its own; who gives up does not wait for it."""
    import asyncio

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


TOGETHER: Final = 8
"""How many calls of one turn run at the same time, at most."""


Listener = Callable[[Event], object]


class GivenUp(BaseException):
    """Nobody waits for a reply any more; whoever reads it stops."""


class Model(Protocol):
    """A model that streams, counts and retries, as the clients of `neuroscript.llm` do; any `LLM` can be asked."""

    def reply(
        self,
        turns: Any,
        tools: Any = (),
        on_text: Callable[[str], object] | None = None,
        on_retry: Callable[[Retried], object] | None = None,
    ) -> Reply:
        """Return the reply after *turns*; its text is given to *on_text* as it comes."""


@attrs.define
class Doer:
    """Asks and calls for one conversation.

    Attributes:
        session: Whose tools are called.
        model: Who is asked.
        listener: Who is told, or None.
        is_over: Whether the conversation has ended; nobody is told anything from then on.
    """

    session: Session
    model: LLM | Model
    listener: Listener | None
    is_over: bool = False
    _has_listener_failed: bool = attrs.field(default=False, init=False)

    def ask(self, asked: Ask) -> Reply:
        """Return the model's reply."""
        reply = self._reply(asked, self.tell)
        self.tell(Replied(reply))
        return reply

    async def aask(self, asked: Ask) -> Reply:
        """Return the model's reply, which is asked for on a thread."""
        import asyncio

        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            if self.is_over:
                raise GivenUp
            loop.call_soon_threadsafe(self.tell, event)

        reply = await beside(lambda: self._reply(asked, tell))
        self.tell(Replied(reply))
        return reply

    def run(self, asked: Run) -> tuple[ToolResult, ...]:
        """Make the calls of one turn, each by ``execute``."""
        calls = [partial(self._called, call, asked) for call in asked.calls]
        return together(calls, TOGETHER) if asked.together else tuple(call() for call in calls)

    async def arun(self, asked: Run) -> tuple[ToolResult, ...]:
        """Make the calls of one turn, each by ``aexecute``."""
        import asyncio

        if not asked.together:
            return tuple([await self._acalled(call, asked) for call in asked.calls])
        free = asyncio.Semaphore(TOGETHER)

        async def called(call: ToolCall) -> ToolResult:
            async with free:
                return await self._acalled(call, asked)

        return tuple(await asyncio.gather(*map(called, asked.calls)))

    def tell(self, event: Event) -> None:
        """Report an event to the listener; its first failure is logged."""
        if self.listener is None or self.is_over:
            return
        try:
            self.listener(event)
        except Exception as error:
            if not self._has_listener_failed:
                self._has_listener_failed = True
                self.session._log_failure("the listener of a conversation", error)

    def _called(self, call: ToolCall, asked: Run) -> ToolResult:
        self.tell(Calling(call))
        return self._ended(call, self.session.execute(call, asked.seconds, on_item=self._hearing(call)))

    async def _acalled(self, call: ToolCall, asked: Run) -> ToolResult:
        self.tell(Calling(call))
        return self._ended(call, await self.session.aexecute(call, asked.seconds, on_item=self._hearing(call)))

    def _hearing(self, call: ToolCall) -> Callable[[Any], object] | None:
        """Return what tells each item of a stream, or None where nobody listens."""
        return None if self.listener is None else lambda item: self.tell(Gave(call, item))

    def _ended(self, call: ToolCall, result: ToolResult) -> ToolResult:
        secrets = self.session.secrets
        self.tell(Called(call if secrets is None else redacted_call(secrets, call), result))
        return result

    def _turn(self, asked: Ask) -> Turn:
        """Return the turn of a model that gives no replies."""
        model: Any = self.model
        if asked.tools:
            return turn_of(model.ask_with_tools(asked.turns, asked.tools), "ask_with_tools")
        return turn_of(model.ask(asked.turns), "ask")

    def _reply(self, asked: Ask, listen: Callable[[Event], object]) -> Reply:
        started = time.perf_counter()
        ended_by: list[BaseException] = []

        def tell(event: Event) -> None:
            try:
                listen(event)
            except BaseException as error:
                ended_by.append(error)
                raise

        try:
            if hasattr(self.model, "reply"):
                return reply_of(
                    self.model.reply(
                        asked.turns,
                        asked.tools,
                        on_text=lambda text: tell(Said(text)),
                        on_retry=lambda retried: tell(Retrying(retried)),
                    )
                )
            turn = self._turn(asked)
        except (LLMError, GivenUp):
            raise
        except BaseException as error:  # also sys.exit and a cancellation, which would end more than the conversation
            if is_interrupt(error) or error in ended_by:  # it is not the model that failed, but who listens
                raise
            self.session._log_failure("the model", error)
            failed = LLMError(f"the model failed ({type_name(error)})", code="llm.failed")
            raise failed from error
        if turn.content:
            tell(Said(turn.content))
        return Reply(turn, "tools" if turn.tool_calls else "end", seconds=time.perf_counter() - started)
