"""The state machine of a conversation: it yields the next request or calls and does no I/O itself."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

import attrs

from neuroscript.engine.session import Session
from neuroscript.errors import ArgumentError, CallError, LLMError, Retry
from neuroscript.llm.events import Conversation
from neuroscript.llm.structured_output import answer_instance, correction_request, exact_answer
from neuroscript.llm.tool_search import FoundTools
from neuroscript.names import from_wire
from neuroscript.runtime.interfaces import ToolCall, ToolInfo, ToolResult, Turn
from neuroscript.runtime.masking import secret_values
from neuroscript.runtime.redacting_proxies import redacted_turn
from neuroscript.runtime.redaction import Redactor
from neuroscript.runtime.replies import Reply, complete_turn
from neuroscript.runtime.result_text import shorten
from neuroscript.spec.tool_spec import ToolSpec


@attrs.frozen
class AskStep:
    """A step that asks the model for its next turn."""

    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...]


@attrs.frozen
class CallStep:
    """A step that runs the calls of one turn and sends back their results in order.

    Attributes:
        together: Whether the calls may run at the same time.
        until: The deadline on the clock of `time.monotonic`, or None.
    """

    calls: tuple[ToolCall, ...]
    together: bool
    until: float | None

    @property
    def seconds(self) -> float | None:
        """Maximum seconds of a call that begins now, or None."""
        return None if self.until is None else max(0.001, self.until - time.monotonic())


Steps = Generator[AskStep | CallStep, Any, Conversation]


@attrs.define
class ConversationState:
    """The state of one conversation.

    Attributes:
        session: The session that runs the tool calls, or None if the model may request no calls.
        tools: The tools that the model may call.
        turns: The turns so far.
        most_turns: Maximum number of replies.
        most_calls: Maximum number of calls.
        most_chars: Maximum characters of one result that the model reads.
        until: The deadline on the clock of `time.monotonic`, or None.
        answer: The spec of the final answer, or None if any text is accepted.
        made: The number of calls requested so far.
        is_secret: Whether the answer is or contains a secret according to its spec.
        search: What the model is offered instead of *tools*, or None.
    """

    session: Session | None
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
    search: FoundTools | None = None

    def conversation(self, answer: Any = None) -> Conversation:
        """Return the conversation so far, with secrets redacted except those in the answer.

        Args:
            answer: The answer as an exact value.

        Raises:
            ArgumentError: If the requested class rejects the answer.
        """
        secrets = self._secrets
        turns, replies = tuple(self.turns), tuple(self.replies)
        if secrets is not None:
            replies = tuple(attrs.evolve(reply, turn=redacted_turn(secrets, reply.turn)) for reply in self.replies)
            turns, answer = self.turns_to_send(), answer if self.is_secret else secrets.plain(answer)
        instance = answer if self.answer is None or answer is None else answer_instance(self.answer, answer)
        return Conversation(turns, replies, instance, answer)

    def steps(self) -> Steps:
        """Yield steps until the model has answered, and return the conversation.

        Raises:
            LLMError: If the model refused or ran out of tokens, or a limit was reached. Exceptions thrown in pass
                through.
        """
        fault = ""
        while True:
            self._require_open()
            self.require_turn(fault)
            reply: Reply = yield AskStep(self.turns_to_send(), self._offered)
            self.replies.append(reply)
            self.turns.append(reply.turn)
            complete_turn(reply)
            if reply.turn.tool_calls:
                calls = reply.turn.tool_calls
                made: Sequence[ToolResult] = yield self._run(calls)
                results = (shorten(each, self.most_chars) for each in _in_order(calls, made))
                self.turns.append(Turn("tool", tool_results=tuple(results)))
                fault = ""
                continue
            try:
                return self.conversation(self._parse_answer(reply.turn.content))
            except ArgumentError as error:
                fault = str(error)
                self.turns.append(Turn("user", correction_request(error)))

    @property
    def _offered(self) -> tuple[ToolSpec, ...]:
        return self.tools if self.search is None else self.search.offered

    @property
    def _secrets(self) -> Redactor | None:
        return None if self.session is None else self.session.secrets

    def turns_to_send(self) -> tuple[Turn, ...]:
        """Return the turns so far, with secrets redacted."""
        secrets = self._secrets
        return tuple(self.turns) if secrets is None else tuple(redacted_turn(secrets, turn) for turn in self.turns)

    def _parse_answer(self, text: str) -> Any:
        if self.answer is None:
            return text
        value = exact_answer(self.answer, text)
        for secret in secret_values(self.answer, (value,)):
            self.is_secret = True
            if self.session is not None:
                self.session._hide(secret)
        return value

    def require_turn(self, fault: str) -> None:
        """Raise an `LLMError` if no further reply may be requested.

        Args:
            fault: What was wrong with the last answer, or ``""``.
        """
        if len(self.replies) >= self.most_turns:
            if fault:
                raise _end_error(f"none of {self.most_turns} turns gave a valid answer: {fault}", "llm.answer", "never")
            raise _end_error(f"the model did not finish within {self.most_turns} turns", "llm.turn_limit")
        if self.until is not None and time.monotonic() >= self.until:
            raise _end_error("the conversation did not finish in time", "llm.time_limit")

    def _run(self, calls: tuple[ToolCall, ...]) -> CallStep:
        self.made += len(calls)
        if self.made > self.most_calls:
            raise _end_error(f"the model requested more than {self.most_calls} calls", "llm.call_limit")
        calls = _of_distinct_ids(calls)
        infos = {} if self.session is None else self.session.infos
        together = len(calls) > 1 and all(is_read_only(infos.get(_name(call))) for call in calls)
        return CallStep(calls, together, self.until)

    def _require_open(self) -> None:
        if self.session is not None and (self.session._is_stopped or self.session.is_closed):
            raise _end_error("the conversation ended because its session ended", "llm.stopped")


REPEATED: Final = "not called, because an earlier call of this turn has the same id; use a new id for each call"
"""The result that a model reads for such a call."""


def _of_distinct_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Return the first call of each id; calls without an id are distinct."""
    seen: set[str] = set()
    return tuple(call for call in calls if not _is_seen(call, seen))


def _is_seen(call: ToolCall, seen: set[str]) -> bool:
    """Return whether an earlier call has the same id, and record the id."""
    if type(call.id) is not str or not call.id:
        return False
    is_seen = call.id in seen
    seen.add(call.id)
    return is_seen


def _in_order(calls: Sequence[ToolCall], made: Sequence[ToolResult]) -> Iterator[ToolResult]:
    """Yield a result for each call: its own if it ran, otherwise an error."""
    results, seen = iter(made), set[str]()
    for call in calls:
        if _is_seen(call, seen):
            error = CallError(REPEATED, tool=_name(call), code="call.duplicate_id", retry="model")
            yield ToolResult(call.id, _name(call), error=error)
        else:
            yield next(results)


def _name(call: ToolCall) -> str:
    """Return the canonical name of a call, or ``""`` if the model did not write a string."""
    return from_wire(call.name) if isinstance(call.name, str) else ""


def is_read_only(tool: ToolInfo | None) -> bool:
    """Return whether a tool is known to be read-only and needs no approval. An unknown tool is not."""
    return tool is not None and tool.policy.is_read_only


def _end_error(text: str, code: str, retry: Retry = "host") -> LLMError:
    return LLMError(text, code=code, retry=retry)
