"""An engine served to real MCP clients: behavior over stdio and HTTP, and the messages that clients receive."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ClientCapabilities,
    ElicitationCapability,
    ElicitResult,
    FormElicitationCapability,
    UrlElicitationCapability,
)
from tests.interop.mcp_place import PLUGIN, Place, served, until
from tests.interop.mcp_plugin import PICTURE

from neuroscript import Approval, Engine, ExecutionPolicy, SpecError, Toolset, ToolSpec
from neuroscript.interop.mcp import serve
from neuroscript.interop.mcp.server.client_session import Access
from neuroscript.interop.mcp.server.request import offers_forms

ROOT = Path(__file__).parents[2]
FORM = ElicitationCapability(form=FormElicitationCapability())
ADDRESS = ElicitationCapability(url=UrlElicitationCapability())

Test = Callable[[Client], Coroutine[Any, Any, None]]
Mode = Literal["legacy", "auto"]
MODES: Final = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""With a handshake, and without one: the SDK then chooses protocol 2026-07-28."""


def over_stdio(*words: str, **keywords: Any) -> Client:
    """Return a client of the command in its own process."""
    command = ["-m", "neuroscript", "mcp", "serve", "-p", str(PLUGIN), "--deny", "t.refused", *words]
    parameters = StdioServerParameters(command=sys.executable, args=command, env={**os.environ}, cwd=str(ROOT))
    return Client(stdio_client(parameters), **keywords)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with served() as place:
        yield place


def text_of(result: Any) -> str:
    return str(result.content[0].text)


async def _contract(client: Client) -> None:
    """Check what holds over every transport."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert listed["t__add"].input_schema["properties"]["a"] == {"type": "integer", "description": "The first."}
    assert listed["t__add"].annotations.read_only_hint is True
    assert "t__refused" not in listed

    added = await client.call_tool("t__add", {"a": "2"})
    assert (added.structured_content, text_of(added), added.is_error) == ({"result": 3}, "3", False)
    assert (await client.call_tool("t__type_of", {"a": "2"})).structured_content == {"result": "int"}
    wrong = await client.call_tool("t__add", {"a": "two", "c": 1})
    assert wrong.is_error
    assert "a: expected int, got str" in text_of(wrong)
    assert "c" in text_of(wrong)
    refused = await client.call_tool("t__refused", {})
    assert (refused.is_error, text_of(refused).split(":")[0]) == (True, "error policy.denied")
    unknown = await client.call_tool("t__ad", {})
    assert (unknown.is_error, "did you mean t__add" in text_of(unknown)) == (True, True)
    failed = await client.call_tool("t__fails", {})
    assert (failed.is_error, "there is no milk" in text_of(failed)) == (True, True)
    broken = await client.call_tool("t__breaks", {})
    assert (broken.is_error, "milk" in text_of(broken)) == (True, False)
    lacking = await client.call_tool("t__shop", {"name": "of Ada"})
    assert (lacking.is_error, "Ada" in text_of(lacking)) == (True, False)
    assert (await client.call_tool("t__words", {})).structured_content == {"result": ["a", "b"]}
    assert (await client.call_tool("t__facts", {})).structured_content == {"a": 1, "b": None}
    assert (await client.call_tool("t__nothing", {})).structured_content == {"result": None}
    picture = (await client.call_tool("t__picture", {})).content[0]
    assert (picture.type, picture.mime_type, len(picture.data)) == ("image", "image/png", (len(PICTURE) + 2) // 3 * 4)


async def _told(client: Client, logged: list[Any]) -> None:
    """Progress and messages of tools come before the result; tracebacks and remedies are only for the host."""
    progress: list[tuple[float, float | None, str | None]] = []

    async def tell(done: float, total: float | None, text: str | None) -> None:
        progress.append((done, total, text))

    result = await client.call_tool("t__steps", {"count": 3}, progress_callback=tell)
    assert result.structured_content == {"result": 3}
    assert progress == [(1, 3, "going on"), (2, 3, "going on"), (3, 3, "going on")]
    assert [(each.level, each.logger, each.data) for each in logged] == [
        ("warning", "neuroscript.t.steps", "nearly there")
    ]


async def _streamed(client: Client, tmp_path: Path) -> None:
    """Each item of a stream is sent as progress before the last one is made; the result has all items.

    If a tool reports its own progress, its items are sent too.
    """
    mark = tmp_path / "streamed"
    received: list[tuple[float, float | None, str | None]] = []

    async def tell(done: float, total: float | None, text: str | None) -> None:
        received.append((done, total, text))
        if done == 2:
            mark.touch()  # the tool waits for this

    given = await client.call_tool("t__pieces", {"count": 3, "mark": str(mark)}, progress_callback=tell)
    pieces = ["piece 0\n", "piece 1\n" + "x" * 2_000, "piece 2\n"]
    assert given.structured_content == {"result": pieces}
    assert received == [(1, None, pieces[0]), (2, None, f"{pieces[1][:999]}…"), (3, None, pieces[2])]

    received.clear()
    await client.call_tool("t__ahead", {}, progress_callback=tell)
    assert received == [(50, 100, "going on"), (51, None, "a"), (60, 100, "going on"), (61, None, "b")]

    received.clear()
    failed = await client.call_tool("t__numbers", {"count": 9}, progress_callback=tell)
    assert (failed.is_error, "(after 3 items)" in text_of(failed)) == (True, True)
    assert received == [(1, None, '{"n": 4}'), (2, None, '{"n": 6}'), (3, None, '{"n": 12}')]
    plain = await client.call_tool("t__numbers", {"count": 1})
    assert plain.structured_content == {"result": [{"n": 4}]}


async def _left(client: Client, tmp_path: Path) -> None:
    """A client that cancels a stream ends its tool."""
    mark = tmp_path / "left"
    begun = asyncio.Event()

    async def tell(done: float, total: float | None, text: str | None) -> None:
        begun.set()

    call = client.call_tool("t__pieces", {"count": 2, "mark": str(mark)}, progress_callback=tell)
    task = asyncio.create_task(call)
    await begun.wait()
    task.cancel()
    await _until(mark.with_suffix(".closed").exists)


async def _cancelled(client: Client, tmp_path: Path, logged: list[Any]) -> None:
    """A coroutine is cancelled, and a thread sees the cancellation; both are notified."""
    for tool, left, message in (("sleeps", "stopped", "was stopped"), ("waits", "looked", "may still run")):
        mark, before = tmp_path / tool, len(logged)
        call = asyncio.create_task(client.call_tool(f"t__{tool}", {"mark": str(mark)}))
        await _until(lambda: mark.exists() and mark.read_text() == "began")
        call.cancel()
        await _until(lambda: mark.read_text() == left)
        if client.protocol_version < "2026":  # a cancelled request has no stream for messages since
            await _until(lambda: any(message in each.data for each in logged[before:]))
    assert (await client.call_tool("t__add", {"a": 1})).structured_content == {"result": 2}


async def _until(happens: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not happens():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.01)


def _listening(logged: list[Any]) -> dict[str, Any]:
    async def log(params: Any) -> None:
        logged.append(params)

    return {"logging_callback": log, "log_level": "info"}


@pytest.mark.slow
@MODES
def test_the_official_client_works_over_stdio(tmp_path: Path, mode: Mode) -> None:
    """With the command in a process; output of its tools does not break the protocol."""
    logged: list[Any] = []

    async def talk() -> None:
        async with over_stdio(mode=mode, **_listening(logged)) as client:
            assert client.server_info.name == "neuroscript"
            await _contract(client)
            await _told(client, logged)
            await _streamed(client, tmp_path)
            await _left(client, tmp_path)
            await _cancelled(client, tmp_path, logged)
            for _ in range(3):
                assert (await client.call_tool("t__prints", {})).structured_content == {"result": ""}

    asyncio.run(talk())


@MODES
def test_the_official_client_works_over_http(place: Place, tmp_path: Path, mode: Mode) -> None:
    """As over stdio; its session, if it has one, ends when it disconnects."""
    logged: list[Any] = []

    async def talk() -> None:
        async with Client(place.url, mode=mode, **_listening(logged)) as client:
            await _contract(client)
            await _told(client, logged)
            await _streamed(client, tmp_path)
            await _left(client, tmp_path)
            await _cancelled(client, tmp_path, logged)
            assert len(place.service.clients) == (1 if mode == "legacy" else 0)

    asyncio.run(talk())

    until(lambda: not place.service.clients)
    assert not place.engine._shared.running


def _line(method: str, id: int | None = None, **params: Any) -> bytes:
    head = {"jsonrpc": "2.0", "method": method} | ({} if id is None else {"id": id})
    return json.dumps({**head, "params": params}).encode() + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "tool", "prompt"),
    [
        ("2024-11-05", ["text", "text", "image", "text", "text", "resource", "resource"], "[index: notes://index]"),
        ("2025-03-26", ["text", "text", "image", "audio", "text", "resource", "resource"], "[index: notes://index]"),
        ("2025-06-18", ["text", "text", "image", "audio", "resource_link", "resource", "resource"], None),
    ],
)
def test_old_clients_receive_notes_for_blocks_that_they_lack(version: str, tool: list[str], prompt: str | None) -> None:
    """Otherwise they could not read the message, so the whole result would be lost."""
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    lines = [
        _line("initialize", 0, **hello),
        _line("notifications/initialized"),
        _line("tools/call", 1, name="pictures__every", arguments={}),
        _line("prompts/get", 2, name="notes__compare"),
    ]
    plugins = [str(ROOT / "tests" / "picture_tools.py"), str(PLUGIN.with_name("mcp_notes.py"))]
    command = ["-m", "neuroscript", "mcp", "serve", *(word for each in plugins for word in ("-p", each))]
    with subprocess.Popen([sys.executable, *command], stdin=-1, stdout=-1, cwd=ROOT) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"".join(lines))
        process.stdin.flush()
        found: dict[int, Any] = {}
        while {1, 2} - found.keys():
            message = json.loads(process.stdout.readline())
            found[message.get("id")] = message.get("result")
        process.stdin.close()

    assert [each["type"] for each in found[1]["content"]] == tool
    assert found[2]["messages"][3]["content"].get("text") == prompt


@pytest.mark.slow
def test_a_client_that_reads_nothing_blocks_its_stream(tmp_path: Path) -> None:
    """The stream advances only as far as the pipe can hold, and ends when the client disconnects."""
    mark = tmp_path / "endless"
    words = [sys.executable, "-m", "neuroscript", "mcp", "serve", "-p", str(PLUGIN)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        info = {"name": "idle", "version": "1"}
        begin = _line("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        call = {"name": "t__endless", "arguments": {"mark": str(mark)}, "_meta": {"progressToken": "p"}}
        server.stdin.write(begin + _line("notifications/initialized") + _line("tools/call", 2, **call))
        server.stdin.flush()
        until(lambda: mark.exists() and int(mark.read_text() or 0) > 10)
        counts = [-1, 0]
        while counts[-1] != counts[-2]:
            time.sleep(0.3)
            counts.append(int(mark.read_text() or 0))
        server.stdout.close()
        server.stdin.close()
        assert server.wait(20) is not None

    assert 10 < counts[-1] < 1_000
    assert mark.with_suffix(".closed").exists()


@pytest.mark.slow
def test_large_results_of_a_server_are_files(tmp_path: Path) -> None:
    """The client receives the path; results have no schemas then, because such an answer would not match."""

    async def talk() -> None:
        async with over_stdio("--spill", "1000", "--sandbox", str(tmp_path)) as client:
            assert all(tool.output_schema is None for tool in (await client.list_tools()).tools)
            assert (await client.call_tool("t__words", {})).content[0].text == '["a", "b"]'
            large = await client.call_tool("t__pieces", {"count": 3})
            (file,) = tmp_path.glob("results/*")
            text = text_of(large).splitlines()
            assert (large.is_error, text[0], len(file.read_text().splitlines())) == (False, '"piece 0\\n"', 3)
            assert f"is in the sandbox file results/{file.name}" in text[-1]

    asyncio.run(talk())


def test_only_the_selected_tools_are_served() -> None:
    """Other tools are not listed, and cannot be called by a client or by another tool."""

    async def talk(url: str) -> None:
        async with Client(url) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["t__add"]
            refused = await client.call_tool("t__words", {})
            assert (refused.is_error, "policy.not_allowed" in text_of(refused)) == (True, True)

    with served(tools=("t.ad*",)) as place:
        asyncio.run(talk(place.url))


def test_a_selection_does_not_ask_about_other_tools() -> None:
    """Even if the policy of the host asks about tools that it does not allow."""
    policy = ExecutionPolicy(allow=(), otherwise="ask", approver=lambda request: Approval.approve())
    with Engine(plugins="none", policy=policy) as engine:
        engine.load_plugin(PLUGIN)

        assert {*Access.of(engine, ("t.ad*",)).open(None).session.infos} == {"t.add"}


def test_an_invalid_pattern_is_refused_at_once() -> None:
    """Before a client connects."""
    with Engine(plugins="none") as engine, pytest.raises(SpecError):
        serve(engine, tools=("t.[",))


def test_a_client_is_notified_of_new_tools(place: Place) -> None:
    """Once for each change, after which the list contains them."""
    changed: list[str] = []

    async def record(message: Any) -> None:
        changed.append(getattr(message, "method", ""))

    async def talk() -> None:
        async with Client(place.url, mode="legacy", message_handler=record) as client:
            assert client.server_capabilities.tools.list_changed is True
            await client.list_tools()
            more = Toolset("late")
            more.add(ToolSpec("comer", "late"), lambda rt: None)
            place.engine.register(more)
            await _until(lambda: "notifications/tools/list_changed" in changed)
            assert "late__comer" in {tool.name for tool in (await client.list_tools()).tools}
            await asyncio.sleep(1.1)
            assert changed.count("notifications/tools/list_changed") == 1

    asyncio.run(talk())


def _answering(answer: Callable[[Any], ElicitResult], requests: list[str]) -> dict[str, Any]:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        requests.append(params.message)
        return answer(params)

    return {"elicitation_callback": elicit}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ElicitResult(action="accept", content={"approve": True}), "deleted a.txt"),
        (ElicitResult(action="accept", content={"approve": False}), "the user did not approve it"),
        (ElicitResult(action="decline"), "the user did not approve it"),
        (ElicitResult(action="cancel"), "the user did not approve it"),
        (None, "the client of this session does not support elicitation"),
    ],
    ids=["yes", "no", "declined", "cancelled", "nobody"],
)
@MODES
def test_the_user_of_a_client_approves_its_calls(
    place: Place, answer: ElicitResult | None, text: str, mode: Mode
) -> None:
    """Once for each call, with all visible details; if the client cannot ask, the call is refused."""
    requests: list[str] = []

    async def talk() -> None:
        words = _answering(lambda _: answer, requests) if answer else {}
        async with Client(place.url, mode=mode, **words) as client:
            if answer is None and mode != "legacy":
                with pytest.raises(MCPError, match=text) as refused:
                    await client.call_tool("t__risky", {"path": "a.txt"})
                assert refused.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
                return
            result = await client.call_tool("t__risky", {"path": "a.txt"})
            assert text in text_of(result)
            assert result.is_error is (text != "deleted a.txt")

    asyncio.run(talk())

    assert len(requests) == (0 if answer is None else 1)
    assert all(shown in message for message in requests for shown in ("t.risky", 'path = "a.txt"', "deletes"))


def test_a_nested_call_is_approved_too(place: Place) -> None:
    """By the same user, although another loop asks; a nested call in the other direction is refused."""
    requests: list[str] = []

    async def talk(is_approved: bool) -> Any:
        answer = ElicitResult(action="accept", content={"approve": is_approved})
        async with Client(place.url, mode="legacy", **_answering(lambda _: answer, requests)) as client:
            return text_of(await client.call_tool("t__outer", {"path": "b.txt"}))

    assert asyncio.run(talk(True)) == "deleted b.txt"
    assert "policy.rejected" in asyncio.run(talk(False))
    assert [message.splitlines()[0] for message in requests] == ["May t.risky run?"] * 2


def test_a_client_that_only_opens_urls_is_not_asked() -> None:
    """It does not support forms, so it could not answer."""
    offered = [None, ElicitationCapability(), FORM, ADDRESS, ElicitationCapability(form=FORM.form, url=ADDRESS.url)]

    assert [offers_forms(ClientCapabilities(elicitation=each)) for each in offered] == [False, True, True, False, True]
    assert offers_forms(None) is False


def test_a_prompt_ends_with_its_call(place: Place, tmp_path: Path) -> None:
    """A cancelled call does not wait for an answer, and leaves no thread behind."""
    request = asyncio.Event()

    async def elicit(context: Any, params: Any) -> ElicitResult:
        request.set()
        await asyncio.sleep(60)
        return ElicitResult(action="cancel")

    async def talk() -> None:
        async with Client(place.url, mode="legacy", elicitation_callback=elicit) as client:
            call = asyncio.create_task(client.call_tool("t__asks", {}))
            await request.wait()
            call.cancel()
            await _until(lambda: not place.engine._shared.running)
            await _until(lambda: not place.engine._shared.threads.abandoned)

    asyncio.run(talk())


def test_a_tool_asks_the_user_of_the_client(place: Place) -> None:
    """But never for a secret, and only if the client supports it."""
    requests: list[str] = []

    async def talk() -> None:
        answer = ElicitResult(action="accept", content={"answer": "me"})
        async with Client(place.url, mode="legacy", **_answering(lambda _: answer, requests)) as client:
            assert (await client.call_tool("t__asks", {})).structured_content == {"result": "hello me"}
            secret = await client.call_tool("t__asks", {"secret": True})
            assert "prompt.noninteractive" in text_of(secret)
            held = await client.call_tool("t__asks_on_the_loop", {})
            assert "must run in a thread" in text_of(held)
        declined = _answering(lambda _: ElicitResult(action="decline"), requests)
        async with Client(place.url, mode="legacy", **declined) as client:
            assert "prompt.eof" in text_of(await client.call_tool("t__asks", {}))
        async with Client(place.url, mode="legacy") as client:
            assert "prompt.noninteractive" in text_of(await client.call_tool("t__asks", {}))

    asyncio.run(talk())

    assert requests == ["who is there?", "who is there?"]
