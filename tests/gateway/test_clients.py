"""Each client of a gateway: what it sees and may do, and what it shares with no other client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from tests.gateway.place import CLIENTS, HANDSHAKE, POLICY, headers, running, scripted, server_table, text_of, tool
from tests.interop.mcp_place import until

from neuroscript import Runtime, SpecError, Toolset
from neuroscript.audit import verify
from neuroscript.interop.mcp.server import tool_search
from neuroscript.tools.search import ToolIndex

NOTES = [tool("echo"), tool("process"), tool("slow-sleep")]


def test_client_sees_and_calls_what_its_own_table_permits(tmp_path: Path) -> None:
    """A tool that another client may call is neither listed nor called."""
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", NOTES)) + CLIENTS + 'deny = ["notes.process"]\n'

    with running(tmp_path, text) as place:
        names = {name: place.tools(name) for name in ("alice", "bob")}
        results = {name: place.call(name, "notes__process") for name in ("alice", "bob")}

    assert names["alice"] == ["notes__echo", "notes__process", "notes__slow_sleep"]
    assert names["bob"] == ["notes__echo", "notes__slow_sleep"]
    assert text_of(results["alice"]).isdecimal()
    assert "policy.denied" in text_of(results["bob"])


def test_requests_without_the_token_of_a_client_are_refused(tmp_path: Path) -> None:
    text = POLICY + 'metrics = true\ntoolsets = ["math"]\n' + CLIENTS

    with running(tmp_path, text) as place:
        found = {
            (path, name): place.get(path, name).status_code
            for path in ("/mcp", "/health", "/health/servers", "/metrics")
            for name in ("", "bob")
        }

    assert found == {
        ("/mcp", ""): 401,
        ("/mcp", "bob"): 400,
        ("/health", ""): 200,
        ("/health", "bob"): 200,
        ("/health/servers", ""): 401,
        ("/health/servers", "bob"): 403,
        ("/metrics", ""): 401,
        ("/metrics", "bob"): 403,
    }


def test_requests_for_the_health_do_not_displace_clients(tmp_path: Path) -> None:
    """If there are too many connections, those without a token are closed before those of clients."""
    import httpx2

    def is_open(http: httpx2.Client) -> bool:
        """Return whether a request is answered on the connection that is already open."""
        (connection,) = http._transport._pool.connections  # type: ignore[attr-defined]
        return not connection.has_expired()

    with running(tmp_path, POLICY + CLIENTS, bounds={"max_connections": 2}) as place:
        base = place.url.removesuffix("/mcp")
        with httpx2.Client() as client, httpx2.Client() as stranger, httpx2.Client() as newcomer:
            client.get(f"{base}/health/servers", headers=headers("alice"))
            stranger.get(f"{base}/health")
            newcomer.get(f"{base}/health/servers", headers=headers("bob"))
            until(lambda: not is_open(stranger))

            assert is_open(client)


def test_limits_count_all_connections_of_a_client_and_no_others(tmp_path: Path) -> None:
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", NOTES)) + CLIENTS + "limits = {calls = 2}\n"

    with running(tmp_path, text) as place:
        codes = [text_of(place.call("bob", "notes__echo", {"text": "ok"})) for _ in range(3)]
        other = text_of(place.call("alice", "notes__echo", {"text": "ok"}))

    assert codes[:2] == ["ok", "ok"]
    assert "limit.calls" in codes[2]
    assert other == "ok"


def test_session_of_one_client_is_unknown_to_another(tmp_path: Path) -> None:
    """The id of a session does not give access: the token decides whose sessions are searched."""
    import httpx2

    text = POLICY + server_table("notes", scripted(tmp_path, "notes", NOTES)) + CLIENTS

    async def main(url: str) -> dict[str, int]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
        hello = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        accept = {"accept": "application/json, text/event-stream"}
        found = {}
        async with httpx2.AsyncClient() as http:
            opened = await http.post(url, json={**body, "params": hello}, headers={**headers("alice"), **accept})
            session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": HANDSHAKE}
            for name in ("bob", "alice"):
                listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
                more = {**headers(name), **accept, **session}
                found[name] = (await http.post(url, json=listing, headers=more)).status_code
        return found

    with running(tmp_path, text) as place:
        assert asyncio.run(main(place.url)) == {"bob": 404, "alice": 200}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_variables_of_one_client_are_not_those_of_another(mode: str, tmp_path: Path) -> None:
    """A client with a handshake keeps its variables as long as it is connected; another client never sees them."""
    text = POLICY + 'toolsets = ["var"]\n' + CLIENTS

    async def main(place: Any) -> tuple[str, ...]:
        async with place.client("alice", mode=mode) as alice, place.client("bob", mode=mode) as bob:
            stored = await alice.call_tool("var__set", {"name": "x", "value": 1})
            seen = [await each.call_tool("var__get", {"name": "x", "default": 7}) for each in (alice, bob)]
        return ("error" if stored.is_error else "stored", *map(text_of, seen))

    with running(tmp_path, text) as place:
        expected = ("stored", "1", "7") if mode == "legacy" else ("error", "7", "7")
        assert asyncio.run(main(place)) == expected


def test_audit_records_name_the_client(tmp_path: Path) -> None:
    """The id of each session begins with the name of its client; the log is one intact chain."""
    text = POLICY + 'audit = "audit.jsonl"\n' + server_table("notes", scripted(tmp_path, "notes", NOTES)) + CLIENTS

    async def main(place: Any) -> None:
        for name, mode in (("alice", "auto"), ("alice", "legacy"), ("bob", "auto")):
            async with place.client(name, mode=mode) as client:
                await client.call_tool("notes__echo", {"text": "the content"})

    with running(tmp_path, text) as place:
        asyncio.run(main(place))

    log = tmp_path / "audit.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    sessions = [each["session"] for each in records if each["kind"] == "outcome"]
    assert [each.partition("/")[0] for each in sessions] == ["alice", "alice", "bob"]
    assert len({*sessions}) == 3
    assert "the content" not in log.read_text()
    assert verify(log).is_intact


def test_bare_names_are_served_where_they_are_unique(tmp_path: Path) -> None:
    servers = [server_table(name, scripted(tmp_path, name, [tool("echo"), tool(f"{name}-echo")])) for name in "ab"]
    text = POLICY + 'names = "bare"\n' + "".join(servers)

    with running(tmp_path, text) as place:
        assert sorted(place.tools()) == ["a-echo", "a__echo", "b-echo", "b__echo"]


def test_client_with_many_tools_searches_among_those_that_it_may_call(tmp_path: Path) -> None:
    """Another client, which may call fewer, gets the list."""
    tools = [tool("echo", "Repeat a text."), tool("process", "Return the number of the process."), tool("slow-sleep")]
    text = POLICY + "search_above = 1\n" + server_table("notes", scripted(tmp_path, "notes", tools)) + CLIENTS
    text = text.replace('"ALICE"}', '"ALICE"}\ndeny = ["notes.process"]') + 'allow = ["notes.process"]\n'

    with running(tmp_path, text) as place:
        names = {name: place.tools(name) for name in ("alice", "bob")}
        found = place.call("alice", "search_tools", {"query": "number of the process, or repeat a text"})
        called = place.call("alice", "call_tool", {"name": "notes__echo", "arguments": {"text": "hi"}})
        refused = place.call("alice", "call_tool", {"name": "notes__process", "arguments": {}})

    assert names == {"alice": ["search_tools", "call_tool"], "bob": ["notes__process"]}
    assert "notes__echo" in text_of(found)
    assert "notes__process" not in text_of(found)
    assert text_of(called) == "hi"
    assert "policy.denied" in text_of(refused)


def test_call_that_needs_approval_asks_the_user_of_the_client_that_makes_it(tmp_path: Path) -> None:
    from mcp_types import ElicitResult

    text = POLICY + server_table("notes", scripted(tmp_path, "notes", NOTES), trusted=False) + CLIENTS

    async def main(place: Any) -> list[Any]:
        asked = []

        async def answer(context: Any, params: Any) -> ElicitResult:
            asked.append(params.message)
            return ElicitResult(action="accept", content={"approve": True})

        async with place.client("alice", elicitation_callback=answer) as alice, place.client("bob") as bob:
            with pytest.raises(MCPError) as refused:
                await bob.call_tool("notes__echo", {"text": "hi"})
            return [refused.value.error.data, text_of(await alice.call_tool("notes__echo", {"text": "hi"})), len(asked)]

    with running(tmp_path, text) as place:
        missing, answer, asked = asyncio.run(main(place))

    assert missing == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert asked == 1
    assert answer == "hi"


def test_new_tools_are_announced(tmp_path: Path) -> None:
    """A server that cannot start at first is started later, and connected clients get its tools."""
    command = scripted(tmp_path, "late", [tool("echo")])
    file = Path(command[3])
    definitions = file.read_text()
    file.unlink()
    text = POLICY + server_table("late", command)

    with running(tmp_path, text) as place:
        assert place.tools() == []
        assert (place.state("late").status, place.state("late").problem) != ("running", "")
        file.write_text(definitions)
        until(lambda: place.tools() == ["late__echo"], 20)
        assert place.state("late").is_healthy


def test_every_problem_that_depends_on_the_machine_is_reported_at_once(tmp_path: Path) -> None:
    text = (
        POLICY.replace("127.0.0.1", "0.0.0.0")
        + 'toolsets = ["maths"]\n[client.alice]\n[client.bob]\ntoken = {secret = "UNSET"}\n'
        + '[client.carol]\ntoken = {secret = "SHORT"}\n'
    )

    with pytest.raises(SpecError) as error, running(tmp_path, text, {"SHORT": "not-so-long"}):
        pass

    assert error.value.problems == (
        "client.alice: needs a token, because other clients or machines can reach the gateway",
        "client.bob.token: the environment variable UNSET is not set, or is empty",
        "client.carol.token: SHORT has fewer than 16 characters",
        "gateway.toolsets: no installed entry point matches maths; did you mean math?",
    )


def test_server_cannot_take_the_group_of_a_toolset(tmp_path: Path) -> None:
    """Otherwise its tools would be called under rules that were written for the toolset."""
    text = POLICY + 'toolsets = ["math"]\n' + server_table("math", scripted(tmp_path, "math", [tool("echo")]))

    with pytest.raises(SpecError) as error, running(tmp_path, text):
        pass

    assert error.value.problems == ("mcp.math: math is the group of an installed toolset; set another group",)


def test_log_message_is_sent_once_although_each_client_has_a_service(tmp_path: Path) -> None:
    tools = Toolset("noisy")

    @tools.tool()
    def say(rt: Runtime) -> None:
        """Log a message."""
        rt.logger.info("hello")

    async def main(place: Any) -> list[Any]:
        received = []

        async def log(params: Any) -> None:
            received.append(params.data)

        async with place.client("alice", mode="legacy", logging_callback=log) as client:
            await client.call_tool("noisy__say", {})
            await client.call_tool("noisy__say", {})
        return received

    with running(tmp_path, POLICY + CLIENTS) as place:
        place.gateway.engine.register(tools)
        assert asyncio.run(main(place)) == ["hello", "hello"]


def test_searches_at_the_same_time_share_one_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(ToolIndex[Any]):
        def __init__(self, tools: Any) -> None:
            made.append(len(tools))
            super().__init__(tools)

    monkeypatch.setattr(tool_search, "ToolIndex", Counted)
    tools = [tool(f"echo-{at}") for at in range(300)]
    text = POLICY + "search_above = 5\n" + server_table("notes", scripted(tmp_path, "notes", tools))

    async def main(place: Any) -> None:
        async with place.client() as client:
            await asyncio.gather(*(client.call_tool("search_tools", {"query": "echo"}) for _ in range(10)))

    with running(tmp_path, text) as place:
        asyncio.run(main(place))
    assert made == [300]
