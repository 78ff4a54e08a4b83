"""Access tokens that a server accepts, and every kind of token that it must not accept."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
import time
import warnings
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from tests.interop.mcp_place import bound
from tests.interop.oauth_issuer import Issuer, issuing, signing_key
from tests.interop.oauth_place import Protected, names, protected, result

from neuroscript import SpecError
from neuroscript.interop.http_server import issuer_keys
from neuroscript.interop.http_server.access_tokens import JWTAuthenticator
from neuroscript.interop.http_server.principals import Principal, Refusal
from neuroscript.interop.mcp import serve
from neuroscript.interop.mcp.server.http import app

AUDIENCE = "https://tools.example.com/mcp"


@pytest.fixture(scope="module")
def place() -> Iterator[Protected]:
    with protected() as place:
        yield place


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


def accepted(issuer: Issuer, *tokens: str, **options: Any) -> list[Principal | Refusal]:
    """Return what an authenticator with these options says about each token."""
    authenticator = JWTAuthenticator(**{"issuer": issuer.url, "audience": AUDIENCE, **options})

    async def ask() -> list[Principal | Refusal]:
        return [await authenticator.authenticate([f"Bearer {token}"]) for token in tokens]

    return asyncio.run(ask())


def weak_key() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RSAKey.generate_key(1024).as_dict(private=False)


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: str = "") -> str:
    """Return a token with any header and signature."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims))
    return ".".join((*parts, signature))


def test_a_request_without_a_token_learns_where_to_get_one(place: Protected) -> None:
    """As RFC 9728 specifies: by a challenge without an error, and by metadata that anyone may read."""
    answer = place.post(None)
    metadata = f"http://127.0.0.1:{place.port}/.well-known/oauth-protected-resource/mcp"

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == (
        f'Bearer scope="notes:read notes:write", resource_metadata="{metadata}"'
    )
    asked = httpx2.options(metadata, headers={"Origin": "https://inspector.example"}, trust_env=False)
    assert (asked.status_code, asked.headers["access-control-allow-headers"]) == (204, "mcp-protocol-version")
    found = httpx2.get(metadata, trust_env=False)
    assert found.headers["access-control-allow-origin"] == "*"
    assert found.json() == {
        "resource": place.audience,
        "authorization_servers": [place.issuer.url],
        "scopes_supported": ["notes:read", "notes:write"],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize("alg", ["RS256", "PS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("path", ["", "/tenant"])
def test_a_token_of_the_issuer_is_accepted(alg: str, path: str) -> None:
    """Whatever the algorithm is, and also if the issuer has a path or publishes OpenID metadata alone."""
    with issuing(path, alg) as issuer:
        (found,) = accepted(issuer, issuer.token(AUDIENCE, scope="a b"))

    assert isinstance(found, Principal)
    assert (found.name, found.scopes, found.client) == (f"{issuer.url}#ada", {"a", "b"}, "cli")


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["https://other.example", AUDIENCE]},
        {"scope": None, "scp": ["notes:read"], "without": ("scope",)},
        {"without": ("client_id",), "azp": "cli"},
        {"without": ("sub",)},
        {"header": {"typ": "JWT"}},
        {"header": {"typ": "application/at+jwt"}},
        {"header": {"typ": None}},
        {"header": {"kid": None}},
        {"exp": 0, "leeway": True},
    ],
    ids=str,
)
def test_forms_of_tokens_in_use_are_accepted(issuer: Issuer, claims: dict[str, Any]) -> None:
    """Issuers differ in the claims for the client and the scopes, in the type, and in clocks."""
    if claims.pop("leeway", False):
        claims = {"exp": int(time.time()) - 10}
    token = issuer.token(claims.pop("aud", AUDIENCE), **claims)

    (found,) = accepted(issuer, token)

    assert isinstance(found, Principal), found


def forged(issuer: Issuer, kind: str) -> str:
    """Return a token that must not be accepted."""
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "ada", "exp": now + 600, "scope": "notes:read"}
    other = ECKey.generate_key("P-256")
    public = issuer.key.as_pem(private=False)
    match kind:
        case "another audience":
            return issuer.token("https://other.example/mcp")
        case "an audience that contains ours":
            return issuer.token(f"{AUDIENCE}/more")
        case "no audience":
            return issuer.token(AUDIENCE, without=("aud",))
        case "another issuer":
            return issuer.token(AUDIENCE, iss="https://evil.example")
        case "the issuer with a slash":
            return issuer.token(AUDIENCE, iss=f"{issuer.url}/")
        case "no issuer":
            return issuer.token(AUDIENCE, without=("iss",))
        case "expired":
            return issuer.token(AUDIENCE, exp=now - 60)
        case "no expiry":
            return issuer.token(AUDIENCE, without=("exp",))
        case "an infinite expiry":
            return issuer.token(AUDIENCE, exp=float("inf"))
        case "an expiry without end":
            return issuer.token(AUDIENCE, exp=10**400)
        case "an expiry that is a string":
            return issuer.token(AUDIENCE, exp="9999999999")
        case "not valid yet":
            return issuer.token(AUDIENCE, nbf=now + 120)
        case "issued in the future":
            return issuer.token(AUDIENCE, iat=now + 120)
        case "alg none":
            return unsigned({"alg": "none", "typ": "at+jwt"}, claims)
        case "alg nOnE":
            return unsigned({"alg": "nOnE", "typ": "at+jwt"}, claims)
        case "no signature":
            return unsigned({"alg": "ES256", "typ": "at+jwt", "kid": issuer.key.kid}, claims)
        case "HS256 with the public key":
            token = unsigned({"alg": "HS256", "typ": "at+jwt"}, claims).removesuffix(".")
            digest = hmac.digest(public, token.encode(), "sha256")  # libraries refuse to do that
            return f"{token}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
        case "the key of another issuer":
            return jwt.encode({"alg": "ES256", "typ": "at+jwt", "kid": issuer.key.kid}, claims, other)
        case "an embedded key":
            head = {"alg": "ES256", "typ": "at+jwt", "jwk": other.as_dict(private=False)}
            return jwt.encode(head, claims, other)
        case "a key at a URL":
            head = {"alg": "ES256", "typ": "at+jwt", "jku": f"{issuer.url}/attack", "kid": "x"}
            return jwt.encode(head, claims, other)
        case "a kid that is a path":
            return jwt.encode({"alg": "ES256", "typ": "at+jwt", "kid": "../../dev/null"}, claims, other)
        case "a kid that is SQL":
            return jwt.encode({"alg": "ES256", "typ": "at+jwt", "kid": "' OR 1=1 --"}, claims, other)
        case "a kid that is not a string":
            return unsigned({"alg": "ES256", "typ": "at+jwt", "kid": ["a"]}, claims, "AA")
        case "a long kid":
            return unsigned({"alg": "ES256", "typ": "at+jwt", "kid": "k" * 300}, claims, "AA")
        case "a critical extension":
            return unsigned({"alg": "ES256", "typ": "at+jwt", "crit": ["exp"]}, claims, "AA")
        case "an extension":
            return issuer.token(AUDIENCE, header={"b64": True, "crit": ["b64"]})
        case "a logout token":
            return issuer.token(AUDIENCE, header={"typ": "logout+jwt"})
        case "a changed payload":
            head, _, signature = issuer.token(AUDIENCE).split(".")
            body = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "root"}).encode()).decode().rstrip("=")
            return f"{head}.{body}.{signature}"
        case "no subject":
            return issuer.token(AUDIENCE, without=("sub", "client_id"))
        case "a subject with a line end":
            return issuer.token(AUDIENCE, sub="ada\nroot")
        case "a long subject":
            return issuer.token(AUDIENCE, sub="a" * 300)
        case "a subject that is not a string":
            return issuer.token(AUDIENCE, sub={"a": 1})
        case "scopes that are no strings":
            return issuer.token(AUDIENCE, scope=[1])
        case "a huge token":
            return issuer.token(AUDIENCE, padding="x" * 17_000)
        case "nested JSON":
            return unsigned({"alg": "ES256"}, claims, "AA").replace(".", ".W1tbW1tb" * 500 + ".", 1)
        case "words":
            return "no.token.at-all"
    raise AssertionError(kind)


FORGED = {
    "another audience": "the access token was issued for another resource",
    "an audience that contains ours": "the access token was issued for another resource",
    "no audience": "the access token lacks a claim that is required",
    "another issuer": "the access token is from another issuer",
    "the issuer with a slash": "the access token is from another issuer",
    "no issuer": "the access token lacks a claim that is required",
    "expired": "the access token has expired",
    "no expiry": "the access token lacks a claim that is required",
    "an infinite expiry": "the access token is malformed",
    "an expiry without end": "the access token has no valid time at which it expires",
    "an expiry that is a string": "the access token has no valid time at which it expires",
    "not valid yet": "the access token is not valid yet",
    "issued in the future": "the access token is not valid yet",
    "alg none": "the access token has an algorithm that is not accepted",
    "alg nOnE": "the access token has an algorithm that is not accepted",
    "no signature": "the signature of the access token is invalid",
    "HS256 with the public key": "the access token has an algorithm that is not accepted",
    "the key of another issuer": "the signature of the access token is invalid",
    "an embedded key": "the signature of the access token is invalid",
    "a key at a URL": "the access token is signed with an unknown key",
    "a kid that is a path": "the access token is signed with an unknown key",
    "a kid that is SQL": "the access token is signed with an unknown key",
    "a kid that is not a string": "the access token is malformed",
    "a long kid": "the access token has an invalid key id",
    "a critical extension": "the access token is malformed",
    "an extension": "the access token has an extension that is not supported",
    "a logout token": "the token is not an access token",
    "a changed payload": "the signature of the access token is invalid",
    "no subject": "the access token has no valid subject",
    "a subject with a line end": "the access token has no valid subject",
    "a long subject": "the access token has no valid subject",
    "a subject that is not a string": "the access token is malformed",
    "scopes that are no strings": "the access token has invalid scopes",
    "a huge token": "the access token has more than 16384 characters",
    "nested JSON": "the access token is malformed",
    "words": "the access token is malformed",
}


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_token_is_refused(issuer: Issuer, kind: str) -> None:
    """The response says why, and contains no part of the token."""
    token = forged(issuer, kind)

    (found,) = accepted(issuer, token)

    assert isinstance(found, Refusal), found
    assert (found.status, found.text) == (401, FORGED[kind])
    assert 'error="invalid_token"' in found.www_authenticate
    assert not any(part in found.www_authenticate for part in token.split(".") if len(part) > 8)
    assert "/attack" not in issuer.asked


@pytest.mark.parametrize("alg", ["HS256", "none", "RS512", "ES512"])
def test_other_algorithms_cannot_be_configured(alg: str) -> None:
    """Not even by the host: a symmetric key would let every server forge tokens for the others."""
    with pytest.raises(SpecError) as raised:
        JWTAuthenticator(issuer="https://id.example.com", audience=AUDIENCE, algorithms=[alg])

    assert raised.value.problems == (f"algorithms: {alg} is not accepted",)


def test_an_algorithm_that_is_not_configured_is_refused(issuer: Issuer) -> None:
    """Even if the issuer has a key for it."""
    (found,) = accepted(issuer, issuer.token(AUDIENCE), algorithms=["RS256"])

    assert isinstance(found, Refusal)
    assert found.text == "the access token has an algorithm that is not accepted"


def test_every_problem_of_an_authenticator_is_listed() -> None:
    """At once, and without values."""
    with pytest.raises(SpecError) as raised:
        JWTAuthenticator(issuer="http://id.example.com", audience="", scopes=['a"b'], algorithms=())

    assert raised.value.problems == (
        "issuer: expected https; http is accepted for this machine only",
        "audience: expected the URL of this server, as its clients know it",
        "algorithms: expected at least one",
        'scopes: a"b is not a scope',
    )


def test_wrong_types_are_refused_at_once() -> None:
    """Each with the name of the parameter."""
    with pytest.raises(SpecError) as raised:
        JWTAuthenticator(issuer=AUDIENCE, audience=AUDIENCE, scopes="a", required_scopes=None, leeway=1_000)  # type: ignore[arg-type]

    assert raised.value.problems == (
        "leeway must be a number of seconds from 0 to 300",
        "required_scopes must be a collection of strings, not None",
        "scopes must be a collection of strings, not str",
    )


@pytest.mark.parametrize(
    "key",
    [
        lambda: weak_key(),
        lambda: {**ECKey.generate_key("P-256").as_dict(private=False), "use": "enc"},
        lambda: {**ECKey.generate_key("P-256").as_dict(private=False), "alg": "ES384"},
        lambda: ECKey.generate_key("P-384").as_dict(private=False),
        lambda: ECKey.generate_key("P-256").as_dict(private=True),
        lambda: OctKey.generate_key(256).as_dict(private=True),
        lambda: {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        lambda: {"kty": ["EC"]},
        lambda: {**ECKey.generate_key("P-256").as_dict(private=False), "key_ops": None},
        lambda: {**ECKey.generate_key("P-256").as_dict(private=False), "key_ops": 1},
        lambda: "a string",
        lambda: None,
    ],
)
def test_unusable_keys_are_left_out(key: Any) -> None:
    """Weak, symmetric, private, encryption and broken keys; the others remain usable."""
    with issuing() as issuer:
        issuer.published = [key(), issuer.key]
        (found,) = accepted(issuer, issuer.token(AUDIENCE))

    assert isinstance(found, Principal)


def test_keys_are_fetched_once_and_again_for_an_unknown_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for every token with an unknown key, which anyone can send."""
    with issuing() as issuer:
        authenticator = JWTAuthenticator(issuer=issuer.url, audience=AUDIENCE)
        new = ECKey.generate_key("P-256", auto_kid=True)

        async def ask(*tokens: str) -> list[Any]:
            return await asyncio.gather(*(authenticator.authenticate([f"Bearer {each}"]) for each in tokens))

        async def talk() -> None:
            found = await ask(*[issuer.token(AUDIENCE)] * 20)
            assert all(isinstance(each, Principal) for each in found)
            assert issuer.asked["/jwks"] == 1
            issuer.published = [new]
            unknown = await ask(*[issuer.token(AUDIENCE, key=new)] * 20)
            assert {each.text for each in unknown} == {"the access token is signed with an unknown key"}
            assert issuer.asked["/jwks"] == 1
            monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
            rotated = await ask(*[issuer.token(AUDIENCE, key=new)] * 20)
            assert all(isinstance(each, Principal) for each in rotated)
            assert issuer.asked["/jwks"] == 2
            (removed,) = await ask(issuer.token(AUDIENCE, key=signing_key("ES256")))
            assert removed.text == "the access token is signed with an unknown key"

        asyncio.run(talk())


def test_an_issuer_that_does_not_respond_delays_no_valid_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """One request waits a moment for newer keys; the stored ones are usable for an hour."""
    monkeypatch.setattr(issuer_keys, "REFRESH_SECONDS", 0.2)
    with issuing() as issuer, bound() as (silent, port):
        silent.listen()
        authenticator = JWTAuthenticator(issuer=issuer.url, audience=AUDIENCE)
        sent = [f"Bearer {issuer.token(AUDIENCE)}"]

        async def talk() -> None:
            assert isinstance(await authenticator.authenticate(sent), Principal)
            monkeypatch.setattr(issuer_keys, "FRESH_SECONDS", 0.0)
            monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
            issuer.changed = {"jwks_uri": f"http://127.0.0.1:{port}/keys"}
            began = time.monotonic()
            found = await asyncio.gather(*[authenticator.authenticate(sent) for _ in range(20)])
            assert all(isinstance(each, Principal) for each in found)
            assert time.monotonic() - began < issuer_keys.FETCH_SECONDS / 2

        asyncio.run(talk())


def test_keys_are_used_for_a_while_if_the_issuer_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then tokens are refused, because a revoked key would be accepted forever."""
    monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(issuer_keys, "FRESH_SECONDS", 0.0)
    with issuing() as issuer:
        authenticator = JWTAuthenticator(issuer=issuer.url, audience=AUDIENCE)
        sent = [f"Bearer {issuer.token(AUDIENCE)}"]

        async def talk() -> None:
            assert isinstance(await authenticator.authenticate(sent), Principal)
            issuer.jwks_body = b"{"
            assert isinstance(await authenticator.authenticate(sent), Principal)
            monkeypatch.setattr(issuer_keys, "USABLE_SECONDS", 0.0)
            assert await authenticator.authenticate(sent) == Refusal(503, "the keys of the issuer cannot be fetched")

        asyncio.run(talk())


@pytest.mark.parametrize(
    ("changed", "body", "reason"),
    [
        ({"issuer": "https://evil.example"}, None, "its metadata names another issuer"),
        ({"jwks_uri": 7}, None, "its metadata has no jwks_uri"),
        ({"jwks_uri": "gopher://id.example.com/keys"}, None, "a URL in its metadata is invalid"),
        ({"jwks_uri": "http://169.254.169.254/keys"}, None, "not https"),
        ({"jwks_uri": "http://id.example.com/keys"}, None, "not https"),
        ({"jwks_uri": "https://user:password@id.example.com/keys"}, None, "a URL in its metadata is invalid"),
        ({}, b"[" * 100_000, "a document is not JSON"),
        ({}, b"[]", "a document is not a JSON object"),
        ({}, b'{"keys": 1}', "the key set has no list of keys"),
        ({}, b'{"keys": "' + b"x" * 300_000 + b'"}', "a document has more than 262144 bytes"),
    ],
)
def test_metadata_leads_nowhere_else(
    changed: dict[str, Any], body: bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither to another issuer, nor into another network, nor to a document without end."""
    with issuing() as issuer, caplog.at_level(logging.WARNING, "neuroscript.http"):
        issuer.changed, issuer.jwks_body = changed, body
        (found,) = accepted(issuer, issuer.token(AUDIENCE))

    assert found == Refusal(503, "the keys of the issuer cannot be fetched")
    assert reason in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "localhost", "2130706433", "169.254.169.254"])
def test_the_metadata_of_a_remote_issuer_cannot_name_this_network(host: str) -> None:
    """Otherwise an issuer could make the server request addresses that it cannot reach itself."""
    documents = issuer_keys.IssuerDocuments("https://id.example.com")

    assert documents.url_problem(f"https://{host}/keys")
    assert not documents.url_problem("https://keys.example.com/v1?a=b")


@pytest.mark.parametrize("host", ["10.1.2.3", "[fd00::1]", "192.168.1.1:8443"])
def test_a_host_can_configure_an_issuer_of_a_private_network(host: str) -> None:
    """Only the metadata must not lead there."""
    documents = issuer_keys.IssuerDocuments(f"https://{host}/realm", "http://127.0.0.1:9000/keys")

    assert not documents.url_problem(f"https://{host}/.well-known/openid-configuration/realm")
    assert not documents.url_problem("http://127.0.0.1:9000/keys")
    assert documents.url_problem(f"http://{host}/keys")
    assert documents.url_problem("https://10.9.9.9/keys")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("Authorization", "Basic YTpi")], 401),
        ([("Authorization", "Bearer")], 401),
        ([("Authorization", "Bearer a b")], 401),
        ([("Authorization", "TOKEN"), ("Authorization", "TOKEN")], 400),
        ([("Authorization", "TOKEN"), ("X-Authorization", "TOKEN")], 200),
        ([("Authorization", "TOKEN"), ("Host", "tools.example.com")], 421),
        ([("Authorization", "TOKEN"), ("Origin", "https://evil.example")], 403),
    ],
    ids=str,
)
def test_a_token_comes_in_one_header(place: Protected, headers: list[tuple[str, str]], status: int) -> None:
    """Two headers are ambiguous, and the other checks of the guard remain."""
    sent = [(name, f"Bearer {place.token()}" if value == "TOKEN" else value) for name, value in headers]
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}
    hello = {**body, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}
    hello["params"]["clientInfo"] = {"name": "by hand", "version": "1"}
    with httpx2.Client(trust_env=False) as client:
        accept = ("Accept", "application/json, text/event-stream")
        answer = client.post(place.url, json=hello, headers=[accept, *sent])

    assert answer.status_code == status, answer.text


def test_a_token_in_the_query_is_not_read(place: Protected) -> None:
    """URLs are logged, so RFC 6750 and MCP forbid it."""
    with httpx2.Client(trust_env=False) as client:
        answer = client.post(f"{place.url}?access_token={place.token()}", json={})

    assert answer.status_code == 401


def test_many_headers_are_refused(place: Protected) -> None:
    """Before the token is looked at: the HTTP server limits the size of all headers."""
    with httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.HTTPError):
        answer = client.post(place.url, json={}, headers=[("X-Filler", "x" * 1_000)] * 100)
        answer.raise_for_status()


def test_required_scopes_are_required() -> None:
    """A token without one of them is refused, and the client learns which are needed."""
    options = {"required_scopes": ["notes:use"]}
    with protected(scopes=None, options=options) as place:
        refused = place.post(place.token())
        listed = names(place.post(place.token(scope="notes:use")))

    assert refused.status_code == 403
    assert refused.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", error_description="the access token lacks a scope that is required", '
        f'scope="notes:use", resource_metadata="http://127.0.0.1:{place.port}/.well-known/oauth-protected-resource/mcp"'
    )
    assert listed == ["notes__read_note", "notes__recall", "notes__remember", "notes__write_note"]


def test_the_audience_need_not_be_the_url() -> None:
    """Some issuers use names of their own; then the URL of the server is stated too."""
    options = {"resource": "https://tools.example.com/base/mcp"}
    with protected(audience="api://tools", options=options) as place:
        answer = place.post(None)
        found = httpx2.get(
            f"http://127.0.0.1:{place.port}/.well-known/oauth-protected-resource/base/mcp", trust_env=False
        )

        assert place.post(place.token()).status_code == 200
    assert (
        "https://tools.example.com/.well-known/oauth-protected-resource/base/mcp" in answer.headers["www-authenticate"]
    )
    assert found.json()["resource"] == "https://tools.example.com/base/mcp"


def test_a_token_appears_in_no_log_and_no_result(place: Protected, caplog: pytest.LogCaptureFixture) -> None:
    """Neither an accepted one nor a refused one."""
    good, bad = place.token(), place.token(audience="https://other.example")
    with caplog.at_level(logging.DEBUG):
        answers = [place.post(good), place.post(bad), place.post(good, "tools/call", {"name": "notes__read_note"})]

    secrets = [part for token in (good, bad) for part in token.split(".")[1:]]
    seen = caplog.text + "".join(each.text + str(each.headers) for each in answers)
    server_side = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx2", "httpcore2"))
    )
    assert [each.status_code for each in answers] == [200, 401, 200]
    assert not any(secret in server_side for secret in secrets)
    assert not any(secret in each.text + str(each.headers) for each in answers for secret in secrets)
    assert seen


def test_scopes_without_an_authenticator_are_an_error(place: Protected) -> None:
    """Otherwise no principal would have a scope."""
    service = serve(place.engine, scopes={"a": "*"})

    with pytest.raises(ValueError, match=r"^scopes need an authenticator, such as JWTAuthenticator$"):
        app(service)


def test_the_result_of_a_call_arrives(place: Protected) -> None:
    """With a token that permits it."""
    answer = place.post(place.token(), "tools/call", {"name": "notes__read_note", "arguments": {}})

    assert result(answer)["structuredContent"] == {"result": "empty"}
