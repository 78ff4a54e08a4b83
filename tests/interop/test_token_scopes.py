"""What the scopes of a token permit, and that nothing of one principal reaches another."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from tests.interop.mcp_place import bound
from tests.interop.oauth_issuer import serving_with
from tests.interop.oauth_place import MODERN_META, Protected, names, notes, protected, result

from neuroscript import Engine, ExecutionPolicy, FlowLabels, FlowRule, Limits, SpecError, ToolPolicy
from neuroscript.audit import FileAudit, read
from neuroscript.interop.http_server.scope_policies import ScopePolicies
from neuroscript.interop.mcp import ask_client, from_mcp, serve
from neuroscript.interop.mcp.server.http import app

GRANTED = ExecutionPolicy(grants=("mcp:call:**",))
READ, WRITE = "notes__read_note", "notes__write_note"
ELICITATION = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
TASKS = {"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


@pytest.fixture(scope="module")
def place() -> Iterator[Protected]:
    with protected() as place:
        yield place


def call(place: Protected, token: str, name: str, meta: Any = None, **params: Any) -> Any:
    """Call a tool with protocol 2026-07-28, and return the response."""
    arguments = {"name": name, "arguments": params.pop("arguments", {}), **params}
    return place.post(token, "tools/call", {**arguments, "_meta": {**MODERN_META, **(meta or {})}})


@pytest.mark.parametrize(
    ("scope", "tools"),
    [
        ("notes:read", [READ]),
        ("notes:write", [READ, "notes__recall", "notes__remember", WRITE]),
        ("other notes:read", [READ]),
        ("notes:read notes:write", [READ, "notes__recall", "notes__remember", WRITE]),
    ],
)
def test_a_token_lists_the_tools_of_its_scopes(place: Protected, scope: str, tools: list[str]) -> None:
    """In both protocols; handles and variables aside, they are the same tools."""
    token = place.token(scope=scope)

    assert names(place.post(token)) == tools
    session = place.session(token)
    assert names(place.legacy(token, "tools/list", session=session)) == tools


@pytest.mark.parametrize("scope", ["", "other", "notes:rea", "notes:read,notes:write", "NOTES:READ"])
def test_a_token_without_a_known_scope_is_refused(place: Protected, scope: str) -> None:
    """Its client learns the scopes of the server."""
    answer = place.post(place.token(scope=scope))

    assert answer.status_code == 403
    assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert 'scope="notes:read notes:write"' in answer.headers["www-authenticate"]


def test_a_call_that_needs_another_scope_names_it(place: Protected) -> None:
    """So that the client asks its user for that scope; nothing runs."""
    answer = call(place, place.token(), WRITE, arguments={"text": "attack"})

    assert answer.status_code == 403
    assert 'scope="notes:read notes:write"' in answer.headers["www-authenticate"]
    assert result(call(place, place.token(), READ))["structuredContent"] == {"result": "empty"}


def test_a_call_with_another_name_in_its_header_is_refused(place: Protected) -> None:
    """The header only helps the client; the policy decides by the request itself."""
    body = {"name": WRITE, "arguments": {"text": "attack"}}
    answer = place.post(place.token(), "tools/call", body, **{"Mcp-Name": READ})

    assert answer.status_code == 400
    assert result(call(place, place.token(), READ))["structuredContent"] == {"result": "empty"}


def test_a_session_has_the_scopes_of_its_token(place: Protected) -> None:
    """A call of another tool is refused, as if there were no such tool."""
    token = place.token()
    session = place.session(token)

    found = result(place.legacy(token, "tools/call", {"name": WRITE, "arguments": {"text": "x"}}, session))

    assert found["isError"]
    assert "not" in found["content"][0]["text"]
    assert result(call(place, place.token(), READ))["structuredContent"] == {"result": "empty"}


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "eve"},
        {"client_id": "another-program"},
        {"scope": "notes:read"},
        {"scope": "notes:read notes:write other"},
    ],
    ids=str,
)
def test_a_session_belongs_to_its_principal(place: Protected, claims: dict[str, str]) -> None:
    """Another user, another program and a token with other scopes find no such session."""
    owner = place.token(scope="notes:read notes:write")
    session = place.session(owner)
    place.legacy(owner, "tools/call", {"name": "notes__remember", "arguments": {"text": "secret"}}, session)

    stranger = place.token(**{"scope": "notes:read notes:write", **claims})
    stolen = place.legacy(stranger, "tools/call", {"name": "notes__recall", "arguments": {}}, session)
    ended = httpx2.delete(
        place.url, headers={"Authorization": f"Bearer {stranger}", "Mcp-Session-Id": session}, trust_env=False
    )
    again = place.token(scope="notes:write notes:read", jti="a refreshed token")
    kept = result(place.legacy(again, "tools/call", {"name": "notes__recall", "arguments": {}}, session))

    assert (stolen.status_code, ended.status_code) == (404, 404)
    assert "secret" not in stolen.text
    assert kept["structuredContent"] == {"result": "secret"}


def test_a_request_state_belongs_to_its_principal() -> None:
    """The answer to a question is refused if another principal sends it; nothing runs."""
    policy = ExecutionPolicy(allow=("notes.read_note",), otherwise="ask", approver=ask_client)
    scopes = {"notes:write": {"otherwise": "ask", "allow": ("notes.read_note",)}}
    with protected(policy=policy, scopes=scopes) as place:
        owner = place.token(scope="notes:write")
        asked = result(call(place, owner, WRITE, ELICITATION, arguments={"text": "approved"}))
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        answers = {
            "inputResponses": {key: {"action": "accept", "content": {"approve": True}}},
            "requestState": asked["requestState"],
        }
        thief = place.token(scope="notes:write", sub="eve")
        stolen = call(place, thief, WRITE, ELICITATION, arguments={"text": "approved"}, **answers)
        before = result(call(place, owner, READ))
        own = result(call(place, owner, WRITE, ELICITATION, arguments={"text": "approved"}, **answers))
        after = result(call(place, owner, READ))

    assert "Invalid or expired requestState" in stolen.text
    assert own["structuredContent"] == {"result": True}, own
    assert [each["structuredContent"]["result"] for each in (before, after)] == ["empty", "approved"]


def test_a_task_belongs_to_its_principal() -> None:
    """Another principal can neither read nor cancel it, and cannot find out that it exists."""
    with protected(tasks=("notes.*",)) as place:
        owner = place.token()
        task = result(call(place, owner, READ, TASKS))
        assert task["resultType"] == "task", task
        params = {"taskId": task["taskId"], "_meta": {**MODERN_META, **TASKS}}
        thief = place.token(sub="eve")
        stolen = [
            place.post(thief, method, params, **{"Mcp-Name": task["taskId"]})
            for method in ("tasks/get", "tasks/cancel")
        ]
        own = place.post(owner, "tasks/get", params, **{"Mcp-Name": task["taskId"]})

    assert all("there is no task with this id" in each.text for each in stolen)
    assert result(own)["status"] in ("working", "completed")


@pytest.mark.parametrize(("scope", "is_found"), [("notes:read", False), ("notes:read notes:write other", True)])
def test_a_task_needs_the_scopes_with_which_it_began(scope: str, is_found: bool) -> None:
    """A token of the same user that permits less cannot read the result of what it could not call."""
    with protected(tasks=("notes.*",)) as place:
        begun = place.token(scope="notes:read notes:write")
        task = result(call(place, begun, WRITE, TASKS, arguments={"text": "x"}))
        params = {"taskId": task["taskId"], "_meta": {**MODERN_META, **TASKS}}
        answer = place.post(place.token(scope=scope), "tasks/get", params, **{"Mcp-Name": task["taskId"]})

    assert ("there is no task with this id" not in answer.text) is is_found


def test_a_scope_with_a_line_break_is_not_two_scopes() -> None:
    """Otherwise a token could take over the session of a token with both scopes."""
    with protected() as place:
        session = place.session(place.token(scope=["notes:read", "notes:write", "x"]))
        answer = place.legacy(place.token(scope=["notes:read", "notes:write\nx"]), "tools/list", {}, session)

    assert answer.status_code == 404


def test_scopes_that_permit_nothing_do_not_multiply_limits() -> None:
    """A user could otherwise request a token with another useless scope when a limit is reached."""
    scopes = {"notes:read": {"allow": ("notes.read_*",), "limits": Limits(calls=2)}}
    with protected(scopes=scopes) as place:
        tokens = [place.token(scope=f"notes:read{more}") for more in ("", " openid", " email")]
        found = [result(call(place, each, READ)).get("isError", False) for each in tokens]

    assert found == [False, False, True]


def test_what_one_principal_reads_does_not_restrict_another() -> None:
    """Rules about information flow apply to each principal, whatever the scopes of its tokens are."""
    policy = ExecutionPolicy(
        flow=(FlowRule(("private",), ("public",), "refuse", by="session"),),
        labels=(FlowLabels("notes.read_note", sources=("private",)), FlowLabels("notes.write_note", sinks=("public",))),
    )

    def writes(place: Protected, **claims: Any) -> bool:
        token = place.token(scope="notes:write", **claims)
        return not result(call(place, token, WRITE, arguments={"text": "x"})).get("isError", False)

    with protected(policy=policy) as place:
        before = writes(place)
        result(call(place, place.token(scope="notes:read"), READ))
        after, other = writes(place), writes(place, sub="eve")

    assert (before, after, other) == (True, False, True)


def test_the_audit_log_names_the_principal(tmp_path: Path) -> None:
    """And contains no part of its token."""
    path = tmp_path / "audit.jsonl"
    with protected(audit=FileAudit(path)) as place:
        token = place.token(sub="ada")
        result(call(place, token, READ))
        session = place.session(token)
        place.legacy(token, "tools/call", {"name": READ, "arguments": {}}, session)
        issuer = place.issuer.url

    sessions = {record["session"] for record in read(path)}
    assert len(sessions) == 2
    assert all(each.startswith(f"{issuer}#ada/") for each in sessions)
    assert not any(part in path.read_text() for part in token.split("."))


def test_limits_count_for_each_principal() -> None:
    """All requests and sessions of one principal count together, and those of another do not."""
    scopes = {"notes:read": {"allow": ("notes.read_*",), "limits": Limits(calls=2)}}
    with protected(scopes=scopes) as place:
        ada = [result(call(place, place.token(), READ)) for _ in range(3)]
        eve = result(call(place, place.token(sub="eve"), READ))

    assert [each.get("isError", False) for each in ada] == [False, False, True]
    assert not eve.get("isError", False)


def test_a_stream_ends_with_its_token(place: Protected) -> None:
    """Not before the tolerance for clocks is over; its client then opens it again with a new token."""
    token = place.token(exp=int(time.time()) - 26)  # it is accepted for 30 seconds
    session = place.session(token)
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", "Mcp-Session-Id": session}
    began = time.monotonic()
    with httpx2.Client(trust_env=False, timeout=20) as client, client.stream("GET", place.url, headers=headers) as got:
        assert got.status_code == 200
        with suppress(httpx2.HTTPError):
            got.read()

    assert 0.5 < time.monotonic() - began < 20


def test_a_token_is_not_passed_on() -> None:
    """A server that calls tools of another server sends it nothing of its client."""
    headers: list[dict[str, str]] = []

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await upstream(scope, receive, send)

    with Engine(toolsets=notes(), plugins="none") as engine, bound() as (socket, port):
        upstream = app(serve(engine))
        config = uvicorn.Config(listening, log_level="error", timeout_graceful_shutdown=1)
        with serving_with(uvicorn.Server(config), socket), protected(scopes=None, policy=GRANTED) as place:
            server = from_mcp(url=f"http://127.0.0.1:{port}/mcp", group="far", trusted=True)
            place.engine.add_hooks(server)
            found = result(call(place, place.token(), "far__notes_read_note"))

    assert found.get("structuredContent") == {"result": "empty"}, found
    assert len(headers) >= 2
    assert not any("authorization" in each for each in headers)


# What scopes permit together


def test_the_sum_of_scopes_has_what_each_permits() -> None:
    """Tools and grants of each; what restricts applies from all."""
    scopes = ScopePolicies(
        {
            "read": {"allow": ("fs.read*",), "grants": ("fs:read:a/**",)},
            "write": {"allow": ("fs.write",), "grants": ("fs:write:a/**",), "deny": ("fs.read_secret",)},
        }
    )
    server = ExecutionPolicy(allow=("fs.*",), deny=("fs.write",), grants=("fs:read:**", "fs:write:**"))

    both = scopes.policy(["read", "write", "unknown"], server)

    def verdict(tool: str) -> str:
        refusal = both.precheck(tool, ToolPolicy())
        return "" if refusal is None else refusal.code

    assert [verdict(tool) for tool in ("fs.read_text", "fs.read_secret", "fs.write", "http.get")] == [
        "",
        "policy.denied",
        "policy.denied",
        "policy.not_allowed",
    ]
    assert [str(each) for each in both.layers[0].grants] == ["fs:read:a/**", "fs:write:a/**"]


def test_no_scope_permits_nothing() -> None:
    """Whatever the policy of the server permits."""
    policy = ScopePolicies({"read": "*"}).policy([], ExecutionPolicy(otherwise="ask", approver=ask_client))

    assert (policy.allow, policy.otherwise) == ((), "refuse")


@pytest.mark.parametrize(
    ("table", "field"),
    [
        (5, "allow"),
        (None, "allow"),
        ({"allow": 5}, "allow"),
        ({"grants": None}, "grants"),
        ({"preapproved": 7}, "preapproved"),
        ({"trusted": "false"}, "trusted"),
        ({"trusted": 1}, "trusted"),
        ({"otherwise": "allowed"}, "otherwise"),
    ],
    ids=str,
)
def test_a_field_of_the_wrong_type_is_an_error(table: Any, field: str) -> None:
    """The text "false" must not count as true."""
    with pytest.raises(SpecError) as raised:
        ScopePolicies({"a": table})

    (problem,) = raised.value.problems
    assert problem.startswith(f"a: {field} ")


@pytest.mark.parametrize("tables", [5, "ab", [("a",)], [("a", "x", "y")], ["ab"]], ids=str)
def test_scopes_are_a_mapping_or_pairs(tables: Any) -> None:
    """Anything else is an error."""
    with pytest.raises(SpecError) as raised:
        ScopePolicies(tables)

    assert raised.value.problems == ("expected a mapping, or pairs of a scope and what it permits",)


def test_every_problem_of_scopes_is_listed() -> None:
    """With the scope that it belongs to."""
    with pytest.raises(SpecError) as raised:
        ScopePolicies({"a b": "*", "x": {"allow": ("-",)}, "y": {"unknown": 1}})

    assert len(raised.value.problems) == 3, raised.value.problems
