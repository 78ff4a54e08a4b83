"""Plugins that register their own tools: files, modules and objects, and whatever is wrong with one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroscript import Engine, PluginError, Registrar, RegistryError, ToolSpec

GOOD = '''
"""A plugin."""
from __future__ import annotations
import attrs
from neuroscript import ArgSpec, ToolSpec, tool

@attrs.frozen
class Point:
    """A point."""
    x: int

def shift(point: Point, by: int = 1) -> int:
    """Move a point."""
    return point.x + by

def register(registrar):
    registrar.toolset("one").add(ToolSpec("f", "one", return_type="string"), lambda rt: __name__)
    registrar.register(tool(shift, group="two"))
'''


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_registers_its_tools(tmp_path: Path) -> None:
    """By its path; it is a module of its own, and tools know where they come from."""
    first, second = (written(tmp_path / name / "plugin.py", GOOD) for name in "ab")
    with Engine(plugins="none") as engine, Engine(plugins="none") as other:
        engine.load_plugin(first)
        other.load_plugin(str(second))

        assert engine.call("two.shift", [{"x": "4"}]) == 5
        assert engine.call("one.f") != other.call("one.f")
        assert engine.infos["one.f"].origin == str(first)


def test_a_module_or_an_object_registers_its_tools() -> None:
    """Whatever has the function."""

    class Plugin:
        def register(self, registrar: Registrar) -> None:
            registrar.toolset("g").add(ToolSpec("t", "g"), lambda rt: 1)

    with Engine(plugins="none") as engine:
        engine.load_plugin(Plugin())

        assert engine.call("g.t") == 1
        assert engine.infos["g.t"].origin == "Plugin"


HALF = "def register(registrar):\n    registrar.toolset('half').tool()(good)\n"
SHAPE = "def good() -> int:\n    '''Give one.'''\n    return 1\n\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 +", "it can not be loaded (SyntaxError, line 1)"),
        ("import nowhere_to_be_found", "it can not be loaded (ModuleNotFoundError, line 1)"),
        ("\nraise SystemExit(3)", "it can not be loaded (SystemExit, line 2)"),
        ("x = 1", "it has no function register(registrar)"),
        ("register = 5", "it has no function register(registrar)"),
        ("def register():\n    pass", "it can not be loaded (TypeError"),
        (f"{SHAPE}{HALF}    raise ValueError('canary')", "it can not be loaded (ValueError, line 7)"),
        (
            f"{SHAPE}{HALF}    registrar.register(5)",
            "it can not be loaded (register: expected a ToolImplementation or a Toolset, got int)",
        ),
        (
            f"{SHAPE}{HALF}    registrar.toolset('A B')",
            "it can not be loaded (toolset A B: its name is not that of a group)",
        ),
    ],
)
def test_a_plugin_that_fails_adds_nothing(tmp_path: Path, text: str, reason: str) -> None:
    """It is named, with the reason and the line, and without what it said itself."""
    path = written(tmp_path / "plugin.py", text)
    with Engine(plugins="none") as engine:
        with pytest.raises(PluginError) as caught:
            engine.load_plugin(path)

        assert reason in caught.value.reason
        assert "canary" not in str(caught.value)
        assert not engine.tools


def test_a_plugin_that_claims_what_is_there_adds_nothing(tmp_path: Path) -> None:
    """The first one stays."""
    path = written(tmp_path / "plugin.py", GOOD)
    with Engine(plugins="none") as engine:
        engine.load_plugin(path)
        before = dict(engine.tools)
        with pytest.raises(RegistryError, match="already registered"):
            engine.load_plugin(path)

        assert before == dict(engine.tools)


@pytest.mark.parametrize("name", ["nowhere.py", "", "notes.txt"])
def test_what_is_no_file_of_python_is_said(tmp_path: Path, name: str) -> None:
    """As it was given, cut and escaped."""
    written(tmp_path / "notes.txt", "not Python")
    with Engine(plugins="none") as engine, pytest.raises(PluginError, match="there is no such file of Python"):
        engine.load_plugin(tmp_path / name if name else tmp_path)
