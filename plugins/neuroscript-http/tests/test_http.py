"""The HTTP tools, called through an engine: results, and network failures."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine, LimitError, PolicyError, ToolFailed
from neuroscript_http.bodies import decode_body

EngineWith = Callable[..., Engine]

API: Final = "http://api.example.com"


def failure(engine: Engine, url: str, **named: Any) -> tuple[str, str, str]:
    """Return the code, retry and message of a failed request."""
    with pytest.raises(ToolFailed) as caught:
        engine.call_named("http.get", {"url": url, **named})
    return caught.value.code, caught.value.retry, caught.value.text


def test_result_describes_the_response(engine: Engine, world: Any) -> None:
    """Status, headers, text by media type, and duration."""
    world.plain.answer("/a?b=c", 200, "Grüße".encode(), Content_Type="text/plain; charset=UTF-8", X_One="1")

    came = engine.call("http.get", [f"{API}/a?b=c#top"])

    seconds = came.pop("seconds")
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
    } == came
    assert (
        "get /a?b=c http/1.1\r\nhost: api.example.com\r\naccept: */*\r\nuser-agent: neuroscript-http\r\n"
        "accept-encoding: gzip\r\n\r\n"
    ) == world.plain.sent()


def test_tls_verifies_the_host_at_the_checked_address(engine: Engine, world: Any) -> None:
    """The certificate must match the name in the URL, and the connection uses the checked address."""
    came = engine.call("http.get", ["https://api.example.com/items"])

    assert '{"items": ["tea"]}' == came["text"]
    assert [("93.184.215.14", 443)] == world.reached
    assert "host: api.example.com\r\n" in world.secure.sent()


def test_certificate_of_another_host_is_refused(engine_with: EngineWith, world: Any) -> None:
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

    came = engine.call("http.request", [method, f"{API}/items/7", headers, body])

    assert (204, "", b"") == (came["status"], came["media_type"], came["bytes"])
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

    came = engine.call("http.get", [f"{API}/a"])

    assert (status, body.decode(), len(body)) == (came["status"], came["text"], came["size"])


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
    "a picture that says it is a text": ("image/png; charset=utf-8", b"abc", "", None),
    "nothing": ("", b"abc", "", None),
}


@pytest.mark.parametrize(("header", "body", "charset", "text"), CHARSETS.values(), ids=CHARSETS)
def test_body_is_text_only_if_it_decodes(
    engine: Engine, world: Any, header: str, body: bytes, charset: str, text: str | None
) -> None:
    """Otherwise the bytes are returned; nothing is guessed or replaced."""
    if "\0" in header:
        assert "http.protocol" == failure(engine, _answered(world, header, body))[0]
        return

    came = engine.call("http.get", [_answered(world, header, body)])

    assert (charset, text, None if text is not None else body) == (came["charset"], came["text"], came["bytes"])


def _answered(world: Any, header: str, body: bytes) -> str:
    world.plain.answer("/a", 200, body, **({"content_type": header} if header else {}))
    return f"{API}/a"


def test_repeated_headers_are_joined(engine: Engine, world: Any) -> None:
    """Cookies with a newline; no cookie is stored for the next request."""
    world.plain.answers["/a"] = (
        b"HTTP/1.1 200 OK\r\nVia: 1\r\nvia: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
    )

    for _ in range(2):
        came = engine.call("http.get", [f"{API}/a"])

    assert ("1, 2", "a=1\nb=2") == (came["headers"]["via"], came["headers"]["set-cookie"])
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

    came = engine.call_named(tool, {"url": f"{API}/a", **more})

    assert {came["headers"][name] for name in ("x-a", "set-cookie")} == {shown}
    assert came["headers"]["content-type"] == shown.lower()
    if tool != "http.download":
        assert came["media_type"] == shown.lower().partition(";")[0].strip()


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
def test_ambiguous_headers_are_refused(engine: Engine, world: Any, headers: dict[str, str]) -> None:
    """Before anything is sent, and without their values in the error."""
    code, retry, text = failure(engine, f"{API}/items", headers=headers)

    assert ("http.bad_header", "model") == (code, retry)
    assert not any(value in text for value in headers.values() if len(value) > 1)
    assert [] == world.reached


def test_redirect_to_the_same_origin_keeps_all_headers(engine: Engine, world: Any) -> None:
    """The result contains the final URL."""
    world.plain.answer("/a", 301, location="b?c#d")
    world.plain.answer("/b?c", 308, location="/items")

    came = engine.call("http.get", [f"{API}/a", {"Authorization": "Bearer t"}])

    assert (200, f"{API}/items") == (came["status"], came["url"])
    assert ["bearer t" in request.decode().lower() for request in world.plain.requests] == [True] * 3


def test_redirect_to_another_origin_drops_headers(engine: Engine, world: Any) -> None:
    """Only harmless headers are sent to another host or scheme."""
    world.plain.answer("/a", 302, location="https://cdn.example.com/items")
    headers = {"Authorization": "Bearer t", "Cookie": "c=1", "X-Api-Key": "k", "Accept": "text/html"}

    came = engine.call_named(
        "http.get", {"url": f"{API}/a", "headers": headers, "redirects": ["https://cdn.example.com"]}
    )

    assert (200, "https://cdn.example.com/items") == (came["status"], came["url"])
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

    came = engine.call_named(
        "http.get", {"url": f"{API}/a", "headers": {"Authorization": "Bearer t"}, "redirects": [there]}
    )

    assert (200, f"{there}/items") == (came["status"], came["url"])
    server = world.plain if scheme == "http" else world.secure
    assert "bearer" in world.plain.sent(0)
    assert "bearer" not in server.sent()


def test_path_is_sent_unchanged(engine: Engine, world: Any) -> None:
    """The server receives exactly the path that was checked."""
    path = "/a/../%2e%2E/./b//c;d?e=[1]&f=%zz&g='*+"

    came = engine.call("http.get", [f"{API}{path}"])

    assert (404, f"{API}{path}") == (came["status"], came["url"])
    assert world.plain.requests[-1].startswith(f"GET {path} HTTP/1.1\r\nHost: api.example.com\r\n".encode())


def test_redirect_from_https_to_http_is_refused(engine: Engine, world: Any) -> None:
    """Even if the call names the target."""
    world.secure.answer("/a", 302, location=f"{API}/items")

    came = failure(engine, "https://api.example.com/a", redirects=[API])

    assert ("http.redirect", "model") == came[:2]
    assert "api.example.com:443 redirects from https to http, which is not allowed" == came[2]
    assert [] == world.plain.requests


def test_redirects_are_limited(engine: Engine, world: Any) -> None:
    """Five are followed, and each counts as a request."""
    world.plain.answer("/a", 302, location="/a")

    came = failure(engine, f"{API}/a")

    assert ("http.redirect", "model", "api.example.com:80 redirects too many times") == came
    assert 6 == len(world.plain.requests)


def test_redirect_is_the_result_without_follow(engine: Engine, world: Any) -> None:
    """So a caller can see its target."""
    world.plain.answer("/a", 302, location="http://other.test/")

    came = engine.call_named("http.get", {"url": f"{API}/a", "follow": False})

    assert (302, "http://other.test/") == (came["status"], came["headers"]["location"])


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


def test_next_address_is_tried_on_failure(engine: Engine, world: Any) -> None:
    """In the order of the resolver."""
    world.names["api.example.com"] = [["93.184.215.14", "93.184.215.15"]]
    world.routes = {80: _closed_port()}

    text = "no connection could be made to api.example.com:80"
    assert ("http.connect", "later", text) == failure(engine, f"{API}/items")
    assert [("93.184.215.14", 80), ("93.184.215.15", 80)] == world.reached


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_name_without_address_can_be_retried(engine: Engine, world: Any) -> None:
    """It can have an address later."""
    world.names["api.example.com"] = [[]]

    assert ("http.resolve", "later", "the host name of api.example.com:80 has no address") == failure(engine, API)


SLOW: Final = {
    "nothing": [],
    "headers, drop by drop": [b"HTTP/1.1 200 OK\r\n", *[b"x-a: b\r\n"] * 100],
    "one byte at a time": [bytes([each]) for each in b"HTTP/1.1 200 OK\r\nx-a: bbbbbbbbbbbbbbbbbbbbbbbbbbbbb"],
    "a body, drop by drop": [b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", *[b"x"] * 1000],
    "chunks": [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", *[b"1\r\nx\r\n"] * 1000],
    "answers before the answer": [b"HTTP/1.1 103 Early Hints\r\n\r\n"] * 1000,
}


@pytest.mark.alone
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW)
def test_slow_response_times_out(engine: Engine, world: Any, scheme: str, pieces: list[bytes]) -> None:
    """The timeout covers the whole request, even if data keeps arriving."""
    server = world.plain if scheme == "http" else world.secure
    server.drip("/a", pieces or [b""] * 100, 0.05)
    started = time.monotonic()

    came = failure(engine, f"{scheme}://api.example.com/a", seconds=0.5)

    assert ("http.timeout", "later", "the response was not complete within 0.5 seconds") == came
    assert time.monotonic() - started < 3


@pytest.mark.alone
def test_tls_handshake_times_out(engine: Engine, world: Any) -> None:
    """The system accepts the connection, but no server responds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        world.routes[443] = silent.getsockname()[1]

        started = time.monotonic()
        came = failure(engine, "https://api.example.com/", seconds=0.3)

    assert ("http.timeout", "later", "api.example.com:443 did not complete the TLS handshake in time") == came
    assert time.monotonic() - started < 3


def test_name_resolution_times_out(engine: Engine, world: Any) -> None:
    """The timeout of the request covers it."""
    world.names["api.example.com"] = _Hanging()

    assert "http.timeout" == failure(engine, API, seconds=0.3)[0]


class _Hanging(list[Any]):
    """Resolver answers that come too late."""

    def __len__(self) -> int:
        time.sleep(2)
        return 0

    def __getitem__(self, index: Any) -> Any:
        return []


def test_request_stops_when_the_engine_closes(engine: Engine, world: Any) -> None:
    """The connection is closed soon after."""
    ended = threading.Event()

    def answering(connection: socket.socket, request: bytes) -> None:
        threading.Timer(0.1, engine.close).start()
        connection.settimeout(10)
        if connection.recv(1) == b"":
            ended.set()

    world.plain.answers["/a"] = answering

    with pytest.raises(CallError):
        engine.call("http.get", [f"{API}/a"])

    assert ended.wait(5)


CUT: Final = {
    "no answer": b"",
    "half a line": b"HTTP/1.1 20",
    "no end of the headers": b"HTTP/1.1 200 OK\r\nx-a: b\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
    "half a chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10\r\nhalf",
    "no last chunk": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
}


@pytest.mark.parametrize("tool", ["http.get", "http.download"])
@pytest.mark.parametrize("answer", CUT.values(), ids=CUT)
def test_truncated_response_is_an_error(engine: Engine, world: Any, tmp_path: Path, answer: bytes, tool: str) -> None:
    """It is not returned as complete, and no file contains part of it."""
    world.plain.answers["/a"] = answer
    (tmp_path / "a.bin").write_bytes(b"old")

    with pytest.raises(ToolFailed) as caught:
        engine.call(tool, [f"{API}/a"] if tool == "http.get" else [f"{API}/a", "a.bin"])

    text = "api.example.com:80 closed the connection before the response was complete"
    assert ("http.cut", "later", text) == (caught.value.code, caught.value.retry, caught.value.text)
    assert (b"old", ["a.bin"]) == ((tmp_path / "a.bin").read_bytes(), [each.name for each in tmp_path.iterdir()])


NO_HTTP: Final = {
    "another protocol": b"220 smtp.example.com ESMTP\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "a chunk that is none": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "one huge header": b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * 200_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("answer", NO_HTTP.values(), ids=NO_HTTP)
def test_invalid_http_is_an_error(engine: Engine, world: Any, answer: bytes) -> None:
    """The error contains none of the received data."""
    world.plain.answers["/a"] = answer

    text = "api.example.com:80 sent an invalid HTTP response or headers that are too large"
    assert ("http.protocol", "never", text) == failure(engine, f"{API}/a")


@pytest.mark.parametrize("headers", [{f"x-{number}": "1" for number in range(201)}, {"x-a": "1" * 33_000}])
def test_response_headers_are_limited(engine: Engine, world: Any, headers: dict[str, str]) -> None:
    """In number and in bytes."""
    world.plain.answer("/a", 200, **headers)

    text = "api.example.com:80 answered with more than 200 headers or 32768 bytes of headers"
    assert ("http.too_large", "model", text) == failure(engine, f"{API}/a")


@pytest.mark.parametrize("coded", [False, True], ids=["plain", "gzip"])
def test_body_limit_is_exact(engine: Engine, world: Any, coded: bool) -> None:
    """It applies to the decompressed body."""
    body = b"0123456789"
    headers = {"content_type": "text/plain", **({"content_encoding": "gzip"} if coded else {})}
    world.plain.answer("/a", 200, gzip.compress(body) if coded else body, **headers)

    assert "0123456789" == engine.call_named("http.get", {"url": f"{API}/a", "limit": 10})["text"]

    text = "the response has more than 9 bytes; raise limit or request less data"
    assert ("http.too_large", "model", text) == failure(engine, f"{API}/a", limit=9)


@pytest.mark.alone
def test_decompression_bomb_stops_at_the_limit(engine: Engine, world: Any) -> None:
    """A gigabyte in a megabyte costs neither the memory nor the time."""
    bomb = gzip.compress(bytes(2**20)) * 1000
    world.plain.answer("/a", 200, bomb, content_encoding="gzip")
    started = time.monotonic()

    assert "http.too_large" == failure(engine, f"{API}/a")[0]

    assert time.monotonic() - started < 2


def test_decompression_uses_bounded_pieces() -> None:
    """However much one received piece contains."""
    bomb = gzip.compress(bytes(50 * 2**20))
    tracemalloc.start()

    sizes = {len(piece) for piece in decode_body([bomb], "gzip", 50 * 2**20)}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert max(sizes) <= 64 * 1024
    assert peak < 2 * 2**20


CODED: Final = {
    "two members": (gzip.compress(b"a") + gzip.compress(b"b"), "gzip", b"ab"),
    "an old name": (gzip.compress(b"a"), "x-gzip", b"a"),
    "in capitals": (gzip.compress(b"a"), "GZIP", b"a"),
    "nothing": (b"", "gzip", b""),
    "a lie": (b"plain", "gzip", None),
    "cut": (gzip.compress(b"a")[:-1], "gzip", None),
    "something behind": (gzip.compress(b"a") + b"tail", "gzip", None),
    "not asked for": (b"a", "br", None),
    "twice": (gzip.compress(gzip.compress(b"a")), "gzip, gzip", None),
}


@pytest.mark.parametrize(("body", "coding", "expected"), CODED.values(), ids=CODED)
def test_gzip_is_decoded(engine: Engine, world: Any, body: bytes, coding: str, expected: bytes | None) -> None:
    """Complete members of gzip, and no other encoding."""
    world.plain.answer("/a", 200, body, content_encoding=coding)

    if expected is None:
        assert ("http.bad_encoding", "never") == failure(engine, f"{API}/a")[:2]
    else:
        assert expected == engine.call("http.get", [f"{API}/a"])["bytes"]


def test_download_writes_the_file(engine: Engine, world: Any, tmp_path: Path) -> None:
    """The result contains its size and digest, but not its content."""
    world.plain.answer("/a", 200, b"abc", content_type="text/plain")

    came = engine.call("http.download", [f"{API}/a", "new/./a.txt"])

    assert b"abc" == (tmp_path / "new/a.txt").read_bytes()
    assert ["headers", "path", "seconds", "sha256", "size", "status", "url"] == sorted(came)
    assert (200, "new/./a.txt", 3) == (came["status"], came["path"], came["size"])
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" == came["sha256"]


def test_download_of_an_error_page_writes_nothing(engine: Engine, world: Any, tmp_path: Path) -> None:
    """An error page is not the requested file."""
    came = engine.call("http.download", [f"{API}/nothing", "a.txt"])

    assert (404, None, None, 0) == (came["status"], came["path"], came["sha256"], came["size"])
    assert [] == [*tmp_path.iterdir()]


def test_download_needs_network_and_file_grants(engine_with: EngineWith, world: Any) -> None:
    """Without both, nothing is sent."""
    for grants in (("net:read:*", "fs:write:b.txt"), ("fs:write:**",)):
        with pytest.raises(PolicyError):
            engine_with(*grants).call("http.download", [f"{API}/items", "a.txt"])

    assert [] == world.reached


def test_requests_and_bytes_are_counted(engine_with: EngineWith, world: Any) -> None:
    """Each hop counts as a request; bytes are counted on the wire, in both directions."""
    engine = engine_with("net:read:*", net_calls=2, net_bytes=10_000)
    world.plain.answer("/a", 302, location="/items")

    engine.call("http.get", [f"{API}/a"])

    wire = sum(map(len, world.plain.requests))
    wire += sum(len(world.plain.answers[path]) for path in ("/a", "/items"))
    assert {"net_calls": 2, "net_bytes": wire} == dict(engine.ledger.spent)
    with pytest.raises(LimitError) as caught:
        engine.call("http.get", [f"{API}/a"])
    assert ("limit.net_calls", "host", 2) == (caught.value.code, caught.value.retry, len(world.plain.requests))


def test_response_stops_at_the_byte_limit(engine_with: EngineWith, world: Any) -> None:
    """At the piece that exceeds the limit, not at the end."""
    engine = engine_with("net:read:*", net_bytes=100_000)
    world.plain.answer("/a", 200, bytes(50_000_000))

    with pytest.raises(LimitError) as caught:
        engine.call_named("http.get", {"url": f"{API}/a", "limit": 8 * 2**20})

    assert ("limit.net_bytes", "host") == (caught.value.code, caught.value.retry)


def test_large_responses_work(engine: Engine, world: Any) -> None:
    """8 MiB in a result, and more in a file."""
    world.secure.answer("/a", 200, bytes(8 * 2**20))
    world.secure.answer("/b", 200, bytes(20 * 2**20))
    url = "https://api.example.com"

    assert 8 * 2**20 == engine.call_named("http.get", {"url": f"{url}/a", "limit": 8 * 2**20})["size"]
    assert 20 * 2**20 == engine.call("http.download", [f"{url}/b", "b.bin"])["size"]


def test_large_body_is_sent_to_a_slow_server(engine: Engine, world: Any) -> None:
    """A blocked send continues where it stopped."""
    body = bytes(4 * 2**20)

    assert 200 == engine.call("http.request", ["POST", "https://api.example.com/items", {}, body])["status"]

    assert world.secure.requests[-1].endswith(body)


def test_requests_run_concurrently(engine: Engine, world: Any) -> None:
    """From many threads over one toolset, each with its own response."""
    for number in range(16):
        world.plain.answer(f"/{number}", 200, str(number).encode(), content_type="text/plain")
    came: dict[int, str] = {}

    def asking(number: int) -> None:
        came[number] = engine.call("http.get", [f"{API}/{number}"])["text"]

    threads = [threading.Thread(target=asking, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: str(number) for number in range(16)} == came
