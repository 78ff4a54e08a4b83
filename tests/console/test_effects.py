"""What a browser may run if the console runs only tools without effects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from neuroscript import Engine, Runtime, ToolPolicy, Toolset
from neuroscript.console.effects import is_harmless, runnable_session


def engine_with_effects() -> tuple[Engine, list[str]]:
    ran: list[str] = []
    tools = Toolset("box")

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def look(rt: Runtime) -> str:
        """Read the box."""
        return "seen"

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def put(rt: Runtime) -> str:
        """Change the box."""
        ran.append("put")
        return "changed"

    @tools.tool
    def undeclared(rt: Runtime) -> str:
        """Do something that is not declared."""
        ran.append("undeclared")
        return "done"

    @tools.tool(policy=ToolPolicy(effects=("reads",)))
    def indirect(rt: Runtime) -> Any:
        """Change the box through another tool."""
        return rt.call_tool("box.put", [])

    return Engine(plugins="none", toolsets=tools), ran


def session_of(engine: Engine, *, run_effects: bool) -> Any:
    visitor: Any = SimpleNamespace(session=engine.session())
    console: Any = SimpleNamespace(engine=engine, settings=SimpleNamespace(run_effects=run_effects))
    return runnable_session(visitor, console)


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (("pure",), True),
        (("reads", "idempotent"), True),
        (("clock", "random"), True),
        ((), False),
        (("idempotent",), False),
        (("net", "idempotent"), False),
        (("reads", "writes"), False),
        (("model",), False),
        (("prompts",), False),
        (("exec",), False),
    ],
)
def test_only_declared_harmless_effects_are_harmless(effects: tuple[str, ...], expected: bool) -> None:
    """A tool is harmless if it declares effects, and none of them changes something or reaches another machine."""
    assert is_harmless(ToolPolicy(effects=effects)) is expected


def test_read_only_session_runs_harmless_tools() -> None:
    """A tool that declares to read runs."""
    engine, _ = engine_with_effects()

    with engine:
        assert session_of(engine, run_effects=False).call("box.look") == "seen"


@pytest.mark.parametrize("name", ["box.put", "box.undeclared", "box.indirect"])
def test_read_only_session_refuses_tools_with_effects(name: str) -> None:
    """Tools with effects, and without declared ones, do not run, not even through a harmless tool."""
    engine, ran = engine_with_effects()

    with engine:
        result = session_of(engine, run_effects=False).execute({"name": name})

        assert result.error is not None
        assert (result.error.code, result.error.retry, ran) == ("policy.not_allowed", "host", [])


def test_session_with_effects_runs_all_tools() -> None:
    """With ``run_effects`` the policy of the engine alone decides."""
    engine, ran = engine_with_effects()

    with engine:
        session = session_of(engine, run_effects=True)

        assert [session.call(name) for name in ("box.indirect", "box.undeclared")] == ["changed", "done"]
        assert ran == ["put", "undeclared"]
