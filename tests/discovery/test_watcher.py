"""Plugins that change: files and packages that are overwritten, replaced, half-written, removed and added."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from neuroscript import Engine, PluginError, Watcher

PLUGIN = '''
def who() -> str:
    """Say who it is."""
    return "{name}"

def register(registrar):
    registrar.toolset("mine").tool()(who)
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin of one file."""
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN.format(name="one"))
    return path


def same_size(path: Path) -> None:
    path.write_text(PLUGIN.format(name="two"))


def same_time(path: Path) -> None:
    times = path.stat()
    path.write_text(PLUGIN.format(name="three"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def another(path: Path) -> None:
    times, other = path.stat(), path.with_suffix(".new")
    other.write_text(PLUGIN.format(name="two"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [same_size, same_time, another, removed])
def test_change_is_reported_once(plugin: Path, change: Callable[[Path], None]) -> None:
    """It is detected by time, size, or a different file of that name."""
    watcher = Watcher([plugin])
    os.utime(plugin, ns=(0, 0))
    touched = watcher.changed()
    change(plugin)

    assert (str(plugin),) == touched == watcher.changed()
    assert () == watcher.changed()


def test_each_module_of_a_package_is_watched(tmp_path: Path) -> None:
    """This includes subpackages and new modules, but no other files."""
    below = tmp_path / "package" / "below"
    below.mkdir(parents=True)
    for each in (below.parent / "__init__.py", below / "__init__.py"):
        each.write_text("")
    watcher = Watcher([str(below.parent)])
    (below / "notes.txt").write_text("no module")
    unmoved = watcher.changed()
    (below / "other.py").write_text("x = 1")
    result = watcher.changed()
    (below / "other.py").unlink()

    assert () == unmoved
    assert (str(below.parent),) == result == watcher.changed()


def test_new_plugins_of_a_directory_are_reported(plugin: Path) -> None:
    """They are those that `load_plugins` would load; while the directory is unreadable, nothing is new."""
    watcher = Watcher(directories=[plugin.parent])
    (plugin.parent / "other.py").write_text("")
    (plugin.parent / "_hidden.py").write_text("")
    result = watcher.changed()
    plugin.parent.chmod(0o777)
    (plugin.parent / "late.py").write_text("")
    exposed = watcher.changed()
    plugin.parent.chmod(0o755)

    assert (str(plugin.parent / "other.py"),) == result
    assert () == exposed
    assert (str(plugin.parent / "late.py"),) == watcher.changed()


def test_missing_plugin_is_reported_when_it_appears(tmp_path: Path) -> None:
    path = tmp_path / "late.py"
    watcher = Watcher([path])
    before = watcher.changed()
    path.write_text("")

    assert ((), (str(path),)) == (before, watcher.changed())


def test_engine_loads_changed_plugins(plugin: Path) -> None:
    """A partial file changes nothing, and the complete file is loaded afterwards."""
    messages = []
    with Engine(plugins="none") as engine:
        watcher = Watcher([plugin])
        engine.load_plugin(plugin)
        for text in (PLUGIN.format(name="two"), "def who(", PLUGIN.format(name="three")):
            plugin.write_text(text)
            for path in watcher.changed():
                try:
                    engine.reload_plugin(path)
                except PluginError as error:
                    messages.append(error.reason)
            messages.append(engine.call("mine.who"))

    reason = f"cannot be loaded: SyntaxError: '(' was never closed ({plugin.name}, line 1)"
    assert ["two", reason, "two", "three"] == messages
