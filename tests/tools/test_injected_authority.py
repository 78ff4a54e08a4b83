"""Needs, secrets, records and approvals of tools with injected arguments."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.tools.injected_tools import SOURCES, engine_of, refused_by, sample, through_steps, with_variables

from neuroscript import (
    Approval,
    ApprovalRequest,
    ArgSpec,
    ArgType,
    ArgumentError,
    CallRecord,
    ExecutionPolicy,
    FileAudit,
    Host,
    MemoryAudit,
    PolicyError,
    Resolver,
    Runtime,
    Secret,
    State,
    ToolCall,
    ToolImplementation,
    ToolPolicy,
    Toolset,
    ToolSpec,
    Value,
    Variable,
)
from neuroscript.approval.card import card

# Needs


def net_tool() -> Toolset:
    """Return a tool that needs the host which one of its arguments names, and a file that two of them name."""
    tools = Toolset("net")
    spec = ToolSpec(
        "get",
        "net",
        (ArgSpec("url", ArgType.STRING), ArgSpec("tenant", ArgType.STRING), ArgSpec("name", ArgType.STRING)),
    )
    needed = ("net:read:{url.host}", "fs:write:data/{tenant}/{name}")
    tools.add(spec, lambda rt, *values: list(values), ToolPolicy(capabilities=needed))
    return tools


GRANTS = ["net:read:*", "fs:write:data/**"]


def test_a_need_of_a_known_value_is_filled_in_at_once() -> None:
    """A value from a call has the widest scope unless its declaration narrows it."""
    known = net_tool().with_injected("net.get", url=Value("https://api.example.com/x"), tenant=Value("a*"))
    late = net_tool().with_injected("net.get", url=Variable("url"), tenant=Variable("tenant"))

    assert known.tools[0].policy.capabilities == ("net:read:api.example.com:443", r"fs:write:data/a\*/{name}")
    assert late.tools[0].policy.capabilities == ("net:read:*", "fs:write:data/*/{name}")


@pytest.mark.parametrize("way", [lambda e, *a: e.call(*a), through_steps], ids=["compiled", "steps"])
def test_a_need_is_held_to_the_policy_in_the_call(way: Any) -> None:
    """With the value that was injected, before the function runs; what a host has said less of is refused."""
    executed: list[object] = []
    tools = net_tool()
    tool = tools.tools[0]
    tools = Toolset("net", (attrs.evolve(tool, func=lambda rt, *values: executed.append(values)),))
    narrow = ("net:read:*.example.com:443", "fs:write:data/*/{name}")
    made = tools.with_injected("net.get", url=Variable("url"), tenant=Variable("tenant"))
    made = made.with_policy("*", capabilities=narrow)
    policy = ExecutionPolicy(grants=["net:read:*.example.com:443", "fs:write:data/**"])
    with engine_of(made, policy=policy) as engine:
        for url, tenant, need in (
            ("https://evil.test/", "acme", "net:read"),
            ("http://api.example.com/", "acme", "net:read"),
            ("https://api.example.com/", "../x", "fs:write"),
            ("https://api.example.com/", "a/b", "fs:write"),
        ):
            session = engine.session(variables={"url": url, "tenant": tenant})
            error = refused_by(lambda session=session: way(session, "net.get", ["n.txt"]))
            assert isinstance(error, PolicyError)
            assert error.need.startswith(need)
        assert executed == []
        session = engine.session(variables={"url": "https://api.example.com/", "tenant": "acme"})
        way(session, "net.get", ["n.txt"])
        assert executed == [("https://api.example.com/", "acme", "n.txt")]
        session = engine.session(variables={"url": "nowhere", "tenant": "acme"})
        error = refused_by(lambda: way(session, "net.get", ["n.txt"]))
        assert (error.code, error.retry) == ("inject.invalid", "host")
        assert str(error) == (
            "net.get: url: expected a URL with an ASCII host and an explicit or well-known port, got str "
            "(the host supplies this argument)"
        )


@pytest.mark.parametrize("audit", [False, True], ids=["plain", "audited"])
@pytest.mark.parametrize("way", [lambda e, *a: e.call(*a), through_steps], ids=["compiled", "steps"])
def test_a_tool_holds_no_more_than_its_values_ask_for(way: Any, audit: bool, tmp_path: Path) -> None:
    """Of its Runtime and of the calls within it gets what it would have, had a caller sent these values."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", (ArgSpec("path", ArgType.STRING), ArgSpec("other", ArgType.STRING)))
    needed = ToolPolicy(capabilities=("fs:read:{path}", "fs:read:shared/**"))

    def read(rt: Runtime, path: str, other: str) -> Any:
        return rt.call_tool("g.inner", [other]) if path == "nested.txt" else rt.fs.exists(other)

    tools.add(spec, read, needed)
    inner = ToolSpec("inner", "g", (ArgSpec("path", ArgType.STRING),))
    tools.add(inner, lambda rt, path: rt.fs.exists(path), ToolPolicy(capabilities=("fs:read:{path}",)))
    made = tools.with_injected("g.t", path=Variable("path"))
    policy, host = ExecutionPolicy(grants=["fs:read:*"]), Host(sandbox_dir=tmp_path)
    with engine_of(made, policy=policy, host=host, audit=MemoryAudit() if audit else ()) as engine:
        for path in ("own.txt", "nested.txt"):
            session = engine.session(variables={"path": path})
            assert [way(session, "g.t", [other]) for other in (path, "shared/x.txt")] == [False, False]
            error = refused_by(lambda session=session: way(session, "g.t", ["foreign.txt"]))
            assert (error.code, error.retry) == ("policy.capability", "host")


def test_each_of_two_injections_confines_its_own(tmp_path: Path) -> None:
    """Whichever was made first."""
    tools = Toolset("g")
    spec = ToolSpec("t", "g", tuple(ArgSpec(name, ArgType.STRING) for name in ("a", "b", "c")))
    tools.add(spec, lambda rt, a, b, c: rt.fs.exists(c), ToolPolicy(capabilities=("fs:read:{a}", "fs:read:{b}")))
    sources = {"a": Variable("a"), "b": Variable("b")}
    with_both = [
        tools.with_injected("g.t", **sources),
        tools.with_injected("g.t", a=sources["a"]).with_injected("g.t", b=sources["b"]),
        tools.with_injected("g.t", b=sources["b"]).with_injected("g.t", a=sources["a"]),
    ]
    host = Host(sandbox_dir=tmp_path, variables={"a": "a.txt", "b": "b.txt"})
    for made in with_both:
        with engine_of(made, policy=ExecutionPolicy(grants=["fs:read:*"]), host=host) as engine:
            assert [engine.call("g.t", [path]) for path in ("a.txt", "b.txt")] == [False, False]
            error = refused_by(lambda engine=engine: engine.call("g.t", ["c.txt"]))
            assert (error.code, error.retry) == ("policy.capability", "host")


def test_without_a_grant_for_all_that_may_come_the_tool_does_not_begin() -> None:
    """Its need is as wide as the values can be."""
    made = net_tool().with_injected("net.get", url=Variable("url"), tenant=Variable("tenant"))
    for grants, runs in ((["net:read:api.example.com:443", "fs:write:data/**"], False), (GRANTS, True)):
        with engine_of(
            made,
            policy=ExecutionPolicy(grants=grants),
            host=with_variables(url="https://api.example.com/", tenant="acme"),
        ) as engine:
            assert engine.execute(ToolCall("net.get", ["n"])).ok is runs
            assert engine.check([ToolCall("net.get", ["n"])])[0].allowed is runs


def test_a_tool_above_must_need_what_an_injected_value_leads_to() -> None:
    """What a tool does through others counts as its own need."""
    tools = net_tool().with_injected("net.get", url=Variable("url"), tenant=Variable("tenant"))

    def outer(rt: Runtime) -> Any:
        return rt.call_tool("net.get", ["n"])

    tools.add(ToolSpec("outer", "net"), outer, ToolPolicy(capabilities=("fs:write:data",)))
    host = with_variables(url="https://api.example.com/", tenant="acme")
    with engine_of(tools, policy=ExecutionPolicy(grants=[*GRANTS]), host=host) as engine:
        error = refused_by(lambda: engine.call("net.outer"))
        assert (error.code, error.retry) == ("policy.capability", "host")


def test_a_secret_is_a_need() -> None:
    """The message names the tool; a missing secret of the host is reported."""
    tools = sample().with_injected("crm.find", tenant=Secret("crm"))
    assert tools.tools[0].policy.capabilities == ("secret:read:crm",)
    with engine_of(tools, host=Host(secrets={"crm": "open sesame"})) as engine:
        error = refused_by(lambda: engine.call("crm.find", ["x"]))
        assert (error.code, error.retry) == ("policy.capability", "host")
    with engine_of(tools, policy=ExecutionPolicy(grants=["secret:read:crm"])) as engine:
        error = refused_by(lambda: engine.call("crm.find", ["x"]))
        assert (str(error), error.retry) == ("crm.find: the host provides no secret named crm", "host")


# What is shown

SEEN = "sesame-0123456789"


@pytest.mark.parametrize(
    "source",
    [Value(SEEN), Variable("key"), State({"key": SEEN}, "key"), Resolver(lambda rt: SEEN)],
    ids=SOURCES,
)
def test_a_secret_argument_is_seen_nowhere(source: Any, tmp_path: Path) -> None:
    """Not in what a model gets, a log has, a record tells; and not in the tool or its source as they are shown."""
    tools = Toolset("g")
    arguments = (ArgSpec("key", ArgType.STRING, secret=True), ArgSpec("x", ArgType.INT))
    tools.add(ToolSpec("t", "g", arguments), lambda rt, key, x: f"used {key}")
    made = tools.with_injected("g.t", key=source)
    trail = tmp_path / "trail.jsonl"
    with engine_of(made, host=with_variables(key=SEEN), audit=FileAudit(trail)) as engine:
        assert engine.execute(ToolCall("g.t", (1,))).value == "used [secret]"
        assert SEEN not in repr(made.tools[0]) + repr(made.tools[0].injected) + repr(engine.infos)

    assert SEEN not in trail.read_text()


@pytest.mark.parametrize("way", [lambda e, *a: e.call(*a), through_steps], ids=["compiled", "steps"])
def test_a_secret_within_an_injected_map_is_hidden(way: Any) -> None:
    """From the call on in which it was given; what is not secret in it is not."""
    tools = Toolset("g")
    keys = (ArgSpec("user", ArgType.STRING), ArgSpec("password", ArgType.STRING, secret=True))
    tools.add(ToolSpec("t", "g", (ArgSpec("login", ArgType.MAP, keys=keys),)), lambda rt, login: rt.println(login))
    output = io.StringIO()
    host = Host(variables={"login": {"user": "some-one", "password": SEEN}}, stdout=output)
    with engine_of(tools.with_injected("g.t", login=Variable("login")), host=host) as engine:
        way(engine, "g.t", [])

    assert output.getvalue() == "{'user': 'some-one', 'password': '[secret]'}\n"


def test_records_list_injected_arguments(tmp_path: Path) -> None:
    """By name, and nothing of their values; of other tools they say nothing."""
    audit = MemoryAudit()
    trail = tmp_path / "trail.jsonl"
    tools = sample().with_injected("crm.find", tenant=Variable("t"), limit=Value(7))
    for sink in (audit, FileAudit(trail)):
        with engine_of(tools, host=with_variables(t="canary"), audit=sink) as engine:
            engine.call("crm.find", ["x"])
            engine.call("crm.letters", ["a", "b"])

    records: list[CallRecord] = list(audit.records)
    assert [(each.tool, each.about.injected, each.types) for each in records] == [
        ("crm.find", ("tenant", "limit"), (str,)), ("crm.letters", (), (str, str)),
    ]  # fmt: skip
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    reported = [line.get("injected") for line in lines if line.get("kind") == "outcome"]
    assert reported == [["tenant", "limit"], None]
    assert "canary" not in trail.read_text() + repr(records)


def test_an_approver_sees_that_there_are_some() -> None:
    """By name, on the card too; the values are never shown."""
    requests: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> Approval:
        requests.append(request)
        return Approval.approve()

    tools = sample().with_injected("crm.find", tenant=Variable("t")).with_policy("crm.find", requires_approval=True)
    with engine_of(tools, host=with_variables(t="canary"), policy=ExecutionPolicy(approver=approver)) as engine:
        assert engine.call("crm.find", ["x"]) == ["canary", "x", 10]

    (request,) = requests
    assert (dict(request.arguments), request.injected) == ({"name": "x", "limit": 10}, ("tenant",))
    assert card(request, 60).splitlines()[-1] == "injected:  | tenant, by the host"
    assert "canary" not in card(request, 60) + repr(request)


def test_no_approver_can_set_what_is_the_hosts() -> None:
    """What it writes instead is bound as any call is."""
    tools = sample().with_injected("crm.find", tenant=Variable("t")).with_policy("crm.find", requires_approval=True)
    policy = ExecutionPolicy(approver=lambda request: Approval.modify({"name": "y", "tenant": "evil"}))
    with engine_of(tools, host=with_variables(t="acme"), policy=policy) as engine:
        assert isinstance(refused_by(lambda: engine.call("crm.find", ["x"])), ArgumentError)


def test_an_engine_takes_its_copy_with_the_sources() -> None:
    """Whatever is done to the set afterwards."""
    tools = sample().with_injected("crm.find", tenant=Variable("t"))
    with engine_of(tools) as engine:
        kept: ToolImplementation = engine.tools["crm.find"]
        assert kept.injected == {"tenant": Variable("t")}
