"""Each member of the Runtime has a first-party tool that uses it, so that none is there for nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroscript import Runtime

PLUGINS = Path(__file__).parent.parent / "plugins"
MEMBERS = {name for name in vars(Runtime) if not name.startswith("_")}

SOURCES = sorted(PLUGINS.glob("*/src/**/*.py"))


def used(source: str) -> Iterator[str]:
    """Yield each attribute of something called ``rt`` that stands in the text of a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="rt"), attr=name):
                yield name


def test_the_members_are_found() -> None:
    """Methods and properties, in the Protocol and in what a tool says of it."""
    assert {"println", "llm", "require", "deadline"} <= MEMBERS
    assert set(used("def f(rt):\n    rt.fs.open(x.rt)\n    return [rt.tools]")) == {"fs", "tools"}


def test_every_member_of_the_runtime_is_used_by_a_tool() -> None:
    """There is no exception."""
    assert set() == MEMBERS - {name for path in SOURCES for name in used(path.read_text())}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_tool_uses_what_the_runtime_does_not_promise(path: Path) -> None:
    """Whatever else the engine's own Runtime has, a tool of another host would not find it."""
    assert set() == set(used(path.read_text())) - MEMBERS
