"""What every module of a model API gives: tools out, a conversation out, replies in, whole or in pieces.

Source: issue "Models", model APIs; design.md, rule 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import attrs

from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames


class Assembler(Protocol):
    """The pieces of one streamed reply, put together."""

    def take(self, piece: Any) -> str:
        """Take the next piece, an SDK's object or plain data, and return the text that the model said in it, or ``""``.

        Raises:
            LLMError: ``llm.format``, where it is no piece of this API; what the piece itself tells as an error.
        """

    def reply(self) -> Reply:
        """Return the whole reply.

        Raises:
            LLMError: ``llm.cut``, where the pieces ended before the reply did; what `Wire.read` raises.
        """


@attrs.frozen
class Wire:
    """How one API writes tools, turns and replies; each entry is a public function of its module.

    Attributes:
        title: What people call it, for example ``OpenAI Chat``.
        key: What stands in `Turn.native` for it, for example ``openai.chat``; a turn is sent back as it was to its own
            API alone.
        tools: What stands under ``tools`` in a request.
        conversation: The members of a request that hold the turns.
        read: The reply that a whole answer holds, an SDK's object or plain data.
        assembler: What puts the pieces of a streamed answer together.
    """

    title: str
    key: str
    tools: Callable[[Iterable[Any], WireNames], list[dict[str, Any]]]
    conversation: Callable[[Sequence[Turn], WireNames], dict[str, Any]]
    read: Callable[[Any, WireNames], Reply]
    assembler: Callable[[WireNames], Assembler]
