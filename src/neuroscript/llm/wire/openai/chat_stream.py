"""The pieces of a streamed answer of Chat Completions, put together.

Servers that follow the API leave indexes and ids out, give each of several calls the index 0, or repeat names; a call
begins where an id or a name comes that can not belong to the one before.

Source: OpenAI API reference, "Chat Completions", streaming; issues of vLLM, llama.cpp and Ollama on deltas of calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError
from neuroscript.llm.wire.openai.chat_replies import read_chat, text_of
from neuroscript.llm.wire.openai.replies import failure, text_at
from neuroscript.llm.wire.sdk_data import dumped, strange
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames

KNOWN = frozenset({"role", "content", "refusal", "tool_calls"})


@attrs.define
class PartialCall:
    """A call as far as it has come."""

    index: Any = None
    id: str = ""
    name: str = ""
    arguments: Any = ""
    more: dict[str, Any] = attrs.field(factory=dict)

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take what a piece says of this call."""
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
        """Tell whether its arguments can not go on."""
        if not isinstance(self.arguments, str):
            return True
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return False
        return True

    def data(self) -> dict[str, Any]:
        """Return the call as a whole message holds it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function, **self.more}


@attrs.define
class ChatAssembler:
    """The pieces of one streamed answer; of several choices the first.

    Attributes:
        names: What the model calls the tools.
    """

    names: WireNames = attrs.field(factory=WireNames)
    _message: dict[str, Any] = attrs.field(init=False, factory=dict)
    _calls: list[PartialCall] = attrs.field(init=False, factory=list)
    _ended: str = attrs.field(init=False, default="")
    _usage: Any = attrs.field(init=False, default=None)

    def take(self, piece: Any) -> str:
        """Take the next chunk, and return the text in it.

        Raises:
            LLMError: ``llm.format``, where it is no chunk; what an error in it means.
        """
        data = dumped(piece)
        if not isinstance(data, dict):
            raise strange(f"expected a map that is a piece of a reply, got {type_name(data)}")
        if data.get("error"):
            raise failure(data["error"])
        choices = data.get("choices")
        if not isinstance(choices, list) and (choices is not None or not data.get("usage")):
            raise strange(f"choices: expected list, got {type_name(choices) if 'choices' in data else 'nothing'}")
        self._usage = data.get("usage") or self._usage
        return "".join(self._choice(choice) for choice in choices or ())

    def _choice(self, choice: Any) -> str:
        if not isinstance(choice, dict) or not isinstance(choice.get("delta") or {}, dict):
            raise strange("choices[0]: expected a map with a delta")
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
                self._message[key] = _joined(self._message.get(key), each)
        return "".join(self._say(key, delta.get(key)) for key in ("content", "refusal"))

    def _say(self, key: str, content: Any) -> str:
        text = text_of(content)
        if text:
            self._message[key] = f"{self._message.get(key, '')}{text}"
        return text

    def _add(self, delta: Any) -> None:
        if not isinstance(delta, dict) or not isinstance(delta.get("function") or {}, dict):
            raise strange("tool_calls: expected a map with a function")
        delta = {**delta, "function": delta.get("function") or {}}
        call = self._meant(delta)
        if call is None:
            call = PartialCall(delta.get("index"))
            self._calls.append(call)
        call.add(delta)

    def _meant(self, delta: Mapping[str, Any]) -> PartialCall | None:
        """Return the call that a piece goes on with, or None where it begins one."""
        index, id, function = delta.get("index"), text_at(delta, "id"), delta["function"]
        if id and any(call.id == id for call in self._calls):
            return next(call for call in self._calls if call.id == id)
        same = [call for call in self._calls if index is None or call.index == index]
        if not same or (id and same[-1].id):
            return None
        return None if text_at(function, "name") and _begins(same[-1], index, function) else same[-1]

    def reply(self) -> Reply:
        """Return the whole reply.

        Raises:
            LLMError: ``llm.cut``, no ``finish_reason`` has come; what `read_chat` raises.
        """
        if not self._ended:
            raise LLMError("the reply ended before it was whole", code="llm.cut", retry="later")
        message = {"role": "assistant", "content": None, **self._message}
        if self._calls:
            message["tool_calls"] = [call.data() for call in self._calls]
        choice = {"message": message, "finish_reason": self._ended}
        return read_chat({"choices": [choice], "usage": self._usage}, self.names)


def _joined(before: Any, more: Any) -> Any:
    """Return what two pieces of a member say that only its server knows: its texts and its lists go on."""
    match before, more:
        case str(), str():
            return f"{before}{more}"
        case list(), list():
            return [*before, *more]
    return more


def _begins(before: PartialCall, index: Any, function: Mapping[str, Any]) -> bool:
    """Tell whether a piece with a name, and without an id of its own, is another call than the one before it."""
    if not before.name:
        return False
    if index is None and before.arguments == "":
        return True
    arguments = function.get("arguments")
    begins = not isinstance(arguments, str) or arguments.lstrip().startswith("{")
    return before.is_whole() and (index is None or (begins and bool(arguments)))
