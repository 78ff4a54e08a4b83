"""Streamed replies of Chat Completions.

Compatible servers may omit indexes and ids, send index 0 for every call, or repeat names. A new call begins with an id
or a name that cannot belong to the previous one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError
from neuroscript.io.text import join_surrogates
from neuroscript.llm.wire.openai.chat_replies import read_chat, text_of
from neuroscript.llm.wire.openai.replies import failure, text_at
from neuroscript.llm.wire.sdk_data import format_error, to_plain_data
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames

KNOWN = frozenset({"role", "content", "refusal", "tool_calls"})


@attrs.define
class PartialCall:
    """A call that is being assembled."""

    index: Any = None
    id: str = ""
    name: str = ""
    arguments: Any = ""
    more: dict[str, Any] = attrs.field(factory=dict)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Add a delta of this call."""
        function = delta["function"]
        self.id = self.id or text_at(delta, "id")
        name = text_at(function, "name")
        if name != self.name:
            self.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, str) and isinstance(self.arguments, str):
            self.arguments += arguments
        elif arguments is not None:
            self.arguments = arguments
        self.more |= {key: each for key, each in delta.items() if key not in ("index", "id", "type", "function")}

    def is_whole(self) -> bool:
        """Return whether the arguments are complete."""
        if not isinstance(self.arguments, str):
            return True
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def data(self) -> dict[str, Any]:
        """Return the call as in an unstreamed message."""
        function = {"name": self.name, "arguments": _joined(self.arguments)}
        return {"id": self.id, "type": "function", "function": function, **self.more}


@attrs.define
class ChatAssembler:
    """Assembles the chunks of one streamed reply; only its first choice is read.

    Attributes:
        names: The tool names that the model uses.
    """

    names: WireNames = attrs.field(factory=WireNames)
    _message: dict[str, Any] = attrs.field(init=False, factory=dict)
    _calls: list[PartialCall] = attrs.field(init=False, factory=list)
    _ended: str = attrs.field(init=False, default="")
    _usage: Any = attrs.field(init=False, default=None)

    def take(self, piece: Any) -> str:
        """Add the next chunk and return its text.

        Raises:
            LLMError: ``llm.format`` if it is not a chunk, or the error that it reports.
        """
        data = to_plain_data(piece)
        if not isinstance(data, dict):
            raise format_error(f"expected a map that is a chunk of a reply, got {type_name(data)}")
        if data.get("error"):
            raise failure(data["error"])
        choices = data.get("choices")
        if not isinstance(choices, list) and (choices is not None or not data.get("usage")):
            raise format_error(f"choices: expected list, got {type_name(choices) if 'choices' in data else 'nothing'}")
        self._usage = data.get("usage") or self._usage
        return "".join(self._choice(choice) for choice in choices or ())

    def _choice(self, choice: Any) -> str:
        if not isinstance(choice, dict) or not isinstance(choice.get("delta") or {}, dict):
            raise format_error("choices[0]: expected a map with a delta")
        if choice.get("index"):
            return ""
        if choice.get("error"):
            raise failure(choice["error"])
        self._ended = text_at(choice, "finish_reason") or self._ended
        return self._delta(choice.get("delta") or {})

    def _delta(self, delta: Mapping[str, Any]) -> str:
        calls = delta.get("tool_calls") or []
        for each in calls if isinstance(calls, list) else [calls]:
            self._add(each)
        for key, each in delta.items():
            if key not in KNOWN and each is not None:
                self._message[key] = _merge_pieces(self._message.get(key), each)
        return "".join(self._say(key, delta.get(key)) for key in ("content", "refusal"))

    def _say(self, key: str, content: Any) -> str:
        text = text_of(content)
        if text:
            self._message[key] = f"{self._message.get(key, '')}{text}"
        return text

    def _add(self, delta: Any) -> None:
        if not isinstance(delta, dict) or not isinstance(delta.get("function") or {}, dict):
            raise format_error("tool_calls: expected a map with a function")
        delta = {**delta, "function": delta.get("function") or {}}
        call = self._continued_call(delta)
        if call is None:
            call = PartialCall(delta.get("index"))
            self._calls.append(call)
        call.add(delta)

    def _continued_call(self, delta: Mapping[str, Any]) -> PartialCall | None:
        """Return the call that a delta continues, or None if it begins a new one."""
        index, id, function = delta.get("index"), text_at(delta, "id"), delta["function"]
        if id and any(call.id == id for call in self._calls):
            return next(call for call in self._calls if call.id == id)
        same = [call for call in self._calls if index is None or call.index == index]
        if not same or (id and same[-1].id):
            return None
        return None if text_at(function, "name") and _begins(same[-1], index, function) else same[-1]

    def reply(self) -> Reply:
        """Return the complete reply.

        Raises:
            LLMError: ``llm.incomplete`` if no ``finish_reason`` arrived; otherwise as `read_chat`.
        """
        if not self._ended:
            raise LLMError("the reply ended before it was complete", code="llm.incomplete", retry="later")
        said = {key: _joined(each) for key, each in self._message.items()}
        message = {"role": "assistant", "content": None, **said}
        if self._calls:
            message["tool_calls"] = [call.data() for call in self._calls]
        choice = {"message": message, "finish_reason": self._ended}
        return read_chat({"choices": [choice], "usage": self._usage}, self.names)


def _joined(value: Any) -> Any:
    """Return a string with its characters whole, and any other value as it is."""
    return join_surrogates(value) if isinstance(value, str) else value


def _merge_pieces(before: Any, more: Any) -> Any:
    """Return two pieces of a server-specific member combined: strings and lists are concatenated."""
    match before, more:
        case str(), str():
            return f"{before}{more}"
        case list(), list():
            return [*before, *more]
    return more


def _begins(before: PartialCall, index: Any, function: Mapping[str, Any]) -> bool:
    """Return whether a delta with a name but no id begins another call than the previous one."""
    if not before.name:
        return False
    if index is None and before.arguments == "":
        return True
    arguments = function.get("arguments")
    begins = not isinstance(arguments, str) or arguments.lstrip().startswith("{")
    return before.is_whole() and (index is None or (begins and bool(arguments)))
