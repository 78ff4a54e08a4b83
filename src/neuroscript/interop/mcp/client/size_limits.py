"""Size limits for a message from a server, over standard streams and over HTTP.

The SDK reads a line, or a body that is not an event stream, to its end, however long it is, and parses it whole. It
accepts a custom codec for lines and a custom HTTP client; bytes and values are counted there.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from neuroscript._imports import missing_extra

try:
    import httpx2
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

MAX_MESSAGE_SIZE: Final = 16 * 1024 * 1024
"""Maximum size of a message, in bytes over HTTP and in characters over streams."""

MAX_VALUES: Final = 250_000
"""Maximum number of values in a message; parsing needs up to a kilobyte for each."""

TOO_LONG: Final = f"it is longer than {MAX_MESSAGE_SIZE} bytes"
TOO_MANY: Final = f"\0it has more than {MAX_VALUES} values"
"""The end of a truncated message. Because of the NUL it is not JSON, whatever precedes it."""

CODEC: Final = "neuroscript_mcp_lines"
"""UTF-8 with limited line lengths."""

OVERLONG: Final[ContextVar[Callable[[], None]]] = ContextVar("neuroscript.interop.mcp.client.size_limits")
"""The callback for a line that is too long, of the connection that is being decoded."""


@cache
def register_codec() -> str:
    """Register the codec with Python, and return its name."""
    codecs.register(lambda name: _codec_info() if name == CODEC else None)
    return CODEC


def _codec_info() -> codecs.CodecInfo:
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_Lines, name=CODEC)


class _Values:
    """Counts the values of JSON text by commas and brackets, as it arrives in pieces and before it is parsed."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._is_escaped = False

    def feed(self, text: str) -> None:
        """Count the values outside strings in one piece; it is split at each quote, so it must be short."""
        if not text:
            return
        if self._is_escaped:
            text = text[1:]
        bare = ESCAPE.sub("", text) if "\\" in text else text
        self._is_escaped = bare.endswith("\\")
        pieces = bare.split('"')
        outside = "".join(pieces[self._is_in_string :: 2])
        self.count += outside.count(",") + outside.count("[") + outside.count("{")
        self._is_in_string ^= len(pieces) % 2 == 0


ESCAPE: Final = re.compile(r"\\.", re.DOTALL)


class _Lines(codecs.IncrementalDecoder):
    """Decodes UTF-8 line by line until a line is too long or has too many values.

    A line that is too long ends the connection, and nothing more is decoded. A line with too many values is truncated
    and ends with `TOO_MANY`. Bytes that are not UTF-8 become lone surrogates, which no JSON parser accepts, so that
    line is rejected and the connection stays open.
    """

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._inner = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._length = 0
        self._values = _Values()
        self._is_cut = False
        self._overlong = OVERLONG.get()

    def decode(self, input: Any, final: bool = False) -> str:
        """Decode bytes to text."""
        text = self._inner.decode(input, final)
        if self._length > MAX_MESSAGE_SIZE:
            return ""
        if self._is_cut:
            text = text[text.find("\n") :] if "\n" in text else ""
        end = text.rfind("\n") + 1
        if end:
            self._length, self._values, self._is_cut = 0, _Values(), False
        self._length += len(text) - end
        self._values.feed(text[end:])
        if self._length > MAX_MESSAGE_SIZE:
            self._overlong()
            return ""
        if self._values.count > MAX_VALUES and not self._is_cut:
            self._is_cut = True
            return text[:end] + TOO_MANY
        return text


async def limit_response(response: httpx2.Response) -> None:
    """Count the body of a response while it is read; a hook for an HTTP client.

    In an event stream, each event is counted separately; the SDK counts its bytes. A compressed body is rejected,
    because it may expand.

    Raises:
        httpx2.DecodingError: It is compressed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the response is compressed, although no compression was requested")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if isinstance(response.stream, httpx2.AsyncByteStream):
        counted = _Events if kind == "text/event-stream" else _Body
        response.stream = counted(response.stream)


class _Body(httpx2.AsyncByteStream):
    """A body that raises an error when it is too long or has too many values."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner
        self._bytes = 0
        self._values = _Values()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._count(chunk.decode("latin-1"))
            if self._bytes > MAX_MESSAGE_SIZE:
                raise httpx2.StreamError(TOO_LONG)
            if self._values.count > MAX_VALUES:
                raise httpx2.StreamError(TOO_MANY)
            yield chunk

    def _count(self, text: str) -> None:
        self._bytes += len(text)
        for start in range(0, len(text), CHUNK_CHARS):
            self._values.feed(text[start : start + CHUNK_CHARS])

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()


class _Events(_Body):
    """An event stream that raises an error when an event has too many values."""

    _last = ""

    def _count(self, text: str) -> None:
        text = self._last + text.replace("\r", "")
        self._last = text[-1:] if text.endswith("\n") else ""
        _, boundary, rest = text.rpartition("\n\n")
        if boundary:
            self._values = _Values()
        for start in range(0, len(rest), CHUNK_CHARS):
            self._values.feed(rest[start : start + CHUNK_CHARS])


CHUNK_CHARS: Final = 65_536
"""Number of characters that are counted at a time."""
