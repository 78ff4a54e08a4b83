"""Authentication of an HTTP service: static tokens, and the principal that a request gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from neuroscript.interop.http_server import PRINCIPAL
from neuroscript.interop.http_server.guard import RequestGuard
from neuroscript.interop.http_server.principals import BEARER_RULE, Principal, Refusal, StaticTokens

ALICE, BOB = Principal("alice", frozenset({"read"})), Principal("bob")
TOKENS = StaticTokens({"a-token": ALICE, "b-token": BOB})


async def show_principal(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the name of the sender."""
    text = json.dumps(scope[PRINCIPAL].name if PRINCIPAL in scope else None).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": text})


def answer(guard: RequestGuard, *headers: tuple[str, str]) -> tuple[int, Mapping[str, str], str]:
    """Return the status, the headers and the body of the response to one request."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode("latin-1")) for name, value in (("host", "localhost"), *headers)]
    asyncio.run(guard({"type": "http", "headers": raw}, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"].decode()


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (["Bearer a-token"], ALICE),
        (["bearer  b-token "], BOB),
        ([], None),
        (["Bearer c-token"], None),
        (["Bearer a-token", "Bearer a-token"], None),
        (["Basic a-token"], None),
        (["a-token"], None),
        (["Bearer \u20ac"], None),
        (["Bearer "], None),
    ],
)
def test_static_tokens(headers: list[str], expected: Principal | None) -> None:
    """Exactly one header with a known token has a principal; the scheme may be in any case."""
    refused = Refusal(401, "a token is required", "Bearer")

    assert asyncio.run(TOKENS.authenticate(headers)) == (expected or refused)


def test_anonymous_token_has_a_digest_as_its_name() -> None:
    """So request states of a server with one token remain valid when it restarts with the same keys."""
    known = asyncio.run(StaticTokens.anonymous("s3cret").authenticate(["Bearer s3cret"]))

    assert known == Principal(sha256(b"s3cret").hexdigest())


@pytest.mark.parametrize(
    ("tokens", "text"),
    [({"": ALICE}, BEARER_RULE), ({"s3 cret": ALICE}, BEARER_RULE), ({}, "expected at least one token")],
)
def test_invalid_tokens(tokens: dict[str, Principal], text: str) -> None:
    """The error contains no token."""
    with pytest.raises(ValueError) as caught:
        StaticTokens(tokens)

    assert str(caught.value) == text


def test_guard_stores_the_principal() -> None:
    """Without an authenticator, no principal is known."""
    assert answer(RequestGuard(show_principal, authenticator=TOKENS), ("authorization", "Bearer b-token"))[2] == '"bob"'
    assert answer(RequestGuard(show_principal))[2] == "null"


class NeedsScope:
    """Accepts one token, and refuses it because it permits too little."""

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return a refusal of status 403."""
        return Refusal(403, "the token lacks a scope", 'Bearer error="insufficient_scope", scope="tools"')


def test_guard_sends_the_refusal_of_an_authenticator() -> None:
    """The status, the text and the challenge are those of the authenticator."""
    status, headers, text = answer(RequestGuard(show_principal, authenticator=NeedsScope()))

    assert (status, text) == (403, "the token lacks a scope")
    assert headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="tools"'


def test_guard_asks_for_a_token() -> None:
    """A request without a token gets the challenge of RFC 6750."""
    status, headers, text = answer(RequestGuard(show_principal, authenticator=TOKENS))

    assert (status, headers["www-authenticate"], text) == (401, "Bearer", "a token is required")


class Broken:
    """Fails with the credentials in its error, or returns something else."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    async def authenticate(self, authorization: list[str]) -> Any:
        """Return the answer, or raise an error."""
        if self.answer is None:
            raise KeyError(authorization[0])
        return self.answer if self.answer != "none" else None


@pytest.mark.parametrize(
    ("given", "reason"), [(None, "KeyError"), ("alice", "it returned str"), ("none", "it returned None")]
)
def test_broken_authenticator_refuses_requests(given: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the response nor the log contains the credentials; the log has one line a minute."""
    guard = RequestGuard(show_principal, authenticator=Broken(given))
    answers = [answer(guard, ("authorization", "Bearer s3cret")) for _ in range(2)]

    assert [(status, text) for status, _, text in answers] == [
        (500, "the server could not authenticate the client")
    ] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"requests are refused, because the authenticator failed ({reason})"
    ]
    assert "s3cret" not in caplog.text


# Other protocols of ASGI servers


def exchanged(kind: str, *received: str) -> list[Any]:
    """Return what the guard sends for the messages of a server."""
    messages, sent = [{"type": each} for each in received], list[Any]()

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    guard = RequestGuard(show_principal, authenticator=TOKENS)
    asyncio.run(guard({"type": kind, "path": "/", "headers": []}, receive, send))
    return sent


def test_lifespan_is_answered() -> None:
    """A server that requires a lifespan starts and ends."""
    sent = exchanged("lifespan", "lifespan.startup", "lifespan.shutdown")

    assert sent == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


def test_websocket_is_closed() -> None:
    """It is never accepted, so the server responds with status 403."""
    assert exchanged("websocket", "websocket.connect") == [{"type": "websocket.close", "code": 1008}]


def test_unknown_protocol_is_an_error() -> None:
    """ASGI requires it."""
    with pytest.raises(ValueError) as caught:
        exchanged("gopher")

    assert str(caught.value) == "expected the protocol http, websocket or lifespan"
