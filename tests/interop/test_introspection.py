"""Opaque access tokens, about which the server asks the issuer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.interop.mcp_place import bound
from tests.interop.oauth_issuer import Issuer, Token, User, issuing

from neuroscript import SpecError
from neuroscript.interop.http_server import introspection, issuer_keys
from neuroscript.interop.http_server.introspection import IntrospectionAuthenticator
from neuroscript.interop.http_server.principals import Principal, Refusal

AUDIENCE = "https://tools.example.com/mcp"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as issuer:
        issuer.add_client("server", "s3cret")
        yield issuer


def issued(issuer: Issuer, **changes: Any) -> str:
    """Store an opaque token at the issuer, and return it."""
    facts = {"client_id": "cli", "scope": "notes:read", "user": User("ada"), "resource": AUDIENCE}
    more = {"access_token": f"opaque-{len(issuer.tokens)}", "refresh_token": "", "expires": time.time() + 60}
    token = Token(**{**facts, **more, **changes})
    issuer.tokens.append(token)
    return token.access_token


def asking(issuer: Issuer, /, **options: Any) -> IntrospectionAuthenticator:
    """Return an authenticator with the credentials of the server."""
    facts = {"issuer": issuer.url, "audience": AUDIENCE, "client_id": "server", "client_secret": "s3cret"}
    return IntrospectionAuthenticator(**{**facts, **options})


async def answers(authenticator: IntrospectionAuthenticator, *tokens: str) -> list[Principal | Refusal]:
    return [await authenticator.authenticate([f"Bearer {token}"]) for token in tokens]


def test_an_active_token_is_accepted(issuer: Issuer) -> None:
    """The issuer is asked once for several requests with the same token."""
    token = issued(issuer)
    found = asyncio.run(answers(asking(issuer), token, token))

    assert isinstance(found[0], Principal)
    assert found[0] == found[1]
    assert (found[0].name, found[0].scopes, found[0].client) == (f"{issuer.url}#ada", {"notes:read"}, "cli")
    assert issuer.asked["/introspect"] == 1


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"is_revoked_": True}, "the access token is not active"),
        ({"expires": 1.0}, "the access token is not active"),
        ({"resource": "https://other.example.com"}, "the access token was issued for another resource"),
        ({"resource": ""}, "the access token was issued for another resource"),
    ],
)
def test_other_tokens_are_refused(issuer: Issuer, changes: dict[str, Any], text: str) -> None:
    """So are tokens that the issuer does not know."""
    found = asyncio.run(answers(asking(issuer), issued(issuer, **changes)))
    unknown = asyncio.run(answers(asking(issuer), "unknown"))

    assert [each.text for each in (*found, *unknown) if isinstance(each, Refusal)] == [
        text,
        "the access token is not active",
    ]


def test_a_revoked_token_is_refused_soon(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the time for which an answer is used."""
    token, authenticator = issued(issuer), asking(issuer)
    monkeypatch.setattr(introspection, "REMEMBER_SECONDS", 0.0)

    async def talk() -> list[Principal | Refusal]:
        first = await answers(authenticator, token)
        issuer.tokens[0].is_revoked_ = True
        return [*first, *await answers(authenticator, token)]

    first, second = asyncio.run(talk())
    assert isinstance(first, Principal)
    assert isinstance(second, Refusal)


@pytest.mark.parametrize(
    "options",
    [{"client_secret": "wrong"}, {"issuer": "http://127.0.0.1:1"}],
)
def test_an_issuer_that_does_not_answer_is_an_error(
    issuer: Issuer, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The token is neither accepted nor called invalid, and it is in no log."""
    token = issued(issuer)
    (found,) = asyncio.run(answers(asking(issuer, **options), token))

    assert found == Refusal(503, "the issuer cannot be asked about the access token")
    assert "cannot use the issuer of access tokens" in caplog.text
    assert token not in caplog.text
    assert "s3cret" not in caplog.text


def test_an_issuer_that_does_not_answer_is_logged_seldom(caplog: pytest.LogCaptureFixture) -> None:
    """Anyone can send tokens that the issuer must be asked about."""
    authenticator = IntrospectionAuthenticator(
        issuer="http://127.0.0.1:1", audience=AUDIENCE, client_id="server", client_secret="s3cret"
    )
    asyncio.run(answers(authenticator, "a", "b", "c"))

    assert [each.name for each in caplog.records].count("neuroscript.http") == 1


def test_a_token_is_sent_to_the_issuer_alone(issuer: Issuer) -> None:
    """Metadata that names an address in another network is not used."""
    issuer.changed = {"introspection_endpoint": "http://192.0.2.1/introspect"}
    (found,) = asyncio.run(answers(asking(issuer), issued(issuer)))

    assert isinstance(found, Refusal)
    assert found.status == 503


def test_the_credentials_may_contain_any_character(issuer: Issuer) -> None:
    """They are encoded before they are sent, as RFC 6749 specifies."""
    issuer.add_client("a:b c", "50%25+/=&")
    (found,) = asyncio.run(answers(asking(issuer, client_id="a:b c", client_secret="50%25+/=&"), issued(issuer)))

    assert isinstance(found, Principal)


def test_unknown_tokens_displace_no_answers(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anyone can send them."""
    monkeypatch.setattr(introspection, "MAX_REMEMBERED", 2)
    token, authenticator = issued(issuer), asking(issuer)
    asyncio.run(answers(authenticator, token, "a", "b", "c"))
    before = issuer.asked["/introspect"]
    (found,) = asyncio.run(answers(authenticator, token))

    assert isinstance(found, Principal)
    assert issuer.asked["/introspect"] == before


def test_few_requests_wait_for_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are refused at once, because clients that disconnect would leave any number behind."""
    monkeypatch.setattr(introspection, "MAX_WAITING", 3)
    monkeypatch.setattr(issuer_keys, "FETCH_SECONDS", 1.0)
    with bound() as (silent, port):
        silent.listen()
        authenticator = IntrospectionAuthenticator(
            issuer=f"http://127.0.0.1:{port}", audience=AUDIENCE, client_id="server", client_secret="s3cret"
        )

        async def talk() -> tuple[int, int]:
            asked = [asyncio.create_task(authenticator.authenticate([f"Bearer {each}"])) for each in range(20)]
            done, waiting = await asyncio.wait(asked, timeout=0.1)
            await asyncio.gather(*waiting)
            return len(done), len(waiting)

        assert asyncio.run(talk()) == (17, 3)


@pytest.mark.parametrize("expires", [float("nan"), 10**400, "9999999999", None], ids=["NaN", "huge", "string", "none"])
def test_a_time_must_be_a_usable_number(issuer: Issuer, expires: Any) -> None:
    """Otherwise a token would never expire."""
    answer = asking(issuer)._answer({"active": True, "aud": AUDIENCE, "sub": "ada", "exp": expires})

    assert isinstance(answer, Refusal)
    assert (answer.status, answer.text) == (401, "the access token has no valid time at which it expires")


def test_every_problem_is_listed() -> None:
    """Without the secret."""
    with pytest.raises(SpecError) as raised:
        IntrospectionAuthenticator(issuer="x", audience="", client_id="", client_secret="s3cret", scopes=["a b"])

    assert len(raised.value.problems) == 4
    assert "s3cret" not in str(raised.value)
