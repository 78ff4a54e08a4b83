"""Call tools through neuroscript."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from neuroscript import Engine, ExecutionPolicy, FileAudit, Host, Limits, Runtime, ToolCall, Toolset, hookimpl
from neuroscript.audit import verify
from neuroscript.llm.apis import ApiName


def toolset_of(*tools: Callable[..., Any]) -> Toolset:
    toolset = Toolset("probe")
    for tool in tools:
        toolset.tool(tool)
    return toolset


def engine_of(*tools: Callable[..., Any], **options: Any) -> Engine:
    return Engine(toolsets=[toolset_of(*tools)], plugins="none", **options)


def call(tool: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    with engine_of(tool) as engine:
        result = engine.execute(ToolCall(f"probe.{tool.__name__}", arguments))
    return None if result.ok else str(result.error)


class Rule:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def neuroscript_decide(self, call: Any) -> None:
        self.seen.append(call.arguments["account"])


def call_with_rule(tool: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    rule = Rule()
    with engine_of(tool, hooks=[rule]) as engine:
        engine.execute(ToolCall(f"probe.{tool.__name__}", arguments))
    return rule.seen


def call_nested(inner: Callable[..., Any]) -> None:
    def outer(rt: Runtime) -> str:
        """Call the other tool."""
        return str(rt.call_tool("probe.inner"))

    with engine_of(inner, outer, policy=ExecutionPolicy(deny=["probe.inner"])) as engine:
        result = engine.execute(ToolCall("probe.outer", {}))
    assert result.error is not None, "the denied tool ran"
    assert "probe.inner" in str(result.error), str(result.error)


def call_limited(tool: Callable[..., Any], seconds: float) -> None:
    with engine_of(tool, policy=ExecutionPolicy(limits=Limits(seconds=seconds))) as engine:
        result = engine.execute(ToolCall(f"probe.{tool.__name__}", {}))
        assert result.error is not None, "the call was not limited"


def edited_log(tool: Callable[..., Any], directory: Path) -> bool:
    path = directory / "audit.jsonl"
    audit = FileAudit(path)
    with engine_of(tool, audit=audit, host=Host(sandbox_dir=directory / "sandbox")) as engine:
        for euros in (1, 2, 3):
            engine.call("probe.refund", (euros,))
    assert verify(path).is_intact
    path.write_text(path.read_text().replace("refund", "charge", 1))
    return not verify(path).is_intact


def served() -> list[str]:
    async def listed() -> list[str]:
        words = ["-m", "neuroscript", "mcp", "serve"]
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        found = []
        async with Client(stdio_client(server)) as client:
            for name, ask in {
                "tools": client.list_tools,
                "resources": client.list_resources,
                "prompts": client.list_prompts,
            }.items():
                with suppress(MCPError):
                    await ask()
                    found.append(name)
        return found

    return asyncio.run(listed())


def has_provider(name: str) -> bool:
    return any(api.split("-")[0] == name for api in get_args(ApiName))
