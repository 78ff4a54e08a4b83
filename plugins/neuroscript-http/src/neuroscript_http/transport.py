"""One request over one connection: httpx on top of a pinned httpcore.

Nothing is shared between requests, neither connections nor cookies, and nothing is read from the environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import attrs
import httpcore
import httpx

from neuroscript_http.faults import fault
from neuroscript_http.pinned_connections import Pinned
from neuroscript_http.urls import Target

MAX_RESPONSE_HEADERS: Final = 200
MAX_RESPONSE_HEADER_BYTES: Final = 32 * 1024
"""Maximum number and maximum total bytes of the headers of a response."""


@contextmanager
def send(
    target: Target, method: str, headers: Sequence[tuple[str, str]], body: bytes, backend: Pinned
) -> Iterator[httpx.Response]:
    """Send one request and yield the response, with its body unread and undecoded.

    Raises:
        ToolFailed: ``http.connect``, ``.tls``, ``.timeout``, ``.protocol``, ``.cut``, ``.too_large``, ``.cancelled``.
    """
    context = backend.network.tls() if target.scheme == "https" else None
    request = httpx.Request(method, target.url, headers=list(headers), content=body or None)
    with (
        httpcore.ConnectionPool(context, max_connections=1, network_backend=backend) as pool,
        _translated_errors(target.place),
    ):
        response = pool.handle_request(_as_sent(target, request))
        try:
            _require_small(response, target)
            yield httpx.Response(response.status, headers=response.headers, stream=_Body(response, target.place))
        finally:
            response.close()


def _as_sent(target: Target, request: httpx.Request) -> httpcore.Request:
    """Return a request to exactly the checked host, port and path, without parsing the URL again."""
    url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
    return httpcore.Request(request.method, url, headers=request.headers.raw, content=request.read())


@attrs.frozen(eq=False)
class _Body(httpx.SyncByteStream):
    stream: httpcore.Response
    place: str

    def __iter__(self) -> Iterator[bytes]:
        with _translated_errors(self.place):
            yield from self.stream.iter_stream()

    def close(self) -> None:
        self.stream.close()


@contextmanager
def _translated_errors(place: str) -> Iterator[None]:
    """Replace errors of httpcore, because their messages can contain data from the server."""
    try:
        yield
    except (httpcore.ReadError, httpcore.WriteError):
        raise fault("incomplete", f"the connection to {place} broke before the response was complete") from None
    except httpcore.RemoteProtocolError as error:
        if "without sending" in str(error) or "disconnected" in str(error):
            raise fault("incomplete", f"{place} closed the connection before the response was complete") from None
        raise fault("protocol", f"{place} sent an invalid HTTP response or headers that are too large") from None
    except httpcore.LocalProtocolError:
        raise fault("bad_header", "these headers are not valid in an HTTP request") from None


def _require_small(response: httpcore.Response, target: Target) -> None:
    raw = response.headers
    if (
        len(raw) > MAX_RESPONSE_HEADERS
        or sum(len(name) + len(value) for name, value in raw) > MAX_RESPONSE_HEADER_BYTES
    ):
        limits = f"{MAX_RESPONSE_HEADERS} headers or {MAX_RESPONSE_HEADER_BYTES} bytes of headers"
        text = f"{target.place} answered with more than {limits}"
        raise fault("too_large", text)
