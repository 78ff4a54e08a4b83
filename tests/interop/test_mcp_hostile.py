"""Misuse of a server by clients and by its own tools, after which it works as before."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.interop.mcp_place import Place, served, until

ROOT = Path(__file__).parents[2]
ODD = Path(__file__).with_name("mcp_odd.py")
TOKEN = "s3cret-tok3n"
MOST_BYTES = 50_000
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}
HEADERS = {
    "Host": "localhost",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Authorization": f"Bearer {TOKEN}",
}


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with served(token=TOKEN, most_bytes=MOST_BYTES) as place:
        yield place


def rpc(method: str, params: Any = None, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": id}).encode()


def notification(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def called(tool: str, arguments: Any, **more: Any) -> bytes:
    return rpc("tools/call", {"name": tool, "arguments": arguments, **more})


def send(place: Place, data: bytes | None, headers: dict[str, str], method: str = "POST") -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    try:
        connection.request(method, "/mcp", data, {**HEADERS, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


def connected(place: Place) -> dict[str, str]:
    """Initialize a session by hand, and return its headers."""
    *_, headers = send(place, rpc("initialize", HELLO), {})
    session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    assert send(place, notification("notifications/initialized", {}), session)[0] == 202
    return session


def data_of(answer: bytes) -> Any:
    """Return the last message of an answer, which is an event stream or a single message."""
    line = [line for line in answer.decode().splitlines() if line.startswith(("data:", "{"))][-1]
    return json.loads(line.removeprefix("data:"))


@pytest.fixture(scope="module")
def session(place: Place) -> dict[str, str]:
    return connected(place)


def serves(place: Place, session: dict[str, str]) -> bool:
    status, answer, _ = send(place, called("t__add", {"a": "1"}), session)
    return status == 200 and data_of(answer)["result"]["structuredContent"] == {"result": 2}


LIST = rpc("tools/list", {})
DEEP = b"[" * 20_000
LONG = b"9" * 6_000
BODIES = {
    "no JSON": (b"{{{", 400, -32700),
    "nothing": (b"", 400, -32700),
    "null": (b"null", 400, -32602),
    "a batch": (b"[" + LIST + b"," + LIST + b"]", 400, -32602),
    "deep": (DEEP, 400, -32700),
    "no UTF-8": (LIST.replace(b"list", b"\xff"), 400, -32700),
    "a lone surrogate": (called("t__remember", {"word": "\ud800"}), 400, -32700),
    "a huge number": (called("t__add", {"a": 1}).replace(b'"a": 1', b'"a": ' + LONG), 400, -32700),
    "a huge id": (LIST.replace(b'"id": 1', b'"id": ' + LONG), 400, -32700),
    "another version": (LIST.replace(b'"2.0"', b'"1.0"'), 400, -32602),
    "params that are a list": (rpc("tools/list", [1]), 400, -32602),
    "an unknown method": (rpc("no/such", {}), 200, -32601),
    "a method of newer versions": (rpc("server/discover", {}), 200, -32601),
    "no name": (rpc("tools/call", {}), 200, -32602),
    "a name that is a number": (rpc("tools/call", {"name": 5}), 200, -32602),
    "arguments that are a list": (called("t__add", [1]), 200, -32602),
    "a level that is none": (rpc("logging/setLevel", {"level": "loud"}), 200, -32602),
    "a token of progress that is a fraction": (called("t__add", {}, _meta={"progressToken": 1.5}), 200, -32602),
    "a token of progress that is a map": (called("t__add", {}, _meta={"progressToken": {}}), 200, -32602),
}


@pytest.mark.parametrize(("data", "status", "code"), BODIES.values(), ids=BODIES)
def test_invalid_requests_are_refused(
    place: Place, session: dict[str, str], data: bytes, status: int, code: int
) -> None:
    """With the JSON-RPC error for it, and the session continues."""
    found, answer, _ = send(place, data, session)

    assert (found, data_of(answer)["error"]["code"]) == (status, code)
    assert serves(place, session)


ANSWERED = {
    "a name without end": (called("x" * 40_000, {}), "error tool.not_found"),
    "a name of control characters": (called("\x00\n\x1b[2J", {}), "error tool.not_found"),
    "nothing for a name": (called("", {}), "error tool.not_found"),
    "no arguments": (rpc("tools/call", {"name": "t__add"}), "error arg.missing: a: expected int, got nothing"),
    "names of arguments": (called("t__add", {"a": 1, "": 1, "\x00": 2}), "error arg.unknown"),
    "NaN": (called("t__add", {"a": float("nan")}), "error coercion.nonfinite: a: expected int, got float"),
}


@pytest.mark.parametrize(("data", "text"), ANSWERED.values(), ids=ANSWERED)
def test_an_unusual_call_is_an_error_result(place: Place, session: dict[str, str], data: bytes, text: str) -> None:
    """The model reads the reason; its input is only repeated truncated and escaped."""
    found = data_of(send(place, data, session)[1])["result"]
    message = found["content"][0]["text"]

    assert (found["isError"], message.startswith(text), message.isprintable()) == (True, True, True)
    assert len(message) < 500


@pytest.mark.parametrize("token", [0, "", "x" * 30_000, -1, 2**70], ids=["0", "empty", "long", "negative", "large"])
def test_progress_is_sent_for_every_token(place: Place, session: dict[str, str], token: Any) -> None:
    """For those of the protocol, which are strings and integers."""
    _, answer, _ = send(place, called("t__steps", {"count": 1}, _meta={"progressToken": token}), session)
    messages = [json.loads(line[5:]) for line in answer.decode().splitlines() if line.startswith("data:")]
    found = [each["params"] for each in messages if each.get("method") == "notifications/progress"]

    assert found == [{"progressToken": token, "progress": 1, "total": 1, "message": "going on"}]


IGNORED = {
    "a cancel of an unknown request": notification("notifications/cancelled", {"requestId": 12_345}),
    "a cancel with an invalid id": notification("notifications/cancelled", {"requestId": {}}),
    "a cancel of nothing": notification("notifications/cancelled", {}),
    "an unknown notification": notification("notifications/no-such", {}),
    "an unrequested answer": b'{"jsonrpc":"2.0","id":77,"result":{}}',
    "an unrequested error": b'{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}',
    "an invalid id": LIST.replace(b'"id": 1', b'"id": 1.5'),
}


@pytest.mark.parametrize("data", IGNORED.values(), ids=IGNORED)
def test_unknown_notifications_are_ignored(place: Place, session: dict[str, str], data: bytes) -> None:
    """They are accepted and dropped."""
    assert send(place, data, session)[:2] == (202, b"")
    assert serves(place, session)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 400),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 400),
        ({"Accept": "text/html"}, 406),
        ({"Authorization": "Bearer \xff\xe9"}, 401),
        ({"Host": "\xff"}, 421),
        ({"Host": "evil.example@127.0.0.1"}, 421),
        ({"Host": "127.0.0.1/evil.example"}, 421),
        ({"Origin": "http://evil.example@localhost"}, 403),
        ({"Origin": "http://evil.example\\@localhost"}, 403),
        ({"Origin": "localhost"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "\xff"}, 403),
        ({"Mcp-Session-Id": "0" * 32}, 404),
        ({"Mcp-Session-Id": ""}, 404),
        ({"Mcp-Session-Id": "\xff"}, 404),
        ({"MCP-Protocol-Version": ""}, 400),
        ({"Content-Length": "-5"}, 400),
    ],
)
def test_unusual_headers_do_not_bypass_checks(
    place: Place, session: dict[str, str], headers: dict[str, str], status: int
) -> None:
    """For every header that a page, a form or DNS rebinding can produce."""
    data = None if "Content-Length" in headers else LIST  # the server resets a connection with a body that it refuses
    assert send(place, data, {**session, **headers})[0] == status


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("Origin: https://evil.example\r\nOrigin: http://localhost", 403),
        ("Origin: http://localhost\r\nOrigin: https://evil.example", 403),
        ("Host: evil.example", 400),
        (f"Authorization: Bearer {TOKEN}x", 401),
        ("MCP-Protocol-Version: 2026-07-28\r\nMCP-Protocol-Version: 2025-11-25", 400),
        ("MCP-Protocol-Version: 2025-11-25\r\nMCP-Protocol-Version: 2026-07-28", 400),
    ],
)
def test_a_repeated_header_must_be_valid_twice(place: Place, line: str, status: int) -> None:
    """Two parts of the server never read different values."""
    answer = by_hand(place, LIST, line)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert status != 400 or b"must be sent once" in answer or b"Invalid HTTP request" in answer


def by_hand(place: Place, data: bytes, line: str) -> bytes:
    """Send a request with a custom request line, and return the answer."""
    head = "".join(f"{name}: {value}\r\n" for name, value in {**HEADERS, "Connection": "close"}.items())
    with socket.create_connection(("127.0.0.1", place.port), timeout=10) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{line}\r\n{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_an_incomplete_body_does_not_block_the_server() -> None:
    """A client with the token cannot hold a connection by sending slowly; others are served meanwhile."""
    with served(token=TOKEN, slowest=0.3) as place, ExitStack() as stack:
        head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", place.port), timeout=10))
        slow.sendall(f"POST /mcp HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\n".encode() + b"{")
        assert serves(place, connected(place))
        answer = b"".join(iter(lambda: slow.recv(4096), b""))

        assert answer.startswith(b"HTTP/1.1 408 ")
        assert answer.endswith(b"the body did not arrive in time")


def test_a_session_can_only_be_ended_by_its_id(place: Place, session: dict[str, str]) -> None:
    """A guess reveals nothing, and each client ends only its own session."""
    own = connected(place)
    guess = {**own, "Mcp-Session-Id": session["Mcp-Session-Id"][:-1] + "?"}

    assert send(place, None, guess, "DELETE")[:2] == send(place, LIST, guess)[:2]
    assert send(place, None, own, "DELETE")[0] == 200
    assert send(place, LIST, own)[0] == 404
    assert serves(place, session)


def test_ending_a_session_ends_its_calls(place: Place, tmp_path: Path) -> None:
    """Including calls on another connection that is still open."""
    mark, own = tmp_path / "mark", connected(place)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    connection.request("POST", "/mcp", called("t__sleeps", {"mark": str(mark)}), {**HEADERS, **own})
    until(lambda: mark.exists() and mark.read_text() == "began")

    assert send(place, None, own, "DELETE")[0] == 200
    until(lambda: mark.read_text() == "stopped")
    until(lambda: not place.engine._shared.running)
    connection.close()


def test_a_client_cannot_see_variables_of_another(place: Place, session: dict[str, str]) -> None:
    """Neither by a second initialization in one session, nor by the id of an event that it has not received."""
    assert send(place, called("t__remember", {"word": "mine"}), session)[0] == 200
    assert send(place, rpc("initialize", HELLO), session)[0] == 200
    own = data_of(send(place, called("t__recall", {}), session)[1])
    other = data_of(send(place, called("t__recall", {}), {**connected(place), "Last-Event-ID": "1"})[1])

    assert own["result"]["structuredContent"] == {"result": "mine"}
    assert other["result"]["structuredContent"] == {"result": ""}


def test_a_call_before_initialization_is_refused(place: Place) -> None:
    """There is no session for the call, and none is created."""
    before = len(place.service.clients)

    assert send(place, called("t__add", {"a": 1}), {})[0] == 400
    assert send(place, None, {}, "GET")[0] == 400
    assert len(place.service.clients) == before


# Behavior of tools


def over_stdio() -> Client:
    words = ["-m", "neuroscript", "mcp", "serve", "-p", str(ODD)]
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    parameters = StdioServerParameters(
        command=sys.executable, args=words, env={**os.environ, "PYTHONPATH": source}, cwd=str(ROOT)
    )
    return Client(stdio_client(parameters))


RESULTS = {
    "not_a_number": "error return.type: result: expected float, got float (the number must be finite)",
    "endless": "error return.type: result[0]: expected float, got float (the number must be finite)",
    "huge": "error return.type: result: expected int, got int",
    "beyond": "error return.type: result: expected int, got int",
    "surrogate": "error return.type: result: expected string, got str",
    "surrogate_within": "error return.type: result: expected keys that are valid Unicode, got lone surrogates",
    "surrogate_said": r"error tool.failed: a\ud800b. This call cannot succeed;",
    "surrogate_told": "told",
    "keys": "error return.type: result: expected string keys, got a key of type int",
    "deep": "error return.type: result[0][0]",
    "controls": "\x00\x1b[2J\u2028\r\n\ufeff",
    "streams": "error return.type: result: expected float, got float (the number must be finite)",
    "exits": "error tool.failed: the tool failed (SystemExit)",
    "interrupts": "error tool.failed: the tool failed (KeyboardInterrupt)",
    "ends": "error tool.failed: the tool failed (GeneratorExit)",
    "exits_on_the_loop": "error tool.failed: the tool failed (SystemExit)",
    "cancels_itself": "error tool.failed: the tool failed (CancelledError)",
    "overflows": "error tool.failed: the tool failed (RecursionError)",
    "large": "xxx",
}


async def _odd(client: Client) -> dict[str, str]:
    await client.list_tools()  # so that the client validates results
    found = {}
    for name in RESULTS:
        async with asyncio.timeout(20):
            found[name] = (await client.call_tool(f"odd__{name}", {})).content[0].text
    return {name: text[: len(RESULTS[name])] for name, text in found.items()}


@pytest.mark.slow
def test_no_tool_ends_a_server_over_stdio() -> None:
    """Everything is a result, of one call after the other in one session."""

    async def talk() -> dict[str, str]:
        async with over_stdio() as client:
            return await _odd(client)

    assert asyncio.run(talk()) == RESULTS


def test_no_tool_ends_a_server_over_http() -> None:
    """As over stdio; the official client accepts more than a MiB if it is configured to."""

    async def talk(url: str) -> dict[str, str]:
        async with Client(streamable_http_client(url, max_sse_event_size=None)) as client:
            return await _odd(client)

    with served() as place:
        place.engine.load_plugin(ODD)
        assert asyncio.run(talk(place.url)) == RESULTS
