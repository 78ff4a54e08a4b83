"""A conversation as steps that do no waiting: what is to be asked, what is to be called, and when it is over.

Source: issue "Models", the loop; design.md, rule 6.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

import attrs

from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError, LLMError, Retry
from neuroscript.llm.events import Conversation
from neuroscript.llm.structured_output import complaint, exact_answer
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult, Turn
from neuroscript.runtime.masking import secret_values
from neuroscript.runtime.redacting_proxies import redacted_turn
from neuroscript.runtime.replies import Reply, whole
from neuroscript.runtime.result_text import shortened
from neuroscript.spec.tool_spec import ToolSpec


@attrs.frozen
class Ask:
    """Ask the model for its next turn."""

    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]


@attrs.frozen
class Run:
    """Make the calls of one turn; the answer is the result of each, in order.

    Attributes:
        together: Whether they may run at the same time.
        until: When they have to be over, on the clock of `time.monotonic`, or None.
    """

    calls: tuple[ToolCall, ...]
    together: bool
    until: float | None

    @property
    def seconds(self) -> float | None:
        """How long a call that begins now may take, or None."""
        return None if self.until is None else max(0.001, self.until - time.monotonic())


Steps = Generator[Ask | Run, Any, Conversation]


@attrs.define
class Talk:
    """One conversation as far as it has come.

    Attributes:
        session: Whose tools are called.
        tools: Those that the model is told of.
        turns: What was said.
        most_turns: How many replies are asked for, at most.
        most_calls: How many calls are made, at most.
        most_chars: How many characters the model reads of one result.
        until: When it has to be over, on the clock of `time.monotonic`, or None.
        answer: The spec of its last answer, or None where a text will do.
        made: How many calls were asked for.
        is_secret: Whether the answer is, or holds, what its spec calls secret.
    """

    session: Session
    tools: tuple[ToolSpec, ...]
    turns: list[Turn]
    most_turns: int
    most_calls: int
    most_chars: int
    until: float | None
    answer: ToolSpec | None
    replies: list[Reply] = attrs.Factory(list)
    made: int = 0
    is_secret: bool = False

    def conversation(self, answer: Any = None) -> Conversation:
        """Return what there is of it, without the secrets that were met on the way, but for those of the answer."""
        secrets = self.session.secrets
        if secrets is None:
            return Conversation(tuple(self.turns), tuple(self.replies), answer)
        replies = tuple(attrs.evolve(reply, turn=redacted_turn(secrets, reply.turn)) for reply in self.replies)
        return Conversation(self._sent(), replies, answer if self.is_secret else secrets.plain(answer))

    def steps(self) -> Steps:
        """Go on until the model has answered.

        Raises:
            LLMError: The model refused or had no more room, or a limit was reached; what is thrown in passes.
        """
        fault = ""
        while True:
            self._require_open()
            self._require_turn(fault)
            reply: Reply = yield Ask(self._sent(), self.tools)
            self.replies.append(reply)
            self.turns.append(reply.turn)
            whole(reply)
            if reply.turn.tool_calls:
                calls = reply.turn.tool_calls
                made: Sequence[ToolResult] = yield self._run(calls)
                results = (shortened(each, self.most_chars) for each in _in_order(calls, made))
                self.turns.append(Turn("tool", tool_results=tuple(results)))
                fault = ""
                continue
            try:
                return self.conversation(self._answered(reply.turn.content))
            except ArgumentError as error:
                fault = str(error)
                self.turns.append(Turn("user", complaint(error)))

    def _sent(self) -> tuple[Turn, ...]:
        secrets = self.session.secrets
        return tuple(self.turns) if secrets is None else tuple(redacted_turn(secrets, turn) for turn in self.turns)

    def _answered(self, text: str) -> Any:
        if self.answer is None:
            return text
        value = exact_answer(self.answer, text)
        for secret in secret_values(self.answer, (value,)):
            self.is_secret = True
            self.session._hide(secret)
        return value

    def _require_turn(self, fault: str) -> None:
        if len(self.replies) >= self.most_turns:
            if fault:
                raise _ended(
                    f"none of {self.most_turns} turns gave an answer that fits: {fault}", "llm.answer", "never"
                )
            raise _ended(f"the model came to no end in {self.most_turns} turns", "llm.turns")
        if self.until is not None and time.monotonic() >= self.until:
            raise _ended("the conversation came to no end in its time", "llm.seconds")

    def _run(self, calls: tuple[ToolCall, ...]) -> Run:
        self.made += len(calls)
        if self.made > self.most_calls:
            raise _ended(f"the model asked for more than {self.most_calls} calls", "llm.calls")
        calls = _of_distinct_ids(calls)
        infos = self.session.infos
        together = len(calls) > 1 and all(only_looks(infos.get(_name(call))) for call in calls)
        return Run(calls, together, self.until)

    def _require_open(self) -> None:
        if self.session._is_stopped or self.session.is_closed:
            raise _ended("the session has ended, and with it the conversation", "llm.stopped")


REPEATED: Final = "not called, because an earlier call of this turn has the same id; use a new id for each call"
"""What a model reads as the result of such a call."""


def _of_distinct_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the first call of each id; calls without an id are distinct."""
    seen: set[str] = set()
    return tuple(call for call in calls if not _is_seen(call, seen))


def _is_seen(call: ToolCall, seen: set[str]) -> bool:
    """Tell whether a call has the id of an earlier one, and note its id."""
    if type(call.id) is not str or not call.id:
        return False
    is_seen = call.id in seen
    seen.add(call.id)
    return is_seen


def _in_order(calls: Sequence[ToolCall], made: Sequence[ToolResult]) -> Iterator[ToolResult]:
    """Yield a result for each call: those of the calls that were made, and an error for each of the others."""
    results, seen = iter(made), set[str]()
    for call in calls:
        if _is_seen(call, seen):
            error = CallError(REPEATED, tool=_name(call), code="call.repeated", retry="model")
            yield ToolResult(call.id, _name(call), error=error)
        else:
            yield next(results)


def _name(call: ToolCall) -> str:
    """Return the canonical name of a call, ``""`` where a model wrote something else than a name."""
    return from_wire(call.name) if isinstance(call.name, str) else ""


def only_looks(tool: ToolInfo | None) -> bool:
    """Tell whether a tool changes nothing and asks nobody; what is not found by its name is not known to."""
    return tool is not None and tool.policy.only_looks


def _ended(text: str, code: str, retry: Retry = "host") -> LLMError:
    return LLMError(text, code=code, retry=retry)
