"""Tools of AgentHeaven that are called over a connected MCP client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP
from mcp.client.client import Client as MCPClient

from neuroscript import Engine, ExecutionPolicy, PolicyError, SpecError, Toolset
from neuroscript.interop.agentheaven import ToolSpec


def far_server() -> FastMCP[Any]:
    """Return a server with the tool ``add`` of the row, and others."""
    server: FastMCP[Any] = FastMCP("far")

    @server.tool
    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    return server


def agent_server() -> FastMCP[Any]:
    """Return a server with tools that return text, fail and wait."""
    server: FastMCP[Any] = FastMCP("agent")

    @server.tool(output_schema=None)
    def agent(name: str) -> str:
        """Tell the number of an agent."""
        if name != "bond":
            raise ValueError("no such agent")
        return "007"

    @server.tool
    async def wait(seconds: float) -> None:
        """Wait."""
        BEGUN.set()
        try:
            await asyncio.sleep(seconds)
        finally:
            STOPPED.set()

    return server


BEGUN, STOPPED = threading.Event(), threading.Event()

CLIENTS: dict[str, Callable[[FastMCP[Any]], Any]] = {
    "fastmcp": FastMCPClient,
    "sdk": lambda server: MCPClient(server._mcp_server),
}


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("is_session", [False, True], ids=["client", "session"])
def test_ah_53_tool_of_a_connected_client_is_called_over_it(kind: str, is_session: bool) -> None:
    """With its own schema and exact values; each call sends the bound arguments."""

    async def run() -> list[Any]:
        async with CLIENTS[kind](far_server()) as client:
            handle = await ToolSpec.from_client(client.session if is_session else client, "add")
            bound = handle.clone().bind("b", default="40")
            values = [await handle.acall(a="2"), await bound.acall(a=2), (await handle.aexec(a=1)).structured_content]
            wrong = await handle.aexec(a="x", c=1)
            return [handle.name, handle.description, handle.input_schema["required"], [*bound.params], *values, wrong]

    *found, wrong = asyncio.run(run())

    assert ["add", "Add.", ["a"], ["a"], 3, 42, {"result": 2}] == found
    assert (
        "agentheaven.add: a: expected int, got str (a string must be a decimal integer, such as 42); "
        "c: expected only a, b, got an unknown name of type int"
    ) == str(wrong.error)


def test_ah_53_missing_tool_is_reported_with_the_available_ones() -> None:
    """The messages are those of the row; an invalid client is reported too."""

    async def run() -> tuple[str, str, str]:
        client = FastMCPClient(far_server())
        async with client:
            with pytest.raises(ValueError) as missing:
                await ToolSpec.from_client(client, "zz")
        with pytest.raises(SpecError) as closed:
            await ToolSpec.from_client(client, "add")
        with pytest.raises(SpecError) as none:
            await ToolSpec.from_client("client", "add")
        return str(missing.value), str(closed.value), str(none.value)

    missing, closed, none = asyncio.run(run())

    assert "Tool 'zz' not found on server. Available tools: ['add']" == missing
    assert "client: expected a connected session or client of the MCP SDK or of FastMCP" == closed == none


def test_ah_53_results_and_errors_are_those_of_any_third_party_tool() -> None:
    """A string stays a string; upstream converts it to 7."""

    async def run() -> tuple[Any, Any]:
        async with FastMCPClient(agent_server()) as client:
            handle = await ToolSpec.from_client(client, "agent")
            return await handle.acall(name="bond"), (await handle.aexec(name="smith")).error

    value, error = asyncio.run(run())

    assert "007" == value
    assert "agentheaven.agent: the server says: Error calling tool 'agent': no such agent" == str(error)
    assert ("mcp.error", "model") == (error.code, error.retry)


def test_ah_53_synchronous_call_in_the_loop_of_the_client_is_refused() -> None:
    """It works in another thread, and nothing hangs; a closed client is an error too."""

    async def run() -> tuple[Any, Any, Any]:
        async with FastMCPClient(far_server()) as client:
            handle = (await ToolSpec.from_client(client, "add")).bind("b", default=2).binded
            waiting = handle.exec(a=1)
            value = await asyncio.to_thread(handle.call, a=1)
        return waiting.error, value, await asyncio.to_thread(handle.exec, a=1)

    waiting, value, closed = asyncio.run(run())

    assert (
        "agentheaven.add: the client's event loop is blocked by this call; use await with acall or aexec in that loop"
    ) == str(waiting)
    assert (3, "mcp.would_block", "host") == (value, waiting.code, waiting.retry)
    assert ("mcp.closed", "later") == (closed.error.code, closed.error.retry)


def test_ah_53_cancelled_call_is_cancelled_on_the_server() -> None:
    """The awaiting task continues at once."""

    async def run() -> bool:
        async with FastMCPClient(agent_server()) as client:
            handle = await ToolSpec.from_client(client, "wait")
            call = asyncio.create_task(handle.acall(seconds=60))
            await asyncio.to_thread(BEGUN.wait, 10)
            call.cancel()
            return await asyncio.to_thread(STOPPED.wait, 10)

    assert asyncio.run(run())


def test_ah_53_tool_needs_a_grant_and_an_approval_in_an_engine() -> None:
    """Like all third-party tools; the engine calls it over the client."""

    async def run() -> tuple[Any, Any]:
        async with FastMCPClient(far_server()) as client:
            toolset = Toolset("far", ((await ToolSpec.from_client(client, "add", group="far")).tool,))
            policy = ExecutionPolicy(grants=("mcp:call:far/*",), preapproved=("far.add",))
            with Engine(plugins="none", toolsets=[toolset]) as poor, pytest.raises(PolicyError) as caught:
                await poor.acall("far.add", (1,))
            with Engine(plugins="none", toolsets=[toolset], policy=policy) as engine:
                return (caught.value.code, caught.value.retry), await engine.acall("far.add", ("1",))

    assert (("policy.approval", "host"), 2) == asyncio.run(run())
