"""Servers with endless answers, and secrets that would be sent unprotected."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import compress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.interop.mcp_stdio import command

from neuroscript import Engine, ExecutionPolicy, SpecError, ToolCall
from neuroscript.interop.mcp import McpServer, from_mcp
from neuroscript.interop.mcp.client.size_limits import MAX_MESSAGE_SIZE
from neuroscript.tools.injection_sources import Secret

PIECE = b"x" * 1024 * 1024
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "long", "version": "1"}}
TOOLS = {"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}


class Long(BaseHTTPRequestHandler):
    """A server whose tool answers without end, in the way that `ThreadingHTTPServer.kind` says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = {"initialize": HELLO, "tools/list": TOOLS}.get(request["method"])
        if request["method"] == "tools/call":
            self._endless(self.server.kind)
        elif "id" in request:
            body = {"result": found} if found else {"error": {"code": -32601, "message": "no"}}
            self._say("application/json", json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}).encode())
        else:
            self._say("application/json", b"", 202)

    def do_GET(self) -> None:
        self._say("text/plain", b"", 405)

    def _say(self, kind: str, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _endless(self, kind: str) -> None:
        if kind == "compressed":
            self._say("application/json", compress(PIECE * 64), **{"content-encoding": "gzip"})
            return
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if kind == "events" else "application/json")
        self.end_headers()
        try:
            self.wfile.write(b"data: " if kind == "events" else b"")
            while self.server.sent < 64 * len(PIECE):
                self.wfile.write(PIECE)
                self.server.sent += len(PIECE)
        except OSError:  # the client has gone
            self.server.received.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def long(kind: str) -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Long) as server:
        server.kind, server.sent, server.received = kind, 0, threading.Event()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


def call_error(server: McpServer) -> Any:
    """Return the error of a call of its tool."""
    with Engine(plugins="none", policy=ExecutionPolicy(grants=("mcp:call:*",))) as engine:
        engine.register(server.toolset)
        return engine.execute(ToolCall("long.say")).error


@pytest.mark.slow
def test_an_endless_line_ends_the_connection() -> None:
    """The server may continue to write; the call fails before its own timeout."""
    with from_mcp(command("endless"), group="long", trusted=True) as server:
        error = call_error(server)
        threads = [each.name for each in threading.enumerate() if each.name == "neuroscript-mcp"]

    assert (error.code, error.retry, error.text) == (
        "mcp.closed",
        "later",
        "the connection to the server ended before the response; the tool may have had effects",
    )
    assert len(threads) <= 1


@pytest.mark.parametrize("kind", ["json", "events"])
def test_an_endless_body_is_not_read_completely(kind: str) -> None:
    """The client stops at the limit for an answer and closes the connection."""
    with long(kind) as web, from_mcp(url=f"http://127.0.0.1:{web.server_port}", group="long", trusted=True) as server:
        error = call_error(server)
        assert web.received.wait(10)

        assert (error.code, error.retry) == {"json": ("mcp.answer", "never"), "events": ("mcp.closed", "later")}[kind]
        assert MAX_MESSAGE_SIZE <= web.sent < 64 * len(PIECE)


def test_a_compressed_body_is_not_read() -> None:
    """The client did not request it, and it may expand a thousand times."""
    with long("compressed") as web:
        with from_mcp(url=f"http://127.0.0.1:{web.server_port}", group="long", trusted=True, timeout=5.0) as server:
            error = call_error(server)

    assert (error.code, error.retry) == ("mcp.closed", "later")


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1/mcp", "HTTP://shop.example:8000/mcp", "http://localhost.evil.example/"]
)
def test_no_secret_goes_to_another_machine_unencrypted(url: str) -> None:
    """All of them are named, before anything is connected."""
    headers = {"X-Key": Secret("k"), "authorization": "Bearer t", "X-Plain": "p"}
    with pytest.raises(SpecError) as raised:
        from_mcp(url=url, group="shop", headers=headers, secrets={"k": "v"})

    message = "would be sent unencrypted; use https, or pass plain_http=True"
    assert str(raised.value) == f"mcp: headers: X-Key {message}; headers: authorization {message}"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/mcp", {}),
        ("http://[::1]:1/mcp", {}),
        ("http://localhost:1/mcp", {}),
        ("https://shop.example/mcp", {}),
        ("http://shop.example/mcp", {"plain_http": True}),
    ],
)
def test_a_secret_may_go_to_this_machine_or_over_tls_or_where_the_host_allows_it(
    url: str, words: dict[str, Any]
) -> None:
    """A host can permit an unencrypted address explicitly."""
    with from_mcp(
        url=url, group="shop", headers={"Authorization": Secret("k")}, secrets={"k": "v"}, accepted={}, **words
    ):
        pass
