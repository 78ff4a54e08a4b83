"""The handle toolset, called through an engine, with a tool that stores resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from neuroscript import ArgType, Engine, Handle, Runtime, Toolset, ToolSpec


@pytest.fixture
def closed() -> list[str]:
    """The resources that were released so far."""
    return []


@pytest.fixture
def engine(closed: list[str]) -> Iterator[Engine]:
    """An engine with a tool that stores a resource."""
    things = Toolset("thing")

    def keep(rt: Runtime) -> Handle:
        return rt.handles.new(object(), "thing", lambda: closed.append("thing"))

    things.add(ToolSpec("keep", "thing", return_type=ArgType.HANDLE), keep)
    with Engine(toolsets=[things], plugins=["neuroscript-std"]) as engine:
        yield engine


@pytest.mark.parametrize("given", [str, lambda text: Handle(text, "thing")], ids=["its id", "itself"])
def test_handle_is_inspected_and_released(
    engine: Engine, closed: list[str], given: Callable[[str], str | Handle]
) -> None:
    """By its id, as in JSON, or by the object, as in Python."""
    handle = given(engine.call("thing.keep"))
    assert ("thing", True) == (engine.call("handle.type", [handle]), engine.call("handle.isvalid", [handle]))

    assert engine.call("handle.release", [handle]) is True

    assert ["thing"] == closed
    assert (None, False) == (engine.call("handle.type", [handle]), engine.call("handle.isvalid", [handle]))
    assert engine.call("handle.release", [handle]) is False
    assert ["thing"] == closed


def test_handle_belongs_to_its_session(engine: Engine) -> None:
    """One caller can neither inspect nor release the handles of another."""
    handle = engine.call("thing.keep")

    with engine.session() as other:
        results = [other.call(f"handle.{tool}", [handle]) for tool in ("type", "isvalid", "release")]

    assert [None, False, False] == results
    assert engine.call("handle.isvalid", [handle]) is True
