"""Replies of a model: its turn, why it ended, its token usage, and the retries it took."""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from neuroscript.coercion.parameters import DURATION, field_problems, instance, one_of, sequence
from neuroscript.errors import LLMError
from neuroscript.io.text import type_name
from neuroscript.runtime.interfaces import Turn

Stop = Literal["end", "tools", "length", "refused"]
"""Why a turn ended: it is complete, it requests tools, it reached the token limit, or the model refused."""


@attrs.frozen
class Usage:
    """Token counts as reported by the model; 0 if it reports none.

    >>> Usage(10, 2) + Usage(5, 1)
    Usage(input_tokens=15, output_tokens=3)
    """

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@attrs.frozen
class RetriedRequest:
    """A request that was repeated.

    Attributes:
        code: The reason, as the code of an `LLMError`, such as ``llm.rate``.
        seconds: The delay before the next request.
    """

    code: str
    seconds: float


@attrs.frozen
class Reply:
    """One reply of a model.

    Attributes:
        turn: Its content and the calls that it requests; tool names are canonical.
        stop: Why it ended.
        usage: Its token usage.
        retries: One entry for each request that was repeated.
        seconds: The duration, including retries.
    """

    turn: Turn
    stop: Stop = "end"
    usage: Usage = Usage()
    retries: tuple[RetriedRequest, ...] = ()
    seconds: float = 0.0


# Requirements on what a model returns

FORMS: Final = {
    "turn": instance(Turn),
    "stop": one_of(*get_args(Stop)),
    "usage": instance(Usage),
    "retries": sequence(instance(RetriedRequest), "Retrieds"),
    "seconds": DURATION,
}


def turn_of(found: object, method: str) -> Turn:
    """Return the turn that a model's method returned.

    Raises:
        LLMError: With the code ``llm.failed``, if it is not a turn.
    """
    if isinstance(found, Turn):
        return found
    text = f"the model returned {type_name(found)}; its {method} must return a neuroscript.Turn"
    raise LLMError(text, code="llm.failed", retry="host")


def reply_of(found: object) -> Reply:
    """Return the reply that a model's method ``reply`` returned, after validating its fields.

    Raises:
        LLMError: With the code ``llm.failed``, if it is not a valid reply.
    """
    if not isinstance(found, Reply):
        text = f"the model returned {type_name(found)}; its reply must return a neuroscript.runtime.replies.Reply"
        raise LLMError(text, code="llm.failed", retry="host")
    problem = next(field_problems(found, **FORMS), "")
    if problem:
        raise LLMError(f"the model returned a Reply whose {problem}", code="llm.failed", retry="host")
    return found


def complete_turn(reply: Reply) -> Turn:
    """Return the turn of a reply if it is complete.

    Raises:
        LLMError: With the code ``llm.refused`` or ``llm.length``.
    """
    if reply.stop == "refused":
        raise LLMError("the model refused to answer", code="llm.refused", retry="never")
    if reply.stop == "length":
        raise LLMError("the reply was truncated because it reached the token limit", code="llm.length", retry="host")
    return reply.turn
