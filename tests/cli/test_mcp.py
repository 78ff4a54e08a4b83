"""``neuroscript mcp``: errors before serving, the configuration of clients, and the server over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from tests.cli.conftest import run_installed, serving_http
from tests.interop.mcp_place import PLUGIN, until

from neuroscript._imports import install_hint
from neuroscript.cli.mcp import options as mcp_words
from neuroscript.interop.mcp import CLIENTS

ROOT = Path(__file__).parents[2]
STUBBORN = """
import asyncio, os
from contextlib import suppress
from functools import partial
from pathlib import Path

def register(registrar):
    tools = registrar.toolset("t")

    @tools.tool
    async def stay(rt) -> None:
        mark = Path(os.environ["MARK"])
        mark.touch()
        rt.handles.new(mark, "file", mark.unlink)
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
"""
"""A plugin with a coroutine that cannot be cancelled. The file exists from its start until the engine is closed."""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mcp",), "expected an action: serve, config, tools, login, logout (see neuroscript mcp --help)"),
        (("mcp", "serve", "--origin", "x"), "--token-env and --origin need HTTP; add --http"),
        (("mcp", "serve", "--token-env", "X"), "--token-env and --origin need HTTP; add --http"),
        (
            ("mcp", "serve", "--http", "127.0.0.1:0", "--token-env", "NOT_SET_ANYWHERE"),
            "the variable in --token-env is not set, or is empty",
        ),
        (
            ("mcp", "serve", "--http", "0.0.0.0:0"),
            "an address that other machines can reach requires a token; add --token-env VARIABLE",
        ),
        (
            ("mcp", "serve", "--state-key-env", "NOT_SET_ANYWHERE"),
            "the variable in --state-key-env is not set, or is empty",
        ),
        (
            ("mcp", "serve", "--state-key-file", "/no/such/file"),
            "the file in --state-key-file cannot be read (FileNotFoundError)",
        ),
        (
            ("mcp", "serve", "--used-states", "/no/such/file"),
            "used states: the file cannot be used (FileNotFoundError)",
        ),
        (("mcp", "serve", "--http", "192.0.2.1:1", "--token-env", "PATH"), "cannot serve at that address (OSError)"),
        (
            ("mcp", "serve", "--http", "here"),
            "argument --http: expected an address such as 127.0.0.1:8000 (see neuroscript mcp serve --help)",
        ),
    ],
)
def test_serve_errors_are_reported(words: tuple[str, ...], sentence: str) -> None:
    """There is one line and exit code 2; stdout, which belongs to the protocol, stays empty."""
    result = run_installed(*words)

    assert (result.code, result.out, result.err.splitlines()[-1]) == (2, "", f"neuroscript: {sentence}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("secret", "request states: keys must be strings or bytes of at least 32 bytes"),
        ("\n", "the file in --state-key-file is empty"),
    ],
)
def test_invalid_keys_are_reported(tmp_path: Path, text: str, sentence: str) -> None:
    """No key is shown."""
    file = tmp_path / "keys"
    file.touch(0o600)
    file.write_text(text)
    result = run_installed("mcp", "serve", "--state-key-file", str(file))

    assert (result.code, result.out, result.err.splitlines()[-1]) == (2, "", f"neuroscript: {sentence}")
    file.chmod(0o644)
    assert "other users can access the file" in run_installed("mcp", "serve", "--state-key-file", str(file)).err


def test_missing_sdk_is_reported() -> None:
    """``mcp config`` works without the SDK."""
    code = "import sys; sys.modules['mcp'] = None; from neuroscript.cli import main; sys.exit(main(sys.argv[1:]))"
    served, reported = (
        subprocess.run([sys.executable, "-c", code, "mcp", word], capture_output=True, text=True, cwd=ROOT)
        for word in ("serve", "config")
    )

    sentence = f"serving over MCP needs its SDK; install it with: {install_hint('mcp')}"
    assert (served.returncode, served.stderr) == (2, f"neuroscript: {sentence}\n")
    assert (reported.returncode, [*json.loads(reported.stdout)]) == (0, ["mcpServers"])


def test_invalid_pattern_is_reported() -> None:
    """It is reported before a client is served."""
    result = run_installed("mcp", "serve", "--tools", "math.[")

    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    ("client", "key"),
    [
        ("claude", "mcpServers"),
        ("cursor", "mcpServers"),
        ("gemini", "mcpServers"),
        ("windsurf", "mcpServers"),
        ("vscode", "servers"),
        ("zed", "context_servers"),
    ],
)
def test_configuration_contains_the_command(client: str, key: str) -> None:
    """Each client has its own key for servers."""
    result = run_installed("mcp", "config", "--client", client, "--name", "mine", "--", "--tools", "math.add")
    server = json.loads(result.out)[key]["mine"]

    assert (result.code, server["command"]) == (0, sys.executable)
    assert server["args"] == ["-m", "neuroscript", "mcp", "serve", "--name", "mine", "--tools", "math.add"]


def test_options_list_every_supported_client() -> None:
    """The list is repeated so that the help imports nothing of interop."""
    assert (*sorted(CLIENTS),) == mcp_words.CLIENTS


async def _listed(transport: Any) -> tuple[str, list[str]]:
    async with Client(transport) as client:
        return client.server_info.name, [tool.name for tool in (await client.list_tools()).tools]


serving = partial(serving_http, "mcp", "serve", "--http", "127.0.0.1:0")
"""Serves in a separate process, and provides it with the URL of the server."""


@pytest.mark.slow
def test_http_server_requires_the_token_and_stops_on_interrupt() -> None:
    """It writes nothing to stdout, and stops at once."""

    async def talk(url: str, token: str) -> Any:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http_client:
            return await _listed(streamable_http_client(url, http_client=http_client))

    with serving("--token-env", "T", "--tools", "math.add", T="abc") as (running, url):
        assert asyncio.run(talk(url, "abc")) == ("neuroscript", ["math__add"])
        with pytest.raises(Exception, match="TaskGroup"):
            asyncio.run(talk(url, "abd"))
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=10)
        assert (running.returncode, out) == (130, "")


@pytest.fixture
def stubborn(tmp_path: Path) -> tuple[str, Path]:
    """The file of a plugin, and the file that it creates; see `STUBBORN`."""
    plugin = tmp_path / "plugin.py"
    plugin.write_text(STUBBORN)
    return str(plugin), tmp_path / "mark"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
def test_http_server_closes_its_engine_on_a_signal(stubborn: tuple[str, Path], number: signal.Signals) -> None:
    """Although a call continues as a task, and its coroutine cannot be cancelled."""
    plugin, mark = stubborn
    with serving("-p", plugin, "--tasks", "t.*", MARK=str(mark)) as (running, url):
        assert _task(url, "t__stay")["status"] == "working"
        until(mark.exists)
        running.send_signal(number)
        assert running.wait(20) == 128 + number

    assert not mark.exists()


@pytest.mark.full
def test_stdio_server_ends_after_its_client(stubborn: tuple[str, Path]) -> None:
    """Although the coroutine of a call cannot be cancelled."""
    plugin, mark = stubborn
    command = [sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", plugin]
    with subprocess.Popen(command, stdin=-1, stdout=-1, cwd=ROOT, env={**os.environ, "MARK": str(mark)}) as running:
        assert running.stdin
        running.stdin.write(json.dumps(_call("t__stay")).encode() + b"\n")
        running.stdin.flush()
        until(mark.exists)
        running.stdin.close()
        assert running.wait(40) == 0

    assert not mark.exists()


@pytest.mark.slow
def test_two_processes_share_keys_and_a_record(tmp_path: Path) -> None:
    """Either accepts the state of the other, and both together accept it once."""
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("k" * 32 + "\n")
    words = ("-p", str(PLUGIN), "--state-key-file", str(keys), "--used-states", str(tmp_path / "used"))

    async def call(url: str, **words: Any) -> Any:
        async with Client(url, elicitation_callback=lambda *_: None) as client:
            with suppress(MCPError):
                return await client.session.call_tool("t__risky", {"path": "a"}, **words, allow_input_required=True)

    with serving(*words) as (_, one), serving(*words) as (_, other):
        asked = asyncio.run(call(one))
        approved = ElicitResult(action="accept", content={"approve": True})
        answers = dict.fromkeys(asked.input_requests, approved)
        found = [
            asyncio.run(call(url, input_responses=answers, request_state=asked.request_state)) for url in (other, one)
        ]

    assert [each and each.content[0].text for each in found] == ["deleted a", None]


@pytest.mark.slow
def test_calls_become_tasks() -> None:
    """If their tools match the option, and the client supports tasks."""
    with serving("--tasks", "math.a*") as (_, url):
        assert _task(url, "math__abs", num=-2)["resultType"] == "task"


def _task(url: str, tool: str, **arguments: Any) -> Any:
    """Return the result of a call by a client that supports tasks."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return httpx2.post(url, json=_call(tool, **arguments), headers=headers).json()["result"]


def _call(tool: str, **arguments: Any) -> Any:
    """Return the request for a call by a client that supports tasks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }
    call = {"name": tool, "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}


def test_stdio_server_stops_on_interrupt() -> None:
    """Its stdin is still open. A server that SIGTERM stops is in the tests of servers of a policy file."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    with subprocess.Popen(
        [sys.executable, "-m", "neuroscript", "mcp", "serve"], stdin=-1, stdout=-1, text=True, cwd=ROOT
    ) as running:
        assert running.stdin
        assert running.stdout
        running.stdin.write(line)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["result"]["serverInfo"]["name"] == "neuroscript"
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 128 + signal.SIGINT


@pytest.mark.slow
def test_client_can_use_the_printed_configuration(tmp_path: Path) -> None:
    """It starts the command with these arguments and is served; its calls are audited, which includes refusals."""
    trail = tmp_path / "trail.jsonl"
    options = ("--tools", "math.a*", "--audit", str(trail), "--deny", "math.abs")
    result = run_installed("mcp", "config", "--client", "claude", "--name", "mine", "--", *options)
    server = json.loads(result.out)["mcpServers"]["mine"]
    parameters = StdioServerParameters(command=server["command"], args=server["args"], env={**os.environ})

    async def talk() -> tuple[str, list[str]]:
        async with Client(stdio_client(parameters)) as client:
            await client.call_tool("math__add", {"num1": "2", "num2": 3})
            await client.call_tool("math__abs", {"num": 2})
            return client.server_info.name, [tool.name for tool in (await client.list_tools()).tools]

    assert asyncio.run(talk()) == ("mine", ["math__add"])
    shown = run_installed("audit", "show", "--json", str(trail))
    found = [json.loads(line) for line in shown.out.splitlines()]

    assert [(each["tool"], each["code"]) for each in found if each["kind"] != "intent"] == [
        ("math.add", "ok"),
        ("math.abs", "policy.denied"),
    ]
