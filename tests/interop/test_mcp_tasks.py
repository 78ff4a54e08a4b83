"""Calls of clients of protocol 2026-07-28 that continue as tasks: polled, answered, cancelled, and out of reach of others."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import attrs
import pytest
from mcp.client.client import Client
from tests.interop.mcp_place import Place, bound, running, until

from neuroscript import Engine, ExecutionPolicy, PromptError, Runtime, SpecError, ToolFailed, ToolPolicy, Toolset
from neuroscript.interop.http_server import listener
from neuroscript.interop.mcp import ask_client, continue_as_task, request_input, serve
from neuroscript.interop.mcp.server import tasks
from neuroscript.interop.mcp.server.http import app
from neuroscript.interop.mcp.server.rounds import TASKS

VERSION = "2026-07-28"
SUPPORTS: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
YES = {"action": "accept", "content": {"approve": True, "answer": "yes"}}


@attrs.frozen
class Tools:
    """A toolset, and what its tools have done; its slow tools wait for ``go``."""

    toolset: Toolset
    done: list[str]


def tools() -> Tools:
    made, done = Toolset("t"), []

    @made.tool(policy=ToolPolicy(effects=("reads",)))
    def slow(rt: Runtime, word: str = "slow") -> str:
        continue_as_task()
        rt.progress(1, 2, "half of it")
        while "go" not in done and not rt.cancelled:
            time.sleep(0.01)
        done.append("cancelled" if rt.cancelled else word)
        return word

    @made.tool(policy=ToolPolicy(effects=("reads",)))
    def holds(rt: Runtime) -> None:
        continue_as_task()
        rt.handles.new(object(), "thing", lambda: done.append("released"))
        while "go" not in done:
            time.sleep(0.01)

    @made.tool(policy=ToolPolicy(effects=("reads",)))
    async def coroutine(rt: Runtime) -> str:
        assert continue_as_task()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            done.append("stopped")
            raise
        return "slept"

    @made.tool(policy=ToolPolicy(effects=("deletes", "prompts")))
    def asks(rt: Runtime) -> str:
        continue_as_task(required=True)
        done.append("began")
        return rt.prompt_user("sure?")

    @made.tool(policy=ToolPolicy(effects=("writes",)))
    def forms(rt: Runtime) -> list[str]:
        continue_as_task()
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        answers = request_input(rt, {key: {"method": "elicitation/create", "params": params} for key in ("a", "b")})
        return [each["action"] for each in answers.values()]

    @made.tool(policy=ToolPolicy(effects=("deletes",), requires_approval=True))
    def delete(rt: Runtime) -> str:
        done.append("deleted")
        return "deleted"

    @made.tool(policy=ToolPolicy(effects=("reads", "prompts")))
    def fails(rt: Runtime) -> str:
        continue_as_task()
        with suppress(PromptError):
            rt.prompt_user("sure?")
        raise ToolFailed("there is no milk")

    @made.tool(policy=ToolPolicy(effects=("pure",)))
    def pieces(rt: Runtime, count: int) -> Iterator[int]:
        yield from range(count)

    return Tools(made, done)


@contextmanager
def server(made: Tools, token: str = "", **words: Any) -> Iterator[Place]:
    policy = ExecutionPolicy(approver=ask_client)
    with Engine(toolsets=[made.toolset], plugins="none", policy=policy) as engine:
        with running(engine, serve(engine, **words), token=token) as place:
            yield place


def send(place: Place, method: str, params: Any, supports: Any = SUPPORTS, token: str = "", **headers: str) -> Any:
    """Return the response to a request, as a client without a handshake sends it."""
    connection = sent(place, method, params, supports, token, **headers)
    try:
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def sent(
    place: Place, method: str, params: Any, supports: Any = SUPPORTS, token: str = "", **headers: str
) -> http.client.HTTPConnection:
    """Return the connection on which a request was sent."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": supports,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    needed = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
        "Mcp-Name": params.get("name") or params.get("taskId") or "",
        **({"Authorization": f"Bearer {token}"} if token else {}),
        **headers,
    }
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
    connection.request("POST", "/mcp", json.dumps(body), needed)
    return connection


def called(place: Place, tool: str, supports: Any = SUPPORTS, token: str = "", **arguments: Any) -> Any:
    """Return the result of a call."""
    return send(place, "tools/call", {"name": f"t__{tool}", "arguments": arguments}, supports, token)["result"]


def begun(place: Place, tool: str, token: str = "", **arguments: Any) -> str:
    """Return the id of the task that a call has become."""
    result = called(place, tool, token=token, **arguments)
    assert (result["resultType"], "result" in result, "inputRequests" in result) == ("task", False, False)
    assert result["status"] in ("working", "input_required")
    return str(result["taskId"])


def state(place: Place, id: str, token: str = "") -> Any:
    return send(place, "tasks/get", {"taskId": id}, token=token)["result"]


def ended(place: Place, id: str) -> Any:
    """Return the state of a task when it has ended."""
    until(lambda: state(place, id)["status"] in ("completed", "failed", "cancelled"))
    return state(place, id)


def asked(place: Place, id: str) -> list[str]:
    """Return the keys of the questions of a task."""
    until(lambda: state(place, id)["status"] == "input_required")
    return [*state(place, id)["inputRequests"]]


def answer(place: Place, id: str, answers: Any) -> None:
    result = send(place, "tasks/update", {"taskId": id, "inputResponses": answers})["result"]
    assert {key for key in result if key != "_meta"} == {"resultType"}


def test_a_task_is_polled_until_it_ends() -> None:
    """The response comes at once, and the result is that of the call."""
    made = tools()
    with server(made) as place:
        id = begun(place, "slow", word="hello")
        until(lambda: state(place, id).get("statusMessage") == "half of it")
        working = state(place, id)
        assert (working["status"], working["resultType"]) == ("working", "complete")
        made.done.append("go")
        found = ended(place, id)
        until(lambda: not place.engine._shared.running)

    assert (found["status"], found["result"]["structuredContent"]) == ("completed", {"result": "hello"})
    assert (found["ttlMs"], found["pollIntervalMs"]) == (3_600_000, 1_000)
    assert found["createdAt"] <= found["lastUpdatedAt"]


def test_the_session_of_a_task_ends_with_it() -> None:
    """Not with the request that began it."""
    made = tools()
    with server(made) as place:
        id = begun(place, "holds")
        assert state(place, id)["status"] == "working"
        assert made.done == []
        made.done.append("go")
        until(lambda: made.done == ["go", "released"])


def test_the_questions_of_a_task_wait_for_their_answers() -> None:
    """So the function runs once, whatever its effects are."""
    made = tools()
    with server(made) as place:
        id = begun(place, "asks")
        (key,) = asked(place, id)
        for ignored in ({"other": YES}, {"other": {"action": 5}}, {}):
            answer(place, id, ignored)
        for invalid in (
            "yes",
            {"role": "user"},
            {"action": 5},
            {"action": "accept", "content": ["yes"]},
            {"roots": []},
        ):
            update = {"taskId": id, "inputResponses": {key: invalid}}
            assert send(place, "tasks/update", update)["error"]["code"] == -32602
        assert asked(place, id) == [key]
        answer(place, id, {key: YES})
        found = ended(place, id)
        answer(place, id, {key: YES})

    assert found["result"]["structuredContent"] == {"result": "yes"}
    assert made.done == ["began"]


def test_questions_are_answered_one_by_one() -> None:
    """The others remain."""
    with server(tools()) as place:
        id = begun(place, "forms")
        until(lambda: len(asked(place, id)) == 2)
        answer(place, id, {"a": YES})
        assert asked(place, id) == ["b"]
        answer(place, id, {"b": {"action": "decline"}})
        assert ended(place, id)["result"]["structuredContent"] == {"result": ["accept", "decline"]}


@pytest.mark.parametrize(("given", "done"), [(YES, ["deleted"]), ({"action": "decline"}, [])], ids=["yes", "no"])
def test_the_approval_of_a_task_is_a_question(given: Any, done: list[str]) -> None:
    """If the server continues the calls of a tool as tasks."""
    made = tools()
    with server(made, tasks="t.del*") as place:
        id = begun(place, "delete")
        assert made.done == []
        answer(place, id, dict.fromkeys(asked(place, id), given))
        found = ended(place, id)

    assert (found["status"], found["result"]["isError"], made.done) == ("completed", not done, done)


def test_a_stream_is_a_task() -> None:
    """Its result has all items."""
    with server(tools(), tasks=["t.pieces"]) as place:
        found = ended(place, begun(place, "pieces", count=3))

    assert found["result"]["structuredContent"] == {"result": [0, 1, 2]}


@pytest.mark.parametrize(("tool", "left"), [("slow", "cancelled"), ("coroutine", "stopped")])
def test_a_task_is_cancelled(tool: str, left: str) -> None:
    """Its call ends as far as it can be stopped; cancelling it again changes nothing."""
    made = tools()
    with server(made) as place:
        id = begun(place, tool)
        until(lambda: tool != "slow" or state(place, id).get("statusMessage") == "half of it")  # it only waits now
        for _ in "ab":
            result = send(place, "tasks/cancel", {"taskId": id})["result"]
            assert {key for key in result if key != "_meta"} == {"resultType"}
            assert state(place, id)["status"] == "cancelled"
        until(lambda: made.done == [left])
        until(lambda: not place.engine._shared.running)


def test_a_task_that_asks_is_cancelled() -> None:
    """It does not wait for an answer."""
    made = tools()
    with server(made) as place:
        id = begun(place, "asks")
        asked(place, id)
        send(place, "tasks/cancel", {"taskId": id})
        assert (state(place, id)["status"], "inputRequests" in state(place, id)) == ("cancelled", False)
        until(lambda: not place.engine._shared.running)


def test_a_task_that_no_client_knows_is_forgotten() -> None:
    """The client disconnects before or while its call becomes a task, so it never receives the id."""
    made, began = Toolset("t"), list[int]()
    connections: list[http.client.HTTPConnection] = []

    @made.tool(policy=ToolPolicy(effects=("reads",)))
    async def coroutine(rt: Runtime, turns: int) -> None:
        while len(connections) <= turns:  # the test has sent the request, and stores its connection
            await asyncio.sleep(0.001)
        connections[turns].close()
        for _ in range(turns):
            await asyncio.sleep(0)
        continue_as_task()
        began.append(turns)
        await asyncio.sleep(60)

    @made.tool(policy=ToolPolicy(effects=("reads",)))
    def thread(rt: Runtime) -> None:
        until(lambda: len(connections) > 5)
        connections[5].close()
        until(lambda: rt.cancelled)
        assert not continue_as_task()
        began.append(5)

    with server(Tools(made, [])) as place:
        for turns in range(5):
            connections.append(sent(place, "tools/call", {"name": "t__coroutine", "arguments": {"turns": turns}}))
            until(lambda turns=turns: turns in began)
        connections.append(sent(place, "tools/call", {"name": "t__thread"}))
        until(lambda: 5 in began)
        until(lambda: all(each.stop for each in place.service.tasks._tasks.values()))


def test_a_cancelled_task_asks_nothing() -> None:
    """A thread that asks before it notices would wait forever."""

    async def ask() -> None:
        task = tasks.Task(None)
        task.cancel()
        await asyncio.wait_for(task.ask("a", "roots/list", {}), 5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(ask())


def test_a_missing_capability_fails_a_task() -> None:
    """As an error of the protocol."""
    with server(tools()) as place:
        created = called(place, "asks", supports={"extensions": {TASKS: {}}})
        found = ended(place, created["taskId"])

    assert (found["status"], found["error"]["code"], "result" in found) == ("failed", -32021, False)
    assert found["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_task_is_for_its_client(method: str) -> None:
    """Other clients, clients without tasks, unknown ids and other headers are refused."""
    made = tools()
    shared: dict[str, Any] = {"inputResponses": {}}
    with server(made, token="a" * 9) as place:
        id = begun(place, "slow", "a" * 9)
        task = place.service.tasks._tasks[id]

        def code(id: str = id, supports: Any = SUPPORTS, **headers: str) -> int:
            sent = {"taskId": id, **shared}
            return int(send(place, method, sent, supports, "a" * 9, **headers)["error"]["code"])

        assert code(supports={}) == -32021
        assert code(id="0" * 32) == -32602
        assert code(**{"Mcp-Name": "0" * 32}) == -32020
        task.principal = "another"
        assert code() == -32602
        assert task.outcome == ""


def test_protocols_with_a_handshake_have_no_such_tasks() -> None:
    """The tool runs until it ends, and the methods do not exist."""
    made = tools()
    made.done.append("go")

    async def talk(url: str) -> Any:
        async with Client(url, mode="legacy") as client:
            return (await client.call_tool("t__slow", {})).structured_content

    with server(made) as place:
        assert asyncio.run(talk(place.url)) == {"result": "slow"}


def test_a_client_without_tasks_waits_for_the_result() -> None:
    """Unless the tool requires tasks."""
    made = tools()
    made.done.append("go")
    with server(made) as place:
        result = called(place, "slow", supports={})
        refused = send(place, "tools/call", {"name": "t__asks", "arguments": {}}, {"elicitation": {}})["error"]

    assert result["structuredContent"] == {"result": "slow"}
    assert (refused["code"], refused["data"]["requiredCapabilities"]) == (-32021, {"extensions": {TASKS: {}}})
    assert "began" not in made.done


def test_other_failures_are_results() -> None:
    """Even if the tool has also tried what the client does not support."""
    with server(tools()) as place:
        at_once = called(place, "fails", supports={})
        found = ended(place, called(place, "fails", supports={"extensions": {TASKS: {}}})["taskId"])

    assert found["status"] == "completed"
    for result in (at_once, found["result"]):
        assert (result["isError"], "there is no milk" in result["content"][0]["text"]) == (True, True)


def test_there_is_a_maximum_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further call is not continued as a task."""
    monkeypatch.setattr(tasks, "MAX_TASKS", 1)
    made = tools()
    with server(made) as place:
        begun(place, "slow")
        made.done.append("go")
        assert called(place, "slow")["resultType"] == "complete"


def test_a_task_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call is cancelled, and it is forgotten."""
    made = tools()
    with server(made) as place:
        id = begun(place, "slow")
        monkeypatch.setattr(tasks, "TASK_SECONDS", 0.0)
        until(lambda: made.done == ["cancelled"])
        assert send(place, "tasks/get", {"taskId": id})["error"]["code"] == -32602


def test_no_task_outlives_the_server() -> None:
    """Its call is cancelled, although the engine and the loop continue."""
    made = tools()

    async def serve_for_a_while(engine: Engine) -> None:
        service = serve(engine)
        with bound() as (listening, port):
            http_server = listener.server(app(service))
            serving = asyncio.create_task(http_server.serve(sockets=[listening]))
            await asyncio.to_thread(until, lambda: http_server.started)
            await asyncio.to_thread(begun, Place(engine, service, port), "slow")
            http_server.should_exit = True
            await serving
        await asyncio.to_thread(until, lambda: made.done == ["cancelled"])

    with Engine(toolsets=[made.toolset], plugins="none") as engine:
        asyncio.run(serve_for_a_while(engine))


def test_an_invalid_pattern_is_refused() -> None:
    """When the service is created."""
    with Engine(plugins="none") as engine, pytest.raises(SpecError):
        serve(engine, tasks="t.[")


def test_nothing_continues_outside_a_call() -> None:
    """Without the call of a client, there is nothing to poll."""
    assert continue_as_task() is False
