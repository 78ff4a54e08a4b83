"""The handle toolset, through an engine as a caller would use it, with a tool that keeps things."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from neuroscript import ArgType, Engine, Handle, Runtime, Toolset, ToolSpec


@pytest.fixture
def closed() -> list[str]:
    """What has been given up so far."""
    return []


@pytest.fixture
def engine(closed: list[str]) -> Iterator[Engine]:
    """An engine with a tool that keeps a thing."""
    things = Toolset("thing")

    def keep(rt: Runtime) -> Handle:
        return rt.handles.new(object(), "thing", lambda: closed.append("thing"))

    things.add(ToolSpec("keep", "thing", return_type=ArgType.HANDLE), keep)
    with Engine(toolsets=[things], plugins=["neuroscript-std"]) as engine:
        yield engine


@pytest.mark.parametrize("given", [str, lambda text: Handle(text, "thing")], ids=["its id", "itself"])
def test_a_handle_is_looked_at_and_given_up(
    engine: Engine, closed: list[str], given: Callable[[str], str | Handle]
) -> None:
    """By its id, as JSON has it, or by itself, as Python has it."""
    handle = given(engine.call("thing.keep"))
    assert ("thing", True) == (engine.call("handle.type", [handle]), engine.call("handle.isvalid", [handle]))

    assert engine.call("handle.release", [handle]) is True

    assert ["thing"] == closed
    assert (None, False) == (engine.call("handle.type", [handle]), engine.call("handle.isvalid", [handle]))
    assert engine.call("handle.release", [handle]) is False
    assert ["thing"] == closed


def test_a_handle_of_another_session_is_none_of_this_one(engine: Engine) -> None:
    """One caller can not look at what another one keeps, nor give it up."""
    handle = engine.call("thing.keep")

    with engine.session() as other:
        came = [other.call(f"handle.{tool}", [handle]) for tool in ("type", "isvalid", "release")]

    assert [None, False, False] == came
    assert engine.call("handle.isvalid", [handle]) is True
