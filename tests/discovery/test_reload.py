"""Plugins of a host: files and packages that are loaded, unloaded and reloaded in isolation while calls run."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neuroscript import (
    Engine,
    ExecutionPolicy,
    Limits,
    PluginError,
    Registrar,
    RegistryError,
    ToolNotFound,
    Toolset,
    ToolSpec,
)
from neuroscript.discovery.module_loader import PREFIX

FIRST = """
from neuroscript import Runtime
from . import second

GENERATION = {generation}


def register(registrar):
    tools = registrar.toolset("p")

    @tools.tool()
    def both() -> list[int]:
        '''Give the generation of each half.'''
        return [GENERATION, second.GENERATION]

    @tools.tool()
    def late() -> list[int]:
        '''Import the other half when it is called.'''
        from .third import GENERATION as third

        return [GENERATION, third]

    @tools.tool()
    def nested(rt: Runtime) -> list[int]:
        '''Ask another tool.'''
        return [GENERATION, *rt.call_tool("p.both")]

    @tools.tool()
    def held(rt: Runtime) -> list[int]:
        '''Wait for the host, and ask the others then.'''
        rt.call_tool("host.wait")
        return [GENERATION, *rt.call_tool("p.both"), *rt.call_tool("p.late")]
"""


def write(package: Path, generation: int) -> Path:
    """Write a package of three modules, all of one generation."""
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(FIRST.format(generation=generation))
    for name in ("second", "third"):
        (package / f"{name}.py").write_text(f"GENERATION = {generation}\n")
    return package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write(tmp_path / "acme", 0)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine(plugins="none") as engine:
        yield engine


def modules() -> set[str]:
    """Return the plugin modules in ``sys.modules``."""
    gc.collect()
    return {name for name in sys.modules if name.startswith(PREFIX)}


def one_file(path: Path, body: str = "1", name: str = "t") -> Path:
    """Write a plugin of one file whose only tool returns the value of an expression."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "from neuroscript import ToolSpec\n"
        f"def register(registrar):\n    registrar.toolset('p').add(ToolSpec('{name}', 'p'), lambda rt: {body})\n"
    )
    return path


# Reloading under load


@pytest.mark.parametrize(
    ("tool", "limits"),
    [("p.both", None), ("p.late", None), ("p.nested", None), ("p.nested", Limits(calls=1_000_000))],
    ids=["at once", "late import", "nested", "nested and counted"],
)
def test_reload_under_load_loses_and_mixes_no_call(
    package: Path, tool: str, limits: Limits | None, full_counts: bool
) -> None:
    """8 threads make calls during many reloads; each result comes from one generation."""
    engine = Engine(plugins="none", policy=ExecutionPolicy(limits=limits))
    engine.load_plugin(package)
    (each, reloads), threads = (1_250, 100) if full_counts else (400, 40), 8
    results: list[list[int]] = []
    failures: list[BaseException] = []
    begun = threading.Barrier(threads + 1)

    def work(session: Any) -> None:
        begun.wait()
        try:
            for _ in range(each):
                results.append(session.call(tool))
        except BaseException as error:
            failures.append(error)

    sessions = [engine, *(engine.session() for _ in range(threads - 1))]
    workers = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for worker in workers:
        worker.start()
    begun.wait()
    for generation in range(1, reloads + 1):
        write(package, generation)
        engine.reload_plugin(package)
        assert {*engine.call(tool)} == {generation}, "what begins after it meets the new one"
    for worker in workers:
        worker.join()

    assert failures == []
    assert len(results) == each * threads
    assert [result for result in results if len(set(result)) != 1] == []


@pytest.mark.slow
def test_running_call_keeps_its_generation(package: Path) -> None:
    """It keeps its functions, lazy imports and the other tools that it calls."""
    begun, go = threading.Event(), threading.Event()
    host = Toolset("host")
    host.add(ToolSpec("wait", "host"), lambda rt: (begun.set(), go.wait(10))[1])
    got: list[Any] = []
    others = modules()
    with Engine(toolsets=[host], plugins="none") as engine:
        engine.load_plugin(package)
        before = modules() - others
        worker = threading.Thread(target=lambda: got.append(engine.call("p.held")))
        worker.start()
        assert begun.wait(10)
        engine.reload_plugin(write(package, 1))
        for generation in (2, 3):
            engine.reload_plugin(write(package, generation))
        during = modules()
        engine.unload_plugin(package)
        go.set()
        worker.join()

        assert got == [[0, 0, 0, 0, 0]]
        assert before <= during, "what it may still import is there"
        assert not before & modules()
        with pytest.raises(ToolNotFound):
            engine.call("p.held")


def test_sessions_and_narrower_policies_use_the_new_generation(engine: Engine, tmp_path: Path) -> None:
    """This includes callers that used the tool before, by any spelling and entry point."""
    path = one_file(tmp_path / "a.py", "1")
    engine.load_plugin(path)
    sessions = [engine, engine.session(), engine.session(policy=ExecutionPolicy(deny=("x.*",)))]
    ways: list[Callable[[Any], Any]] = [
        lambda session: session.call("p.t"),
        lambda session: session.call("Tool.P.T"),
        lambda session: session.call_named("p.t", {}),
        lambda session: next(session.stream("p.t")),
    ]
    assert [way(session) for session in sessions for way in ways] == [1] * 12

    one_file(path, "2")
    engine.reload_plugin(path)

    assert [way(session) for session in sessions for way in ways] == [2] * 12


def test_observers_receive_the_new_definition(tmp_path: Path) -> None:
    """The guard of the tool changes with it."""
    from neuroscript import MemoryAudit

    audit = MemoryAudit()
    path = one_file(tmp_path / "a.py", "1")
    with Engine(plugins="none", audit=audit) as engine:
        engine.load_plugin(path)
        engine.call("p.t")
        path.write_text(path.read_text().replace("'t', 'p'", "'t', 'p', description='new'"))
        engine.reload_plugin(path)
        engine.call("p.t")

    first, second = [each.about.fingerprint for each in audit.records if each.kind == "outcome"]
    assert first != second


# Atomicity


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 +", "cannot be loaded: SyntaxError: invalid syntax (a.py, line 1)"),
        ("raise SystemExit", "cannot be loaded: SystemExit (a.py, line 1)"),
        (
            "x = 1",
            "it has neither a Toolset at its top level, such as shop = Toolset('shop'), nor a function register(registrar)",
        ),
        (None, "no such Python file or package (a directory with __init__.py)"),
    ],
)
def test_failed_reload_keeps_the_old_tools(engine: Engine, tmp_path: Path, text: str | None, reason: str) -> None:
    """The error gives the reason; a fixed plugin can be reloaded."""
    path = one_file(tmp_path / "a.py", "1")
    engine.load_plugin(path)
    before = modules()
    path.unlink() if text is None else path.write_text(text)

    with pytest.raises(PluginError) as caught:
        engine.reload_plugin(path)

    assert (caught.value.distribution, caught.value.reason) == (str(path), reason)
    assert engine.call("p.t") == 1
    caught.value.__traceback__ = None
    assert modules() == before
    one_file(path, "2")
    engine.reload_plugin(path)
    assert engine.call("p.t") == 2


def test_reload_with_a_name_conflict_keeps_the_old_tools(engine: Engine, tmp_path: Path) -> None:
    """Another plugin has the name."""
    path, other = one_file(tmp_path / "a.py", "1"), one_file(tmp_path / "b.py", "2", "u")
    engine.load_plugin(path)
    engine.load_plugin(other)
    one_file(path, "3", "u")

    with pytest.raises(RegistryError, match=r"already registered: p\.u"):
        engine.reload_plugin(path)

    assert (engine.call("p.t"), engine.call("p.u")) == (1, 2)
    engine.unload_plugin(other)
    engine.reload_plugin(path)
    assert [*engine.tools] == ["p.u"]
    assert engine.call("p.u") == 3


# Isolation


def test_packages_with_the_same_name_are_isolated(engine: Engine, tmp_path: Path) -> None:
    """Each imports its own modules, and neither is importable by its plain name."""
    for index, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        path = write(tmp_path / folder / "acme", index)
        if index:
            init = path / "__init__.py"
            init.write_text(init.read_text().replace('toolset("p")', 'toolset("q")').replace('"p.', '"q.'))
        engine.load_plugin(path)

    assert [engine.call("p.late"), engine.call("q.late")] == [[0, 0], [1, 1]]
    assert "acme" not in sys.modules
    assert {name.count(".") for name in modules()} == {0, 1}


def test_package_reads_its_data_files(engine: Engine, tmp_path: Path) -> None:
    """Both ``__file__`` and importlib resources work."""
    package = tmp_path / "with-data"
    package.mkdir()
    (package / "data.txt").write_text("found")
    (package / "__init__.py").write_text(
        "from importlib.resources import files\nfrom pathlib import Path\nfrom neuroscript import ToolSpec\n"
        "def register(registrar):\n    registrar.toolset('p').add(ToolSpec('t', 'p'), lambda rt: ["
        "(Path(__file__).parent / 'data.txt').read_text(), files(__name__).joinpath('data.txt').read_text()])\n"
    )
    engine.load_plugin(package)

    assert engine.call("p.t") == ["found", "found"]


# Selection


def test_plugin_is_unloaded_by_origin_path_or_object(engine: Engine, tmp_path: Path) -> None:
    """`load_plugin` returns the origin; two plugins of one class have different origins."""

    class Plugin:
        def __init__(self, name: str) -> None:
            self.name = name

        def register(self, registrar: Registrar) -> None:
            registrar.toolset("p").add(ToolSpec(self.name, "p"), lambda rt: self.name)

    first, second = Plugin("a"), Plugin("b")
    origins = [engine.load_plugin(first), engine.load_plugin(second)]
    path = one_file(tmp_path / "c.py", "1", "c")
    engine.load_plugin(path)
    assert origins == ["Plugin", "Plugin 2"]

    engine.unload_plugin(first)
    assert [*engine.tools] == ["p.b", "p.c"]
    second.name = "d"
    engine.reload_plugin("Plugin 2")
    assert sorted(engine.tools) == ["p.c", "p.d"]
    engine.unload_plugin(os.path.relpath(path))
    engine.unload_plugin(second)
    assert [*engine.tools] == []
    engine.load_plugin(path)
    assert [*engine.tools] == ["p.c"]


def test_unknown_plugin_cannot_be_unloaded(engine: Engine, tmp_path: Path) -> None:
    """It cannot be reloaded either; tools that the host registered itself do not count as a plugin."""
    path = one_file(tmp_path / "a.py")
    for way in (engine.unload_plugin, engine.reload_plugin):
        for plugin in (path, "host", object()):
            with pytest.raises(PluginError, match="no such plugin was loaded with load_plugin"):
                way(plugin)
    engine.load_plugin(path)
    with pytest.raises(RegistryError, match=r"already registered: .*; call reload_plugin to load its current version"):
        engine.load_plugin(str(path))


def test_directory_of_plugins_is_loaded_and_faults_are_reported(engine: Engine, tmp_path: Path) -> None:
    """Plugins load in order of their names, and other files are ignored."""
    write(tmp_path / "package", 5)
    one_file(tmp_path / "z.py", "1", "z")
    one_file(tmp_path / "twice.py", "2", "both")
    (tmp_path / "broken.py").write_text("1 +")
    (tmp_path / "_helper.py").write_text("raise AssertionError")
    (tmp_path / "notes.txt").write_text("no plugin")
    (tmp_path / "folder").mkdir()

    errors = engine.load_plugins(tmp_path)

    assert engine.call("p.both") == [5, 5]
    assert engine.call("p.z") == 1
    assert [(Path(each.distribution).name, each.reason) for each in errors] == [
        ("broken.py", "cannot be loaded: SyntaxError: invalid syntax (broken.py, line 1)"),
        ("twice.py", "already registered: p.both"),
    ]
    assert engine.plugin_errors == errors
    (missing,) = engine.load_plugins(tmp_path / "nowhere")
    assert missing.reason == "it cannot be read (FileNotFoundError)"
