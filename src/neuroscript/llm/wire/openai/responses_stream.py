"""Streamed replies of OpenAI's Responses API.

The last event holds the complete response. Some servers leave its output empty; then the earlier events are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError
from neuroscript.io.text import join_surrogates
from neuroscript.llm.wire.openai.replies import failure, text_at
from neuroscript.llm.wire.openai.responses_replies import parts_of, read_responses
from neuroscript.llm.wire.sdk_data import format_error, to_plain_data
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames

LAST: Final = frozenset({"response.completed", "response.incomplete", "response.done"})
SAID: Final = {"response.output_text.delta": "output_text", "response.refusal.delta": "refusal"}


@attrs.define
class ResponsesAssembler:
    """Assembles the events of one streamed reply.

    Attributes:
        names: The tool names that the model uses.
    """

    names: WireNames = attrs.field(factory=WireNames)
    _items: dict[Any, dict[str, Any]] = attrs.field(init=False, factory=dict)
    _whole: dict[str, Any] | None = attrs.field(init=False, default=None)

    def take(self, piece: Any) -> str:
        """Add the next event and return its text.

        Raises:
            LLMError: ``llm.format`` if it is not an event, or the error that it reports.
        """
        data = to_plain_data(piece)
        if not isinstance(data, dict):
            raise format_error(f"expected a map that is an event, got {type_name(data)}")
        kind = data.get("type")
        if kind == "error" or (kind is None and data.get("error")):
            raise failure(data.get("error") or {key: each for key, each in data.items() if key != "type"})
        if not isinstance(kind, str):
            raise format_error(f"type: expected string, got {type_name(kind) if 'type' in data else 'nothing'}")
        if kind == "response.failed":
            raise failure(_map(data, "response").get("error"))
        if kind in LAST:
            self._whole = _map(data, "response")
        return self._event(kind, data)

    def _event(self, kind: str, data: dict[str, Any]) -> str:
        index = data.get("output_index")
        place = index if isinstance(index, int) else text_at(data, "item_id")
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._items[place] = _map(data, "item")
        elif kind in SAID:
            return self._say(place, SAID[kind], data.get("delta"))
        elif kind == "response.function_call_arguments.delta":
            self._argue(place, data.get("delta"), data)
        elif kind == "response.function_call_arguments.done" and isinstance(data.get("arguments"), str):
            self._item(place, data)["arguments"] = data["arguments"]
        return ""

    def _say(self, place: Any, kind: str, delta: Any) -> str:
        if not isinstance(delta, str):
            raise format_error(f"delta: expected string, got {type_name(delta)}")
        item = self._items.setdefault(place, {"type": "message", "role": "assistant"})
        content = item["content"] = list(parts_of({**item, "type": "message"}))
        if not content or content[-1]["type"] != kind:
            content.append({"type": kind})
        key = kind.removeprefix("output_")
        content[-1] = {**content[-1], key: _extended(text_at(content[-1], key), delta)}
        return delta

    def _argue(self, place: Any, delta: Any, data: Mapping[str, Any]) -> None:
        if not isinstance(delta, str):
            raise format_error(f"delta: expected string, got {type_name(delta)}")
        item = self._item(place, data)
        item["arguments"] = _extended(text_at(item, "arguments"), delta)

    def _item(self, place: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call that an event belongs to, by its position or, if the server omits it, by its id."""
        if place not in self._items and "item_id" in data:
            same = [key for key, item in self._items.items() if item.get("id") == data["item_id"]]
            place = same[0] if same else place
        return self._items.setdefault(place, {"type": "function_call", "name": data.get("name", "")})

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            LLMError: ``llm.incomplete`` if the last event did not arrive; otherwise as `read_responses`.
        """
        if self._whole is None:
            raise LLMError("the reply ended before it was complete", code="llm.incomplete", retry="later")
        output = self._whole.get("output") or list(self._items.values())
        return read_responses({**self._whole, "output": output}, self.names)


def _extended(text: str, piece: str) -> str:
    """Return a string with another piece, which may begin with the second half of a character."""
    whole = f"{text}{piece}"
    return join_surrogates(whole) if "\udc00" <= piece[:1] <= "\udfff" else whole


def _map(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict):
        raise format_error(f"{key}: expected a map, got {type_name(value) if key in data else 'nothing'}")
    return dict(value)
