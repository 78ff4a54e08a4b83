"""Requests with redirects: each hop is authorized, resolved, checked and sent, until there is a final response."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import httpx

from neuroscript import Capability, PolicyError, Runtime
from neuroscript_http.bodies import decode_body
from neuroscript_http.faults import fault
from neuroscript_http.headers import Pairs, answer_headers, bodyless_headers, cross_host_headers
from neuroscript_http.name_resolution import addresses
from neuroscript_http.network import Network
from neuroscript_http.pinned_connections import Pinned
from neuroscript_http.timeouts import RequestTimeout
from neuroscript_http.transport import send
from neuroscript_http.urls import Target, redirect_target

REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods without side effects."""


@attrs.frozen(eq=False)
class Request:
    """One request.

    Attributes:
        limit: Maximum bytes of the decompressed response body.
        hops: Remaining redirects to follow; None to return a redirect as the response.
    """

    target: Target
    method: str
    headers: Pairs
    body: bytes
    limit: int
    hops: int | None


@attrs.frozen(eq=False)
class Answer:
    """The final response.

    Attributes:
        url: The URL after redirects.
        headers: Header values by lowercase names.
        pieces: The decompressed body, which can be read once.
    """

    url: str
    status: int
    headers: dict[str, str]
    pieces: Iterator[bytes]


@contextmanager
def fetch(rt: Runtime, network: Network, sent: Request, request_timeout: RequestTimeout) -> Iterator[Answer]:
    """Send a request, follow redirects and yield the final response.

    Raises:
        PolicyError: The host and port, or a private address, is not granted.
        LimitError: The limit of requests or bytes is reached.
        ToolFailed: The code starts with ``http.``.
    """
    _require(rt, sent)
    while True:
        with _fetch_hop(rt, network, sent, request_timeout) as response:
            following = _following(sent, response)
            if following is None:
                yield _answer(sent, response)
                return
        _require_redirected(rt, sent.target, following)
        sent = following


@contextmanager
def _fetch_hop(
    rt: Runtime, network: Network, sent: Request, request_timeout: RequestTimeout
) -> Iterator[httpx.Response]:
    found = addresses(rt, network, sent.target, request_timeout)
    rt.spend("net_calls", 1)
    backend = Pinned(rt, network, request_timeout, found, sent.target.place)
    with send(sent.target, sent.method, sent.headers, sent.body, backend) as response:
        yield response


def _require(rt: Runtime, sent: Request) -> None:
    for verb in ("read",) if sent.method in SAFE else ("read", "write"):
        rt.require(Capability("net", (verb,), (sent.target.place,)))


def _require_redirected(rt: Runtime, origin: Target, following: Request) -> None:
    """Check a redirect target against the grants of this call; the caller must name it in redirects."""
    try:
        _require(rt, following)
    except PolicyError:
        text = f"{origin.place} redirects to a host or port that is not in redirects; add its URL there"
        raise fault("redirect", text) from None


def _following(sent: Request, response: httpx.Response) -> Request | None:
    """Return the request that a redirect leads to, or None if this is the final response."""
    location = response.headers.get("location")
    if response.status_code not in REDIRECTS or location is None or sent.hops is None:
        return None
    if sent.hops == 0:
        raise fault("redirect", f"{sent.target.place} redirects too many times")
    target = redirect_target(sent.target, location)
    method, headers, body = sent.method, sent.headers, sent.body
    if target.origin != sent.target.origin:
        headers = cross_host_headers(headers)
    if _becomes_get(method, response.status_code):
        method, headers, body = "GET", bodyless_headers(headers), b""
    return attrs.evolve(sent, target=target, method=method, headers=headers, body=body, hops=sent.hops - 1)


def _becomes_get(method: str, status: int) -> bool:
    return (status == 303 and method not in SAFE) or (status in (301, 302) and method == "POST")


def _answer(sent: Request, response: httpx.Response) -> Answer:
    coding = response.headers.get("content-encoding", "")
    pieces = decode_body(response.iter_raw(), coding, sent.limit)
    return Answer(sent.target.url, response.status_code, answer_headers(response.headers.raw), pieces)
