"""``neuroscript mcp``: what is said before anybody is served, what clients are told, and the server over HTTP."""

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
from tests.cli.conftest import process

from neuroscript.cli.mcp import options as mcp_words
from neuroscript.interop.mcp import CLIENTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("mcp",), "an action is missing: serve, config, tools (see neuroscript mcp --help)"),
        (("mcp", "serve", "--origin", "x"), "--token-from and --origin are for HTTP; give --http too"),
        (("mcp", "serve", "--token-from", "X"), "--token-from and --origin are for HTTP; give --http too"),
        (
            ("mcp", "serve", "--http", "127.0.0.1:0", "--token-from", "NOT_SET_ANYWHERE"),
            "the variable that --token-from names is not set, or empty",
        ),
        (
            ("mcp", "serve", "--http", "0.0.0.0:0"),
            "an address that others can reach needs a token; name its variable with --token-from",
        ),
        (("mcp", "serve", "--http", "192.0.2.1:1", "--token-from", "PATH"), "can not serve at that address (OSError)"),
        (
            ("mcp", "serve", "--http", "here"),
            "argument --http: expected an address such as 127.0.0.1:8000 (see neuroscript mcp serve --help)",
        ),
    ],
)
def test_what_can_not_be_served_is_said(words: tuple[str, ...], sentence: str) -> None:
    """In one line, and the command exits with 2; stdout, which belongs to the protocol, stays empty."""
    ran = process(*words)

    assert (ran.code, ran.out, ran.err.splitlines()[-1]) == (2, "", f"neuroscript: {sentence}")


def test_who_lacks_the_sdk_is_told_how_to_get_it() -> None:
    """In one line; what a client has to be told needs none."""
    code = "import sys; sys.modules['mcp'] = None; from neuroscript.cli import main; sys.exit(main(sys.argv[1:]))"
    served, told = (
        subprocess.run([sys.executable, "-c", code, "mcp", word], capture_output=True, text=True, cwd=ROOT)
        for word in ("serve", "config")
    )

    sentence = 'serving over MCP needs its SDK; install it with: pip install "neuroscript[mcp]"'
    assert (served.returncode, served.stderr) == (2, f"neuroscript: {sentence}\n")
    assert (told.returncode, [*json.loads(told.stdout)]) == (0, ["mcpServers"])


def test_a_pattern_that_is_none_is_said() -> None:
    """Before anybody is served."""
    ran = process("mcp", "serve", "--tools", "math.[")

    assert (ran.code, ran.out) == (2, "")


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
def test_a_client_can_do_what_config_prints(client: str, key: str) -> None:
    """It starts that command with those words, and is served."""
    ran = process("mcp", "config", "--client", client, "--name", "mine", "--", "--tools", "math.add")
    server = json.loads(ran.out)[key]["mine"]

    assert (ran.code, server["command"]) == (0, sys.executable)
    assert server["args"] == ["-m", "neuroscript", "mcp", "serve", "--name", "mine", "--tools", "math.add"]
    if client == "claude":
        parameters = StdioServerParameters(command=server["command"], args=server["args"], env={**os.environ})
        assert asyncio.run(_listed(stdio_client(parameters))) == ("mine", ["math__add"])


def test_the_words_know_the_clients_that_have_a_snippet() -> None:
    """They stand twice, for the help of the whole command loads nothing of interop."""
    assert (*sorted(CLIENTS),) == mcp_words.CLIENTS


async def _listed(transport: Any) -> tuple[str, list[str]]:
    async with Client(transport) as client:
        return client.server_info.name, [tool.name for tool in (await client.list_tools()).tools]


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[tuple[Any, str]]:
    """Serve over HTTP in a process, and lend it with its address."""
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


def test_the_server_over_http_asks_for_the_token_and_ends_when_it_is_told() -> None:
    """Nothing is written to stdout, and an interrupt ends it at once."""

    async def talk(url: str, token: str) -> Any:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http_client:
            return await _listed(streamable_http_client(url, http_client=http_client))

    with serving("--token-from", "T", "--tools", "math.add", T="abc") as (running, url):
        assert asyncio.run(talk(url, "abc")) == ("neuroscript", ["math__add"])
        with pytest.raises(Exception, match="TaskGroup"):
            asyncio.run(talk(url, "abd"))
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=10)
        assert (running.returncode, out) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_over_stdio_ends_when_it_is_told(number: signal.Signals) -> None:
    """Although nobody has closed its input."""
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
        running.send_signal(number)
        assert running.wait(10) == 128 + number


def test_calls_of_clients_stand_in_the_trail(tmp_path: Path) -> None:
    """As those of every other way, refusals too."""
    trail = tmp_path / "trail.jsonl"
    words = ["-m", "neuroscript", "mcp", "serve", "--audit", str(trail), "--deny", "math.abs"]
    parameters = StdioServerParameters(command=sys.executable, args=words, env={**os.environ})

    async def talk() -> None:
        async with Client(stdio_client(parameters)) as client:
            await client.call_tool("math__add", {"num1": "2", "num2": 3})
            await client.call_tool("math__abs", {"num": 2})

    asyncio.run(talk())
    shown = process("audit", "show", "--json", str(trail))
    found = [json.loads(line) for line in shown.out.splitlines()]

    assert [(each["tool"], each["code"]) for each in found if each["kind"] != "intent"] == [
        ("math.add", "ok"),
        ("math.abs", "policy.denied"),
    ]
