"""One request of a caller: each of its hops permitted, resolved, looked at and sent, until there is an answer.

Source: RFC 9110 part 15.4; reliability.md T8.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs
import httpx

from neuroscript import Capability, PolicyError, Runtime
from neuroscript_http.bodies import unpacked
from neuroscript_http.faults import fault
from neuroscript_http.headers import Pairs, answer_headers, for_another_host, without_body
from neuroscript_http.network import Network
from neuroscript_http.patience import Patience
from neuroscript_http.pinned import Pinned
from neuroscript_http.resolving import addresses
from neuroscript_http.transport import answered
from neuroscript_http.urls import Target, redirected

REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
SAFE: Final = frozenset(("GET", "HEAD", "OPTIONS"))
"""Methods that change nothing."""


@attrs.frozen(eq=False)
class Sent:
    """What is sent to where.

    Attributes:
        limit: Bytes that the body of the answer may have, unpacked.
        hops: How many redirects may still be followed; None where a redirect is an answer.
    """

    target: Target
    method: str
    headers: Pairs
    body: bytes
    limit: int
    hops: int | None


@attrs.frozen(eq=False)
class Answer:
    """What came of it.

    Attributes:
        url: Where it came from.
        headers: By names in lower case.
        pieces: The body, unpacked; to be read once.
    """

    url: str
    status: int
    headers: dict[str, str]
    pieces: Iterator[bytes]


@contextmanager
def fetched(rt: Runtime, network: Network, sent: Sent, patience: Patience) -> Iterator[Answer]:
    """Give the answer to a request, redirects followed.

    Raises:
        PolicyError: The host does not grant the place, or a private address.
        LimitError: There are no more requests or bytes.
        ToolFailed: Its code begins with ``http.``.
    """
    _require(rt, sent)
    while True:
        with _one(rt, network, sent, patience) as response:
            following = _following(sent, response)
            if following is None:
                yield _answer(sent, response)
                return
        _require_redirected(rt, sent.target, following)
        sent = following


@contextmanager
def _one(rt: Runtime, network: Network, sent: Sent, patience: Patience) -> Iterator[httpx.Response]:
    found = addresses(rt, network, sent.target, patience)
    rt.spend("net_calls", 1)
    backend = Pinned(rt, network, patience, found, sent.target.place)
    with answered(sent.target, sent.method, sent.headers, sent.body, backend) as response:
        yield response


def _require(rt: Runtime, sent: Sent) -> None:
    for verb in ("read",) if sent.method in SAFE else ("read", "write"):
        rt.require(Capability("net", (verb,), (sent.target.place,)))


def _require_redirected(rt: Runtime, origin: Target, following: Sent) -> None:
    """Hold a redirect to what this call may do: its caller could have named the place, and learns that here."""
    try:
        _require(rt, following)
    except PolicyError:
        text = f"{origin.place} redirects to a host or port that the call does not name; name its URL in redirects"
        raise fault("redirect", text) from None


def _following(sent: Sent, response: httpx.Response) -> Sent | None:
    """Return what a redirect asks for, or None where this is the answer."""
    location = response.headers.get("location")
    if response.status_code not in REDIRECTS or location is None or sent.hops is None:
        return None
    if sent.hops == 0:
        raise fault("redirect", f"{sent.target.place} redirects once more than is followed")
    target = redirected(sent.target, location)
    method, headers, body = sent.method, sent.headers, sent.body
    if target.origin != sent.target.origin:
        headers = for_another_host(headers)
    if _becomes_get(method, response.status_code):
        method, headers, body = "GET", without_body(headers), b""
    return attrs.evolve(sent, target=target, method=method, headers=headers, body=body, hops=sent.hops - 1)


def _becomes_get(method: str, status: int) -> bool:
    return (status == 303 and method not in SAFE) or (status in (301, 302) and method == "POST")


def _answer(sent: Sent, response: httpx.Response) -> Answer:
    coding = response.headers.get("content-encoding", "")
    pieces = unpacked(response.iter_raw(), coding, sent.limit)
    return Answer(sent.target.url, response.status_code, answer_headers(response.headers.raw), pieces)
