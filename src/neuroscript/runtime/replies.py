"""What a model answered: its turn, why it ended, what it cost in tokens, and what it took to get it.

Source: issue "Models: clients, the loop in which a model calls tools, and every model API's own shapes".
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import attrs

from neuroscript.coercion.parameters import DURATION, field_problems, instance, one_of, sequence
from neuroscript.errors import LLMError
from neuroscript.io.text import type_name
from neuroscript.runtime.interfaces import Turn

Stop = Literal["end", "tools", "length", "refused"]
"""Why a turn ended: all was said, tools are asked for, there was no more room, or the model would not answer."""


@attrs.frozen
class Usage:
    """How many tokens were counted, by the model's own count; 0 where it tells none.

    >>> Usage(10, 2) + Usage(5, 1)
    Usage(input_tokens=15, output_tokens=3)
    """

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@attrs.frozen
class Retried:
    """A request that was made again.

    Attributes:
        code: Why, as the code of an `LLMError`: ``llm.rate``.
        seconds: How long was waited before the next one.
    """

    code: str
    seconds: float


@attrs.frozen
class Reply:
    """One answer of a model.

    Attributes:
        turn: What it said and what it asks for; the names of tools are canonical.
        stop: Why it ended.
        usage: What it cost.
        retries: One for each request that had to be made again.
        seconds: How long it took, with all retries.
    """

    turn: Turn
    stop: Stop = "end"
    usage: Usage = Usage()
    retries: tuple[Retried, ...] = ()
    seconds: float = 0.0


# What a model has to return

FORMS: Final = {
    "turn": instance(Turn),
    "stop": one_of(*get_args(Stop)),
    "usage": instance(Usage),
    "retries": sequence(instance(Retried), "Retrieds"),
    "seconds": DURATION,
}


def turn_of(found: object, method: str) -> Turn:
    """Return what a method of a model returned, which has to be a turn.

    Raises:
        LLMError: ``llm.failed``, where it is something else.
    """
    if isinstance(found, Turn):
        return found
    text = f"the model returned {type_name(found)}; its {method} must return a neuroscript.Turn"
    raise LLMError(text, code="llm.failed", retry="host")


def reply_of(found: object) -> Reply:
    """Return what the method ``reply`` of a model returned, which has to be a reply with exact fields.

    Raises:
        LLMError: ``llm.failed``, where it is something else.
    """
    if not isinstance(found, Reply):
        text = f"the model returned {type_name(found)}; its reply must return a neuroscript.runtime.replies.Reply"
        raise LLMError(text, code="llm.failed", retry="host")
    problem = next(field_problems(found, **FORMS), "")
    if problem:
        raise LLMError(f"the model returned a Reply whose {problem}", code="llm.failed", retry="host")
    return found


def whole(reply: Reply) -> Turn:
    """Return the turn of a reply, if the model said all that it would have.

    Raises:
        LLMError: ``llm.refused`` or ``llm.length``.
    """
    if reply.stop == "refused":
        raise LLMError("the model refused to answer", code="llm.refused", retry="never")
    if reply.stop == "length":
        raise LLMError("the reply was cut, for there was no more room for it", code="llm.length", retry="host")
    return reply.turn
