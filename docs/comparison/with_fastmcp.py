"""Call tools through FastMCP: a server, and a client in the same process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from mcp import MCPError
from missing import refuse_if_defined


def ask(server: FastMCP, tool: str, arguments: dict[str, Any]) -> str | None:
    """Call a tool as a client, and return the text of the error."""

    async def asked() -> str | None:
        async with Client(server) as client:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            return result.content[0].text if result.is_error else None

    return asyncio.run(asked())


def call(tool: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    server = FastMCP("probe")
    server.tool(tool)
    return ask(server, tool.__name__, arguments)


class Rule(Middleware):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        self.seen.append(context.message.arguments["account"])
        return await call_next(context)


def call_with_rule(tool: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    rule = Rule()
    server = FastMCP("probe", middleware=[rule])
    server.tool(tool)
    ask(server, tool.__name__, arguments)
    return rule.seen


class Deny(Middleware):
    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        if context.message.name == "inner":
            raise ToolError("denied")
        return await call_next(context)


def call_nested(inner: Callable[..., Any]) -> None:
    async def outer(ctx: Context) -> str:
        """Call the other tool."""
        return str(await ctx.fastmcp.call_tool("inner", {}))

    server = FastMCP("probe", middleware=[Deny()])
    server.tool(inner)
    server.tool(outer)
    ask(server, "outer", {})


def call_limited(tool: Callable[..., Any], seconds: float) -> float:
    server = FastMCP("probe")
    server.tool(tool, timeout=seconds)

    async def asked() -> float:
        async with Client(server) as client:  # its end waits for the server, which is in this process
            with suppress(MCPError):
                await client.call_tool(tool.__name__, {}, timeout=seconds)
            return time.monotonic()

    return asyncio.run(asked())


def edited_log(tool: Callable[..., Any], directory: Path) -> bool:
    refuse_if_defined("fastmcp", "audit_?log|hash_?chain|tamper", "no log")
    raise AssertionError


def served() -> list[str]:
    server = FastMCP("probe")

    @server.tool
    def ping() -> str:
        return "pong"

    @server.resource("probe://ping")
    def page() -> str:
        return "pong"

    @server.prompt
    def question() -> str:
        return "ping?"

    async def listed() -> list[str]:
        async with Client(server) as client:
            found = {
                "tools": await client.list_tools(),
                "resources": await client.list_resources(),
                "prompts": await client.list_prompts(),
            }
            return [name for name, entries in found.items() if len(entries) == 1]

    return asyncio.run(listed())


def has_provider(name: str) -> bool:
    module = {"google": "google_genai"}.get(name, name)
    return find_spec(f"fastmcp.client.sampling.handlers.{module}") is not None
