"""HTTP response bodies, read as one JSON value or as server-sent events, with limits on time and size."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import attrs

from neuroscript.errors import LLMError
from neuroscript.io.text import MAX_VALUES, has_more_values
from neuroscript.llm.errors import cut_error, format_error, timeout_error

MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Maximum bytes of a response; conversations are far smaller."""

EVENTS: Final = "text/event-stream"
DONE: Final = "[DONE]"
"""The end marker of a stream of OpenAI's Chat API; it is not JSON."""


@attrs.frozen
class ResponseBody:
    """The unread body of a response.

    Attributes:
        response: A response of ``httpx`` or ``httpx2``.
        until: The deadline for the whole body, on the clock of `time.monotonic`.
        seconds: The length of that limit, for the error message.
    """

    response: Any
    until: float
    seconds: float

    @property
    def kind(self) -> str:
        """The content type in lower case, without parameters."""
        text: str = self.response.headers.get("content-type", "")
        return text.partition(";")[0].strip().lower()

    @property
    def is_streamed(self) -> bool:
        """Whether the body is an event stream."""
        return self.kind == EVENTS

    def whole(self) -> Any:
        """Return the data of a response that is one JSON value.

        Raises:
            LLMError: ``llm.format`` if it is not JSON, ``llm.incomplete`` if it ends too early, or ``llm.timeout``.
        """
        text = b"".join(self._chunks()).strip()
        begun, ended = text.startswith((b"{", b"[")), text.endswith((b"}", b"]"))
        if self.kind.endswith("json") and not ended and (begun or not text):
            raise cut_error()
        return self._data(text)

    def events(self) -> Iterator[Any]:
        """Yield the data of each event, or `DONE`. An unfinished event at the end of the stream is dropped.

        Raises:
            LLMError: As `whole`.
        """
        data: list[bytes] = []
        for line in lines(self._chunks()):
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                text = b"\n".join(data)
                data = []
                yield DONE if text == DONE.encode() else self._data(text)

    def _data(self, text: bytes) -> Any:
        if len(text) <= MAX_VALUES or not has_more_values(text.decode("utf-8", "replace"), MAX_VALUES):
            with suppress(ValueError, RecursionError):
                return json.loads(text)
        raise format_error(self.kind)

    def _chunks(self) -> Iterator[bytes]:
        size = 0
        for chunk in self.response.iter_bytes():
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise LLMError("the model's server answered with more than 64 MiB", code="llm.format", retry="host")
            if time.monotonic() > self.until:
                raise timeout_error(self.seconds)
            yield chunk


def lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines in chunks of bytes, without line ends; a last line without an end is dropped.

    >>> [*lines([b"a\\r\\nb", b"c\\n", b"d"])]
    [b'a', b'bc']
    """
    rest: list[bytes] = []
    for chunk in chunks:
        first, *more = chunk.split(b"\n")
        rest.append(first)
        for part in more:
            yield b"".join(rest).removesuffix(b"\r")
            rest = [part]
