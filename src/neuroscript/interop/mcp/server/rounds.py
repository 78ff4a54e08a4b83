"""Multi-round-trip requests: a call ends with questions, and its client makes it again with the answers.

The server stores nothing between the two requests. The client returns what the server has to know, in a state that the
client can neither read nor change, because the SDK encrypts it.

See MCP 2026-07-28, "Multi Round-Trip Requests".
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any, Final

import attrs

from neuroscript.interop.mcp.schema import CHANGING

ELICITATION: Final = "elicitation/create"
SAMPLING: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The extension that supports tasks."""

CAPABILITIES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    ELICITATION: ("elicitation", {"form": {}}),
    SAMPLING: ("sampling", {}),
    ROOTS: ("roots", {}),
}
"""The capability that a client must declare to receive each request."""

ANSWERED_BY: Final = {ELICITATION: "action", SAMPLING: "model", ROOTS: "roots"}
"""The key that an answer to each request has."""

NOT_REPEATABLE: Final = (
    "cannot ask the user in the middle of the call, because the tool may not run again; it needs the effects pure, "
    "reads or idempotent, or a client of protocol 2025-11-25"
)
NOT_RECORDED: Final = (
    "a call with effects cannot be approved, because the server does not record which approvals have been used; start "
    "it with such a record"
)
HAS_RUN: Final = "cannot ask the user again, because an approved call has already run"


@attrs.frozen
class State:
    """What a client returns with its answers.

    Attributes:
        subject: The digests that must still be the same, by name.
        asked: The keys of the questions that came with it.
        answers: The answers of earlier rounds, by key.
        expires: When it becomes invalid, in seconds since 1970.
        id: A random id, under which its use is recorded.
    """

    subject: Mapping[str, str]
    asked: tuple[str, ...]
    answers: Mapping[str, Any]
    expires: float
    id: str = attrs.field(factory=lambda: os.urandom(16).hex())

    def text(self) -> str:
        """Return it as JSON text, which the SDK encrypts."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of(cls, text: str) -> State:
        """Return the state that `text` returned; the SDK has decrypted it, and so has verified it."""
        return cls(**json.loads(text))


@attrs.define(eq=False, repr=False)
class Round:
    """The questions and answers of one request. Its methods are thread-safe.

    Attributes:
        state: What the client returned, or None in the first request.
        responses: The answers that the client sent with the request, by key.
        can_repeat: Whether the tool may run again after it has begun.
        is_recorded: Whether a state can be used only once.
        asked: The questions that the call has asked and that have no answer, by key.
    """

    state: State | None
    responses: Mapping[str, Any]
    can_repeat: bool
    is_recorded: bool
    asked: dict[str, Mapping[str, Any]] = attrs.field(factory=dict)
    has_run: bool = False
    _counts: Counter[str] = attrs.field(factory=Counter)
    _used: dict[str, Any] = attrs.field(factory=dict)
    _lock: Lock = attrs.field(factory=Lock)

    def refusal(self, effects: Collection[str] | None = None, *, is_inside: bool = True) -> str:
        """Return why the call must not ask now, or an empty string.

        Args:
            effects: The effects of the call that is to be approved; None for other questions.
            is_inside: Whether the function of the request's tool has begun.
        """
        if is_inside and not self.can_repeat:
            return NOT_REPEATABLE
        if is_inside and self.has_run:
            return HAS_RUN
        if effects is not None and not self.is_recorded and not only_reads(effects):
            return NOT_RECORDED
        return ""

    def ask(self, key: str, method: str, params: Mapping[str, Any], *, is_approval: bool = False) -> Any:
        """Return the client's answer to a question, or None; then the call must end, because the client is asked.

        Args:
            key: The key of the question, which depends on its content only. If a call asks it again, a number is added.
            is_approval: Whether an answer counts only if this server has asked for it. Other answers are what the
                client says, with or without a question.
        """
        with self._lock:
            self._counts[key] += 1
            key = key if self._counts[key] == 1 else f"{key}-{self._counts[key]}"
            answer = self.answers.get(key)
            if answer is None and not is_approval:
                answer = self.responses.get(key)
            if type(answer) is dict and ANSWERED_BY[method] in answer:
                self._used[key] = answer
                return answer
            self.asked[key] = {"method": method, "params": dict(params)}
            return None

    @property
    def answers(self) -> dict[str, Any]:
        """The answers to the questions that this server has asked."""
        if self.state is None:
            return {}
        new = {key: self.responses[key] for key in self.state.asked if key in self.responses}
        return {**self.state.answers, **new}

    def result(self, subject: Mapping[str, str], expires: float) -> dict[str, Any]:
        """Return the result that asks the client.

        Args:
            subject: The digests that must still be the same when the client answers.
            expires: The latest time for the answers, in seconds since 1970.
        """
        state = State(subject, tuple(self.asked), {**self.answers, **self._used}, expires)
        return {"resultType": "input_required", "inputRequests": self.asked, "requestState": state.text()}


def may_repeat(effects: Collection[str]) -> bool:
    """Return whether a call with these effects may be made again although its function has begun.

    >>> may_repeat(("reads", "prompts")), may_repeat(("writes",)), may_repeat(("writes", "idempotent"))
    (True, False, True)
    """
    return "idempotent" in effects or (only_reads(effects) and "model" not in effects)


def only_reads(effects: Collection[str]) -> bool:
    """Return whether a tool declares effects, and none that change something.

    >>> only_reads(()), only_reads(("net",)), only_reads(("net", "reads"))
    (False, False, True)
    """
    return bool(effects) and CHANGING.isdisjoint(effects) and not ("net" in effects and "reads" not in effects)
