"""FastMCP in both directions: our tools in its servers, called by its clients, and its tools through an engine."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import Middleware
from fastmcp.tools import Tool
from mcp_types import CallToolResult, ToolListChangedNotification

from neuroscript import (
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    SpecError,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    from_function,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.engine.session import Session
from neuroscript.interop.fastmcp import from_fastmcp, to_fastmcp
from neuroscript.interop.mcp import McpServer, from_mcp

ALL: Final = ExecutionPolicy(grants=("mcp:call:far/*",))


def kinds(count: int, values: list[int]) -> str:
    """Return the type of each value."""
    return " ".join(type(each).__name__ for each in (count, *values))


def take(count: int) -> int:
    """Take items out of the stock."""
    return count


def ours(function: Callable[..., Any], **needs: Any) -> ToolImplementation:
    """Return a function as a tool of the group ``g``."""
    return from_function(function, group="g", policy=ToolPolicy(**needs))


def engine_of(*tools: ToolImplementation, **options: Any) -> Engine:
    """Return an engine with only these tools."""
    return Engine(plugins="none", toolsets=[Toolset("g", tools)], **options)


def serving(session: Session, tools: str = "*") -> FastMCP[Any]:
    """Return a FastMCP server with an engine's tools, in the strictest and quietest configuration."""
    server: FastMCP[Any] = FastMCP("ours", strict_input_validation=True, mask_error_details=True)
    for each in to_fastmcp(session, tools=tools):
        server.add_tool(each)
    return server


def call_tool(server: FastMCP[Any], name: str, /, **arguments: Any) -> CallToolResult:
    """Return what a client of a server receives."""

    async def ask() -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool_mcp(name, arguments)

    return asyncio.run(ask())


def text_of(result: CallToolResult) -> str:
    """Return the text of a result."""
    (block,) = result.content
    assert block.type == "text"
    return block.text


# Our tools in its servers


def test_values_are_exact_that_fastmcp_alone_changes_or_rejects() -> None:
    """FastMCP alone turns true into 1, and rejects a list that is written as a string."""
    alone: FastMCP[Any] = FastMCP("alone")
    alone.tool(kinds)
    alone.tool(take)
    with engine_of(ours(kinds), ours(take)) as engine:
        server = serving(engine)

        assert text_of(call_tool(server, "g__kinds", count="2", values="[1, 2]")) == "int int int"
        assert text_of(call_tool(server, "g__take", count=True)) == (
            "error coercion.bool_as_number: count: expected int, got bool (a boolean is not a number). "
            "Fix the arguments and call again."
        )
    assert call_tool(alone, "kinds", count="2", values="[1, 2]").is_error
    assert call_tool(alone, "take", count=True).structured_content == {"result": 1}


def test_an_error_names_the_arguments_so_that_the_model_can_fix_them() -> None:
    """All problems at once; in one process it is a FastMCP error."""
    with engine_of(ours(kinds)) as engine:
        server = serving(engine)

        answer = call_tool(server, "g__kinds", count="x", other=1)

        assert answer.is_error
        assert [each for each in ("count: ", "values: ", "other: ") if each not in text_of(answer)] == []
        assert text_of(call_tool(server, "g__kinds", count=2, values=[1])) == "int int"
        with pytest.raises(ToolError, match=r"^error coercion\.format: count: expected int, got str"):
            asyncio.run(server.call_tool("g__kinds", {"count": "x", "values": []}))


def test_the_list_of_tools_matches_the_engine() -> None:
    """Names, titles, both schemas, and annotations from effects; a bound argument is hidden."""

    def send(text: str, key: str) -> list[int]:
        """Send a message."""
        return [len(text)]

    async def listed(server: FastMCP[Any]) -> Any:
        async with Client(server) as client:
            return await client.list_tools()

    with engine_of(ours(send, effects=("reads",)), ours(take)) as engine:
        (reported,) = asyncio.run(listed(serving(engine, "g.s*")))

    assert (reported.name, reported.title, reported.description) == ("g__send", "g.send", "Send a message.")
    assert reported.input_schema["required"] == ["text", "key"]
    assert reported.output_schema["properties"] == {"result": {"type": "array", "items": {"type": "integer"}}}
    assert reported.output_schema["required"] == ["result"]
    assert (reported.annotations.read_only_hint, reported.annotations.open_world_hint) == (True, False)


def test_results_are_structured_and_the_client_decodes_them() -> None:
    """An object unchanged, everything else under ``result``; an image from bytes."""

    def numbers() -> list[int]:
        return [1, 2]

    def nothing() -> None:
        pass

    def place() -> dict[str, int]:
        return {"x": 1}

    def picture() -> bytes:
        return b"\x89PNG\r\n\x1a\nrest"

    async def answers(server: FastMCP[Any]) -> list[Any]:
        async with Client(server) as client:
            return [await client.call_tool(f"g__{name}") for name in ("numbers", "nothing", "place", "picture")]

    with engine_of(ours(numbers), ours(nothing), ours(place), ours(picture)) as engine:
        *reported, shown = asyncio.run(answers(serving(engine)))

    assert [each.data for each in reported] == [[1, 2], None, {"x": 1}]
    assert [each.structured_content for each in reported] == [{"result": [1, 2]}, {"result": None}, {"x": 1}]
    assert (shown.content[0].type, shown.content[0].mime_type) == ("image", "image/png")


def test_a_denied_tool_is_hidden_and_a_need_uses_the_exact_value() -> None:
    """Clients do not see a denied tool; the other one is refused if its value is not granted."""
    policy = ExecutionPolicy(deny=("g.kinds",), grants=("stock:take:2",))
    trail = MemoryAudit()
    with engine_of(
        ours(take, capabilities=("stock:take:{count}",)), ours(kinds), policy=policy, audit=[trail]
    ) as engine:
        server = serving(engine)
        denied = call_tool(server, "g__kinds", count=1, values=[])
        granted = call_tool(server, "g__take", count=" 2 ")
        refused = call_tool(server, "g__take", count="3")

    assert (denied.is_error, text_of(denied)) == (True, "Unknown tool: 'g__kinds'")
    assert granted.structured_content == {"result": 2}
    assert refused.is_error
    assert text_of(refused) == (
        "error policy.capability: needs stock:take. Only the host can change that; do not repeat this call."
    )
    assert [(each.about.tool, each.types, each.code) for each in trail.records if each.code] == [
        ("g.take", (int,), "ok"),
        ("g.take", (int,), "policy.capability"),
    ]


def test_a_tool_is_refused_after_its_session_ends() -> None:
    """A server cannot bypass the end of a session."""
    with engine_of(ours(take)) as engine:
        session = engine.session()
        server = serving(session)
        session.close()

        answer = call_tool(server, "g__take", count=1)

    assert answer.is_error
    assert text_of(answer) == ("error engine.closed: the engine is closed. This call cannot succeed; do not repeat it.")


@pytest.mark.parametrize("approves", [True, False])
def test_a_tool_that_requires_an_approval_waits_for_it(approves: bool) -> None:
    """The approver sees exact values; the tool runs only if it approves."""
    seen: list[Any] = []

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(dict(request.arguments))
        return Approval.approve() if approves else Approval.reject("not today")

    policy = ExecutionPolicy(approver=approver)
    with engine_of(ours(take, requires_approval=True), policy=policy) as engine:
        answer = call_tool(serving(engine), "g__take", count="2")

    assert seen == [{"count": 2}]
    assert answer.is_error is not approves


def test_calls_run_concurrently_and_a_cancelled_call_ends() -> None:
    """Three calls wait for each other; another one stops when its client cancels it."""
    met = asyncio.Barrier(3)
    begun, stopped = threading.Event(), threading.Event()

    async def meet() -> int:
        await met.wait()
        return 1

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def run(server: FastMCP[Any]) -> list[Any]:
        async with Client(server) as client:
            answers = await asyncio.gather(*(client.call_tool("g__meet") for _ in range(3)))
            waiting = asyncio.create_task(client.call_tool("g__wait"))
            assert await asyncio.to_thread(begun.wait, 10)
            waiting.cancel()
            assert await asyncio.to_thread(stopped.wait, 10)
            return [each.data for each in answers]

    with engine_of(ours(meet), ours(wait)) as engine:
        assert asyncio.run(run(serving(engine))) == [1, 1, 1]


SERVER: Final = """
from fastmcp import FastMCP
from neuroscript import Engine
from neuroscript.interop.fastmcp import to_fastmcp

with Engine() as engine:
    server = FastMCP("ours", tools=to_fastmcp(engine, tools="math.*"))

    @server.tool
    def join(words: list[str], times: int = 1) -> str:
        "Join words."
        return " ".join(words * times)

    server.run(show_banner=False)
"""


@pytest.mark.slow
def test_a_fastmcp_server_process_serves_our_tools_over_stdio() -> None:
    """A separate program, whose tools our own client calls, under the same rules as those of any server."""
    paths = os.pathsep.join(each for each in sys.path if each)
    server = from_mcp([sys.executable, "-c", SERVER], group="far", trusted=True, env={"PYTHONPATH": paths})

    with Engine(plugins="none", hooks=[server], policy=ALL) as engine:
        names = {name.partition("_")[0] for name in engine.tools}
        value = engine.call_named("far.math_add", {"num1": "2", "num2": 3})
        wrong = engine.execute(ToolCall("far.math_add", {"num1": "x", "num2": 3}))
        joined = engine.call_named("far.join", {"words": '["a", "b"]', "times": "2"})

    assert names == {"far.math", "far.join"}
    assert (value, joined) == (5, "a b a b")
    assert str(wrong.error).startswith("far.math_add: num1: expected float, got str")


# Its tools through an engine


def far(**options: Any) -> tuple[FastMCP[Any], McpServer]:
    """Return a FastMCP server, and its tools as imported by this library."""

    @asynccontextmanager
    async def lifespan(server: FastMCP[Any]) -> AsyncIterator[dict[str, Any]]:
        yield {"shelf": "upper"}

    server: FastMCP[Any] = FastMCP("shop", lifespan=lifespan)

    @server.tool(annotations={"readOnlyHint": True})
    async def look(count: int, ctx: Context, shelf: str = "lower") -> dict[str, Any]:
        """Look at a shelf."""
        await ctx.report_progress(1, 2, "looked")
        kind = type(count).__name__
        return {"count": count, "kind": kind, "server": ctx.fastmcp.name, **ctx.lifespan_context, "other": shelf}

    @server.tool
    def fail(why: str) -> str:
        """Fail."""
        raise ToolError(why)

    return server, from_fastmcp(server, **{"group": "far", **options})


def test_imported_tools_run_through_an_engine_with_exact_values() -> None:
    """FastMCP injects its own arguments, which no other caller sees; progress is forwarded."""
    received: list[Any] = []
    _, taken = far(trusted=True)
    with Engine(plugins="none", hooks=[taken], policy=ALL, host=Host(progress=received.append)) as engine:
        value = engine.call_named("far.look", {"count": " 2 "})
        wrong = engine.execute(ToolCall("far.look", {"count": True, "ctx": 1}))
        failed = engine.execute(ToolCall("far.fail", {"why": "no tea"}))
        names = [each.name for each in engine.tools["far.look"].spec.args]

    assert value == {"count": 2, "kind": "int", "server": "shop", "shelf": "upper", "other": "lower"}
    assert names == ["count", "shelf"]
    assert [(each.done, each.total, each.text) for each in received] == [(1, 2, "looked")]
    assert str(wrong.error) == (
        "far.look: count: expected int, got bool (a boolean is not a number); ctx: expected only count, shelf, got an unknown name of type int"
    )
    assert str(failed.error) == "far.fail: the server says: no tea"


@pytest.mark.parametrize(
    ("options", "refusals"),
    [
        ({}, (("policy.approval", "host"), ("policy.approval", "host"))),
        ({"trust_annotations": True}, (None, ("policy.approval", "host"))),
        ({"trusted": True}, (None, ("mcp.error", "model"))),
    ],
    ids=["untrusted", "annotations", "trusted"],
)
def test_imported_tools_have_the_needs_of_any_mcp_server(options: dict[str, Any], refusals: tuple[Any, Any]) -> None:
    """A grant, and an approval unless they only read and the server is trusted."""
    _, taken = far(**options)
    with Engine(plugins="none", hooks=[taken], policy=ALL) as engine:
        calls = [ToolCall("far.look", {"count": 1}), ToolCall("far.fail", {"why": "no"})]
        errors = [engine.execute(each).error for each in calls]
        with engine.session(policy=ExecutionPolicy()) as poor:
            ungranted = poor.execute(calls[0]).error

    assert tuple(each and (each.code, each.retry) for each in errors) == refusals
    assert ungranted is not None
    assert ungranted.code.startswith("policy.")
    assert ungranted.retry == "host"


def test_a_removed_tool_is_refused_and_closing_the_engine_stops_the_server() -> None:
    """The server's loop ends with the engine."""
    before = threading.active_count()
    server, taken = far(trusted=True)
    with Engine(plugins="none", hooks=[taken], policy=ALL) as engine:
        assert engine.call_named("far.look", {"count": 1})["count"] == 1

        server.local_provider.remove_tool("look")
        codes = {getattr(engine.execute(ToolCall("far.look", {"count": 1})).error, "code", "") for _ in range(3)}

    assert codes <= {"mcp.changed", "mcp.error"}
    assert [each.name for each in threading.enumerate() if each.name == "neuroscript-mcp"] == []
    assert threading.active_count() <= before + 1  # the loop that all engines share for coroutines


def test_a_call_that_is_cancelled_during_listing_does_not_affect_the_next() -> None:
    """The tools are listed again; otherwise they would be missing until the connection ends."""
    stalled = threading.Event()

    class Stalling(Middleware):
        """A server that delays the changed list until the caller has gone."""

        changed = False

        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            if self.changed:
                self.changed = False
                stalled.set()
                await asyncio.Event().wait()
            return await call_next(context)

    stalling = Stalling()
    server: FastMCP[Any] = FastMCP("shop", middleware=[stalling])

    @server.tool
    async def change(count: int, ctx: Context) -> int:
        """Announce that the tools have changed."""
        stalling.changed = count > 1
        await ctx.send_notification(ToolListChangedNotification())
        return count

    taken = from_fastmcp(server, group="far", trusted=True)

    async def main() -> list[int]:
        first = await engine.acall("far.change", (2,))
        lost = asyncio.create_task(engine.acall("far.change", (2,)))
        assert await asyncio.to_thread(stalled.wait, 10)
        lost.cancel()
        await asyncio.wait([lost], timeout=10)
        return [first, await engine.acall("far.change", (1,))]

    with Engine(plugins="none", hooks=[taken], policy=ALL) as engine:
        assert asyncio.run(main()) == [2, 1]


def test_one_tool_is_imported_without_a_server_and_starts_lazily() -> None:
    """A tool or a decorated function; it is closed when it is no longer referenced."""
    tool = Tool.from_function(kinds, name="allKinds", annotations={"readOnlyHint": True, "title": None})
    taken = from_fastmcp(tool, group="far", trust_annotations=True)
    threads = [each for each in threading.enumerate() if each.name == "neuroscript-mcp"]
    with Engine(plugins="none", toolsets=[taken.toolset], policy=ALL) as engine:
        value = engine.call_named("far.all_kinds", {"count": "1", "values": "[2]"})
        begun = [each for each in threading.enumerate() if each.name == "neuroscript-mcp"]

    del taken, engine
    gc.collect()
    for each in begun:
        each.join(10)
    assert (threads, value, len(begun)) == ([], "int int", 1)
    assert not any(each.is_alive() for each in begun)


def test_invalid_tools_are_refused_with_every_problem() -> None:
    """Before anything is started."""
    with pytest.raises(SpecError) as group:
        from_fastmcp(FastMCP("x"), group="a b", timeout=0)
    with pytest.raises(SpecError) as source:
        from_fastmcp(3, group="far")  # type: ignore[arg-type]
    with pytest.raises(SpecError) as nameless:
        from_fastmcp(lambda: 1, group="far")
    with pytest.raises(SpecError) as several:
        from_fastmcp(print, group="far")
    with pytest.raises(SpecError) as selected:
        far(select="far.nothing")

    assert str(group.value) == (
        "mcp: group: a b is not a valid group name; timeout: expected a positive, finite number of seconds"
    )
    assert str(source.value) == (
        "fastmcp: expected a FastMCP server, a FastMCP tool, or a function decorated as a tool"
    )
    assert str(nameless.value) == "fastmcp: You must provide a name for lambda functions"
    assert str(several.value) == "fastmcp: Functions with *args are not supported as tools"
    assert str(selected.value) == "mcp far: select: no tool matches far.nothing"
