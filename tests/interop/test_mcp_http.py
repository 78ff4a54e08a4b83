"""HTTP access control, and the calls of clients that disconnect."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.interop.mcp_place import Place, served, until

from neuroscript import Engine
from neuroscript.interop.http_server.principals import BEARER_RULE
from neuroscript.interop.mcp import serve
from neuroscript.interop.mcp.server.http import app

CLIENTS = 64 if os.environ.get("NEUROSCRIPT_TEST_ALL") else 16
TOKEN = "s3cret-tok3n"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with served(token=TOKEN, origins=["https://friend.example"], most_bytes=20_000) as place:
        yield place


def body(method: str, params: Any, id: int | None = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id else {})}).encode()


def posted(place: Place, data: bytes, **headers: str) -> tuple[int, bytes, Any]:
    """Post a body by hand, and return the status, the content and the headers of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    try:
        connection.request("POST", "/mcp", data, {**HEADERS, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


KNOWN = {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": TOKEN}, 401),
        (KNOWN, 200),
        ({**KNOWN, "Origin": "http://localhost:3000"}, 200),
        ({**KNOWN, "Origin": "http://127.0.0.1"}, 200),
        ({**KNOWN, "Origin": "https://friend.example"}, 200),
        ({**KNOWN, "Origin": "https://evil.example"}, 403),
        ({**KNOWN, "Origin": "http://localhost.evil.example"}, 403),
        ({**KNOWN, "Origin": "http://127.0.0.1.evil.example"}, 403),
        ({**KNOWN, "Origin": "null"}, 403),
        ({**KNOWN, "Origin": "http://[bad"}, 403),
        ({**KNOWN, "Host": "evil.example"}, 421),
        ({**KNOWN, "Host": "[bad"}, 421),
        ({**KNOWN, "Host": "localhost:1"}, 200),
        ({**KNOWN, "MCP-Protocol-Version": "2026-07-28"}, 400),
        ({**KNOWN, "MCP-Protocol-Version": "1066"}, 400),
    ],
)
def test_access_requires_a_token_an_origin_and_a_host(place: Place, headers: dict[str, str], status: int) -> None:
    """By the token, the origin of the page, and the name of this machine."""
    assert posted(place, body("initialize", HELLO), **headers)[0] == status


def test_a_missing_token_is_reported(place: Place) -> None:
    """As RFC 6750 specifies, and nothing else."""
    status, answer, headers = posted(place, body("initialize", HELLO))

    assert (status, answer, headers["www-authenticate"]) == (401, b"a token is required", "Bearer")


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_over_its_limit_is_refused(place: Place, is_chunked: bool) -> None:
    """Even if its length is not declared; the body is not executed."""
    data = body("initialize", {**HELLO, "padding": "x" * 30_000})
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    pieces: Any = (data[start : start + 10_000] for start in range(0, len(data), 10_000)) if is_chunked else data
    connection.request("POST", "/mcp", pieces, {**HEADERS, **KNOWN}, encode_chunked=is_chunked)
    status = connection.getresponse().status
    connection.close()

    assert status == 413


def test_a_reachable_server_requires_a_token() -> None:
    """Otherwise it is not created."""
    with Engine(plugins="none") as engine, pytest.raises(ValueError, match="needs a token"):
        app(serve(engine), is_local=False)


@pytest.mark.parametrize("token", ["with a space", "s\xe9same", "a\ud800", "\n"])
def test_a_token_with_ambiguous_encoding_is_refused(token: str) -> None:
    """Clients would send it as different bytes, so it could never match."""
    with Engine(plugins="none") as engine, pytest.raises(ValueError, match=f"^{BEARER_RULE}$"):
        app(serve(engine), token=token)


def test_the_official_client_sends_the_token(place: Place) -> None:
    """With it, the client is served; without it, it is not."""

    async def talk(headers: dict[str, str]) -> Any:
        async with httpx2.AsyncClient(headers=headers) as http_client:
            async with Client(streamable_http_client(place.url, http_client=http_client)) as client:
                return (await client.call_tool("t__add", {"a": "2"})).structured_content

    assert asyncio.run(talk(KNOWN)) == {"result": 3}
    with pytest.raises(Exception, match=r"TaskGroup"):
        asyncio.run(talk({}))


@pytest.mark.slow
def test_parallel_clients_have_separate_variables() -> None:
    """No client sees another's, and all of them are answered concurrently."""

    async def talk(url: str, number: int, ready: asyncio.Barrier) -> str:
        async with Client(url, mode="legacy") as client:
            await client.call_tool("t__remember", {"word": f"w{number}"})
            await ready.wait()
            return str((await client.call_tool("t__recall", {})).structured_content["result"])

    async def all_of_them(url: str) -> list[str]:
        ready = asyncio.Barrier(CLIENTS)
        return await asyncio.gather(*(talk(url, number, ready) for number in range(CLIENTS)))

    with served() as place:
        assert asyncio.run(all_of_them(place.url)) == [f"w{number}" for number in range(CLIENTS)]
        until(lambda: not place.service.clients)


def _connected(place: Place) -> dict[str, str]:
    """Initialize a session by hand, and return its headers."""
    _, _, headers = posted(place, body("initialize", HELLO), **KNOWN)
    session = {**KNOWN, "Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    assert posted(place, body("notifications/initialized", {}, None), **session)[0] == 202
    return session


@pytest.mark.parametrize(("tool", "left"), [("sleeps", "stopped"), ("waits", "looked")])
def test_a_client_that_goes_away_leaves_no_call_running(place: Place, tmp_path: Path, tool: str, left: str) -> None:
    """It sends no cancellation; its connection is closed, so no client can receive the answer."""
    mark = tmp_path / "mark"
    data = body("tools/call", {"name": f"t__{tool}", "arguments": {"mark": str(mark)}}, 7)
    headers = {**HEADERS, **_connected(place), "Host": "localhost", "Content-Length": str(len(data))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", place.port)) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + data)
        until(lambda: mark.exists() and mark.read_text() == "began")

    until(lambda: mark.read_text() == left)
    until(lambda: not place.engine._shared.running)


def test_an_abandoned_session_ends(tmp_path: Path) -> None:
    """After an idle time its state is discarded, and using its id is an error."""
    mark = tmp_path / "mark"
    with served(token=TOKEN, idle=0.5) as place:
        session = _connected(place)
        call = body("tools/call", {"name": "t__keeps", "arguments": {"mark": str(mark)}}, 2)
        assert posted(place, call, **session)[0] == 200
        assert not mark.exists()

        until(mark.exists)
        assert not place.service.clients
        assert posted(place, call, **session)[0] == 404


def test_nothing_remains_when_the_server_ends(tmp_path: Path) -> None:
    """With a running call: it is cancelled, and its client is disconnected."""
    mark = tmp_path / "mark"

    async def talk(url: str) -> None:
        async with Client(url) as client:
            await client.call_tool("t__sleeps", {"mark": str(mark)})

    def lost(url: str) -> None:
        with contextlib.suppress(Exception):  # any error of its transport
            asyncio.run(talk(url))

    with served() as place:
        thread = threading.Thread(target=lost, args=(place.url,), daemon=True)
        thread.start()
        until(lambda: mark.exists() and mark.read_text() == "began")

    until(lambda: mark.read_text() == "stopped")
    assert not place.service.clients
    thread.join(10)
    assert not thread.is_alive()
