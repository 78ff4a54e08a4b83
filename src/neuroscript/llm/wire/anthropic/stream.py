"""Streamed messages of Anthropic's Messages API. Unknown events are ignored, as the API requires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.io.text import join_surrogates
from neuroscript.llm.wire.anthropic.replies import reply_of
from neuroscript.llm.wire.replies import reported_error
from neuroscript.llm.wire.sdk_data import format_error, map_in, map_of, text_in
from neuroscript.llm.wire.tools import arguments_as_map, decode_arguments
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames

DELTAS: Final[Mapping[str, tuple[str, str]]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("input", "partial_json"),
}
"""By type of a delta: the block member that it extends, and its own member that holds the text."""


@attrs.frozen
class Block:
    """A block that is being assembled.

    Attributes:
        start: The block as it began.
        pieces: The pieces of each string member; for ``input``, the pieces of its JSON.
        citations: The citations so far.
    """

    start: Mapping[str, Any]
    pieces: dict[str, list[str]] = attrs.field(factory=dict)
    citations: list[Any] = attrs.field(factory=list)

    def whole(self) -> dict[str, Any]:
        """Return the block as in an unstreamed message; an input that is not a JSON object stays a string."""
        members = {key: join_surrogates("".join(pieces)) for key, pieces in self.pieces.items()}
        block = {
            **self.start,
            **{key: text_in(self.start, key) + text for key, text in members.items() if key != "input"},
        }
        if members.get("input", "").strip():
            block["input"] = decode_arguments(members["input"])
        cited = [*(self.start.get("citations") or ()), *self.citations]
        return {**block, "citations": cited} if cited else block


@attrs.define
class MessageAssembler:
    """Assembles the events of one message: an SDK's objects, the events of its stream helpers, or plain data.

    Attributes:
        names: The tool names that the model uses.
    """

    names: WireNames = attrs.field(factory=WireNames)
    _message: dict[str, Any] = attrs.field(init=False, factory=dict)
    _blocks: dict[int, Block] = attrs.field(init=False, factory=dict)
    _is_whole: bool = attrs.field(init=False, default=False)

    def take(self, piece: Any) -> str:
        """Add the next event and return its text, or ``""``.

        Raises:
            LLMError: ``llm.format`` if it is not an event, or the error in an ``error`` event.
        """
        event = map_of(piece)
        kind = event.get("type")
        if not isinstance(kind, str):
            raise format_error("an event has no type")
        taking = EVENTS.get(kind)
        return "" if taking is None else taking(self, event)

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            LLMError: ``llm.incomplete`` if ``message_stop`` did not arrive; otherwise as `read`.
        """
        if not self._is_whole:
            raise LLMError("the reply ended before it was complete", code="llm.incomplete", retry="later")
        blocks = [self._blocks[index].whole() for index in sorted(self._blocks)]
        raw_arguments = {at: each["input"] for at, each in enumerate(blocks) if type(each.get("input")) in (str, list)}
        for at, given in raw_arguments.items():  # the API accepts only a map when the message is sent back
            blocks[at]["input"] = arguments_as_map(given)
        return reply_of({**self._message, "content": blocks}, self.names, raw_arguments)

    def _start(self, event: Mapping[str, Any]) -> str:
        self._message = dict(map_in(event, "message"))
        return ""

    def _start_block(self, event: Mapping[str, Any]) -> str:
        start = map_in(event, "content_block")
        self._blocks[_index(event)] = Block(start)
        return text_in(start, "text") if start.get("type") == "text" else ""

    def _go_on(self, event: Mapping[str, Any]) -> str:
        delta = map_in(event, "delta")
        block = self._blocks.get(_index(event))
        if block is None:
            raise format_error("an event belongs to a block that did not start")
        if delta.get("type") == "citations_delta":
            block.citations.append(delta.get("citation"))
        key, place = DELTAS.get(str(delta.get("type")), ("", ""))
        text = text_in(delta, place) if key else ""
        if text:
            block.pieces.setdefault(key, []).append(text)
        return text if key == "text" else ""

    def _go_on_all(self, event: Mapping[str, Any]) -> str:
        self._message |= map_in(event, "delta")
        counted = {key: each for key, each in map_in(event, "usage").items() if each is not None}
        self._message["usage"] = {**map_in(self._message, "usage"), **counted}
        return ""

    def _stop(self, event: Mapping[str, Any]) -> str:
        self._is_whole = True
        return ""

    def _fail(self, event: Mapping[str, Any]) -> str:
        raise reported_error(map_in(event, "error").get("type"))


EVENTS: Final[Mapping[str, Callable[[MessageAssembler, Mapping[str, Any]], str]]] = {
    "message_start": MessageAssembler._start,
    "content_block_start": MessageAssembler._start_block,
    "content_block_delta": MessageAssembler._go_on,
    "message_delta": MessageAssembler._go_on_all,
    "message_stop": MessageAssembler._stop,
    "error": MessageAssembler._fail,
}
"""The handler for each type of event; ``ping``, events of SDK helpers and unknown events add nothing."""


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if type(index) is not int:
        raise format_error("an event has no index")
    return index
