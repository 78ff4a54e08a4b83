"""Unauthorized connections: they do not delay clients, are closed in time, and do not fill the log."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from starlette.responses import Response
from tests.interop.mcp_place import Place, bound, served, until

from neuroscript.interop.http_server import CONNECTION
from neuroscript.interop.http_server.listener import connection_limit, server

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "s3cret-tok3n"
HALF: Final = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-"
REFUSED: Final = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
HELLO: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
HEADERS: Final = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of a process are set, and descriptors counted in /proc"
)


def greeted(port: int) -> float:
    """Make an authorized request on its own connection, and return the seconds until its answer."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        posted(connection, "initialize", HELLO)
    finally:
        connection.close()
    return time.monotonic() - begin


def posted(connection: http.client.HTTPConnection, method: str, params: Any, **headers: str) -> Any:
    """Make a request, and return the headers of the successful answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/mcp", body, {**HEADERS, **headers})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return answer.headers


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection, regardless of what it sent before."""
    connection.settimeout(0.01)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@contextlib.contextmanager
def connected(port: int, count: int, data: bytes = HALF) -> Iterator[list[socket.socket]]:
    """Open connections one by one, and send the same bytes on each."""
    with contextlib.ExitStack() as stack:
        found: list[socket.socket] = []
        for _ in range(count):
            each = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with contextlib.suppress(ConnectionError):
                each.sendall(data)
            found.append(each)
        yield found


# The whole server, in a process with few descriptors


@attrs.frozen
class Running:
    """A server in a process.

    Attributes:
        process: The process.
        port: Its port.
        log: Its stderr.
    """

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def descriptors(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])


@contextlib.contextmanager
def running(directory: Path, descriptors: int) -> Iterator[Running]:
    """Run ``neuroscript mcp serve --http`` with this number of descriptors."""
    words = ["mcp", "serve", "--http", "127.0.0.1:0", "--token-env", "TOKEN", "--tools", "math.*"]
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))\n"
    code += f"from neuroscript.cli import main; raise SystemExit(main({words!r}))"
    log = directory / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", code], env={**os.environ, "TOKEN": TOKEN}, stdout=file, stderr=file, cwd=ROOT
        )
    try:
        until(lambda: re.search(r"serving at \S+:(\d+)/mcp", log.read_text()), 30)
        found = re.search(r"serving at \S+:(\d+)/mcp", log.read_text())
        assert found
        yield Running(process, int(found[1]), log)
    finally:
        process.kill()
        process.wait(10)


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server in a process with 256 descriptors."""
    with running(tmp_path_factory.mktemp("limited"), 256) as place:
        yield place


@linux
@pytest.mark.parametrize("data", [HALF, b"", REFUSED], ids=["half-a-header", "nothing", "half-a-body"])
def test_authorized_call_is_answered_while_others_hold_connections(limited: Running, data: bytes) -> None:
    """400 connections are more than the process has descriptors; a call is still answered within a second."""
    place = limited
    with connected(place.port, 400, data) as others:
        times = [greeted(place.port) for _ in range(5)]
        held = place.descriptors
        left = [each for each in others if not is_closed(each)]

        assert min(times) < 1.0
        assert max(times) < 5.0
        assert held < 256 - 32
        assert others[-1] in left
        assert others[0] not in left
        assert len(place.log.read_text().splitlines()) == 1


@pytest.mark.slow
@linux
def test_lack_of_descriptors_is_logged_once(tmp_path: Path) -> None:
    """The process itself has used them up; the call is answered when some are free again."""
    import resource

    with running(tmp_path, 256) as place:
        greeted(place.port)
        resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (place.descriptors, 256))
        with connected(place.port, 100):
            until(lambda: "too many open files" in place.log.read_text())
            time.sleep(2.5)  # asyncio tries again each second, and would log each attempt
            lines = place.log.read_text().splitlines()
            resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (256, 256))

            assert greeted(place.port) < 10
        assert lines[1:] == ["cannot accept connections: too many open files"]
        place.process.send_signal(signal.SIGINT)
        assert place.process.wait(10) == 130


# The deadline of a connection


def trickled(connection: socket.socket, piece: bytes, seconds: float = 10.0) -> float:
    """Send the pieces one by one until the server closes the connection, and return the seconds that took."""
    begin = time.monotonic()
    while not is_closed(connection):
        assert time.monotonic() - begin < seconds, "it was not closed"
        with contextlib.suppress(ConnectionError):
            connection.sendall(piece)
    return time.monotonic() - begin


@pytest.mark.parametrize(
    ("data", "piece"),
    [
        (b"", b""),
        (HALF, b""),
        (HALF, b"x"),
        (b"\r\n", b""),
        (REFUSED, b"x"),
        (REFUSED.replace(b"100000", b"5") + b"12345", b""),
        (REFUSED.replace(b"100000", b"0"), HALF[:1]),
        (REFUSED.replace(b"100000", b"0") * 3 + HALF, b"x"),
        (b"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n" + HALF, b"x"),
    ],
    ids=[
        *("nothing", "half-a-header", "a-header-that-trickles", "an-empty-line", "a-body-that-trickles"),
        *("a-body-and-then-nothing", "a-second-header-that-trickles", "three-requests-and-a-half", "another-path"),
    ],
)
def test_connection_without_an_authorized_request_is_closed(data: bytes, piece: bytes) -> None:
    """Regardless of what it sends, and how slowly."""
    with served(token=TOKEN, bounds={"header_seconds": 0.5}) as place, connected(place.port, 1, data) as (each,):
        assert trickled(each, piece) < 5.0


def test_connection_with_an_authorized_request_lasts(tmp_path: Path) -> None:
    """For the duration of the call, far beyond the deadline; the deadline starts again after its answer."""
    with served(token=TOKEN, bounds={"header_seconds": 0.4}) as place:
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
        headers = posted(connection, "initialize", HELLO)
        session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        call = {"name": "t__naps", "arguments": {"seconds": 1.2}}
        for _ in range(2):
            posted(connection, "tools/call", call, **session)
        sock = connection.sock
        sock.sendall(HALF)

        assert trickled(sock, b"x") < 5.0
        connection.close()


PIECES: Final = 40
SLOW_ANSWER: Final = b"x" * 8_000_000


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Admit every request, and answer it with more bytes than the system buffers for a slow client."""
    connection = scope["state"][CONNECTION]
    connection.admit()
    try:
        await Response(SLOW_ANSWER)(scope, receive, send)
    finally:
        connection.release()


@contextlib.contextmanager
def asking() -> Iterator[tuple[socket.socket, Any]]:
    """Provide a client that has sent a request to such a server, and the server."""
    with bound() as (listening, port):
        served = server(answering, header_seconds=0.2)
        thread = threading.Thread(target=served.run, kwargs={"sockets": [listening]})
        thread.start()
        until(lambda: served.started)
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                yield client, served
        finally:
            served.should_exit = True
            thread.join(10)


def test_answer_reaches_an_admitted_client_that_reads_slowly() -> None:
    """The application has ended long before, and the deadline passes several times in the meantime."""
    with asking() as (client, _):
        read = 0
        while data := client.recv(len(SLOW_ANSWER) // PIECES, socket.MSG_WAITALL):
            read += len(data)
            time.sleep(0.05)

    assert read > len(SLOW_ANSWER)


def test_admitted_client_that_reads_nothing_is_closed() -> None:
    """A client that stops reading does not keep its connection."""
    with asking() as (_, served):
        until(lambda: served.server_state.connections)
        until(lambda: not served.server_state.connections)


def test_responses_are_sent_without_delay() -> None:
    """Otherwise the body of a response could wait for 40 ms until the client has acknowledged the headers."""
    with asking() as (_, served):
        until(lambda: served.server_state.connections)
        (connection,) = served.server_state.connections
        accepted = connection.transport.get_extra_info("socket")

        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# The cap on connections


@contextlib.contextmanager
def in_call(place: Place, directory: Path, count: int) -> Iterator[list[Path]]:
    """Run this number of authorized calls, each on its own connection; yield their marks."""
    marks = [directory / f"mark{index}" for index in range(count)]
    ended: list[int] = []

    def call(mark: Path) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=20)
        headers = posted(connection, "initialize", HELLO)
        session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        posted(connection, "tools/call", {"name": "t__stays", "arguments": {"mark": str(mark)}}, **session)
        ended.append(1)
        connection.close()

    threads = [threading.Thread(target=call, args=(mark,), daemon=True) for mark in marks]
    for each in threads:
        each.start()
    until(lambda: all(mark.exists() for mark in marks))
    try:
        yield marks
    finally:
        for mark in marks:
            mark.write_text("go")
        for each in threads:
            each.join(20)
    assert len(ended) == count, "a call was cut off"


def test_oldest_unauthorized_connection_is_closed_first(tmp_path: Path) -> None:
    """A connection with a running call is not closed for another one."""
    with served(token=TOKEN, bounds={"max_connections": 8}) as place, in_call(place, tmp_path, 4):
        with connected(place.port, 20) as others:
            greeted(place.port)
            until(lambda: sum(map(is_closed, others)) >= 17)

            assert [is_closed(each) for each in others] == [True] * 17 + [False] * 3


def test_unauthorized_connections_are_closed_before_idle_clients() -> None:
    """A client can continue on its keep-alive connection."""
    with served(token=TOKEN, bounds={"max_connections": 8}) as place:
        kept = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
        posted(kept, "initialize", HELLO)
        sock = kept.sock
        with connected(place.port, 50):
            posted(kept, "initialize", HELLO)

            assert kept.sock is sock
        kept.close()


def test_newest_connection_is_closed_if_all_others_are_in_use(tmp_path: Path) -> None:
    """The running calls end normally."""
    with served(token=TOKEN, bounds={"max_connections": 3}) as place, in_call(place, tmp_path, 3):
        with connected(place.port, 5) as others:
            until(lambda: all(map(is_closed, others)))

    assert not place.service.clients


@linux
@pytest.mark.parametrize(("descriptors", "connections"), [(1_024, 768), (256, 192), (100, 36), (64, 8)])
def test_limit_reserves_descriptors_for_other_uses(descriptors: int, connections: int) -> None:
    """A quarter of them, and at least 64."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, before[1]))
    try:
        found = connection_limit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert found == connections


# The log


def test_invalid_requests_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Upgrades to an unsupported protocol too; a program that connects must not fill the disk."""
    logger = logging.getLogger("uvicorn.error")
    with served(token=TOKEN) as place:
        logger.addHandler(caplog.handler)
        try:
            for _ in range(30):
                with connected(place.port, 1, b"\0\0\r\n\r\n") as (each,):
                    until(lambda each=each: is_closed(each))
            upgrade = (
                b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"
            )
            for _ in range(30):
                with connected(place.port, 1, upgrade) as (each,):
                    until(lambda each=each: is_closed(each))
        finally:
            logger.removeHandler(caplog.handler)

    assert sorted(caplog.messages) == [
        "Invalid HTTP request received.",
        "No supported WebSocket library detected. Please use \"pip install 'uvicorn[standard]'\", or install 'websockets' or 'wsproto' manually.",
        "Unsupported upgrade request.",
    ]
