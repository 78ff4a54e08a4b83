"""Which server receives which secret: the one it is assigned to, compared by scheme, host and port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests.interop.openapi_shop import NOTHING, Shop, opened, served

from neuroscript import SpecError, Toolset
from neuroscript.interop.openapi import from_openapi

SECRET: Final = "t-9b1f27-Kx"
OTHER: Final = "u-4c8e10-Wy"


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[HTTPServer, HTTPServer]]:
    """Two HTTP servers for all tests."""
    with served() as first, served() as second:
        yield first, second


@pytest.fixture
def shops(servers: tuple[HTTPServer, HTTPServer]) -> tuple[Shop, Shop]:
    """The servers without recorded requests."""
    return opened(servers[0]), opened(servers[1])


KEYS: Final = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def described(home: str, elsewhere: str, scheme: Any = KEYS["header"], level: str = "operation") -> dict[str, Any]:
    """Return a description with two operations that need one key, one of them on another server."""
    there: dict[str, Any] = {"get": {"responses": NOTHING}}
    (there["get"] if level == "operation" else there)["servers"] = [{"url": elsewhere}]
    return {
        "openapi": "3.1.0",
        "info": {"title": "t"},
        "servers": [{"url": home}],
        "security": [{"key": []}],
        "paths": {"/here": {"get": {"responses": NOTHING}}, "/there": there},
        "components": {"securitySchemes": {"key": scheme}},
    }


def problems(document: dict[str, Any], **options: Any) -> list[str]:
    """Return the problems of a description."""
    with pytest.raises(SpecError) as caught:
        from_openapi(document, **options)
    return list(caught.value.problems)


def sent(shops: tuple[Shop, Shop], tools: Toolset, *names: str) -> tuple[str, str]:
    """Call tools with all grants, and return what each server received."""
    places = [shop.place for shop in shops]
    grants = [f"{need}:{place}" for place in places for need in ("net:read,write", "lan:reach")]
    secrets = {"k": SECRET, "other": OTHER}
    with shops[0].engine(tools, *grants, "secret:read:k", "secret:read:other", secrets=secrets) as engine:
        for name in names:
            engine.call_named(name, {})
    return str(shops[0].requests), str(shops[1].requests)


@pytest.mark.parametrize("level", ["operation", "path"])
@pytest.mark.parametrize("scheme", KEYS)
def test_other_server_receives_no_secret(scheme: str, level: str, shops: tuple[Shop, Shop]) -> None:
    """Even if both servers and the secret are granted; the error contains the path of the operation."""
    home, elsewhere = shops
    document = described(home.url, elsewhere.url, KEYS[scheme], level)
    private = [home.place, elsewhere.place]

    taken = from_openapi(document, secrets={"key": "k"}, private=private, skip=True)
    here, there = sent(shops, taken.toolset, *(tool.name for tool in taken.toolset))

    assert ["t.get_here"] == [tool.name for tool in taken.toolset]
    assert SECRET in here
    assert there == "[]"
    assert taken.skipped == (
        f"security: requires key, but no such secret is for {elsewhere.url}, the server of its requests; to allow that "
        f"server, pass secrets={{'scheme': {{'{elsewhere.url}': 'name'}}}}",
    )


def test_named_server_receives_its_secret(shops: tuple[Shop, Shop]) -> None:
    """Each server receives its own secret and no other."""
    home, elsewhere = shops
    document = described(home.url, elsewhere.url)
    private = [home.place, elsewhere.place]

    names = {"key": {f"{home.url}/any/path": "k", elsewhere.url: "other"}}
    here, there = sent(shops, from_openapi(document, secrets=names, private=private), "t.get_here", "t.get_there")

    assert (SECRET in here, OTHER in here) == (True, False)
    assert (SECRET in there, OTHER in there) == (False, True)


def test_operation_uses_an_alternative_without_secrets(
    shops: tuple[Shop, Shop],
) -> None:
    """If no secret is assigned to its server."""
    home, elsewhere = shops
    document = described(home.url, elsewhere.url) | {"security": [{"key": []}, {}]}
    tools = from_openapi(document, secrets={"key": "k"}, private=[home.place, elsewhere.place])

    here, there = sent(shops, tools, "t.get_here", "t.get_there")

    assert (SECRET in here, SECRET in there) == (True, False)
    assert "/there" in there


SAME: Final = {
    "another path": ("https://a.example/v1", "https://a.example/v2"),
    "the default port": ("https://a.example/v1", "https://A.example:443"),
}
OTHERS: Final = {
    "another scheme": ("https://a.example:80", "http://a.example", "http://a.example:80"),
    "another port": ("https://a.example", "https://a.example:8443", "https://a.example:8443"),
    "another host": ("https://a.example", "https://a.example.evil.test", "https://a.example.evil.test:443"),
    "a subdomain": ("https://a.example", "https://b.a.example", "https://b.a.example:443"),
}


@pytest.mark.parametrize("case", SAME)
def test_same_scheme_host_and_port_are_one_server(case: str) -> None:
    """Regardless of its path and the spelling of its host."""
    tools = from_openapi(described(*SAME[case]), secrets={"key": "k"})

    assert [("secret:read:k" in tool.policy.capabilities) for tool in tools] == [True, True]


@pytest.mark.parametrize("case", OTHERS)
def test_different_scheme_host_or_port_is_another_server(case: str) -> None:
    """One of them is enough."""
    home, elsewhere, origin = OTHERS[case]

    assert problems(described(home, elsewhere), secrets={"key": "k"}) == [
        f"security: requires key, but no such secret is for {origin}, the server of its requests; to allow that "
        f"server, pass secrets={{'scheme': {{'{origin}': 'name'}}}}"
    ]


def test_secret_is_for_the_base_url() -> None:
    """All requests go there, so the servers of the description do not matter."""
    document = described("https://a.example", "https://evil.test")

    tools = from_openapi(document, secrets={"key": "k"}, base_url="https://mine.example")

    assert ["net:read:mine.example:443"] * 2 == [tool.policy.capabilities[0] for tool in tools]
    assert len(problems(document, secrets={"key": {"https://a.example": "k"}}, base_url="https://mine.example")) == 2


def test_secret_has_no_server_without_one_for_the_whole_description() -> None:
    """A server of one operation is not trusted."""
    document = described("https://a.example", "https://evil.test")
    del document["servers"], document["paths"]["/here"]

    assert problems(document, secrets={"key": "k"}) == [
        "security: requires key, but no such secret is for https://evil.test:443, the server of its requests; to allow "
        "that server, pass secrets={'scheme': {'https://evil.test:443': 'name'}}"
    ]


def test_server_of_a_secret_must_be_an_absolute_url() -> None:
    """And the name of the secret must not be empty."""
    document = described("https://a.example", "https://a.example")
    url = "expected an absolute http or https URL without user, query and fragment; pass base_url"

    assert problems(document, secrets={"key": {"a.example": "k"}})[:1] == [f"secrets['key']['a.example']: {url}"]
    assert problems(document, secrets={"key": {5: "k"}})[:1] == [f"secrets['key']: {url}"]
    assert problems(document, secrets={"key": {"https://a.example": ""}})[:1] == [
        "secrets['key']['https://a.example']: expected the name of a secret"
    ]
    for other in (None, "", {}, 5, ["k"]):
        assert problems(document, secrets={"key": other})[:1] == [
            "secrets['key']: expected the name of a secret, or a mapping from server URLs to names of secrets"
        ]


@pytest.mark.parametrize("scheme", KEYS)
def test_redirect_to_another_server_receives_no_secret(scheme: str, shops: tuple[Shop, Shop]) -> None:
    """Neither in headers nor in the query, even if the server is granted."""
    from werkzeug import Response

    home, elsewhere = shops
    document = described(home.url, home.url, KEYS[scheme])
    home.answer = lambda request: Response(status=302, headers={"Location": f"{elsewhere.url}/stolen"})
    tools = from_openapi(document, secrets={"key": "k"}, private=[home.place, elsewhere.place])

    with pytest.raises(Exception, match="redirects to a host or port that is not in redirects"):
        sent(shops, tools, "t.get_here")

    assert len(home.requests) == 1
    assert elsewhere.requests == []
