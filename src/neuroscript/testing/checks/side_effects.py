"""Laws that take a process of their own, for what an audit hook sees can not be unseen: files, programs, the network.

A tool's examples run in a fork of this process, so that any toolset can be tried; its module is imported anew in a
fresh one.

Source: issue "Plugins", the publisher's kit; PEP 578; contract section 5.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from io import StringIO
from selectors import EVENT_READ, DefaultSelector
from time import monotonic
from typing import Any, Final

from neuroscript._version import misfit
from neuroscript.calls.steps import is_iterator
from neuroscript.errors import CallError
from neuroscript.testing.checks.audit_events import Scratch, needed
from neuroscript.testing.checks.check_case import Law
from neuroscript.testing.checks.child_process import HOOK
from neuroscript.testing.checks.trials import Bench, Log, Seen, call, watched
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime
from neuroscript.tools.toolset import Toolset

MOST: Final = 300.0
"""Seconds that all examples of a toolset may take together in the process that watches them."""

IMPORTING: Final = 30
"""Seconds that a module may take to be imported in a fresh process."""

CHILD: Final = "neuroscript.testing.checks.child_process"


def _touching(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "failed" in _told(bench):
        yield f"the process that watches its examples has failed, or took longer than {MOST:g} seconds"
    held = {need.partition(":")[0] for need in tool.policy.capabilities}
    verbs = {f"{part[0]}:{verb}" for need in tool.policy.capabilities for part in [need.split(":")] for verb in
             part[1].split(",")}  # fmt: skip
    for need, event in _touched(bench).get(tool.name, []):
        resource = need.partition(":")[0]
        if need not in verbs and not (resource in held and need in ("fs:read", "net:read")):
            yield f"it does {event}, and declares no need of {need}"


def _printing(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if tool.name in _told(bench)["printed"]:
        yield "it prints by itself; rt.println puts lines where the host wants them"


def _touched(bench: Bench) -> dict[str, list[list[str]]]:
    touched: dict[str, list[list[str]]] = _told(bench)["touched"]
    return touched


def _told(bench: Bench) -> dict[str, Any]:
    """Return what a fork of this process tells of the examples of all tools; nothing where there are no forks."""
    if "watched" not in bench.found:
        nothing: dict[str, Any] = {"touched": {}, "printed": []}
        told = forked(lambda: _watch(bench), MOST) if hasattr(os, "fork") else nothing
        bench.found["watched"] = told or {**nothing, "failed": True}
    found: dict[str, Any] = bench.found["watched"]
    return found


def _watch(bench: Bench) -> dict[str, Any]:
    """Run every example under an audit hook, which stays: this belongs into a process that ends soon."""
    touched: dict[str, list[list[str]]] = {}
    printed: list[str] = []
    current: list[str] = []
    scratch = Scratch()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if current and not scratch.holds(event, args):
            need = needed(event, args)
            if need and [need, event] not in touched.setdefault(current[-1], []):
                touched[current[-1]].append([need, event])

    sys.addaudithook(hook)
    for tool in bench.tools:
        for example in tool.spec.examples:
            with bench.setup.world(_marked(bench, tool, current)) as world, contextlib.suppress(CallError):
                args = bench.prepared(world, tool, example.args)
                out = StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                    try:
                        call(world.engine, tool.name, args)
                    finally:
                        current.clear()
                if out.getvalue() and tool.name not in printed:
                    printed.append(tool.name)
    return {"touched": touched, "printed": printed}


def _marked(bench: Bench, tool: ToolImplementation, current: list[str]) -> list[ToolImplementation]:
    """Return all tools, one of which says in *current* that it runs."""
    log = _Marks(tool, current)
    return [watched(each, log) if each.name == tool.name else each for each in bench.tools]


class _Marks(Log):
    """Says in a list who runs, from where the function begins to where it returns; of a stream, to its end."""

    def __init__(self, tool: ToolImplementation, current: list[str]) -> None:
        super().__init__()
        self._tool = tool
        self._current = current

    def entered(self, seen: Seen) -> None:
        """Say that the tool runs."""
        self._current.append(self._tool.name)

    def left(self, seen: Seen) -> None:
        """Say that it does no longer."""
        if not (self._tool.spec.stream and is_iterator(seen.source)):
            self._current.clear()


def forked(run: Callable[[], Any], seconds: float) -> Any:
    """Return what *run* gives in a fork of this process, as JSON can tell it; None where it fails or takes too long."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: the child needs none of them
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            with os.fdopen(write, "w", encoding="utf-8") as pipe:
                json.dump(run(), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    try:
        text = _read(read, monotonic() + seconds)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return json.loads(text) if text else None


def _read(descriptor: int, end: float) -> str:
    parts: list[bytes] = []
    with DefaultSelector() as selector:  # select() takes no descriptor above 1023
        selector.register(descriptor, EVENT_READ)
        while selector.select(max(0.0, end - monotonic())):
            part = os.read(descriptor, 65_536)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)
    return ""


def home_of(toolset: Toolset) -> tuple[str, str, str] | None:
    """Return the module, its file and the name under which a toolset stands there; None where it stands nowhere.

    Of several modules the one that holds functions of its tools, then one of the same package; then one of that package
    whose hook brings a toolset of that name.
    """
    own = {_module(tool) for tool in toolset}
    packages = {name.partition(".")[0] for name in own}
    homes = sorted(_homes(toolset), key=lambda home: (home[0] not in own, home[0].partition(".")[0] not in packages))
    return next(iter(homes), None) or next(_computing(toolset, packages), None)


def _module(tool: ToolImplementation) -> str:
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    return str(getattr(func, "__module__", ""))


def _homes(toolset: Toolset) -> Iterator[tuple[str, str, str]]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            for name, value in list(vars(module).items()):
                if value is toolset and not name.startswith("_"):
                    yield module.__name__, file, name


def _computing(toolset: Toolset, packages: Collection[str]) -> Iterator[tuple[str, str, str]]:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        hook = vars(module).get(HOOK) if isinstance(file, str) and name.partition(".")[0] in packages else None
        if isinstance(file, str) and inspect.isfunction(hook) and toolset.name in [each.name for each in hook()]:
            yield name, file, f"{HOOK}:{toolset.name}"


def _importable(bench: Bench, tool: None) -> Iterator[str]:
    for toolset in bench.toolsets:
        if home_of(toolset) is None:
            yield f"toolset {toolset.name} has no name in a module and comes of no hook: no entry point can offer it"


def _imports(bench: Bench) -> Iterator[tuple[Toolset, dict[str, Any]]]:
    for toolset in bench.toolsets:
        home = home_of(toolset)
        if home is not None:
            yield toolset, _imported(bench, *home)


def _imported(bench: Bench, module: str, file: str, name: str) -> dict[str, Any]:
    """Return what a fresh process tells of importing a module."""
    key = f"import {module}:{name}"
    if key not in bench.found:
        argv = [sys.executable, "-m", CHILD, module, file, name]
        path = os.pathsep.join(part for part in sys.path if part)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(  # noqa: S603
            argv, env=environment, capture_output=True, text=True, timeout=IMPORTING, check=False
        )
        lines = done.stdout.splitlines()
        bench.found[key] = json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": True}
    found: dict[str, Any] = bench.found[key]
    return found


def _quiet(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, told in _imports(bench):
        for event in told.get("events", []):
            yield f"importing the module of toolset {toolset.name} does {event}"


def _stable(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, told in _imports(bench):
        if told.get("failed"):
            yield f"toolset {toolset.name} can not be imported in a fresh process"
            continue
        here = {tool.name: fingerprint(tool) for tool in toolset}
        others = told["tools"]
        for name in sorted(here.keys() | others.keys()):
            if here.get(name) != others.get(name):
                yield f"{name} is defined otherwise in another process"


def _api(bench: Bench, tool: None) -> Iterator[str]:
    for toolset in bench.toolsets:
        home = home_of(toolset)
        wanted = getattr(sys.modules[home[0]], "RUNTIME_API", None) if home is not None else None
        if wanted is not None and misfit(wanted):
            yield f"toolset {toolset.name} {misfit(wanted)}"


LAWS: Final = (
    Law("needs-cover", "What a tool does to files, programs and the network, it declares as needs.", _touching),
    Law("prints-by-runtime", "A tool prints by `rt.println` alone.", _printing),
    Law("importable", "The toolset has a name in a module, or comes of the hook of one.", _importable, of_all=True),
    Law("import-quiet", "Importing it has no effect outside.", _quiet, of_all=True),
    Law("stable", "Its tools are defined alike in every process.", _stable, ("importable",), of_all=True),
    Law("api-version", "It is made for a version of the Runtime that there is.", _api, of_all=True),
)
