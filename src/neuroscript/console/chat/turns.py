"""One turn of a chat: the model answers, its calls run in the session of the browser, and the page follows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any, Final

import attrs
from starlette.requests import Request

from neuroscript.console.activities import Activity
from neuroscript.console.approvals.requests import ended_text, inbox_of, live_entry
from neuroscript.console.approvals.views import card_context
from neuroscript.console.chat.exchanges import CallPart, Chat, Exchange, TextPart, call_parts, discreet, started_call
from neuroscript.console.effects import is_held_back, runnable_session
from neuroscript.console.inbox import Change, EndedRequest, WaitingRequest
from neuroscript.console.rendering import render
from neuroscript.console.routing import console_of, visitor_of
from neuroscript.engine.session import Session
from neuroscript.errors import LLMError
from neuroscript.llm.events import (
    CallEnded,
    CallStarted,
    ConversationError,
    Event,
    ItemProduced,
    ReplyReceived,
    RetryScheduled,
    TextReceived,
)
from neuroscript.llm.loop import aconverse
from neuroscript.llm.turn_record import TurnRecord, completed_part, without_system_turn
from neuroscript.runtime.interfaces import ToolCall, Turn
from neuroscript.runtime.result_text import value_text

TEXT_SECONDS: Final = 0.1
"""Minimum seconds between two updates of a text that arrives."""


@attrs.define(eq=False)
class ChatTurn:
    """A turn that runs.

    Attributes:
        request: The request that has started it; templates need it.
        chat: The conversation.
        exchange: What the page shows of this turn.
        activity: The activity that runs it.
        session: The session whose tools the model may call.
        record: What remains if the turn is interrupted.
    """

    request: Request
    chat: Chat
    exchange: Exchange
    activity: Activity
    session: Session
    record: TurnRecord
    _calls: dict[int, int] = attrs.Factory(dict)
    _next_update: float = 0.0

    async def run(self) -> None:
        """Ask the model, and show and record everything that happens."""
        self.activity.emit("", target=self.exchange.element, mode="replace")  # what the page contains already
        console, loop = console_of(self.request), asyncio.get_running_loop()
        before = len(self.chat.turns)
        try:
            with self._approvals():
                conversation = await console.threads.run_async(
                    partial(
                        aconverse,
                        self.session,
                        self.exchange.prompt,
                        model=console.settings.model,
                        history=self.chat.turns,
                        on_event=lambda event: loop.call_soon_threadsafe(self.take, event),
                    )
                )
        except ConversationError as error:
            self._fail(f"{error} ({error.code})")
            self._keep(without_system_turn(error.conversation)[before:])
        except LLMError as error:
            self._fail(f"{error} ({error.code})")
        except asyncio.CancelledError:
            self._fail("The turn was stopped.")
            self._keep(self.record.whole)
            raise
        else:
            self.chat.turns = without_system_turn(conversation)
        finally:
            self._finish()

    def take(self, event: Event) -> None:
        """Show and record one event, on the event loop."""
        self.record.add(event)
        match event:
            case TextReceived(text):
                self._add_text(text)
            case ReplyReceived(reply):
                self.chat.usage += reply.usage
                self._update_last()
            case RetryScheduled(retried):
                self._append(TextPart(f"Retrying in {retried.seconds:.2g} s ({retried.code}).", "note"))
            case CallStarted(call):
                self._calls[id(call)] = len(self.exchange.parts)
                self._append(started_call(self.session, call))
            case ItemProduced(call, item):
                self._add_item(call, value_text(item))
            case CallEnded(call, result):
                self._end_call(call, result)

    # Text

    def _add_text(self, text: str) -> None:
        parts = self.exchange.parts
        last = parts[-1] if parts else None
        if isinstance(last, TextPart) and last.kind == "text":
            last.text += text
            if monotonic() >= self._next_update:
                self._update_last()
        elif text.strip():
            self._append(TextPart(text))

    def _update_last(self) -> None:
        self._next_update = monotonic() + TEXT_SECONDS
        if self.exchange.parts:
            self._update(len(self.exchange.parts) - 1)

    def _fail(self, text: str) -> None:
        for _, part in call_parts(self.exchange):
            part.result, part.code = "The call was abandoned.", "abandoned"
        for index in range(len(self.exchange.parts)):
            self._update(index)
        self._append(TextPart(discreet(self.session, text), "error"))

    # Calls

    def _find(self, call: ToolCall) -> tuple[int, CallPart] | None:
        """Return the part of a call; its own object is known unless secrets were redacted."""
        running = [*call_parts(self.exchange)]
        index = self._calls.get(id(call), -1)
        named = [each for each in running if each[0] == index] or [
            each for each in running if each[1].tool == call.name
        ]
        return next(iter(named or running), None)

    def _add_item(self, call: ToolCall, text: str) -> None:
        found = self._find(call)
        if found is not None:
            found[1].add_item(text)
            if monotonic() >= self._next_update:
                self._next_update = monotonic() + TEXT_SECONDS
                self._update(found[0])

    def _end_call(self, call: ToolCall, result: Any) -> None:
        found = self._find(call)
        if found is not None:
            found[1].end(call, result)
            if (
                result.error is not None
                and result.error.code == "policy.not_allowed"
                and self._is_held_back(result.tool)
            ):
                found[1].remedy = "start the console with --run-effects, because the tool has effects or declares none"
            self._update(found[0])

    def _is_held_back(self, name: str) -> bool:
        """Return whether this console does not run a tool, because it has effects or declares none."""
        console = console_of(self.request)
        tool = console.engine.tools.get(name)
        return tool is not None and is_held_back(console, tool.policy)

    # Approvals

    @contextmanager
    def _approvals(self) -> Iterator[None]:
        """Show the requests of this session in place while the turn runs."""
        inbox = inbox_of(console_of(self.request))
        if inbox is None:
            yield
            return
        loop = asyncio.get_running_loop()
        stop = inbox.subscribe(lambda change: loop.call_soon_threadsafe(self._approval, change))
        try:
            yield
        finally:
            stop()

    def _approval(self, change: Change) -> None:
        session = change.request.session if isinstance(change, WaitingRequest) else change.session
        if session != self.session.id:
            return
        if isinstance(change, EndedRequest):
            for index, part in enumerate(self.exchange.parts):
                if isinstance(part, CallPart) and change.id in part.approvals:
                    part.approvals[change.id] = ended_text(change)
                    self._update(index)
            return
        outermost = (*change.request.above[-1:], change.request.tool)[0]
        found = next((each for each in call_parts(self.exchange) if each[1].tool == outermost), None)
        entry = live_entry(console_of(self.request), change.id)
        if found is not None and entry is not None:
            found[1].approvals[change.id] = card_context(entry)
            self._update(found[0])

    # The page

    def _append(self, part: Any) -> None:
        index = len(self.exchange.parts)
        self.exchange.parts.append(part)
        html = render(self.request, "chat/_part.html", **self._context(index))
        self.activity.emit(html, target=self.exchange.element)

    def _update(self, index: int) -> None:
        html = render(self.request, "chat/_part_content.html", **self._context(index))
        self.activity.emit(html, target=self.exchange.part_element(index), mode="replace")

    def _context(self, index: int) -> dict[str, Any]:
        part = self.exchange.parts[index]
        if isinstance(part, TextPart) and part.kind == "text":
            part = TextPart(discreet(self.session, part.text))
        return {"part": part, "part_element": self.exchange.part_element(index)}

    def _keep(self, turns: tuple[Turn, ...]) -> None:
        """Add the completed calls of a turn without an answer, because their effects remain."""
        self.chat.turns += completed_part(turns)

    def _finish(self) -> None:
        for part in self.exchange.parts:
            if isinstance(part, TextPart):
                part.text = discreet(self.session, part.text)
        html = render(self.request, "chat/_controls.html", chat=self.chat, running=None, problem="")
        self.activity.emit(html, target="chat-controls", mode="replace")


def begin_turn(request: Request, chat: Chat, prompt: str) -> Exchange:
    """Start a turn of a chat as an activity of the browser.

    Raises:
        TooManyActivities: The browser runs as much as it may.
    """
    visitor = visitor_of(request)

    async def work(activity: Activity) -> None:
        session = runnable_session(visitor, console_of(request))
        record = TurnRecord(session, [Turn("user", prompt)])
        exchange.activity = activity
        await ChatTurn(request, chat, exchange, activity, session, record).run()

    activity = visitor.activities.start("chat", "Chat", work)
    exchange = chat.begin(prompt)
    exchange.activity = activity
    return exchange
