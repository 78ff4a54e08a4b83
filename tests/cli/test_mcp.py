"""``neuroscript mcp``: errors before serving, the configuration of clients, and the server over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.cli.conftest import run_installed

from neuroscript._imports import install_hint
from neuroscript.cli.mcp import options as mcp_words
from neuroscript.interop.mcp import CLIENTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mcp",), "expected an action: serve, config, tools (see neuroscript mcp --help)"),
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


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """Serve over HTTP in a separate process, and yield it with its URL."""
    command = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--http", "127.0.0.1:0", *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, cwd=ROOT
    ) as running:
        try:
            line = running.stderr.readline() if running.stderr else ""
            found = re.search(r"serving at (\S+)", line)
            assert found, line
            yield running, found[1]
        finally:
            running.kill()


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
