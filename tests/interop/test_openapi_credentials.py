"""Which server gets which secret: the one that it is for, by scheme, host and port, whatever a description says."""

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
    """Two servers for all of them."""
    with served() as first, served() as second:
        yield first, second


@pytest.fixture
def shops(servers: tuple[HTTPServer, HTTPServer]) -> tuple[Shop, Shop]:
    """Those servers, which were asked nothing yet."""
    return opened(servers[0]), opened(servers[1])


KEYS: Final = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "key"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def described(home: str, elsewhere: str, scheme: Any = KEYS["header"], level: str = "operation") -> dict[str, Any]:
    """Return a description of two operations that ask for one key, and of which one goes to another server."""
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
    """Return what is wrong with a description."""
    with pytest.raises(SpecError) as caught:
        from_openapi(document, **options)
    return list(caught.value.problems)


def sent(shops: tuple[Shop, Shop], tools: Toolset, *names: str) -> tuple[str, str]:
    """Call tools and return what each server was asked; both are granted, and so are both secrets."""
    places = [shop.place for shop in shops]
    grants = [f"{need}:{place}" for place in places for need in ("net:read,write", "lan:reach")]
    secrets = {"k": SECRET, "other": OTHER}
    with shops[0].engine(tools, *grants, "secret:read:k", "secret:read:other", secrets=secrets) as engine:
        for name in names:
            engine.call_named(name, {})
    return str(shops[0].asked), str(shops[1].asked)


@pytest.mark.parametrize("level", ["operation", "path"])
@pytest.mark.parametrize("scheme", KEYS)
def test_another_server_of_the_description_is_sent_no_secret(scheme: str, level: str, shops: tuple[Shop, Shop]) -> None:
    """Not even where both servers and the secret are granted; the operation is refused by its path."""
    home, elsewhere = shops
    document = described(home.url, elsewhere.url, KEYS[scheme], level)
    private = [home.place, elsewhere.place]

    taken = from_openapi(document, secrets={"key": "k"}, private=private, skip=True)
    here, there = sent(shops, taken.toolset, *(tool.name for tool in taken.toolset))

    assert ["t.get_here"] == [tool.name for tool in taken.toolset]
    assert SECRET in here
    assert there == "[]"
    assert taken.skipped == (
        f"security: asks for key, and no such secret is for {elsewhere.url}, where its requests go; if that server may "
        f"have it, name it, as in secrets={{'scheme': {{'{elsewhere.url}': 'name'}}}}",
    )


def test_a_server_that_the_host_names_gets_the_secret_for_it(shops: tuple[Shop, Shop]) -> None:
    """Each its own, and no other."""
    home, elsewhere = shops
    document = described(home.url, elsewhere.url)
    private = [home.place, elsewhere.place]

    names = {"key": {f"{home.url}/any/path": "k", elsewhere.url: "other"}}
    here, there = sent(shops, from_openapi(document, secrets=names, private=private), "t.get_here", "t.get_there")

    assert (SECRET in here, OTHER in here) == (True, False)
    assert (SECRET in there, OTHER in there) == (False, True)


def test_an_operation_without_a_secret_for_its_server_is_called_without_where_it_may_be(
    shops: tuple[Shop, Shop],
) -> None:
    """An alternative that asks for nothing is taken."""
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
def test_a_server_is_the_same_by_scheme_host_and_port(case: str) -> None:
    """Whatever its path, and however its host is written."""
    tools = from_openapi(described(*SAME[case]), secrets={"key": "k"})

    assert [("secret:read:k" in tool.policy.capabilities) for tool in tools] == [True, True]


@pytest.mark.parametrize("case", OTHERS)
def test_any_other_server_is_another_one(case: str) -> None:
    """One scheme, host or port that differs is enough."""
    home, elsewhere, origin = OTHERS[case]

    assert problems(described(home, elsewhere), secrets={"key": "k"}) == [
        f"security: asks for key, and no such secret is for {origin}, where its requests go; if that server may have "
        f"it, name it, as in secrets={{'scheme': {{'{origin}': 'name'}}}}"
    ]


def test_a_secret_is_for_the_base_url_where_there_is_one() -> None:
    """All requests go there, so no server of the description is asked."""
    document = described("https://a.example", "https://evil.test")

    tools = from_openapi(document, secrets={"key": "k"}, base_url="https://mine.example")

    assert ["net:read:mine.example:443"] * 2 == [tool.policy.capabilities[0] for tool in tools]
    assert len(problems(document, secrets={"key": {"https://a.example": "k"}}, base_url="https://mine.example")) == 2


def test_a_secret_is_for_no_server_where_the_description_names_none_for_all() -> None:
    """A server of one operation is no reason to trust it."""
    document = described("https://a.example", "https://evil.test")
    del document["servers"], document["paths"]["/here"]

    assert problems(document, secrets={"key": "k"}) == [
        "security: asks for key, and no such secret is for https://evil.test:443, where its requests go; if that "
        "server may have it, name it, as in secrets={'scheme': {'https://evil.test:443': 'name'}}"
    ]


def test_a_server_of_a_secret_is_a_whole_url() -> None:
    """And each has a name beside it."""
    document = described("https://a.example", "https://a.example")
    url = "expected a whole URL of http or https, without user, query and fragment; give base_url"

    assert problems(document, secrets={"key": {"a.example": "k"}})[:1] == [f"secrets['key']['a.example']: {url}"]
    assert problems(document, secrets={"key": {5: "k"}})[:1] == [f"secrets['key']: {url}"]
    assert problems(document, secrets={"key": {"https://a.example": ""}})[:1] == [
        "secrets['key']['https://a.example']: expected the name of a secret"
    ]
    for other in (None, "", {}, 5, ["k"]):
        assert problems(document, secrets={"key": other})[:1] == [
            "secrets['key']: expected the name of a secret, or the names of secrets by the URL of a server"
        ]


@pytest.mark.parametrize("scheme", KEYS)
def test_a_redirect_to_another_server_gets_no_secret(scheme: str, shops: tuple[Shop, Shop]) -> None:
    """Neither its headers nor its query, though the place is granted."""
    from werkzeug import Response

    home, elsewhere = shops
    document = described(home.url, home.url, KEYS[scheme])
    home.answer = lambda request: Response(status=302, headers={"Location": f"{elsewhere.url}/stolen"})
    tools = from_openapi(document, secrets={"key": "k"}, private=[home.place, elsewhere.place])

    with pytest.raises(Exception, match="redirects to a host or port that the call does not name"):
        sent(shops, tools, "t.get_here")

    assert len(home.asked) == 1
    assert elsewhere.asked == []
