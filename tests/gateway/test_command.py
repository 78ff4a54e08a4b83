"""``neuroscript gateway``: over standard streams and HTTP, the configuration of programs, and errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.cli.conftest import run_installed
from tests.gateway.place import CLIENTS, POLICY, TOKENS, file_of, headers, scripted, server_table, text_of, tool

from neuroscript.cli.gateway import options as gateway_options
from neuroscript.interop.mcp.server.client_config import CLIENTS as PROGRAMS

STDIO = POLICY.replace('listen = "127.0.0.1:0"', 'instructions = "Be brief."')
ROOT = Path(__file__).parents[2]


def test_gateway_over_standard_streams_serves_one_client(tmp_path: Path) -> None:
    """Without tokens, which are not even set, under the table of the client."""
    table = server_table("notes", scripted(tmp_path, "notes", [tool("echo"), tool("process")]))
    path = file_of(tmp_path, STDIO + table + CLIENTS + 'deny = ["notes.process"]\n')

    async def main() -> tuple[Any, ...]:
        words = ["-m", "neuroscript", "gateway", str(path), "--client", "bob"]
        where = StdioServerParameters(command=sys.executable, args=words, env={**os.environ}, cwd=ROOT)
        async with Client(stdio_client(where)) as client:
            tools = [each.name for each in (await client.list_tools()).tools]
            return tools, text_of(await client.call_tool("notes__echo", {"text": "hi"})), client.instructions

    assert asyncio.run(main()) == (["notes__echo"], "hi", "Be brief.")


def test_gateway_over_http_ends_with_its_servers_on_a_signal(tmp_path: Path) -> None:
    table = server_table("notes", scripted(tmp_path, "notes", [tool("process")]))
    path = file_of(tmp_path, POLICY + table + CLIENTS)
    command = [sys.executable, "-m", "neuroscript", "gateway", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **TOKENS}, cwd=ROOT)
    try:
        assert process.stderr is not None
        found = re.search(r"serving at (\S+)/mcp", process.stderr.readline())
        assert found
        states = httpx2.get(f"{found[1]}/health/servers", headers=headers("alice")).json()
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)
    finally:
        process.kill()
        process.communicate()

    assert [each["status"] for each in states["servers"]] == ["running"]
    assert code in (-signal.SIGTERM, 128 + signal.SIGTERM)


def configured(path: Path, *words: str) -> Any:
    result = run_installed("gateway", str(path), "--client-config", *words)
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_configuration_of_programs_over_http_names_the_token_and_does_not_contain_it(tmp_path: Path) -> None:
    path = file_of(tmp_path, POLICY.replace(":0", ":8080") + CLIENTS)

    found = {
        name: configured(path, name, "--client", "bob")
        for name in ("claude-code", "cursor", "gemini", "vscode", "windsurf")
    }

    url = "http://127.0.0.1:8080/mcp"
    assert found == {
        "claude-code": {
            "mcpServers": {"neuroscript": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${BOB}"}}}
        },
        "cursor": {"mcpServers": {"neuroscript": {"url": url, "headers": {"Authorization": "Bearer ${env:BOB}"}}}},
        "gemini": {"mcpServers": {"neuroscript": {"httpUrl": url, "headers": {"Authorization": "Bearer $BOB"}}}},
        "vscode": {
            "servers": {
                "neuroscript": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${input:BOB}"}}
            },
            "inputs": [{"type": "promptString", "id": "BOB", "description": "Token", "password": True}],
        },
        "windsurf": {
            "mcpServers": {"neuroscript": {"serverUrl": url, "headers": {"Authorization": "Bearer ${env:BOB}"}}}
        },
    }


def test_configuration_of_programs_over_standard_streams_starts_the_gateway(tmp_path: Path) -> None:
    path = file_of(tmp_path, STDIO + CLIENTS)

    found = configured(path, "claude-desktop", "--client", "alice")

    words = ["-m", "neuroscript", "gateway", str(path), "--client", "alice"]
    assert found == {"mcpServers": {"neuroscript": {"command": sys.executable, "args": words}}}


def test_programs_of_the_options_are_those_that_can_be_configured() -> None:
    assert {*gateway_options.CLIENTS} == {*PROGRAMS} - {"claude"}


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        (STDIO + CLIENTS, (), "the file has several clients; select one with --client: alice, bob"),
        (
            STDIO + CLIENTS,
            ("--client", "alise"),
            "unknown client alise; the file has no table client.NAME for it; did you mean alice?",
        ),
        (
            POLICY + CLIENTS,
            ("--client", "alice"),
            "--client selects the client over stdin and stdout, but listen serves HTTP",
        ),
        (
            POLICY + CLIENTS,
            ("--client-config", "claude-desktop", "--client", "alice"),
            "claude-desktop only starts servers; remove listen to serve it over stdin and stdout",
        ),
        (STDIO, ("--review", "notes"), "unknown server notes; the file has no table mcp.NAME for it"),
        (
            STDIO + '[mcp.notes]\ncommand = ["x"]\nenv = {KEY = {secret = "NOT_SET_ANYWHERE"}}\n',
            ("--accept", "notes"),
            "mcp.notes: these environment variables are not set, or too short: NOT_SET_ANYWHERE",
        ),
        (
            POLICY + CLIENTS,
            (),
            "gateway: client.alice.token: the environment variable ALICE is not set, or is empty; "
            "client.bob.token: the environment variable BOB is not set, or is empty",
        ),
        (STDIO + "[gatway]\n", (), "gateway.toml:6: gatway: unknown key; did you mean gateway?"),
    ],
)
def test_errors_before_serving(
    text: str, words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in TOKENS:
        monkeypatch.delenv(name, raising=False)

    result = run_installed("gateway", str(file_of(tmp_path, text)), *words)

    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines()[0] == f"neuroscript: {sentence}"
