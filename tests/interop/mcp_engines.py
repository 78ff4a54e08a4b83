"""MCP servers, engines with their tools, and the processes of this test run."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.mcp_stdio import command

from neuroscript import Engine, ExecutionPolicy, ToolCall, ToolResult
from neuroscript.interop.mcp import McpServer, from_mcp

SERVER: Final = [sys.executable, str(Path(__file__).with_name("mcp_server.py"))]
ALL: Final = ExecutionPolicy(grants=("mcp:call:far/*",))


def start_server(*words: str, **options: Any) -> McpServer:
    """Start the server of the SDK with these arguments; it is trusted by default."""
    return from_mcp([*SERVER, *words], **{"group": "far", "trusted": True, **options})


def bare_server(*tools: dict[str, Any], **options: Any) -> McpServer:
    """Start a server of an older protocol, without an SDK, with additional tools."""
    return from_mcp(command("bare", json.dumps(tools)), **{"group": "far", "trusted": True, **options})


def plain_server(*words: str, **options: Any) -> McpServer:
    """Start a server without an SDK, which starts much faster, with these arguments; it is trusted by default."""
    return from_mcp(command("plain", *words), **{"group": "far", "trusted": True, **options})


def engine_of(server: McpServer, policy: ExecutionPolicy = ALL, **options: Any) -> Engine:
    """Return an engine with the tools of a server; closing it stops the server."""
    return Engine(plugins="none", hooks=[server], policy=policy, **options)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """An engine with a well-behaved server."""
    with engine_of(start_server(trust_annotations=True)) as engine:
        yield engine


def call_tool(engine: Engine, name: str, /, **arguments: Any) -> ToolResult:
    """Return the result of calling a tool of the server."""
    return engine.execute(ToolCall(f"far.{name}", arguments))


RETRIES = {
    "coercion.format": "model",
    "mcp.answer": "never",
    "mcp.closed": "later",
    "mcp.refused": "model",
    "mcp.start": "later",
}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def error_code(result: ToolResult) -> str:
    """Return the code of an error, after checking its retry."""
    assert result.error is not None
    assert result.error.retry == RETRIES.get(result.error.code, "host")
    return result.error.code


def wait_until(what: Any, seconds: float = 10.0) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "the condition is still false"
        time.sleep(0.01)


def child_processes() -> set[str]:
    """Return the ids of the child processes."""
    found: set[str] = set()
    for each in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended in the meantime
            found.update((each / "children").read_text().split())
    return found
