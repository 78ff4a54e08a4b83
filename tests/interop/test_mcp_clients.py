"""Common clients, each over both transports: the official one, FastMCP's, and the Inspector.

Not every client supports the whole protocol. The Inspector's command line makes one request and exits, so it shows no
progress and cancels nothing. It lists the tools first, and never calls one that is not listed. If a schema says a
number, it converts the argument itself, possibly to null.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import attrs
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.conftest import ALL
from tests.interop.mcp_inspector import installed
from tests.interop.mcp_place import PLUGIN, until

ROOT = Path(__file__).parents[2]
SERVE = [sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", str(PLUGIN), "--deny", "t.refused"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
CALLS = 1_000 if ALL else 60
MEBIBYTE = 1024 * 1024

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


@attrs.frozen
class CallAnswer:
    """What a client shows of a result."""

    is_error: bool
    structured: Any
    text: str


class Talk(Protocol):
    """What each client must support."""

    async def names(self) -> list[str]: ...

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None) -> CallAnswer: ...


@attrs.frozen
class Official:
    """The client of the SDK."""

    client: Any

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None) -> CallAnswer:
        found = await self.client.call_tool(tool, arguments, progress_callback=on_progress)
        return CallAnswer(found.is_error, found.structured_content, found.content[0].text)


@attrs.frozen
class Fast:
    """The client of FastMCP."""

    client: Any

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None) -> CallAnswer:
        found = await self.client.call_tool(tool, arguments, progress_handler=on_progress, raise_on_error=False)
        return CallAnswer(found.is_error, found.structured_content, found.content[0].text)


@attrs.frozen
class Inspector:
    """The Inspector's command line; each request is a process."""

    program: list[str]
    target: list[str]
    home: Path

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self._ran("tools/list"))[0]["result"]["tools"]]

    async def call(self, tool: str, arguments: dict[str, Any], on_progress: Progress | None = None) -> CallAnswer:
        words = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        found, error = await self._ran("tools/call", *words)
        if found is None:
            return CallAnswer(True, None, error["error"]["code"])
        result = found["result"]
        return CallAnswer(result.get("isError", False), result.get("structuredContent"), result["content"][0]["text"])

    async def _ran(self, method: str, *words: str) -> tuple[Any, Any]:
        """Return its stdout and stderr, each as a JSON object or empty."""
        options = ["--format", "json", "--quiet", "--connect-timeout", "60000", "--method", method]
        command = [*self.program, *options, *words, *self.target]
        environment = {**ENVIRONMENT, "HOME": str(self.home)}
        running = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1, env=environment, cwd=ROOT)
        out, error = await running.communicate()
        return tuple(json.loads(text) if text.strip().startswith(b"{") else None for text in (out, error))


@asynccontextmanager
async def official(url: str, home: Path) -> AsyncIterator[Talk]:
    parameters = StdioServerParameters(command=SERVE[0], args=SERVE[1:], env=ENVIRONMENT, cwd=ROOT)
    async with Client(url or stdio_client(parameters)) as client:
        yield Official(client)


@asynccontextmanager
async def fastmcp(url: str, home: Path) -> AsyncIterator[Talk]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastmcp import Client as FastClient
        from fastmcp.client.transports import StdioTransport
    transport: Any = url or StdioTransport(SERVE[0], SERVE[1:], env=ENVIRONMENT, cwd=str(ROOT), keep_alive=False)
    async with FastClient(transport) as client:
        yield Fast(client)


@asynccontextmanager
async def inspector(url: str, home: Path) -> AsyncIterator[Talk]:
    try:
        program = await asyncio.to_thread(installed)
    except OSError as error:
        pytest.skip(str(error))
    yield Inspector(program, ["--transport", "http", url] if url else SERVE, home)


@contextmanager
def over_http() -> Iterator[str]:
    """Serve over HTTP in a separate process, and provide the address."""
    with subprocess.Popen(
        [*SERVE, "--http", "127.0.0.1:0"], stderr=-1, stdout=-1, text=True, env=ENVIRONMENT, cwd=ROOT
    ) as running:
        try:
            line = running.stderr.readline() if running.stderr else ""
            assert " at http" in line, line
            yield line.split()[-1]
        finally:
            running.kill()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with over_http() as url:
        yield url


CLIENTS: dict[str, tuple[Any, bool, str, str]] = {
    "official": (official, True, "a: expected int, got str", "error policy.denied"),
    "fastmcp": (fastmcp, True, "a: expected int, got str", "error policy.denied"),
    "inspector": (inspector, False, "a: expected int, got None", "tool_not_found"),
}
"""How each is made, whether it shows progress and cancels, and what it says of a wrong argument and of a denied tool."""


PAIRS = [
    pytest.param(name, transport, marks=pytest.mark.full if name == "inspector" else ())
    for name in CLIENTS
    for transport in ("stdio", "http")
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "transport"), PAIRS)
def test_every_client_works_over_every_transport(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, transport: str
) -> None:
    """It lists and calls tools; a string becomes a number, an error names the argument, and a denied tool is refused.

    Over stdio each request of the Inspector starts a server.
    """
    made, stays, wrong, denied = CLIENTS[name]

    async def talk() -> None:
        async with made(request.getfixturevalue("url") if transport == "http" else "", tmp_path) as client:
            names, added, error, refused = await asyncio.gather(
                client.names(),
                client.call("t__add", {"a": "2"}),
                client.call("t__add", {"a": "two"}),
                client.call("t__refused", {}),
            )
            assert ("t__add" in names, "t__refused" in names) == (True, False)
            assert added == CallAnswer(False, {"result": 3}, "3")
            assert (error.is_error, error.structured, wrong in error.text) == (True, None, True)
            assert (refused.is_error, refused.structured, refused.text.split(":")[0]) == (True, None, denied)
            if stays:
                await _told(client)
                await _cancelled(client, tmp_path)

    asyncio.run(talk())


async def _told(client: Talk) -> None:
    received: list[tuple[float, float | None, str | None]] = []

    async def tell(done: float, total: float | None, text: str | None) -> None:
        received.append((done, total, text))

    assert (await client.call("t__steps", {"count": 3}, tell)).structured == {"result": 3}
    assert received == [(1, 3, "going on"), (2, 3, "going on"), (3, 3, "going on")]


async def _cancelled(client: Talk, place: Path) -> None:
    """A coroutine is cancelled, and a thread that polls ends; the session continues."""
    for tool, left in (("sleeps", "stopped"), ("waits", "looked")):
        mark = place / tool
        call = asyncio.create_task(client.call(f"t__{tool}", {"mark": str(mark)}))
        await asyncio.to_thread(until, lambda mark=mark: mark.exists() and mark.read_text() == "began")
        call.cancel()
        await asyncio.to_thread(until, lambda mark=mark, left=left: mark.read_text() == left)
    assert (await client.call("t__add", {"a": 1})).structured == {"result": 2}


CALLER = """\
import asyncio, json, os, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
url, serve, marks = json.loads(sys.argv[1])
async def talk():
    parameters = StdioServerParameters(command=serve[0], args=serve[1:], env=dict(os.environ))
    async with Client(url or stdio_client(parameters)) as client:
        await asyncio.gather(*(client.call_tool(f"t__{tool}", {"mark": mark}) for tool, mark in marks.items()))
asyncio.run(talk())
"""

LEFT = {"sleeps": "stopped", "waits": "looked"}
"""A tool that is a coroutine and one that polls in a thread, each with what it leaves in its mark when it is stopped."""


def began(marks: dict[str, Path]) -> bool:
    """Return whether the tools of all marks run."""
    return all(mark.exists() and mark.read_text() == "began" for mark in marks.values())


def texts_of(marks: dict[str, Path]) -> dict[str, str]:
    """Return the text of each mark."""
    return {tool: mark.read_text() for tool, mark in marks.items()}


@contextmanager
def calling(url: str, marks: dict[str, Path]) -> Iterator[subprocess.Popen[bytes]]:
    """Call tools with the official client in a separate process, and provide the process once all of them run."""
    words = json.dumps([url, SERVE, {tool: str(mark) for tool, mark in marks.items()}])
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, words], env=ENVIRONMENT, cwd=ROOT, stderr=subprocess.DEVNULL
    ) as running:
        try:
            until(lambda: began(marks), 30)
            yield running
        finally:
            running.kill()


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_no_call_running(url: str, tmp_path: Path) -> None:
    """A killed client sends no cancellation: a coroutine is cancelled, and a thread that polls ends."""
    marks = {tool: tmp_path / tool for tool in LEFT}
    with calling(url, marks) as client:
        client.kill()
        until(lambda: texts_of(marks) == LEFT)


def test_a_client_that_is_killed_leaves_no_process_running(tmp_path: Path) -> None:
    """Over stdio the process ends as well.

    A call that never polls cannot be stopped. Its thread is abandoned, so it blocks neither the other calls nor the
    end.
    """
    marks = {tool: tmp_path / tool for tool in (*LEFT, "deaf")}
    with calling("", marks) as client:
        children = Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
        assert len(children) == 1
        client.kill()
        until(lambda: not _is_running(children[0]), 20)

    assert texts_of(marks) == {**LEFT, "deaf": "began"}


@pytest.mark.slow
def test_a_client_that_disconnects_is_not_an_error(tmp_path: Path) -> None:
    """The server drops its output and ends normally once its calls have ended."""
    marks = {tool: tmp_path / tool for tool in LEFT}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    calls = [{"name": f"t__{tool}", "arguments": {"mark": str(mark)}} for tool, mark in marks.items()]
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": id, "method": "tools/call", "params": call} for id, call in enumerate(calls, 2)),
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in requests)
    with subprocess.Popen(SERVE, stdin=-1, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT, cwd=ROOT) as running:
        assert running.stdin and running.stdout and running.stderr
        running.stdin.write(lines)
        running.stdin.flush()
        until(lambda: began(marks), 30)
        running.stdout.close()
        running.stdin.close()
        error = running.stderr.read()

        assert (running.wait(10), error, texts_of(marks)) == (0, "", LEFT)


def _is_running(number: str) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_many_calls_of_one_session_leave_nothing_behind(url: str, tmp_path: Path, transport: str) -> None:
    """Tasks, threads and descriptors return to their initial numbers, and memory stops growing."""

    async def talk() -> None:
        async with official(url if transport == "http" else "", tmp_path) as client:

            async def state() -> dict[str, int]:
                return dict((await client.call("t__state", {})).structured)

            for number in range(2 * CALLS):  # the first half fills the caches of the process
                if number == CALLS:
                    first = await state()
                if number == CALLS + CALLS // 2:
                    half = await state()
                await client.call(*(("t__steps", {"count": 2}) if number % 2 else ("t__add", {"a": 1})))
            last = await state()
            names = ("tasks", "threads", "descriptors")
            ending = time.monotonic() + 15
            while any(last[name] > first[name] for name in names) and time.monotonic() < ending:
                await asyncio.sleep(0.5)  # an idle thread of the pool lives for five seconds
                last = await state()
            assert [name for name in names if last[name] > first[name]] == []
            assert last["memory"] - half["memory"] < MEBIBYTE

    asyncio.run(talk())
