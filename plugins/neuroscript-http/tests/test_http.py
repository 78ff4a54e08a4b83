"""The HTTP tools, called through an engine: requests, results and redirects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine, PolicyError

EngineWith = Callable[..., Engine]
Failure = Callable[..., tuple[str, str, str]]

API: Final = "http://api.example.com"


def test_result_describes_the_response(engine: Engine, world: Any) -> None:
    """Status, headers, text by media type, and duration."""
    world.plain.answer("/a?b=c", 200, "Grüße".encode(), Content_Type="text/plain; charset=UTF-8", X_One="1")

    result = engine.call("http.get", [f"{API}/a?b=c#top"])

    seconds = result.pop("seconds")
    assert 0 < seconds < 30
    assert {
        "status": 200,
        "url": "http://api.example.com/a?b=c",
        "headers": {"content-type": "text/plain; charset=UTF-8", "x-one": "1", "content-length": "7"},
        "media_type": "text/plain",
        "charset": "utf-8",
        "text": "Grüße",
        "bytes": None,
        "size": 7,
    } == result
    assert (
        "get /a?b=c http/1.1\r\nhost: api.example.com\r\naccept: */*\r\nuser-agent: neuroscript-http\r\n"
        "accept-encoding: gzip\r\n\r\n"
    ) == world.plain.sent()


def test_tls_verifies_the_host_at_the_checked_address(engine: Engine, world: Any) -> None:
    """The certificate must match the name in the URL, and the connection uses the checked address."""
    result = engine.call("http.get", ["https://api.example.com/items"])

    assert '{"items": ["tea"]}' == result["text"]
    assert [("93.184.215.14", 443)] == world.reached
    assert "host: api.example.com\r\n" in world.secure.sent()


def test_certificate_of_another_host_is_refused(engine_with: EngineWith, world: Any, failure: Failure) -> None:
    """As is plain text where TLS is expected; nothing is sent."""
    world.routes[8443] = world.plain.port
    engine = engine_with("net:read:*")

    text = "other.test:443 does not support TLS, or its certificate is not valid for that host"
    assert ("http.tls", "host", text) == failure(engine, "https://other.test/")
    assert ([], []) == (world.secure.requests, world.plain.requests)


METHODS: Final = ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "GET")


@pytest.mark.parametrize("method", METHODS)
def test_request_supports_any_method(engine: Engine, world: Any, method: str) -> None:
    """With a body and the caller's headers."""
    headers = {"Content-Type": "application/json", "X-Key": "k"}
    body = None if method in ("GET", "HEAD") else '{"ä": 1}'

    result = engine.call("http.request", [method, f"{API}/items/7", headers, body])

    assert (204, "", b"") == (result["status"], result["media_type"], result["bytes"])
    sent = world.plain.requests[-1]
    assert sent.startswith(f"{method} /items/7 HTTP/1.1\r\n".encode())
    assert sent.endswith(b"\r\n\r\n" + (body or "").encode())
    assert "x-key: k\r\n" in world.plain.sent()


def test_unsafe_methods_need_a_write_grant(engine_with: EngineWith, world: Any) -> None:
    """A grant to read from a host does not allow writing to it."""
    with pytest.raises(PolicyError) as caught:
        engine_with("net:read:*").call("http.request", ["DELETE", f"{API}/items/7"])

    assert "net:write" == caught.value.need
    assert [] == world.plain.requests


@pytest.mark.parametrize("status", [204, 304, 400, 404, 500, 503])
def test_every_status_is_a_result(engine: Engine, world: Any, status: int) -> None:
    """204 and 304 have no body."""
    body = b"" if status in (204, 304) else b"no"
    world.plain.answer("/a", status, body, content_type="text/plain", content_encoding="identity")

    result = engine.call("http.get", [f"{API}/a"])

    assert (status, body.decode(), len(body)) == (result["status"], result["text"], result["size"])


CHARSETS: Final = {
    "no charset": ("text/plain", "ä".encode(), "utf-8", "ä"),
    "latin-1": ("text/html; charset=ISO-8859-1", b"\xe4", "iso8859-1", "ä"),
    "in quotes": ('text/html; charset="windows-1252"', b"\x80", "cp1252", "€"),
    "a mark": ("text/plain; charset=latin-1", b"\xef\xbb\xbf\xc3\xa4", "utf-8", "ä"),
    "utf-16": ("text/plain", b"\xff\xfe\xe4\x00", "utf-16", "ä"),
    "json": ("application/problem+json", b"{}", "utf-8", "{}"),
    "a lie": ("text/plain; charset=utf-8", b"\xe4", "", None),
    "half of a pair": ("text/plain; charset=utf-16-le", b"\x00\xd8", "", None),
    "no charset at all": ("text/plain; charset=rot13", b"abc", "", None),
    "a codec of bytes": ("text/plain; charset=zip", b"abc", "", None),
    "utf-7": ("text/html; charset=utf-7", b"+ADw-", "", None),
    "unknown": ("text/plain; charset=klingon", b"abc", "", None),
    "a NUL in it": ("text/plain; charset=utf\x00-8", b"abc", "", None),
    "a picture": ("image/png", b"\x89PNG", "", None),
    "a picture with the charset of a string": ("image/png; charset=utf-8", b"abc", "", None),
    "nothing": ("", b"abc", "", None),
}


@pytest.mark.parametrize(("header", "body", "charset", "text"), CHARSETS.values(), ids=CHARSETS)
def test_body_is_text_only_if_it_decodes(
    engine: Engine, world: Any, header: str, body: bytes, charset: str, text: str | None, failure: Failure
) -> None:
    """Otherwise the bytes are returned; nothing is guessed or replaced."""
    if "\0" in header:
        assert "http.protocol" == failure(engine, _answered(world, header, body))[0]
        return

    result = engine.call("http.get", [_answered(world, header, body)])

    assert (charset, text, None if text is not None else body) == (result["charset"], result["text"], result["bytes"])


def _answered(world: Any, header: str, body: bytes) -> str:
    world.plain.answer("/a", 200, body, **({"content_type": header} if header else {}))
    return f"{API}/a"


def test_repeated_headers_are_joined(engine: Engine, world: Any) -> None:
    """Cookies with a newline; no cookie is stored for the next request."""
    world.plain.answers["/a"] = (
        b"HTTP/1.1 200 OK\r\nVia: 1\r\nvia: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
    )

    for _ in range(2):
        result = engine.call("http.get", [f"{API}/a"])

    assert ("1, 2", "a=1\nb=2") == (result["headers"]["via"], result["headers"]["set-cookie"])
    assert "cookie" not in world.plain.sent()


CONTROLS: Final = {
    "an escape sequence": (b"a\x1b[2J\x1b]0;x\x07b", r"a\x1b[2J\x1b]0;x\x07b"),
    "one of a single byte": (b"a\x9b2J\x85b", r"a\x9b2J\x85b"),
    "a backspace": (b"safe\x08\x08\x08\x08evil", r"safe\x08\x08\x08\x08evil"),
    "what cannot be seen": (b"a\xad\xa0b\x7f", r"a\xad\xa0b\x7f"),
    "plain text": (b"gr\xfc\xdfe\t; q=1", "grüße\t; q=1"),
}


@pytest.mark.parametrize(("value", "shown"), CONTROLS.values(), ids=CONTROLS)
@pytest.mark.parametrize("tool", ["http.get", "http.request", "http.download"])
def test_control_characters_in_headers_are_escaped(
    engine: Engine, world: Any, tool: str, value: bytes, shown: str
) -> None:
    """So a terminal that shows a result does not interpret them; this includes the media type and cookies."""
    lines = (b"HTTP/1.1 200 " + value, b"X-A: " + value, b"Set-Cookie: " + value, b"Content-Type: " + value.lower())
    world.plain.answers["/a"] = b"\r\n".join((*lines, b"Content-Length: 0", b"", b""))
    more = {"http.get": {}, "http.request": {"method": "GET"}, "http.download": {"path": "file"}}[tool]

    result = engine.call_named(tool, {"url": f"{API}/a", **more})

    assert {result["headers"][name] for name in ("x-a", "set-cookie")} == {shown}
    assert result["headers"]["content-type"] == shown.lower()
    if tool != "http.download":
        assert result["media_type"] == shown.lower().partition(";")[0].strip()


BAD_HEADERS: Final = {
    "a line": {"X-A": "1\r\nHost: 127.0.0.1"},
    "a line feed": {"X-A": "1\n2"},
    "a line in a name": {"X-A: 1\r\nX-B": "2"},
    "no name": {"": "1"},
    "a colon": {"X:A": "1"},
    "host": {"Host": "127.0.0.1"},
    "length": {"content-length": "3"},
    "framing": {"Transfer-Encoding": "chunked"},
    "proxy": {"Proxy-Authorization": "Basic eDp5"},
    "upgrade": {"Upgrade": "h2c"},
    "coding": {"Accept-Encoding": "br"},
    "twice": {"X-A": "1", "x-a": "2"},
    "no ASCII": {"X-A": "ä"},
    "a NUL": {"X-A": "\0"},
    "too many": {f"X-{number}": "1" for number in range(65)},
    "too long": {"X-A": "1" * 17_000},
}


@pytest.mark.parametrize("headers", BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_ambiguous_headers_are_refused(engine: Engine, world: Any, headers: dict[str, str], failure: Failure) -> None:
    """Before anything is sent, and without their values in the error."""
    code, retry, text = failure(engine, f"{API}/items", headers=headers)

    assert ("http.bad_header", "model") == (code, retry)
    assert not any(value in text for value in headers.values() if len(value) > 1)
    assert [] == world.reached


def test_redirect_to_the_same_origin_keeps_all_headers(engine: Engine, world: Any) -> None:
    """The result contains the final URL."""
    world.plain.answer("/a", 301, location="b?c#d")
    world.plain.answer("/b?c", 308, location="/items")

    result = engine.call("http.get", [f"{API}/a", {"Authorization": "Bearer t"}])

    assert (200, f"{API}/items") == (result["status"], result["url"])
    assert ["bearer t" in request.decode().lower() for request in world.plain.requests] == [True] * 3


def test_redirect_to_another_origin_drops_headers(engine: Engine, world: Any) -> None:
    """Only harmless headers are sent to another host or scheme."""
    world.plain.answer("/a", 302, location="https://cdn.example.com/items")
    headers = {"Authorization": "Bearer t", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/html"}

    result = engine.call_named(
        "http.get", {"url": f"{API}/a", "headers": headers, "redirects": ["https://cdn.example.com"]}
    )

    assert (200, "https://cdn.example.com/items") == (result["status"], result["url"])
    assert (
        "get /items http/1.1\r\nhost: cdn.example.com\r\naccept: text/html\r\nuser-agent: neuroscript-http\r\n"
        "accept-encoding: gzip\r\n\r\n"
    ) == world.secure.sent()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_another_port_or_scheme_is_another_origin(engine: Engine, world: Any, scheme: str) -> None:
    """Another service could listen there, so it gets no secrets either."""
    world.routes[8080] = world.plain.port
    there = f"{scheme}://api.example.com" + (":8080" if scheme == "http" else "")
    world.plain.answer("/a", 302, location=f"{there}/items")

    result = engine.call_named(
        "http.get", {"url": f"{API}/a", "headers": {"Authorization": "Bearer t"}, "redirects": [there]}
    )

    assert (200, f"{there}/items") == (result["status"], result["url"])
    server = world.plain if scheme == "http" else world.secure
    assert "bearer" in world.plain.sent(0)
    assert "bearer" not in server.sent()


def test_path_is_sent_unchanged(engine: Engine, world: Any) -> None:
    """The server receives exactly the path that was checked."""
    path = "/a/../%2e%2E/./b//c;d?e=[1]&f=%zz&g='*+"

    result = engine.call("http.get", [f"{API}{path}"])

    assert (404, f"{API}{path}") == (result["status"], result["url"])
    assert world.plain.requests[-1].startswith(f"GET {path} HTTP/1.1\r\nHost: api.example.com\r\n".encode())


def test_redirect_from_https_to_http_is_refused(engine: Engine, world: Any, failure: Failure) -> None:
    """Even if the call names the target."""
    world.secure.answer("/a", 302, location=f"{API}/items")

    error = failure(engine, "https://api.example.com/a", redirects=[API])

    assert ("http.redirect", "model") == error[:2]
    assert "api.example.com:443 redirects from https to http, which is not allowed" == error[2]
    assert [] == world.plain.requests


def test_redirects_are_limited(engine: Engine, world: Any, failure: Failure) -> None:
    """Five are followed, and each counts as a request."""
    world.plain.answer("/a", 302, location="/a")

    error = failure(engine, f"{API}/a")

    assert ("http.redirect", "model", "api.example.com:80 redirects too many times") == error
    assert 6 == len(world.plain.requests)


def test_redirect_is_the_result_without_follow(engine: Engine, world: Any) -> None:
    """So a caller can see its target."""
    world.plain.answer("/a", 302, location="http://other.test/")

    result = engine.call_named("http.get", {"url": f"{API}/a", "follow": False})

    assert (302, "http://other.test/") == (result["status"], result["headers"]["location"])


METHODS_BEHIND: Final = [
    (301, "POST", "GET", False),
    (302, "POST", "GET", False),
    (303, "PUT", "GET", False),
    (307, "POST", "POST", True),
    (308, "PUT", "PUT", True),
    (302, "PUT", "PUT", True),
]


@pytest.mark.parametrize(("status", "method", "then", "body"), METHODS_BEHIND)
def test_redirect_status_decides_about_the_body(
    engine: Engine, world: Any, status: int, method: str, then: str, body: bool
) -> None:
    """As in RFC 9110."""
    world.plain.answer("/a", status, location="/items")

    engine.call("http.request", [method, f"{API}/a", {"Content-Type": "text/plain"}, "tea"])

    sent = world.plain.requests[-1]
    assert sent.startswith(then.encode())
    assert (body, body) == (sent.endswith(b"\r\n\r\ntea"), b"text/plain" in sent)


def test_environment_is_ignored(engine: Engine, world: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxies, and no credentials from a file in the home directory."""
    (tmp_path / ".netrc").write_text("machine api.example.com login ada password word\n")
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

    assert 200 == engine.call("http.get", [f"{API}/items"])["status"]

    assert "authorization" not in world.plain.sent()
    assert [("93.184.215.14", 80)] == world.reached
