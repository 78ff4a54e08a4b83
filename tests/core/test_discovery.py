"""Toolsets of installed distributions: in order, by choice, and whatever is wrong with one of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from neuroscript import Engine, PluginError, Registrar, RegistryError, ToolSpec

TOOLSET = """
from neuroscript import Toolset
toolset = Toolset("{group}")

@toolset.tool()
def who() -> str:
    return "{name}"
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of installed distributions, as an installer leaves them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in [name for name, each in sys.modules.items() if str(tmp_path) in str(getattr(each, "__file__", ""))]:
        del sys.modules[module]


def install(site: Path, name: str, code: str, *, entry: str = "tools", target: str = "toolset") -> None:
    """Put a distribution with one module and one entry point into a folder of installed ones."""
    module = f"{name.replace('-', '_').replace('.', '_').lower()}_module"
    (site / f"{module}.py").write_text(code)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[neuroscript.toolsets]\n{entry} = {module}:{target}\n")


def test_an_installed_toolset_is_found(site: Path) -> None:
    """By its entry point, without a word in the host's program."""
    install(site, "acme-tools", TOOLSET.format(group="acme", name="acme"))

    with Engine() as engine:
        assert engine.call("acme.who") == "acme"
        assert engine.plugin_errors == ()


def test_a_host_chooses_distributions_by_name(site: Path) -> None:
    """In any spelling that PEP 503 takes for the same; what is not chosen is not imported."""
    install(site, "Acme.Tools", TOOLSET.format(group="acme", name="acme"))
    install(site, "other-tools", "raise AssertionError('imported')")

    with Engine(plugins=["acme_tools"]) as engine:
        assert [*engine.tools] == ["acme.who"]
        assert engine.plugin_errors == ()
    with Engine(plugins="none") as engine:
        assert [*engine.tools] == []


@pytest.mark.parametrize(
    ("code", "target", "reason"),
    [
        ("raise ImportError('secret')", "toolset", "entry point tools can not be loaded (ImportError)"),
        ("raise SystemExit(3)", "toolset", "entry point tools can not be loaded (SystemExit)"),
        ("x = (", "toolset", "entry point tools can not be loaded (SyntaxError)"),
        ("x = 1", "toolset", "entry point tools can not be loaded (AttributeError)"),
        ("toolset = 5", "toolset", "entry point tools is no Toolset but a int"),
        (TOOLSET.format(group="good", name="twice"), "toolset", "already registered: good.who"),
    ],
)
def test_a_broken_distribution_is_named_and_stops_no_other(site: Path, code: str, target: str, reason: str) -> None:
    """It comes between two good ones, and both work."""
    install(site, "a-good", TOOLSET.format(group="good", name="first"))
    install(site, "b-broken", code, target=target)
    install(site, "c-good", TOOLSET.format(group="other", name="last"))

    with Engine(plugins=["a-good", "b-broken", "c-good"]) as engine:
        assert [engine.call("good.who"), engine.call("other.who")] == ["first", "last"]
        (error,) = engine.plugin_errors
    assert isinstance(error, PluginError)
    assert f"b-broken 1.0: {reason}" == str(error)


def test_a_distribution_that_is_not_there_is_named(site: Path) -> None:
    """A host that asked for it learns that it got nothing."""
    with Engine(plugins=["no-such-tools"]) as engine:
        assert ["no-such-tools: is not installed, or offers no toolset"] == [str(each) for each in engine.plugin_errors]


def test_the_order_is_that_of_the_names(site: Path) -> None:
    """Not that of the folder, so that two machines have the same tools."""
    for name in ("zeta", "alpha", "mid"):
        install(site, name, TOOLSET.format(group=name, name=name))

    with Engine(plugins=["zeta", "mid", "alpha"]) as engine:
        assert [*engine.tools] == ["alpha.who", "mid.who", "zeta.who"]


def test_the_hosts_own_tools_come_first(site: Path) -> None:
    """A distribution can not take a name that the host uses."""
    from neuroscript import Toolset

    install(site, "thief", TOOLSET.format(group="acme", name="thief"))
    mine = Toolset("acme")

    @mine.tool()
    def who() -> str:
        return "host"

    with Engine(toolsets=[mine], plugins=["thief"]) as engine:
        assert engine.call("acme.who") == "host"
        assert ["thief 1.0: already registered: acme.who"] == [str(each) for each in engine.plugin_errors]


# Plugins of one file

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
