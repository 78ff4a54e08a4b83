"""Plugins that register their own tools: files, modules and objects, and their problems."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

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
    """Any object with the function is accepted."""

    class Plugin:
        def register(self, registrar: Registrar) -> None:
            registrar.toolset("g").add(ToolSpec("t", "g"), lambda rt: 1)

    with Engine(plugins="none") as engine:
        engine.load_plugin(Plugin())

        assert engine.call("g.t") == 1
        assert engine.infos["g.t"].origin == "Plugin"


HELD = """
from neuroscript import Toolset

tea = Toolset("tea")
cups = Toolset("cups")
also_tea = tea
_hidden = Toolset("hidden")

@tea.tool
def brew(minutes: int) -> int:
    return minutes

@cups.tool(name="count")
def count_cups() -> int:
    return 4

@_hidden.tool
def spy() -> int:
    return 0
"""


def test_a_file_may_hold_toolsets_at_its_top_level(tmp_path: Path) -> None:
    """Each of them once, under however many names, in order; a name with an underscore hides one."""
    path = written(tmp_path / "kitchen.py", HELD)
    with Engine(plugins="none") as engine:
        engine.load_plugin(path)

        assert ["tea.brew", "cups.count"] == list(engine.tools)
        assert 3 == engine.call("tea.brew", ["3"])
        assert str(path) == engine.infos["tea.brew"].origin


def test_a_package_may_import_its_toolsets_from_its_modules(tmp_path: Path) -> None:
    """Imported names are attributes of the package too."""
    package = tmp_path / "kitchen"
    written(package / "__init__.py", "from .kettle import tea as drinks\n")
    written(package / "kettle.py", HELD)
    with Engine(plugins="none") as engine:
        engine.load_plugin(package)

        assert ["tea.brew"] == list(engine.tools)


def test_register_takes_precedence_over_toolsets(tmp_path: Path) -> None:
    """Toolsets of the module are only used by the function."""
    text = f"{HELD}\ndef register(registrar):\n    registrar.register(tea.prefixed('my'))\n"
    with Engine(plugins="none") as engine:
        engine.load_plugin(written(tmp_path / "kitchen.py", text))

        assert ["my.tea.brew"] == list(engine.tools)


def test_reloading_a_file_replaces_its_toolsets(tmp_path: Path) -> None:
    """With the current content; also in a directory of plugins."""
    path = written(tmp_path / "plugins" / "kitchen.py", HELD)
    path.parent.chmod(0o700)
    with Engine(plugins="none") as engine:
        assert () == engine.load_plugins(path.parent)
        written(path, HELD.replace('"tea"', '"coffee"'))
        engine.reload_plugin(path)

        assert ["coffee.brew", "cups.count"] == list(engine.tools)


def test_a_module_object_may_hold_toolsets_and_other_objects_have_a_method() -> None:
    """Attributes of an instance are no top level."""
    module = ModuleType("kitchen")
    exec(HELD, vars(module))
    with Engine(plugins="none") as engine:
        engine.load_plugin(module)
        with pytest.raises(PluginError) as caught:
            engine.load_plugin(SimpleNamespace(**vars(module)))

        assert ["tea.brew", "cups.count"] == list(engine.tools)
        assert f"SimpleNamespace: {NOTHING}" == str(caught.value)


NOTHING = (
    "it has neither a Toolset at its top level, such as shop = Toolset('shop'), nor a function register(registrar)"
)
HALF = "def register(registrar):\n    registrar.toolset('half').tool()(good)\n"
SHAPE = "def good() -> int:\n    '''Give one.'''\n    return 1\n\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 +", "cannot be loaded: SyntaxError: invalid syntax (plugin.py, line 1)"),
        (
            "import nowhere_to_be_found",
            "cannot be loaded: ModuleNotFoundError: No module named 'nowhere_to_be_found' (plugin.py, line 1)",
        ),
        ("\nraise SystemExit(3)", "cannot be loaded: SystemExit: 3 (plugin.py, line 2)"),
        ("x = 1", NOTHING),
        ("register = 5", NOTHING),
        ("from neuroscript import Toolset\n_hidden = Toolset('hidden')", NOTHING),
        ("from neuroscript import Toolset\ntoolsets = [Toolset('listed')]", NOTHING),
        (
            "def register():\n    pass",
            "cannot be loaded: TypeError: register() takes 0 positional arguments but 1 was given",
        ),
        (f"{SHAPE}{HALF}    raise ValueError('canary')", "cannot be loaded: ValueError: canary (plugin.py, line 7)"),
        (
            f"{SHAPE}{HALF}    registrar.register(5)",
            "cannot be loaded: register: tools must be a Toolset or a ToolImplementation, not int; "
            "turn a function into a tool with @toolset.tool, or with tool(function, group='my')",
        ),
        (
            f"{SHAPE}{HALF}    registrar.toolset('A B')",
            "cannot be loaded: toolset A B: the name is not a valid group name",
        ),
    ],
)
def test_a_plugin_that_fails_adds_nothing(tmp_path: Path, text: str, reason: str) -> None:
    """It is named, with its message and the line."""
    path = written(tmp_path / "plugin.py", text)
    with Engine(plugins="none") as engine:
        with pytest.raises(PluginError) as caught:
            engine.load_plugin(path)

        assert reason in caught.value.reason
        assert not engine.tools


def test_a_plugin_with_a_name_conflict_adds_nothing(tmp_path: Path) -> None:
    """The first plugin is unchanged."""
    path = written(tmp_path / "plugin.py", GOOD)
    with Engine(plugins="none") as engine:
        engine.load_plugin(path)
        before = dict(engine.tools)
        with pytest.raises(RegistryError, match="already registered"):
            engine.load_plugin(path)

        assert before == dict(engine.tools)


@pytest.mark.parametrize("name", ["nowhere.py", "", "notes.txt"])
def test_a_path_that_is_not_python_is_reported(tmp_path: Path, name: str) -> None:
    """As it was passed, truncated and escaped."""
    written(tmp_path / "notes.txt", "not Python")
    with Engine(plugins="none") as engine, pytest.raises(PluginError, match="no such Python file or package"):
        engine.load_plugin(tmp_path / name if name else tmp_path)
