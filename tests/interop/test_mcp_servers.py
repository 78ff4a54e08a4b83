"""A third-party server, ``mcp-server-time`` from PyPI, in a policy file: its tools through an engine, under policy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.interop.mcp_stdio import command

from neuroscript import (
    ArgType,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Host,
    MemoryAudit,
    SpecError,
    ToolCall,
    ToolResult,
    Toolset,
    ToolSpec,
    load_policy,
)
from neuroscript.cli import main
from neuroscript.interop.mcp import add_servers
from neuroscript.interop.mcp.client.accepted_definitions import Definition, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc")

UTC = {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}


def table(*words: str) -> str:
    """Return a policy file that names the server."""
    argv = [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"]
    grant = 'policy.grants = ["mcp:call:clock/*"]'
    return "\n".join([grant, "[mcp.clock]", f"command = {json.dumps(argv)}", *words])


def call_tool(engine: Engine, name: str, arguments: object) -> ToolResult:
    return engine.execute(ToolCall(f"clock.{name}", arguments))


RETRIES = {"mcp.error": "model"}
"""Who can make the call succeed, by code; for every other code it is 'host'."""


def code(result: ToolResult) -> str:
    assert result.error is not None
    assert result.error.retry == RETRIES.get(result.error.code, "host")
    return result.error.code


def children() -> set[str]:
    """Return the processes that this one has started."""
    found: set[str] = set()
    for each in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            found.update((each / "children").read_text().split())
    return found


def is_server(process: str) -> bool:
    """Return whether a process is the server; other tests may have left theirs running."""
    return b"mcp_server_time" in Path(f"/proc/{process}/cmdline").read_bytes()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy file; the accepted definitions are stored beside it once an engine has seen the server."""
    return tmp_path_factory.mktemp("policy") / "policy.toml"


@pytest.fixture(scope="module")
def audit() -> MemoryAudit:
    return MemoryAudit()


@pytest.fixture(scope="module")
def engine(file: Path, audit: MemoryAudit) -> Iterator[Engine]:
    """An engine with the server, which is started to be listed, and is trusted."""
    file.write_text(table("trusted = true"))
    with Engine(plugins="none", policy=load_policy(file), audit=audit) as engine:
        assert add_servers(engine, file) == ()
        yield engine


def test_its_tools_are_called_through_an_engine(engine: Engine) -> None:
    """With arguments as objects, JSON strings or by position; results are validated with its output schemas."""
    converted = call_tool(engine, "convert_time", UTC)
    now = call_tool(engine, "get_current_time", '{"timezone": "Asia/Tokyo"}')

    assert converted.value["target"]["datetime"].endswith("T21:30:00+09:00")
    assert converted.value["time_difference"] == "+9.0h"
    assert (type(now.value["is_dst"]), now.value["timezone"]) == (bool, "Asia/Tokyo")
    assert call_tool(engine, "get_current_time", ("UTC",)).value["timezone"] == "UTC"
    assert {name: tool.spec.return_type for name, tool in engine.tools.items()} == {
        "clock.get_current_time": ArgType.MAP,
        "clock.convert_time": ArgType.MAP,
    }


def test_invalid_arguments_are_reported_before_the_call(engine: Engine) -> None:
    """With every problem; the server's own errors have a code, and the audit log contains no value."""
    wrong = call_tool(engine, "convert_time", {"source": "UTC", "time": 12, "target_timezone": True})
    refused = call_tool(engine, "get_current_time", {"timezone": "Nowhere/Xy"})

    assert str(wrong.error) == (
        "clock.convert_time: source_timezone: expected string, got nothing; time: expected string, got int; "
        "target_timezone: expected string, got bool; source: expected only source_timezone, time, target_timezone, "
        "got an unknown name of type str"
    )
    assert code(refused) == "mcp.error"
    assert str(refused.error).startswith("clock.get_current_time: the server says: ")


def test_no_value_of_a_failed_call_is_in_the_audit_log(engine: Engine, audit: MemoryAudit) -> None:
    """A record only has the code."""
    call_tool(engine, "get_current_time", {"timezone": "Nowhere/Xy"})

    record = audit.records[-1]

    assert (record.kind, record.tool, record.code) == ("outcome", "clock.get_current_time", "mcp.error")
    assert "Nowhere" not in repr(audit.records)


def test_a_hanging_server_is_a_timeout_and_recovers(engine: Engine) -> None:
    """The process is stopped, as when a machine sleeps; the next call is answered."""
    call_tool(engine, "get_current_time", {"timezone": "UTC"})
    (child,) = [int(each) for each in children() if is_server(each)]
    os.kill(child, signal.SIGSTOP)
    try:
        with pytest.raises(CallTimeout):
            engine.call("clock.get_current_time", ("UTC",), timeout=0.3)
    finally:
        os.kill(child, signal.SIGCONT)

    assert call_tool(engine, "get_current_time", {"timezone": "UTC"}).error is None


def test_calls_run_concurrently(engine: Engine) -> None:
    """Each has its own answer."""

    async def all_of_them() -> list[ToolResult]:
        zones = ["UTC", "Asia/Tokyo", "Europe/Berlin"] * 4
        calls = (engine.aexecute(ToolCall("clock.get_current_time", {"timezone": zone})) for zone in zones)
        return await asyncio.gather(*calls)

    found = asyncio.run(all_of_them())

    assert [each.value["timezone"] for each in found] == ["UTC", "Asia/Tokyo", "Europe/Berlin"] * 4


# These tests do not start the server: its accepted definitions are known


@pytest.mark.parametrize(
    ("words", "policy", "expected"),
    [
        ("", {}, "policy.approval"),
        ("trust_annotations = true", {"grants": ()}, "policy.capability"),
        ("trusted = true", {"deny": ("clock.*",)}, "policy.denied"),
        ("trusted = true", {"allow": ("math.*",)}, "policy.not_allowed"),
    ],
    ids=["an approval", "a grant", "denied", "not allowed"],
)
def test_a_denied_call_is_refused(
    words: str, policy: dict[str, tuple[str, ...]], expected: str, engine: Engine, file: Path
) -> None:
    """Whatever the file says about its server; the server is not started."""
    before = children()
    other = file.with_name("other.toml")
    other.write_text(table(words))
    permits = ExecutionPolicy(**{"grants": ("mcp:call:clock/*",), **policy})  # type: ignore[arg-type]
    with Engine(plugins="none", policy=permits) as narrow:
        add_servers(narrow, other)

        assert code(call_tool(narrow, "get_current_time", {"timezone": "UTC"})) == expected
        assert children() == before


def far_table(*words: str) -> str:
    """Return a policy file that names a server without an SDK, which starts much faster."""
    grant = 'policy.grants = ["mcp:call:far/*"]'
    return f"{grant}\n[mcp.far]\ntrusted = true\ncommand = {json.dumps(command('plain', *words))}"


def test_a_changed_definition_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    """The server has other descriptions and arguments when it is started again, which models read."""
    file = tmp_path / "policy.toml"
    file.write_text(far_table())
    first, described = call_in_new_session(file)
    file.write_text(far_table("changed"))

    refused, before = call_in_new_session(file)
    assert main(["mcp", "tools", "far", "--policy", str(file), "--accept"]) == 0
    accepted, after = call_in_new_session(file)

    assert (first.value, described, before) == (2, "Add two numbers.", "Add two numbers.")
    assert code(refused) == "mcp.changed"
    assert (accepted.value, after) == (-1, "Add two numbers, and notify all clients.")


def call_in_new_session(file: Path) -> tuple[ToolResult, str]:
    """Return the result of a call in its own session, and the description of the tool."""
    with Engine(plugins="none", policy=load_policy(file)) as engine:
        assert add_servers(engine, file) == ()
        return engine.execute(ToolCall("far.add", {"a": 1})), engine.tools["far.add"].spec.description


def test_the_server_ends_with_the_engine(tmp_path: Path) -> None:
    """Its process has ended when `close` returns."""
    before = children()
    (tmp_path / "p.toml").write_text(far_table())
    with Engine(plugins="none") as engine:
        add_servers(engine, tmp_path / "p.toml")
        assert len(children() - before) == 1

    assert children() == before


# Unusable servers


def test_each_unusable_server_is_listed_and_does_not_affect_others(tmp_path: Path) -> None:
    """Like plugins: by its table, with a code, and without values."""
    write(tmp_path / "t.mcp.json", {"a": Definition.of_data({"name": "a", "inputSchema": {"type": "object"}})})
    write(tmp_path / "far.mcp.json", {"a": Definition.of_data({"name": "a", "inputSchema": {"type": "object"}})})
    (tmp_path / "p.toml").write_text(
        "[mcp.gone]\ncommand = ['./gone']\n"
        "[mcp.secret]\nurl = 'http://127.0.0.1:9/'\nheaders = {A = {secret = 'no-such'}}\n"
        "[mcp.t]\ncommand = ['hush']\n"
        "[mcp.far]\ncommand = ['hush']\n"
    )
    own = Toolset("t")
    own.add(ToolSpec("a", "t", ()), lambda rt: None)
    with Engine(plugins="none", toolsets=[own], host=Host(secrets={"other": "t-123456"})) as engine:
        errors = add_servers(engine, tmp_path / "p.toml")

        assert (errors, [*engine.tools]) == (engine.plugin_errors, ["t.a", "far.a"])
    assert [(each.distribution, each.code, each.reason) for each in errors] == [
        ("mcp.gone", "mcp.start", "the server could not be reached: FileNotFoundError"),
        ("mcp.secret", "plugin.spec", "headers: the host provides no secret named no-such"),
        ("mcp.t", "plugin.duplicate", "already registered: t.a"),
    ]


def test_an_invalid_file_adds_nothing(tmp_path: Path) -> None:
    """The host has named it, so the error is raised."""
    (tmp_path / "p.toml").write_text("[mcp.a]\ncommand = ['x']\n[mcp.b]\n")
    with Engine(plugins="none") as engine, pytest.raises(SpecError) as caught:
        add_servers(engine, tmp_path / "p.toml")

    assert (str(caught.value), engine.plugin_errors) == (
        "p.toml:3: mcp.b: set either command or url",
        (),
    )
