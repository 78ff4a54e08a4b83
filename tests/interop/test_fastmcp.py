"""FastMCP both ways: our tools in its servers, called by its clients, and its tools through an engine."""

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
from fastmcp.client.transports import StdioTransport
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
from neuroscript.interop.mcp import McpServer

ALL: Final = ExecutionPolicy(grants=("mcp:call:far/*",))


def kinds(count: int, values: list[int]) -> str:
    """Tell of which type each value is."""
    return " ".join(type(each).__name__ for each in (count, *values))


def take(count: int) -> int:
    """Take some of the stock."""
    return count


def ours(function: Callable[..., Any], **needs: Any) -> ToolImplementation:
    """Return a function as a tool of the group ``g``."""
    return from_function(function, group="g", policy=ToolPolicy(**needs))


def engine_of(*tools: ToolImplementation, **options: Any) -> Engine:
    """Return an engine that has these tools alone."""
    return Engine(plugins="none", toolsets=[Toolset("g", tools)], **options)


def serving(session: Session, tools: str = "*") -> FastMCP[Any]:
    """Return a FastMCP server that has an engine's tools, and is as strict and as silent as one can be."""
    server: FastMCP[Any] = FastMCP("ours", strict_input_validation=True, mask_error_details=True)
    for each in to_fastmcp(session, tools=tools):
        server.add_tool(each)
    return server


def asked(server: FastMCP[Any], name: str, /, **arguments: Any) -> CallToolResult:
    """Return what a client of a server is answered."""

    async def ask() -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool_mcp(name, arguments)

    return asyncio.run(ask())


def said(result: CallToolResult) -> str:
    """Return the text of an answer."""
    (block,) = result.content
    assert block.type == "text"
    return block.text


# Our tools in its servers


def test_values_arrive_exact_that_fastmcp_alone_delivers_wrongly_or_not_at_all() -> None:
    """Alone, it makes 1 of true, and refuses a list that is written as a text."""
    alone: FastMCP[Any] = FastMCP("alone")
    alone.tool(kinds)
    alone.tool(take)
    with engine_of(ours(kinds), ours(take)) as engine:
        server = serving(engine)

        assert said(asked(server, "g__kinds", count="2", values="[1, 2]")) == "int int int"
        assert said(asked(server, "g__take", count=True)) == (
            "error coercion.bool_as_number: count: expected int, got bool (a boolean is not a number). "
            "Fix the arguments and call again."
        )
    assert asked(alone, "kinds", count="2", values="[1, 2]").is_error
    assert asked(alone, "take", count=True).structured_content == {"result": 1}


def test_an_error_names_the_arguments_and_the_mended_call_is_made() -> None:
    """All problems at once; within one process it is an error of FastMCP."""
    with engine_of(ours(kinds)) as engine:
        server = serving(engine)

        answer = asked(server, "g__kinds", count="x", other=1)

        assert answer.is_error
        assert [each for each in ("count: ", "values: ", "other: ") if each not in said(answer)] == []
        assert said(asked(server, "g__kinds", count=2, values=[1])) == "int int"
        with pytest.raises(ToolError, match=r"^error coercion\.format: count: expected int, got str"):
            asyncio.run(server.call_tool("g__kinds", {"count": "x", "values": []}))


def test_what_is_listed_is_what_the_engine_tells() -> None:
    """Names, titles, both schemas, and annotations from effects; a bound argument is told to nobody."""

    def send(text: str, key: str) -> list[int]:
        """Send a text."""
        return [len(text)]

    async def listed(server: FastMCP[Any]) -> Any:
        async with Client(server) as client:
            return await client.list_tools()

    with engine_of(ours(send, effects=("reads",)), ours(take)) as engine:
        (told,) = asyncio.run(listed(serving(engine, "g.s*")))

    assert (told.name, told.title, told.description) == ("g__send", "g.send", "Send a text.")
    assert told.input_schema["required"] == ["text", "key"]
    assert told.output_schema["properties"] == {"result": {"type": "array", "items": {"type": "integer"}}}
    assert told.output_schema["required"] == ["result"]
    assert (told.annotations.read_only_hint, told.annotations.open_world_hint) == (True, False)


def test_results_are_structured_and_fastmcps_client_has_their_value() -> None:
    """An object as it is, everything else under ``result``; bytes of a picture are one."""

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
        *told, shown = asyncio.run(answers(serving(engine)))

    assert [each.data for each in told] == [[1, 2], None, {"x": 1}]
    assert [each.structured_content for each in told] == [{"result": [1, 2]}, {"result": None}, {"x": 1}]
    assert (shown.content[0].type, shown.content[0].mime_type) == ("image", "image/png")


def test_a_denied_tool_is_not_there_and_a_need_is_made_of_the_exact_value() -> None:
    """The one is unknown to clients; the other is refused where its value is not granted."""
    policy = ExecutionPolicy(deny=("g.kinds",), grants=("stock:take:2",))
    trail = MemoryAudit()
    with engine_of(
        ours(take, capabilities=("stock:take:{count}",)), ours(kinds), policy=policy, audit=[trail]
    ) as engine:
        server = serving(engine)
        denied = asked(server, "g__kinds", count=1, values=[])
        granted = asked(server, "g__take", count=" 2 ")
        refused = asked(server, "g__take", count="3")

    assert (denied.is_error, said(denied)) == (True, "Unknown tool: 'g__kinds'")
    assert granted.structured_content == {"result": 2}
    assert refused.is_error
    assert said(refused) == (
        "error policy.capability: needs stock:take. Only the host can change that; do not repeat this call."
    )
    assert [(each.about.tool, each.types, each.code) for each in trail.records if each.code] == [
        ("g.take", (int,), "ok"),
        ("g.take", (int,), "policy.capability"),
    ]


def test_a_tool_that_was_offered_is_refused_once_its_session_has_ended() -> None:
    """What a server was given is no way around."""
    with engine_of(ours(take)) as engine:
        session = engine.session()
        server = serving(session)
        session.close()

        answer = asked(server, "g__take", count=1)

    assert answer.is_error
    assert said(answer) == ("error engine.closed: the engine is closed. This call cannot succeed; do not repeat it.")


@pytest.mark.parametrize("approves", [True, False])
def test_a_tool_that_needs_an_approval_waits_for_one(approves: bool) -> None:
    """The approver sees exact values; without a yes the tool does not run."""
    seen: list[Any] = []

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(dict(request.arguments))
        return Approval.approve() if approves else Approval.reject("not today")

    policy = ExecutionPolicy(approver=approver)
    with engine_of(ours(take, requires_approval=True), policy=policy) as engine:
        answer = asked(serving(engine), "g__take", count="2")

    assert seen == [{"count": 2}]
    assert answer.is_error is not approves


def test_calls_run_at_the_same_time_and_one_that_is_cancelled_ends() -> None:
    """Three wait for each other; one that waits for nobody is stopped when its client lets go of it."""
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
    server.run(show_banner=False)
"""


def test_a_real_fastmcp_server_serves_our_tools_over_stdio() -> None:
    """A program of its own, and FastMCP's client at its other end."""
    paths = os.pathsep.join(each for each in sys.path if each)
    transport = StdioTransport(sys.executable, ["-c", SERVER], env={"PYTHONPATH": paths})

    async def run() -> Any:
        async with Client(transport) as client:
            names = {each.name for each in await client.list_tools()}
            answer = await client.call_tool("math__add", {"num1": "2", "num2": 3})
            wrong = await client.call_tool_mcp("math__add", {"num1": "x", "num2": 3})
            return names, answer.data, wrong.is_error and "num1: expected float, got str" in said(wrong)

    names, value, is_named = asyncio.run(run())

    assert {name.partition("__")[0] for name in names} == {"math"}
    assert (value, is_named) == (5, True)


# Its tools through an engine


def far(**options: Any) -> tuple[FastMCP[Any], McpServer]:
    """Return a server of FastMCP, and its tools as they are taken here."""

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


def test_a_servers_tools_run_through_an_engine_with_exact_values() -> None:
    """What FastMCP gives them besides arguments they get, and nobody else sees; progress comes here."""
    heard: list[Any] = []
    _, taken = far(trusted=True)
    with Engine(plugins="none", hooks=[taken], policy=ALL, host=Host(progress=heard.append)) as engine:
        value = engine.call_named("far.look", {"count": " 2 "})
        wrong = engine.execute(ToolCall("far.look", {"count": True, "ctx": 1}))
        failed = engine.execute(ToolCall("far.fail", {"why": "no tea"}))
        names = [each.name for each in engine.tools["far.look"].spec.args]

    assert value == {"count": 2, "kind": "int", "server": "shop", "shelf": "upper", "other": "lower"}
    assert names == ["count", "shelf"]
    assert [(each.done, each.total, each.text) for each in heard] == [(1, 2, "looked")]
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
def test_a_servers_tools_need_what_those_of_any_server_need(options: dict[str, Any], refusals: tuple[Any, Any]) -> None:
    """A grant, and an approval unless they only read and are believed, or are trusted."""
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


def test_a_tool_that_is_gone_is_refused_and_the_end_of_the_engine_ends_the_server() -> None:
    """The loop of the server ends with the engine."""
    before = threading.active_count()
    server, taken = far(trusted=True)
    with Engine(plugins="none", hooks=[taken], policy=ALL) as engine:
        assert engine.call_named("far.look", {"count": 1})["count"] == 1

        server.local_provider.remove_tool("look")
        codes = {getattr(engine.execute(ToolCall("far.look", {"count": 1})).error, "code", "") for _ in range(3)}

    assert codes <= {"mcp.changed", "mcp.error"}
    assert [each.name for each in threading.enumerate() if each.name == "neuroscript-mcp"] == []
    assert threading.active_count() <= before + 1  # the loop of coroutines of all engines


def test_a_call_that_is_cancelled_while_the_tools_are_listed_takes_nothing_from_the_next() -> None:
    """They are listed again; else all of them would be gone for as long as the connection lives."""
    stalled = threading.Event()

    class Stalling(Middleware):
        """Does not tell the tools once they have changed, until whoever asked has gone."""

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
        """Say that the tools have changed."""
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


def test_one_tool_is_taken_without_a_server_and_nothing_is_started_before_its_call() -> None:
    """A tool, or a function that is decorated as one; it ends when nobody holds it any more."""
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


def test_what_can_not_be_taken_is_refused_with_all_that_is_wrong() -> None:
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
