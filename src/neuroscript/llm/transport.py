"""One way to a model: an API of HTTP, whose bodies are those of its `Wire` and whose requests are made by its SDK.

Source: issue "Models", clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.llm.errors import format_error
from neuroscript.llm.http_body import DONE, Body
from neuroscript.llm.wire.api import Assembler, Wire
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

Hear = Callable[[str], object]


@attrs.frozen
class Api:
    """What is to be known of an API beside its `Wire`.

    Attributes:
        path: Where its requests go, below the address of its server.
        longest: The member of a request that bounds the tokens of a reply.
        own_longest: The same for the server of the API itself, where it is another one; ``""`` where it is not.
        default: How many tokens that are where nobody says, because the API wants a number; 0 where it needs none.
        streaming: What a request for a stream says.
        unread: Makes a request with a client of the SDK; of the answer only the head has been read.
        limited: Returns a client with timeouts, of a connection and of silence, that makes each request once; the last
            argument tells whether it is that of the API's maker.
        listed: Where the server lists its models.
        end: The piece that servers may leave out where their stream ends with `DONE` anyway; None where there is none.
        embeds: Whether the same address gives embeddings, as OpenAI's does.
    """

    wire: Wire
    path: str
    longest: str
    unread: Callable[[Any, str, dict[str, Any] | None], Any]
    limited: Callable[[Any, float, float, bool], Any]
    own_longest: str = ""
    default: int = 0
    streaming: Mapping[str, Any] = attrs.field(factory=lambda: {"stream": True})
    listed: str = "/models"
    end: Mapping[str, Any] | None = None
    embeds: bool = False


@attrs.frozen
class Transport:
    """A model at a server.

    Attributes:
        model: What the server calls the model.
        client: The SDK's, which makes each request once.
        seconds: How long a reply may take in all.
    """

    api: Api
    model: str
    client: Any = attrs.field(repr=False)
    max_tokens: int | None
    stream: bool
    seconds: float
    options: Mapping[str, Any] = attrs.field(repr=False)
    longest: str = ""

    @property
    def title(self) -> str:
        """The API, as people call it."""
        return self.api.wire.title

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: Hear, until: float) -> Reply:
        """Make one request and return the reply.

        Raises:
            LLMError: What the answer means, or what it is instead of one.
            Exception: What the SDK, or its transport, raises.
        """
        names = WireNames.of(tools)
        stream = self.api.unread(self.client, self.api.path, self._body(turns, tools, names))
        with closing(stream):
            body = Body(stream.response, until, self.seconds)
            if body.is_streamed:
                return self._assembled(body, names, hear)
            reply = self.api.wire.read(body.whole(), names)
        hear(reply.turn.content)
        return reply

    def _body(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], names: WireNames) -> dict[str, Any]:
        wire, bound = self.api.wire, self.max_tokens or self.api.default
        return {
            **self.options,
            "model": self.model,
            **wire.conversation(turns, names),
            **({"tools": wire.tools(tools, names)} if tools else {}),
            **({self.longest or self.api.longest: bound} if bound else {}),
            **(self.api.streaming if self.stream else {}),
        }

    def _assembled(self, body: Body, names: WireNames, hear: Hear) -> Reply:
        assembler = self.api.wire.assembler(names)
        for event in body.events():
            if event == DONE:  # whatever becomes of the connection then
                return self._ended(assembler) if self.api.end else assembler.reply()
            text = assembler.take(event)
            if text:
                hear(text)
        return assembler.reply()

    def _ended(self, assembler: Assembler) -> Reply:
        """Return the reply of a stream that came to its end, if need be without having said why."""
        try:
            return assembler.reply()
        except LLMError as error:
            if error.code != "llm.cut":
                raise
        assembler.take(self.api.end)
        return assembler.reply()

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of a text.

        Raises:
            LLMError: ``llm.request``, where the API has none; as `attempt`.
        """
        if not self.api.embeds:
            raise LLMError(f"{self.title} gives no embeddings", code="llm.request", retry="host")
        request = {"model": self.model, "input": text, "encoding_format": "float", **self.options}
        with closing(self.api.unread(self.client, "/embeddings", request)) as stream:
            data = Body(stream.response, until, self.seconds).whole()
        match data:
            case {"data": [{"embedding": list() as numbers}]} if all(type(each) in NUMBERS for each in numbers):
                return [float(each) for each in numbers]
        raise format_error("")

    def names(self, until: float) -> list[str]:
        """Return the names of models that the server lists, in order.

        Raises:
            LLMError: As `attempt`.
        """
        with closing(self.api.unread(self.client, self.api.listed, None)) as stream:
            data = Body(stream.response, until, self.seconds).whole()
        match data:
            case {"data": list() as entries} if all(isinstance(each, Mapping) and "id" in each for each in entries):
                return sorted(str(each["id"]) for each in entries)
        raise format_error("")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


NUMBERS: Final = frozenset({int, float})
