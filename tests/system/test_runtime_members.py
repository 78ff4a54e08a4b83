"""Each member of the Runtime is used by a first-party tool, so none is unused."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuroscript import RUNTIME_API, Runtime

PLUGINS = Path(__file__).parents[2] / "plugins"
MEMBERS = {name for name in vars(Runtime) if not name.startswith("_")}

ADDED = {
    (1, 0): (
        "call_tool call_tool_named cancelled deadline fs get_var handles llm logger now println progress prompt_user random "
        "require sandbox_dir secret set_var spend tools update_var variables"
    ),
    (1, 1): "labels",
    (1, 2): "confine",
}
"""The members that each version of the Runtime has added."""

SOURCES = sorted(PLUGINS.glob("*/src/**/*.py"))


def used(source: str) -> Iterator[str]:
    """Yield each attribute of ``rt`` in the source of a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="rt"), attr=name):
                yield name


def test_runtime_members_are_found() -> None:
    """Both the members of the Protocol and their uses in a source are found."""
    assert {"println", "llm", "require", "deadline"} <= MEMBERS
    assert set(used("def f(rt):\n    rt.fs.open(x.rt)\n    return [rt.tools]")) == {"fs", "tools"}


def test_every_runtime_member_is_used_by_a_tool() -> None:
    """``labels`` is for tools that decide by what they have read; no first-party tool does."""
    assert MEMBERS - {name for path in SOURCES for name in used(path.read_text())} == {"labels"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_tools_use_only_declared_runtime_members(path: Path) -> None:
    """Other members of the engine's own Runtime may be missing in another host."""
    assert set() == set(used(path.read_text())) - MEMBERS


def test_new_runtime_member_raises_the_version() -> None:
    """A toolset that declares the version of a member is rejected where the member is missing."""
    assert {name for names in ADDED.values() for name in names.split()} == MEMBERS
    assert max(ADDED) == RUNTIME_API
