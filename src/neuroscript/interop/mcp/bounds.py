"""How much of one answer of a server is held in memory: over its standard streams, and over HTTP.

The SDK reads a line, and a body that is no stream of events, to the end, however long it is. It lets us choose how the
bytes of a line are decoded and what client of HTTP it uses, and there they are counted.

Source: issue "MCP"; reliability.md part 4.2.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from neuroscript.extras import missing

try:
    import httpx2
except ImportError as error:
    raise missing("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

LONGEST: Final = 16 * 1024 * 1024
"""How long one message of a server may be, in bytes over HTTP and in characters over streams."""

CODEC: Final = "neuroscript_mcp_lines"
"""UTF-8, whose lines have an end."""

OVERLONG: Final[ContextVar[Callable[[], None]]] = ContextVar("neuroscript.interop.mcp.bounds")
"""What is called where a line is too long; of the connection whose lines are decoded."""


@cache
def registered() -> str:
    """Return the name of the codec, which Python knows from now on."""
    codecs.register(lambda name: _found() if name == CODEC else None)
    return CODEC


def _found() -> codecs.CodecInfo:
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_Lines, name=CODEC)


class _Lines(codecs.IncrementalDecoder):
    """Decodes UTF-8 until a line is too long, and gives nothing from there on."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._inner = codecs.getincrementaldecoder("utf-8")(errors)
        self._length = 0
        self._overlong = OVERLONG.get()

    def decode(self, input: Any, final: bool = False) -> str:
        """Return the text of some bytes."""
        text = self._inner.decode(input, final)
        end = text.rfind("\n") + 1
        self._length = len(text) - end + (0 if end else self._length)
        if self._length <= LONGEST:
            return text
        self._length = LONGEST + 1  # of a line that never ends, for the next one is no better
        self._overlong()
        return ""


async def bounded(response: httpx2.Response) -> None:
    """Have the body of a response counted while it is read; a hook for a client of HTTP.

    Of a stream of events the SDK counts each event. What was compressed may grow, and is not read at all.

    Raises:
        httpx2.DecodingError: It is compressed.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the answer is compressed, and nobody asked for that")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream" and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Counted(response.stream)


class _Counted(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._inner:
            count += len(chunk)
            if count > LONGEST:
                raise httpx2.StreamError(f"it is longer than {LONGEST} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()
