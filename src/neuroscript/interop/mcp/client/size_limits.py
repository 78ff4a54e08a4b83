"""Limits on the size of one message of a server: over its standard streams, and over HTTP.

The SDK reads a line, or a body that is not a stream of events, to its end, however long it is, and parses it whole. It
lets us choose how the bytes of a line are decoded and which HTTP client it uses; bytes and values are counted there.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from neuroscript._imports import missing

try:
    import httpx2
except ImportError as error:
    raise missing("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

LONGEST: Final = 16 * 1024 * 1024
"""How long one message of a server may be, in bytes over HTTP and in characters over streams."""

MAX_VALUES: Final = 250_000
"""How many values one message of a server may have; parsing takes up to a kilobyte for each."""

TOO_LONG: Final = f"it is longer than {LONGEST} bytes"
TOO_MANY: Final = f"\0it has more than {MAX_VALUES} values"
"""The end of a message that was cut. Because of the NUL it is not JSON, whatever precedes it."""

CODEC: Final = "neuroscript_mcp_lines"
"""UTF-8, whose lines have an end."""

OVERLONG: Final[ContextVar[Callable[[], None]]] = ContextVar("neuroscript.interop.mcp.client.size_limits")
"""What is called where a line is too long; of the connection whose lines are decoded."""


@cache
def registered() -> str:
    """Return the name of the codec, which Python knows from now on."""
    codecs.register(lambda name: _found() if name == CODEC else None)
    return CODEC


def _found() -> codecs.CodecInfo:
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_Lines, name=CODEC)


class _Values:
    """Counts the values of a JSON text that arrives in pieces, before it is parsed: by commas and brackets."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._is_escaped = False

    def feed(self, text: str) -> None:
        """Count those of one piece that are outside strings; the piece is split at each quote, so keep it short."""
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
    """Decodes UTF-8, line by line, until a line is too long or has too many values.

    A line that is too long ends the connection, and nothing is decoded any more. One with too many values is cut, and
    ends with `TOO_MANY`. Bytes that are not UTF-8 become lone surrogates, which no parser of JSON takes: so their line
    is refused, and the connection stays.
    """

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._inner = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._length = 0
        self._values = _Values()
        self._is_cut = False
        self._overlong = OVERLONG.get()

    def decode(self, input: Any, final: bool = False) -> str:
        """Return the text of some bytes."""
        text = self._inner.decode(input, final)
        if self._length > LONGEST:
            return ""
        if self._is_cut:
            text = text[text.find("\n") :] if "\n" in text else ""
        end = text.rfind("\n") + 1
        if end:
            self._length, self._values, self._is_cut = 0, _Values(), False
        self._length += len(text) - end
        self._values.feed(text[end:])
        if self._length > LONGEST:
            self._overlong()
            return ""
        if self._values.count > MAX_VALUES and not self._is_cut:
            self._is_cut = True
            return text[:end] + TOO_MANY
        return text


async def bounded(response: httpx2.Response) -> None:
    """Count the body of a response while it is read; a hook for an HTTP client.

    In a stream of events each event counts for itself; the SDK counts its bytes. A compressed body is not read at all,
    because it may grow.

    Raises:
        httpx2.DecodingError: It is compressed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the answer is compressed, which was not asked for")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if isinstance(response.stream, httpx2.AsyncByteStream):
        counted = _Events if kind == "text/event-stream" else _Body
        response.stream = counted(response.stream)


class _Body(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long or has too many values."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner
        self._bytes = 0
        self._values = _Values()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._count(chunk.decode("latin-1"))
            if self._bytes > LONGEST:
                raise httpx2.StreamError(TOO_LONG)
            if self._values.count > MAX_VALUES:
                raise httpx2.StreamError(TOO_MANY)
            yield chunk

    def _count(self, text: str) -> None:
        self._bytes += len(text)
        for start in range(0, len(text), PIECE):
            self._values.feed(text[start : start + PIECE])

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()


class _Events(_Body):
    """A stream of events, which ends with an error where an event has too many values."""

    _last = ""

    def _count(self, text: str) -> None:
        text = self._last + text.replace("\r", "")
        self._last = text[-1:] if text.endswith("\n") else ""
        _, boundary, rest = text.rpartition("\n\n")
        if boundary:
            self._values = _Values()
        for start in range(0, len(rest), PIECE):
            self._values.feed(rest[start : start + PIECE])


PIECE: Final = 65_536
"""How many characters are counted at a time."""
