"""The interface that every model API implements: tools and conversations out, complete or streamed replies in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import attrs

from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames


class Assembler(Protocol):
    """Assembles one streamed reply."""

    def take(self, piece: Any) -> str:
        """Add the next piece, an SDK object or plain data, and return its text, or ``""``.

        Raises:
            LLMError: ``llm.format`` if it is not a piece of this API, or the error that the piece reports.
        """

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            LLMError: ``llm.incomplete`` if the pieces ended before the reply did; otherwise as `Wire.read`.
        """


@attrs.frozen
class Wire:
    """The functions that convert tools, turns and replies for one API.

    Attributes:
        title: The display name, for example ``OpenAI Chat``.
        key: The key in `Turn.native`, for example ``openai.chat``. A turn is sent back in native form only to the API
            that it came from.
        tools: Returns the value of ``tools`` in a request.
        conversation: Returns the request members that hold the turns.
        read: Returns the reply in a complete response, an SDK object or plain data.
        assembler: Returns an assembler for a streamed response.
    """

    title: str
    key: str
    tools: Callable[[Iterable[Any], WireNames], list[dict[str, Any]]]
    conversation: Callable[[Sequence[Turn], WireNames], dict[str, Any]]
    read: Callable[[Any, WireNames], Reply]
    assembler: Callable[[WireNames], Assembler]
