"""A model behind an HTTP API: its `Wire` defines the bodies, and its SDK makes the requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.llm.errors import format_error
from neuroscript.llm.http_body import DONE, ResponseBody
from neuroscript.llm.wire.api import Assembler, Wire
from neuroscript.runtime.interfaces import Turn
from neuroscript.runtime.replies import Reply
from neuroscript.runtime.wire_names import WireNames
from neuroscript.spec.tool_spec import ToolSpec

TextCallback = Callable[[str], object]


@attrs.frozen
class Api:
    """The facts about an API that are not part of its `Wire`.

    Attributes:
        path: The path of its requests, relative to the server's address.
        longest: The request member that limits the tokens of a reply.
        own_longest: The same member for the vendor's own server, if it differs; otherwise ``""``.
        default: The token limit to send if the host sets none and the API requires one; otherwise 0.
        streaming: The members that request a stream.
        unread: Makes a request with a client of the SDK and reads only the response headers.
        limited: Returns a client that sends each request once, with timeouts for connecting and for silence. The last
            argument says whether it talks to the vendor's own server.
        listed: The path of the list of models.
        end: The final chunk that servers may omit before `DONE`, or None.
        embeds: Whether the same address serves embeddings, as OpenAI's does.
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
    """A model on a server.

    Attributes:
        model: The name that the server uses for the model.
        client: The SDK client, which sends each request once.
        seconds: Maximum seconds for a reply.
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
        """The display name of the API."""
        return self.api.wire.title

    def attempt(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], hear: TextCallback, until: float) -> Reply:
        """Make one request and return the reply.

        Raises:
            LLMError: If the server reports an error, or its response is not a reply.
            Exception: Any exception of the SDK or of its HTTP transport.
        """
        names = WireNames.of(tools)
        stream = self.api.unread(self.client, self.api.path, self._body(turns, tools, names))
        with closing(stream):
            body = ResponseBody(stream.response, until, self.seconds)
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

    def _assembled(self, body: ResponseBody, names: WireNames, hear: TextCallback) -> Reply:
        assembler = self.api.wire.assembler(names)
        for event in body.events():
            if event == DONE:  # the reply is complete even if the connection then breaks
                return self._finish_reply(assembler) if self.api.end else assembler.reply()
            text = assembler.take(event)
            if text:
                hear(text)
        return assembler.reply()

    def _finish_reply(self, assembler: Assembler) -> Reply:
        """Return the reply of a stream that ended with `DONE`, even if no chunk named the reason."""
        try:
            return assembler.reply()
        except LLMError as error:
            if error.code != "llm.incomplete":
                raise
        assembler.take(self.api.end)
        return assembler.reply()

    def embed(self, text: str, until: float) -> list[float]:
        """Return the embedding of *text*.

        Raises:
            LLMError: ``llm.request`` if the API has no embeddings; otherwise as `attempt`.
        """
        if not self.api.embeds:
            raise LLMError(f"{self.title} does not support embeddings", code="llm.request", retry="host")
        request = {"model": self.model, "input": text, "encoding_format": "float", **self.options}
        with closing(self.api.unread(self.client, "/embeddings", request)) as stream:
            data = ResponseBody(stream.response, until, self.seconds).whole()
        match data:
            case {"data": [{"embedding": list() as numbers}]} if all(type(each) in NUMBERS for each in numbers):
                return [float(each) for each in numbers]
        raise format_error("")

    def names(self, until: float) -> list[str]:
        """Return the sorted names of the models that the server lists.

        Raises:
            LLMError: As `attempt`.
        """
        with closing(self.api.unread(self.client, self.api.listed, None)) as stream:
            data = ResponseBody(stream.response, until, self.seconds).whole()
        match data:
            case {"data": list() as entries} if all(isinstance(each, Mapping) and "id" in each for each in entries):
                return sorted(str(each["id"]) for each in entries)
        raise format_error("")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


NUMBERS: Final = frozenset({int, float})
