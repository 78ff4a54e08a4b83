"""Several clients of one HTTP service: nothing of one client restricts another, and records name the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from tests.interop.mcp_place import bound
from tests.interop.oauth_issuer import issuing, serving_with
from tests.interop.openapi_place import Answer, Place, serving

from neuroscript import Engine, ExecutionPolicy, FlowLabels, FlowRule, Limits, MemoryAudit, SpecError, Toolset
from neuroscript.interop.http_server import principal_store
from neuroscript.interop.http_server.access_tokens import JWTAuthenticator
from neuroscript.interop.http_server.principals import Principal, StaticTokens
from neuroscript.interop.openapi import app

AUDIENCE: Final = "https://tools.example.com/api"
CLIENTS: Final = StaticTokens(
    {
        "t-billing": Principal("billing", frozenset({"notes:read"})),
        "t-billing-2": Principal("billing", frozenset({"notes:read", "notes:write"})),
        "t-reports": Principal("reports", frozenset({"notes:write"})),
        "t-guest": Principal("guest"),
    }
)
FLOW: Final = ExecutionPolicy(
    flow=(FlowRule(("private",), ("public",), "refuse", by="session"),),
    labels=(FlowLabels("notes.read", sources=("private",), sinks=()), FlowLabels("notes.write", sinks=("public",))),
)
SCOPES: Final = {"notes:read": "notes.read", "notes:write": {"allow": ("notes.*",)}}

notes = Toolset("notes")


@notes.tool
def read() -> str:
    """Return the note."""
    return "buy tea"


@notes.tool
def write(text: str) -> int:
    """Change the note."""
    return len(text)


@pytest.fixture(params=["one token", "tokens with other scopes"])
def second(request: Any) -> str:
    """Return another token of the client ``billing``."""
    return "t-billing" if request.param == "one token" else "t-billing-2"


def called(place: Place, token: str, path: str = "/notes/read", **arguments: Any) -> Answer:
    """Call a tool as a client."""
    return place.call(path, arguments, authorization=f"Bearer {token}")


@contextmanager
def served(permitted: ExecutionPolicy | None = None, audit: Any = (), **words: Any) -> Iterator[Place]:
    """Serve an engine with the notes."""
    with Engine(plugins="none", toolsets=[notes], policy=permitted, audit=audit) as engine:
        with serving(engine, **words) as place:
            yield place


# Separate clients


def test_what_one_client_reads_does_not_restrict_another(second: str) -> None:
    """It restricts all tokens of the same client."""
    with served(FLOW, authenticator=CLIENTS) as place:
        before = called(place, second, "/notes/write", text="a").status
        called(place, "t-billing")
        after = called(place, second, "/notes/write", text="a")
        other = called(place, "t-reports", "/notes/write", text="a")

    assert (before, other.status) == (200, 200)
    assert after.problem[:3] == (403, "policy.flow", "host")


def test_limits_count_for_each_client() -> None:
    """The policy of the service limits each client, and that of the engine all of them together."""
    each = ExecutionPolicy(limits=Limits(calls=1))
    with served(ExecutionPolicy(limits=Limits(calls=2)), policy=each, authenticator=CLIENTS) as place:
        first = [called(place, "t-billing") for _ in range(3)]
        second, third = called(place, "t-reports"), called(place, "t-guest")

    assert [answer.status for answer in first] == [200, 429, 429]
    assert (second.status, third.status) == (200, 429)
    assert first[1].problem[:3] == third.problem[:3] == (429, "limit.calls", "host")


def test_records_name_the_client() -> None:
    """The name begins the id of the session of each request, also of one with invalid arguments."""
    log = MemoryAudit()
    with served(audit=[log], authenticator=CLIENTS) as place:
        for token in ("t-billing", "t-billing", "t-reports"):
            called(place, token)
        called(place, "t-guest", "/notes/write", text=7)

    ids = [record.session for record in log.records]
    assert [id.partition("/")[0] for id in ids] == ["billing", "billing", "reports", "guest"]
    assert len(set(ids)) == 4
    assert not any("t-" in id for id in ids)


def test_requests_with_one_token_are_one_client() -> None:
    """They have no name, and share labels and limits."""
    log = MemoryAudit()
    with served(FLOW, [log], policy=ExecutionPolicy(limits=Limits(calls=1)), token="t-one") as place:
        called(place, "t-one")
        refused = called(place, "t-one")

    assert refused.problem[:3] == (429, "limit.calls", "host")
    assert [len(record.session) for record in log.records] == [16, 16]


@pytest.mark.parametrize(("policy", "status"), [(None, 200), (FLOW, 503)], ids=["without rules", "with rules"])
def test_number_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch, policy: Any, status: int) -> None:
    """The first one is forgotten, unless rules need what it has read; then a new client is refused."""
    monkeypatch.setattr(principal_store, "MAX_PRINCIPALS", 2)
    with served(policy, authenticator=CLIENTS) as place:
        known = [called(place, token).status for token in ("t-billing", "t-reports")]
        another, again = called(place, "t-guest"), called(place, "t-billing").status

    assert (known, again, another.status) == ([200, 200], 200, status)
    if status == 503:
        assert another.problem == (503, "openapi.request", "host", "the server has too many clients")


# Scopes


def test_scope_permits_its_tools() -> None:
    """The document has these tools only, and another call names the missing scope."""
    with served(scopes=SCOPES, authenticator=CLIENTS) as place:
        documents = {
            token: [*place.send("GET", "/openapi.json", authorization=f"Bearer {token}").json["paths"]]
            for token in ("t-billing", "t-reports")
        }
        own, other = called(place, "t-billing"), called(place, "t-billing", "/notes/write", text="a")
        unknown, full = called(place, "t-billing", "/notes/no"), called(place, "t-reports", "/notes/write", text="a")
        none = place.send("GET", "/openapi.json", authorization="Bearer t-guest")

    assert documents == {"t-billing": ["/notes/read"], "t-reports": ["/notes/read", "/notes/write"]}
    assert (own.json, full.json) == ("buy tea", 1)
    assert unknown.problem[:2] == (404, "tool.not_found")
    for refused in (other, none):
        assert refused.problem == (403, "openapi.request", "host", "the credentials lack a scope that is required")
        assert refused.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'


def test_limits_of_a_scope_count_for_each_client() -> None:
    """Another client with the same scope has limits of its own."""
    scopes = {"notes:write": {"limits": Limits(calls=1)}}
    with served(scopes=scopes, authenticator=CLIENTS) as place:
        statuses = [called(place, token).status for token in ("t-reports", "t-reports", "t-billing-2")]

    assert statuses == [200, 429, 200]


def test_document_of_a_scope_changes_with_the_tools(tmp_path: Path) -> None:
    """As the document of all tools does."""
    plugin = tmp_path / "late.py"
    plugin.write_text(
        "from neuroscript import Toolset\nlate = Toolset('late')\n@late.tool\ndef one() -> int:\n    '''One.'''\n    return 1\n"
    )
    with served(scopes={"notes:read": "*"}, authenticator=CLIENTS) as place:
        before = called(place, "t-billing", "/late/one").status
        place.engine.load_plugin(plugin)
        after = called(place, "t-billing", "/late/one")

    assert (before, after.json) == (404, 1)


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (
            {"scopes": SCOPES, "token": "a"},
            ValueError,
            "scopes need an authenticator, such as JWTAuthenticator",
        ),
        (
            {"scopes": {"a b": "*"}, "authenticator": CLIENTS},
            SpecError,
            "scopes: scopes: a b is not a scope",
        ),
    ],
)
def test_invalid_scopes_are_refused(words: dict[str, Any], error: type[Exception], text: str) -> None:
    """Before the service starts."""
    with Engine(plugins="none", toolsets=[notes]) as engine, pytest.raises(error) as caught:
        app(engine, **words)

    assert str(caught.value) == text


class Broken:
    """Fails with the credentials in its error."""

    async def authenticate(self, authorization: list[str]) -> Principal:
        """Raise an error."""
        raise KeyError(authorization[0])


def test_broken_authenticator_is_a_problem() -> None:
    """Nothing of its error is in the response, and nothing runs."""
    log = MemoryAudit()
    with served(audit=[log], authenticator=Broken()) as place:
        answer = called(place, "t-billing")

    assert answer.problem == (500, "openapi.request", "host", "the server could not authenticate the client")
    assert not log.records


# Other servers


def test_server_with_a_lifespan_and_websockets() -> None:
    """A server that requires a lifespan serves the application, and a WebSocket is refused."""
    with Engine(plugins="none", toolsets=[notes]) as engine, bound() as (listening, port):
        config = uvicorn.Config(app(engine), log_level="error", lifespan="on", ws="auto")
        with serving_with(uvicorn.Server(config), listening):
            place = Place(engine, port)
            upgrade = {"connection": "Upgrade", "upgrade": "websocket"}
            key = {"sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==", "sec_websocket_version": "13"}
            refused = place.send("GET", "/notes/read", None, **upgrade, **key)
            answer = place.call("/notes/read", {})

    without_library = 405  # the server then passes the request on as any other GET
    assert (refused.status, answer.json) == (403 if config.ws_protocol_class else without_library, "buy tea")


# Access tokens


@pytest.fixture(scope="module")
def issuer() -> Iterator[Any]:
    with issuing() as issuer:
        yield issuer


def test_access_tokens_of_an_issuer(issuer: Any) -> None:
    """A client without a token finds the issuer through the metadata; the record names its user."""
    log = MemoryAudit()
    authenticator = JWTAuthenticator(issuer=issuer.url, audience=AUDIENCE)
    with served(audit=[log], authenticator=authenticator, scopes=SCOPES) as place:
        none = called(place, "none")
        metadata = place.send("GET", "/.well-known/oauth-protected-resource/api", origin="https://any.example")
        token = issuer.token(AUDIENCE, scope="notes:read", sub="ada")
        own, other = called(place, token), called(place, token, "/notes/write", text="a")

    assert none.status == 401
    assert 'resource_metadata="https://tools.example.com/.well-known/' in none.headers["www-authenticate"]
    assert (metadata.status, metadata.json["scopes_supported"]) == (200, ["notes:read", "notes:write"])
    assert (own.json, other.status) == ("buy tea", 403)
    assert 'scope="notes:read notes:write"' in other.headers["www-authenticate"]
    assert [record.session.rpartition("/")[0] for record in log.records] == [f"{issuer.url}#ada"]
