"""Network failures and limits of the HTTP tools, called through an engine."""

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
Failure = Callable[..., tuple[str, str, str]]

API: Final = "http://api.example.com"


def test_next_address_is_tried_on_failure(engine: Engine, world: Any, failure: Failure) -> None:
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


def test_name_without_address_can_be_retried(engine: Engine, world: Any, failure: Failure) -> None:
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


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW)
def test_slow_response_times_out(
    engine: Engine, world: Any, scheme: str, pieces: list[bytes], failure: Failure
) -> None:
    """The timeout covers the whole request, even if data keeps arriving."""
    server = world.plain if scheme == "http" else world.secure
    server.drip("/a", pieces or [b""] * 100, 0.05)
    started = time.monotonic()

    error = failure(engine, f"{scheme}://api.example.com/a", seconds=0.5)

    assert ("http.timeout", "later", "the response was not complete within 0.5 seconds") == error
    assert time.monotonic() - started < 4


def test_tls_handshake_times_out(engine: Engine, world: Any, failure: Failure) -> None:
    """The system accepts the connection, but no server responds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        world.routes[443] = silent.getsockname()[1]

        started = time.monotonic()
        error = failure(engine, "https://api.example.com/", seconds=0.3)

    assert ("http.timeout", "later", "api.example.com:443 did not complete the TLS handshake in time") == error
    assert time.monotonic() - started < 10


def test_name_resolution_times_out(engine: Engine, world: Any, failure: Failure) -> None:
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
    assert ("http.incomplete", "later", text) == (caught.value.code, caught.value.retry, caught.value.text)
    assert (b"old", ["a.bin"]) == ((tmp_path / "a.bin").read_bytes(), [each.name for each in tmp_path.iterdir()])


NO_HTTP: Final = {
    "another protocol": b"220 smtp.example.com ESMTP\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    "a chunk that is none": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "one huge header": b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * 200_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("answer", NO_HTTP.values(), ids=NO_HTTP)
def test_invalid_http_is_an_error(engine: Engine, world: Any, answer: bytes, failure: Failure) -> None:
    """The error contains none of the received data."""
    world.plain.answers["/a"] = answer

    text = "api.example.com:80 sent an invalid HTTP response or headers that are too large"
    assert ("http.protocol", "never", text) == failure(engine, f"{API}/a")


@pytest.mark.parametrize("headers", [{f"x-{number}": "1" for number in range(201)}, {"x-a": "1" * 33_000}])
def test_response_headers_are_limited(engine: Engine, world: Any, headers: dict[str, str], failure: Failure) -> None:
    """In number and in bytes."""
    world.plain.answer("/a", 200, **headers)

    text = "api.example.com:80 answered with more than 200 headers or 32768 bytes of headers"
    assert ("http.too_large", "model", text) == failure(engine, f"{API}/a")


@pytest.mark.parametrize("coded", [False, True], ids=["plain", "gzip"])
def test_body_limit_is_exact(engine: Engine, world: Any, coded: bool, failure: Failure) -> None:
    """It applies to the decompressed body."""
    body = b"0123456789"
    headers = {"content_type": "text/plain", **({"content_encoding": "gzip"} if coded else {})}
    world.plain.answer("/a", 200, gzip.compress(body) if coded else body, **headers)

    assert "0123456789" == engine.call_named("http.get", {"url": f"{API}/a", "limit": 10})["text"]

    text = "the response has more than 9 bytes; raise limit or request less data"
    assert ("http.too_large", "model", text) == failure(engine, f"{API}/a", limit=9)


@pytest.mark.alone
def test_decompression_bomb_stops_at_the_limit(engine: Engine, world: Any, failure: Failure) -> None:
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
def test_gzip_is_decoded(
    engine: Engine, world: Any, body: bytes, coding: str, expected: bytes | None, failure: Failure
) -> None:
    """Complete members of gzip, and no other encoding."""
    world.plain.answer("/a", 200, body, content_encoding=coding)

    if expected is None:
        assert ("http.bad_encoding", "never") == failure(engine, f"{API}/a")[:2]
    else:
        assert expected == engine.call("http.get", [f"{API}/a"])["bytes"]


def test_download_writes_the_file(engine: Engine, world: Any, tmp_path: Path) -> None:
    """The result contains its size and digest, but not its content."""
    world.plain.answer("/a", 200, b"abc", content_type="text/plain")

    result = engine.call("http.download", [f"{API}/a", "new/./a.txt"])

    assert b"abc" == (tmp_path / "new/a.txt").read_bytes()
    assert ["headers", "path", "seconds", "sha256", "size", "status", "url"] == sorted(result)
    assert (200, "new/./a.txt", 3) == (result["status"], result["path"], result["size"])
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" == result["sha256"]


def test_download_of_an_error_page_writes_nothing(engine: Engine, world: Any, tmp_path: Path) -> None:
    """An error page is not the requested file."""
    result = engine.call("http.download", [f"{API}/nothing", "a.txt"])

    assert (404, None, None, 0) == (result["status"], result["path"], result["sha256"], result["size"])
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
    results: dict[int, str] = {}

    def asking(number: int) -> None:
        results[number] = engine.call("http.get", [f"{API}/{number}"])["text"]

    threads = [threading.Thread(target=asking, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: str(number) for number in range(16)} == results
