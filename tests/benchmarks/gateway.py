"""What a call through the gateway costs: ``python -m tests.benchmarks.gateway``.

The same client of the SDK calls the same tool of the same server directly, through a proxy that is a few lines of the
SDK and checks nothing, and through the gateway. The proxy shows the least that a second hop costs with the SDK. All three
take turns in one run; the times are minima of short batches.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import httpx2
import uvicorn
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool
from starlette.applications import Starlette
from starlette.routing import Mount

MODULE: Final = "tests.benchmarks.gateway"

BATCH_CALLS: Final = 5
"""Calls in a batch, whose mean time counts once."""

NUMBERS: Final = {"a": {"type": "integer"}, "b": {"type": "integer"}}
ADD: Final = Tool(
    name="add",
    description="Add two numbers.",
    input_schema={"type": "object", "properties": NUMBERS, "required": ["a", "b"]},
    output_schema={"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
)
WAYS: Final = ("direct", "proxy", "gateway")


# The server and the proxy, as programs


def adding() -> Server[Any]:
    """Return a server that adds two numbers."""

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[ADD])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        total = params.arguments["a"] + params.arguments["b"]
        return CallToolResult(content=[TextContent(text=str(total))], structured_content={"result": total})

    return Server("adding", on_list_tools=list_tools, on_call_tool=call_tool)


@asynccontextmanager
async def proxy() -> AsyncIterator[Server[Any]]:
    """Provide a server that passes each request on to another process with `adding`, and each result back."""
    async with started("server") as behind:

        async def list_tools(context: Any, params: Any) -> ListToolsResult:
            return await behind.list_tools()

        async def call_tool(context: Any, params: Any) -> CallToolResult:
            return await behind.call_tool(params.name, params.arguments)

        yield Server("proxy", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(role: str, port: int) -> None:
    """Serve over standard streams, or over HTTP at a port."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(proxy()) if role == "proxy" else adding()
        if not port:
            read, write = await stack.enter_async_context(stdio_server())
            await server.run(read, write, server.create_initialization_options())
            return
        manager = StreamableHTTPSessionManager(server)
        await stack.enter_async_context(manager.run())
        app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)])
        await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


# The measurement


@asynccontextmanager
async def started(*words: str, module: str = MODULE) -> AsyncIterator[Client]:
    """Start a program of this module, or another one, and connect over its standard streams."""
    where = StdioServerParameters(command=sys.executable, args=["-m", module, *words], env=dict(os.environ))
    async with Client(stdio_client(where)) as client:
        yield client


@asynccontextmanager
async def reached(port: int, *words: str) -> AsyncIterator[Client]:
    """Start a program that serves HTTP at a port, and connect to it."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", *words)
    try:
        async with httpx2.AsyncClient() as http:
            while True:
                try:
                    await http.get(f"http://127.0.0.1:{port}/")
                    break
                except httpx2.ConnectError:
                    await asyncio.sleep(0.05)
            async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp/", http_client=http)) as client:
                yield client
    finally:
        process.terminate()
        await process.wait()


def gateway_file(directory: Path, port: int) -> str:
    """Write the settings of a gateway in front of `adding`, and return the path."""
    command = [sys.executable, __file__, "server"]
    listen = f'listen = "127.0.0.1:{port}"\n' if port else ""
    path = directory / f"gateway-{port}.toml"
    path.write_text(
        f'[policy]\ngrants = ["mcp:call:**"]\n[mcp.far]\ncommand = {json.dumps(command)}\ntrusted = true\n'
        f'[gateway]\nnames = "bare"\n{listen}'
    )
    return str(path)


async def measure(transport: str, rounds: int) -> dict[str, float]:
    """Return the seconds of a call, by way."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        clients: dict[str, Client] = {}
        for way in WAYS:
            if transport == "stdio":
                words = ("gateway", gateway_file(directory, 0)) if way == "gateway" else (PROGRAMS[way],)
                opened = started(*words, module="neuroscript" if way == "gateway" else MODULE)
            else:
                port = free_port()
                words = ("neuroscript", "gateway", gateway_file(directory, port))
                opened = reached(port, *(words if way == "gateway" else (MODULE, PROGRAMS[way], "--port", str(port))))
            clients[way] = await stack.enter_async_context(opened)
        return await minima(clients, rounds)


PROGRAMS: Final = {"direct": "server", "proxy": "proxy"}


async def minima(clients: Mapping[str, Client], rounds: int) -> dict[str, float]:
    """Return the minimum time of one call by each client, whose batches take turns."""
    least = dict.fromkeys(clients, float("inf"))
    for _ in range(rounds):
        for way, client in clients.items():
            begun = perf_counter()
            for number in range(BATCH_CALLS):
                result = await client.call_tool("add", {"a": number, "b": 2})
            least[way] = min(least[way], (perf_counter() - begun) / BATCH_CALLS)
            assert result.structured_content == {"result": BATCH_CALLS + 1}, result
    return least


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def main() -> int:
    """Print the table, or run the program that is named."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.gateway", description=__doc__)
    parser.add_argument("program", nargs="?", choices=("server", "proxy"), help="run a program of the measurement")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    if options.program:
        asyncio.run(serve(options.program, options.port))
        return 0
    print(
        "| transport of the client | direct | bare proxy | gateway | proxy / direct | gateway / direct | gateway / proxy |"
    )
    print("|---|---|---|---|---|---|---|")
    for transport in ("stdio", "HTTP"):
        direct, bare, ours = asyncio.run(measure(transport, options.rounds)).values()
        times = " | ".join(f"{each * 1000:.2f} ms" for each in (direct, bare, ours))
        print(f"| {transport} | {times} | {bare / direct:.2f} | {ours / direct:.2f} | {ours / bare:.2f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
