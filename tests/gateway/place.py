"""A gateway that serves over HTTP, on a loop in a thread, and clients of the MCP SDK."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.interop.mcp_place import bound, until
from tests.interop.mcp_stdio import command

from neuroscript.config.gateway_file import load_gateway
from neuroscript.gateway.gateway import Gateway
from neuroscript.gateway.http import app
from neuroscript.interop.http_server.listener import server as http_server

HANDSHAKE = "2025-11-25"
"""The protocol version with a handshake."""

TOKENS: Mapping[str, str] = {name.upper(): f"the-token-of-{name}-0123456789" for name in ("alice", "bob", "carol")}
"""The tokens of clients, by environment variable."""

CLIENTS = """
[client.alice]
token = {secret = "ALICE"}
monitor = true
[client.bob]
token = {secret = "BOB"}
"""


@attrs.frozen(eq=False)
class Place:
    """A running gateway."""

    gateway: Gateway
    url: str

    def state(self, name: str) -> Any:
        """Return the state of a server."""
        return next(each for each in self.gateway.servers.states if each.name == name)

    @asynccontextmanager
    async def client(self, name: str = "", mode: str = "auto", **words: Any) -> AsyncIterator[Client]:
        """Connect as a client of the gateway."""
        async with httpx2.AsyncClient(headers=headers(name)) as http:
            async with Client(streamable_http_client(self.url, http_client=http), mode=mode, **words) as client:
                yield client

    def get(self, path: str, name: str = "") -> Any:
        """Return the response to a request of an operator."""
        with httpx2.Client() as http:
            return http.get(self.url.removesuffix("/mcp") + path, headers=headers(name))

    def call(self, name: str, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool as a client, and return the result."""

        async def called() -> Any:
            async with self.client(name) as client:
                return await client.call_tool(tool, dict(arguments or {}))

        return asyncio.run(called())

    def tools(self, name: str = "") -> list[str]:
        """Return the names of the tools of a client."""

        async def listed() -> list[str]:
            async with self.client(name) as client:
                return [each.name for each in (await client.list_tools()).tools]

        return asyncio.run(listed())


def headers(name: str) -> dict[str, str]:
    """Return the headers of a client."""
    return {"Authorization": f"Bearer {TOKENS[name.upper()]}"} if name else {}


def file_of(directory: Path, text: str) -> Path:
    """Write a policy file with settings of a gateway, and return its path."""
    path = directory / "gateway.toml"
    path.write_text(text)
    return path


@contextmanager
def running(
    directory: Path, text: str, environ: Mapping[str, str] | None = None, bounds: Mapping[str, Any] | None = None
) -> Iterator[Place]:
    """Run a gateway with the settings in *text*.

    Args:
        bounds: Keyword arguments of the HTTP server.
    """
    file = load_gateway(file_of(directory, text))
    with Gateway(file, {**TOKENS, **(environ or {})}) as gateway, bound() as (listening, port):
        server = http_server(app(gateway), **(bounds or {}))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            until(lambda: server.started)
            yield Place(gateway, f"http://127.0.0.1:{port}/mcp")
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def scripted(directory: Path, name: str, tools: Any, *options: str) -> list[str]:
    """Write the definitions of a server, and return its command."""
    file = directory / f"{name}.definitions.json"
    file.write_text(json.dumps(tools))
    return command("scripted", str(file), *options)


def tool(name: str, description: str = "Do it.", **more: Any) -> dict[str, Any]:
    """Return the definition of a tool with one optional string."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def server_table(name: str, command: list[str], **settings: Any) -> str:
    """Return the table of a trusted server in a policy file."""
    lines = {"command": command, "trusted": True, **settings}
    return "\n".join([f"[mcp.{name}]", *(f"{key} = {_toml(each)}" for key, each in lines.items()), ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return "\n".join(each.text for each in result.content if each.type == "text")


@asynccontextmanager
async def direct(command: list[str], env: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """Connect to a server without a gateway, as most programs do: with the SDK and the whole environment."""
    where = StdioServerParameters(command=command[0], args=command[1:], env=dict(env or {}))
    async with Client(stdio_client(where, errlog=sys.stderr)) as client:
        yield client


POLICY = """
[policy]
grants = ["mcp:call:**"]
[gateway]
listen = "127.0.0.1:0"
"""
