"""Unauthorized connections: they do not keep clients waiting, are closed in time, and do not fill the log."""

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

from neuroscript.interop.mcp.server.http import CONNECTION
from neuroscript.interop.mcp.server.listener import server

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
    """Make an authorized request on a connection of its own, and return how many seconds the answer took."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        posted(connection, "initialize", HELLO)
    finally:
        connection.close()
    return time.monotonic() - begin


def posted(connection: http.client.HTTPConnection, method: str, params: Any, **headers: str) -> Any:
    """Make a request, and return the headers of the answer, which has to be a success."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/mcp", body, {**HEADERS, **headers})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return answer.headers


def is_closed(connection: socket.socket) -> bool:
    """Tell whether the server has closed a connection, whatever it sent before."""
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
    """Open connections one after the other, and send the same on each."""
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
        process: That process.
        port: Where it listens.
        log: What it writes to stderr.
    """

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def descriptors(self) -> int:
        return len([*Path(f"/proc/{self.process.pid}/fd").iterdir()])


@contextlib.contextmanager
def running(directory: Path, descriptors: int) -> Iterator[Running]:
    """Run ``neuroscript mcp serve --http`` with as many descriptors."""
    words = ["mcp", "serve", "--http", "127.0.0.1:0", "--token-from", "TOKEN", "--tools", "math.*"]
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


@linux
@pytest.mark.parametrize("data", [HALF, b"", REFUSED], ids=["half-a-header", "nothing", "half-a-body"])
def test_authorized_call_is_answered_while_others_hold_connections(tmp_path: Path, data: bytes) -> None:
    """400 connections are more than the process has descriptors; a call is answered within a second all the same."""
    with running(tmp_path, 256) as place, connected(place.port, 400, data) as others:
        times = [greeted(place.port) for _ in range(5)]
        held = place.descriptors
        left = [each for each in others if not is_closed(each)]

        assert min(times) < 1.0
        assert max(times) < 5.0
        assert held < 256 - 32
        assert others[-1] in left
        assert others[0] not in left
        assert len(place.log.read_text().splitlines()) == 1


@linux
def test_lack_of_descriptors_is_logged_once(tmp_path: Path) -> None:
    """Where the process itself has used them up; the call is answered when there are some again."""
    import resource

    with running(tmp_path, 256) as place:
        greeted(place.port)
        resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (place.descriptors, 256))
        with connected(place.port, 100):
            until(lambda: "too many open files" in place.log.read_text())
            time.sleep(2.5)  # asyncio tries again each second, and would log it each time
            lines = place.log.read_text().splitlines()
            resource.prlimit(place.process.pid, resource.RLIMIT_NOFILE, (256, 256))

            assert greeted(place.port) < 10
        assert lines[1:] == ["cannot accept connections: too many open files"]
        place.process.send_signal(signal.SIGINT)
        assert place.process.wait(10) == 130


# The deadline of a connection


def trickled(connection: socket.socket, piece: bytes, seconds: float = 10.0) -> float:
    """Send one piece after the other until the server closes the connection, and return how many seconds that took."""
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
    """Whatever it sends, and however slowly."""
    with served(token=TOKEN, bounds={"header_seconds": 0.5}) as place, connected(place.port, 1, data) as (each,):
        assert trickled(each, piece) < 5.0


def test_connection_with_an_authorized_request_lasts(tmp_path: Path) -> None:
    """As long as the call does, far beyond the deadline; after its answer the deadline begins anew."""
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
    """Admit every request, and answer it with more bytes at once than the system takes for a slow client."""
    connection = scope["state"][CONNECTION]
    connection.admit()
    try:
        await Response(SLOW_ANSWER)(scope, receive, send)
    finally:
        connection.release()


@contextlib.contextmanager
def asking() -> Iterator[tuple[socket.socket, Any]]:
    """Provide a client that has asked such a server, and the server."""
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
    """The application has ended long before, and the deadline passes several times meanwhile."""
    with asking() as (client, _):
        read = 0
        while data := client.recv(len(SLOW_ANSWER) // PIECES, socket.MSG_WAITALL):
            read += len(data)
            time.sleep(0.05)

    assert read > len(SLOW_ANSWER)


def test_admitted_client_that_reads_nothing_is_closed() -> None:
    """One that has stopped reading does not hold its connection."""
    with asking() as (_, served):
        until(lambda: served.server_state.connections)
        until(lambda: not served.server_state.connections)


# The cap on connections


@contextlib.contextmanager
def in_call(place: Place, directory: Path, count: int) -> Iterator[list[Path]]:
    """Have as many authorized calls in flight, each on a connection of its own; yield their marks."""
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


def test_oldest_stranger_makes_room(tmp_path: Path) -> None:
    """A connection on which a call waits is not closed for another."""
    with served(token=TOKEN, bounds={"max_connections": 8}) as place, in_call(place, tmp_path, 4):
        with connected(place.port, 20) as others:
            greeted(place.port)
            until(lambda: sum(map(is_closed, others)) >= 17)

            assert [is_closed(each) for each in others] == [True] * 17 + [False] * 3


def test_strangers_make_room_before_clients_that_are_idle() -> None:
    """So a client goes on with the connection that it has kept."""
    with served(token=TOKEN, bounds={"max_connections": 8}) as place:
        kept = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
        posted(kept, "initialize", HELLO)
        sock = kept.sock
        with connected(place.port, 50):
            posted(kept, "initialize", HELLO)

            assert kept.sock is sock
        kept.close()


def test_newest_connection_is_closed_where_all_others_are_in_use(tmp_path: Path) -> None:
    """The calls in flight end as they would have."""
    with served(token=TOKEN, bounds={"max_connections": 3}) as place, in_call(place, tmp_path, 3):
        with connected(place.port, 5) as others:
            until(lambda: all(map(is_closed, others)))

    assert not place.service.clients


LIMITS: Final = """
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from neuroscript.interop.mcp.server.listener import connection_limit
hard = getrlimit(RLIMIT_NOFILE)[1]
for soft in (1_024, 256, 100, 64):
    setrlimit(RLIMIT_NOFILE, (soft, hard))
    print(soft, connection_limit())
"""


@linux
def test_limit_leaves_descriptors_for_all_else() -> None:
    """A quarter of them, and 64 at least."""
    ran = subprocess.run([sys.executable, "-c", LIMITS], capture_output=True, text=True, check=True, cwd=ROOT)

    assert ran.stdout.splitlines() == ["1024 768", "256 192", "100 36", "64 8"]


# The log


def test_invalid_requests_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """And so are upgrades to a protocol that is not served; a program that connects must not fill the disk."""
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
