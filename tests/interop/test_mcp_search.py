"""Search in place of a long list of tools, with the official client over HTTP and in both protocol eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final, Literal

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from tests.interop.mcp_place import PLUGIN, Place, running
from tests.interop.test_mcp_serving import over_stdio, text_of
from tests.interop.test_mcp_tasks import SUPPORTS, YES, answer, asked, ended, send, state, tools, until

from neuroscript import (
    Engine,
    ExecutionPolicy,
    FlowLabels,
    FlowRule,
    Limits,
    MemoryAudit,
    Runtime,
    SpecError,
    Toolset,
    ToolSpec,
)
from neuroscript.interop.mcp import ask_client, serve

Mode = Literal["legacy", "auto"]
MODES: Final = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""With a handshake, and without one: the SDK then chooses protocol 2026-07-28."""

POLICY: Final = ExecutionPolicy(approver=ask_client, deny=("t.refused",))


@pytest.fixture(scope="module")
def audit() -> MemoryAudit:
    return MemoryAudit()


@pytest.fixture(scope="module")
def place(audit: MemoryAudit) -> Iterator[Place]:
    with Engine(plugins="none", policy=POLICY, audit=audit) as engine:
        engine.load_plugin(PLUGIN)
        with running(engine, serve(engine, search_above=5)) as place:
            yield place


def talk(place: Place, mode: Mode, act: Callable[[Client], Coroutine[Any, Any, Any]], **words: Any) -> Any:
    """Return what *act* returns with a client of the server."""

    async def connected() -> Any:
        async with Client(place.url, mode=mode, **words) as client:
            return await act(client)

    return asyncio.run(connected())


async def listed(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def found(client: Client, query: str, limit: int = 5) -> list[str]:
    result = await client.call_tool("search_tools", {"query": query, "limit": limit})
    assert not result.is_error
    names = [tool["name"] for tool in result.structured_content["tools"]]
    if names:
        assert [tool["name"] for tool in json.loads(text_of(result))] == names
    return names


async def called(client: Client, name: str, arguments: Any = None, **words: Any) -> Any:
    passed = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
    return await client.call_tool("call_tool", passed, **words)


@MODES
def test_client_with_many_tools_searches_and_calls(place: Place, mode: Mode) -> None:
    async def act(client: Client) -> None:
        search, call = (await client.list_tools()).tools
        assert (search.name, search.title, call.name, call.title) == (
            "search_tools", "Search for tools", "call_tool", "Call a tool",
        )  # fmt: skip
        assert search.description.endswith("Call them with call_tool. Groups of tools: t.")
        assert (search.annotations.read_only_hint, call.annotations) == (True, None)
        assert call.input_schema["properties"]["arguments"]["type"] == ["object", "null"]
        assert await found(client, "Add two numbers", 1) == ["t__add"]
        added = await called(client, "t__add", {"a": "2"})
        assert (added.structured_content, text_of(added), added.is_error) == ({"result": 3}, "3", False)
        assert (await called(client, "t.add", '{"a": 2, "b": 5}')).structured_content == {"result": 7}
        assert (await called(client, "t__words")).structured_content == {"result": ["a", "b"]}
        assert (await client.call_tool("t__add", {"a": 4})).structured_content == {"result": 5}

    talk(place, mode, act)


@MODES
def test_result_of_a_search_has_the_definitions_of_the_list(place: Place, mode: Mode) -> None:
    """Of every tool that a client without a search would be offered, and of no other one."""

    async def whole(client: Client) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        return {tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools}

    async def act(client: Client) -> dict[str, Any]:
        names = [name for name in complete if await found(client, name, 1) == [name]]
        assert names == [*complete]
        result = await client.call_tool("search_tools", {"query": " ".join(complete), "limit": 20})
        return {tool["name"]: tool for tool in result.structured_content["tools"]}

    with running(place.engine, serve(place.engine)) as other:
        complete = talk(other, mode, whole)
    definitions = talk(place, mode, act)

    assert len(definitions) == 20
    assert definitions == {name: complete[name] for name in definitions}
    assert "t__refused" not in complete


@MODES
def test_refused_tool_is_neither_found_nor_called(place: Place, audit: MemoryAudit, mode: Mode) -> None:
    async def act(client: Client) -> None:
        for query in ("t__refused", "t.refused", "refused", "t refused", "ran"):
            assert "t__refused" not in await found(client, query, 20)
        for name in ("t__refused", "t.refused", "Tool.T.Refused"):
            refused = await called(client, name, {})
            assert (refused.is_error, text_of(refused).split(":")[0]) == (True, "error policy.denied")

    before = len(audit.records)
    talk(place, mode, act)

    assert [(record.tool, record.code) for record in audit.records[before:]] == [("t.refused", "policy.denied")] * 3


@MODES
def test_call_is_recorded_as_one_of_the_tool_itself(place: Place, audit: MemoryAudit, mode: Mode) -> None:
    """As a direct call is; a search is recorded as little as the list of tools."""

    async def act(client: Client) -> None:
        await found(client, "add")
        await called(client, "t__add", {"a": 1})
        await client.call_tool("t__add", {"a": 1})

    before = len(audit.records)
    talk(place, mode, act)

    through, direct = audit.records[before:]
    facts = [(each.tool, each.code, each.types, each.digest, each.repairs) for each in (through, direct)]
    assert facts[0] == facts[1]
    assert facts[0][:3] == ("t.add", "ok", (int, int))


@MODES
def test_errors_are_those_of_the_tool(place: Place, mode: Mode) -> None:
    async def act(client: Client) -> None:
        cases: list[tuple[str, dict[str, Any]]] = [
            ("t__add", {"a": "two", "c": 1}), ("t__fails", {}), ("t__breaks", {}), ("t__ad", {}), ("t__shop", {"name": "x"}),
        ]  # fmt: skip
        for name, arguments in cases:
            through, direct = await called(client, name, arguments), await client.call_tool(name, arguments)
            assert through.is_error
            assert text_of(through) == text_of(direct)
        assert "did you mean t__add?" in text_of(await called(client, "t__ad", {}))

    talk(place, mode, act)


@MODES
@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        (
            "call_tool",
            {"arguments": [1], "query": "secret"},
            "name: expected string, got nothing; arguments: expected map, got list; "
            "query: expected only name, arguments, got an unknown name of type str",
        ),
        ("call_tool", {"name": 5, "arguments": {}}, "name: expected string, got int"),
        ("search_tools", {}, "query: expected string, got nothing"),
        (
            "search_tools",
            {"query": ["a"], "limit": 21},
            "query: expected string, got list; limit: expected int from 1 to 20, got int out of bounds",
        ),
    ],
    ids=["shape", "name", "nothing", "limit"],
)
def test_every_problem_of_the_two_tools_is_reported(
    place: Place, mode: Mode, tool: str, arguments: dict[str, Any], text: str
) -> None:
    async def act(client: Client) -> Any:
        return await client.call_tool(tool, arguments)

    result = talk(place, mode, act)

    assert result.is_error
    assert text_of(result).partition(": ")[2] == f"{text}. Fix the arguments and call again."
    assert "secret" not in text_of(result)


@MODES
def test_the_two_tools_cannot_call_themselves(place: Place, mode: Mode) -> None:
    async def act(client: Client) -> None:
        for name in ("call_tool", "search_tools", "catalog.call_tool", "catalog__search_tools"):
            result = await called(client, name, {"name": "t__add", "query": "x"})
            assert (result.is_error, text_of(result).split(":")[0]) == (True, "error tool.not_found")

    talk(place, mode, act)


@MODES
def test_search_without_results_says_what_to_do(place: Place, mode: Mode) -> None:
    async def act(client: Client) -> None:
        result = await client.call_tool("search_tools", {"query": "zebra \0 \u202e"})
        assert (result.structured_content, result.is_error) == ({"tools": []}, False)
        assert text_of(result).startswith("No tool contains any of these words.")

    talk(place, mode, act)


@MODES
@pytest.mark.parametrize(("approves", "text"), [(True, "deleted a.txt"), (False, "the user did not approve it")])
def test_user_approves_the_tool_behind_the_call(place: Place, mode: Mode, approves: bool, text: str) -> None:
    """The prompt shows the tool and its arguments, never ``call_tool``."""
    prompts: list[str] = []

    async def elicit(context: Any, params: Any) -> ElicitResult:
        prompts.append(params.message)
        return ElicitResult(action="accept", content={"approve": approves})

    async def act(client: Client) -> Any:
        return await called(client, "t__risky", {"path": "a.txt"})

    result = talk(place, mode, act, elicitation_callback=elicit)

    assert (text in text_of(result), result.is_error) == (True, not approves)
    (prompt,) = prompts
    assert prompt.startswith("May t.risky run?")
    assert 'path = "a.txt"' in prompt
    assert "call_tool" not in prompt


@MODES
def test_client_without_forms_cannot_approve(place: Place, mode: Mode) -> None:
    """As for a direct call, the error is a result with a handshake, and names the capability without one."""
    text = "the client of this session does not support elicitation"

    async def act(client: Client) -> None:
        if mode == "legacy":
            assert text in text_of(await called(client, "t__risky", {"path": "a.txt"}))
            return
        with pytest.raises(MCPError, match=text) as refused:
            await called(client, "t__risky", {"path": "a.txt"})
        assert refused.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}

    talk(place, mode, act)


def test_approval_of_one_tool_is_no_approval_of_another(place: Place) -> None:
    """In protocol 2026-07-28, the state of an approved call is bound to the whole request."""
    forms: dict[str, Any] = {"elicitation": {"form": {}}}

    def call(path: str, tool: str = "t__risky", **more: Any) -> Any:
        params = {"name": "call_tool", "arguments": {"name": tool, "arguments": {"path": path}}, **more}
        return send(place, "tools/call", params, forms)

    asked = call("a.txt")["result"]
    (key,) = asked["inputRequests"]
    again = {"inputResponses": {key: YES}, "requestState": asked["requestState"]}

    assert "error" in call("b.txt", **again)
    assert "error" in call("a.txt", "t__outer", **again)
    assert call("a.txt", **again)["result"]["content"] == [{"type": "text", "text": "deleted a.txt"}]
    assert "error" in call("a.txt", **again)


def test_tool_asks_the_user(place: Place) -> None:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"answer": "me"})

    async def act(client: Client) -> Any:
        return await called(client, "t__asks", {})

    assert talk(place, "legacy", act, elicitation_callback=elicit).structured_content == {"result": "hello me"}


@MODES
def test_progress_and_items_of_a_stream_arrive(place: Place, mode: Mode) -> None:
    progress: list[tuple[float, float | None, str | None]] = []

    async def receive(done: float, total: float | None, text: str | None) -> None:
        progress.append((done, total, text))

    async def act(client: Client) -> None:
        steps = await called(client, "t__steps", {"count": 2}, progress_callback=receive)
        assert steps.structured_content == {"result": 2}
        ahead = await called(client, "t__ahead", {}, progress_callback=receive)
        assert ahead.structured_content == {"result": ["a", "b"]}

    talk(place, mode, act)

    assert progress[:2] == [(1, 2, "going on"), (2, 2, "going on")]
    assert {"a", "b"} <= {text for _, _, text in progress[2:]}


def test_call_continues_as_a_task() -> None:
    """Whose approval is a question of the task."""
    made = tools()
    with Engine(toolsets=[made.toolset], plugins="none", policy=ExecutionPolicy(approver=ask_client)) as engine:
        with running(engine, serve(engine, search_above=0, tasks="t.delete")) as place:
            begun = [
                send(place, "tools/call", {"name": "call_tool", "arguments": {"name": name}}, SUPPORTS)["result"]
                for name in ("t__slow", "t__delete")
            ]
            assert [each["resultType"] for each in begun] == ["task", "task"]
            slow, delete = (str(each["taskId"]) for each in begun)
            until(lambda: state(place, slow).get("statusMessage") == "half of it")
            answer(place, delete, dict.fromkeys(asked(place, delete), YES))
            assert ended(place, delete)["result"]["content"] == [{"type": "text", "text": "deleted"}]
            made.done.append("go")
            assert ended(place, slow)["result"]["structuredContent"] == {"result": "slow"}


@MODES
def test_limits_count_the_tool(mode: Mode) -> None:
    policy = ExecutionPolicy(limits=Limits(tool_calls={"t.add": 1}))
    with Engine(plugins="none", policy=policy) as engine:
        engine.load_plugin(PLUGIN)

        async def act(client: Client) -> list[bool]:
            return [(await called(client, "t__add", {"a": 1})).is_error for _ in range(2)]

        with running(engine, serve(engine, search_above=0)) as place:
            assert talk(place, mode, act) == [False, True]


@MODES
def test_flow_rules_see_the_tools(mode: Mode) -> None:
    """What one call reads, another one must not send."""
    notes = Toolset("notes")

    @notes.tool
    def read(rt: Runtime) -> str:
        return "the plan of the merger"

    @notes.tool
    def post(rt: Runtime, text: str) -> str:
        return "posted"

    labels = (FlowLabels("notes.read", sources=("private",), sinks=()), FlowLabels("notes.post", sinks=("public",)))
    policy = ExecutionPolicy(flow=(FlowRule(("private",), ("public",), then="refuse"),), labels=labels)
    with Engine(plugins="none", toolsets=[notes], policy=policy) as engine:

        async def act(client: Client) -> list[str]:
            text = text_of(await called(client, "notes__read"))
            sent = [await called(client, "notes__post", {"text": each}) for each in ("hello", text)]
            return [text_of(each).split(":")[0] for each in sent]

        with running(engine, serve(engine, search_above=0)) as place:
            assert talk(place, mode, act) == ["posted", "error policy.flow"]


def test_list_is_short_only_above_the_number() -> None:
    """And its clients are notified when that changes; the two tools work even if they are not listed."""
    toolset = Toolset("shop")
    toolset.add(ToolSpec("tea", "shop", description="Order tea.", return_type="string"), lambda rt: "tea")
    changed: list[str] = []

    async def record(message: Any) -> None:
        changed.append(getattr(message, "method", ""))

    with Engine(plugins="none", toolsets=[toolset]) as engine:

        async def act(client: Client) -> None:
            assert await listed(client) == ["shop__tea"]
            assert await found(client, "order") == ["shop__tea"]
            assert (await called(client, "shop__tea")).structured_content == {"result": "tea"}
            more = Toolset("bar")
            more.add(ToolSpec("coffee", "bar", description="Order coffee."), lambda rt: "coffee")
            engine.register(more)
            while "notifications/tools/list_changed" not in changed:
                await asyncio.sleep(0.01)
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search_tools", "call_tool"]
            assert tools[0].description.startswith("Search 2 tools,")
            assert tools[0].description.endswith("Groups of tools: bar, shop.")
            assert await found(client, "coffee") == ["bar__coffee"]

        with running(engine, serve(engine, search_above=1)) as place:
            talk(place, "legacy", act, message_handler=record)


@MODES
def test_real_tools_cannot_take_the_names(mode: Mode) -> None:
    """With bare names, they keep their groups; without a search, they have the bare names."""

    def real(name: str, rt: Runtime) -> str:
        return f"real {name}"

    own = Toolset("own")
    for name in ("search_tools", "call_tool", "other"):
        own.add(ToolSpec(name, "own", description="A real tool."), partial(real, name))
    with Engine(plugins="none", toolsets=[own]) as engine:

        async def act(client: Client) -> None:
            assert await listed(client) == ["search_tools", "call_tool"]
            assert {*await found(client, "real")} == {"own__search_tools", "own__call_tool", "other"}
            for name in ("own__search_tools", "own__call_tool"):
                assert text_of(await called(client, name)) == text_of(await client.call_tool(name, {}))
                assert text_of(await called(client, name)) == name.replace("own__", "real ")

        with running(engine, serve(engine, names="bare", search_above=2)) as place:
            talk(place, mode, act)
        with running(engine, serve(engine, names="bare")) as place:
            assert {*talk(place, mode, listed)} == {"search_tools", "call_tool", "other"}


def test_tools_with_handles_are_found_only_by_clients_with_a_session() -> None:
    """Also if both kinds of clients search by turns."""
    things = Toolset("things")

    @things.tool
    def size(rt: Runtime, thing: int) -> int:
        """Return the size of a thing."""
        return thing

    spec = ToolSpec("open", "things", return_type="handle", description="Open a thing.")
    things.add(spec, lambda rt: rt.handles.new(object(), "thing"))
    with Engine(plugins="none", toolsets=[things]) as engine:
        with running(engine, serve(engine, search_above=0)) as place:
            results = [talk(place, mode, lambda client: found(client, "thing")) for mode in ("legacy", "auto") * 2]

    assert [sorted(each) for each in results] == [["things__open", "things__size"], ["things__size"]] * 2


@MODES
def test_server_without_a_search_knows_no_such_tools(mode: Mode) -> None:
    with Engine(plugins="none") as engine:
        engine.load_plugin(PLUGIN)

        async def act(client: Client) -> None:
            assert "search_tools" not in await listed(client)
            for name in ("search_tools", "call_tool"):
                result = await client.call_tool(name, {"query": "add", "name": "t__add"})
                assert (result.is_error, text_of(result).split(":")[0]) == (True, "error tool.not_found")

        with running(engine, serve(engine)) as place:
            talk(place, mode, act)


@pytest.mark.parametrize("number", [-1, 2.5, "5", True], ids=repr)
def test_invalid_number_is_refused(number: Any) -> None:
    with Engine(plugins="none") as engine, pytest.raises(SpecError, match="search_above"):
        serve(engine, search_above=number)


@pytest.mark.full
def test_command_has_the_option() -> None:
    async def act() -> None:
        async with over_stdio("--search-above", "3") as client:
            assert await listed(client) == ["search_tools", "call_tool"]
            assert (await called(client, "t__add", {"a": 1})).structured_content == {"result": 2}

    asyncio.run(act())
