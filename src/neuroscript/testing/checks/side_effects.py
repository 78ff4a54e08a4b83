"""Contract checks that need a separate process, because audit hooks cannot be removed: files, programs, the network.

The examples of a tool run in a fork of this process, so that any toolset can be checked. Its module is imported in a
fresh process.
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
from neuroscript.testing.checks.audit_events import Scratch, need_of_event
from neuroscript.testing.checks.check_case import ContractCheck
from neuroscript.testing.checks.child_process import HOOK
from neuroscript.testing.checks.trials import Bench, Log, Observation, call, observe
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.tool import ToolImplementation, WithoutRuntime
from neuroscript.tools.toolset import Toolset

TIMEOUT_SECONDS: Final = 300.0
"""Time limit for all examples of a toolset together, in the process that observes them."""

IMPORT_TIMEOUT_SECONDS: Final = 30
"""Time limit for importing a module in a fresh process."""

CHILD: Final = "neuroscript.testing.checks.child_process"


def _touching(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if "failed" in _fork_report(bench):
        yield f"the process that runs its examples failed or took longer than {TIMEOUT_SECONDS:g} seconds"
    held = {need.partition(":")[0] for need in tool.policy.capabilities}
    verbs = {f"{part[0]}:{verb}" for need in tool.policy.capabilities for part in [need.split(":")] for verb in
             part[1].split(",")}  # fmt: skip
    for need, event in _touched(bench).get(tool.name, []):
        resource = need.partition(":")[0]
        if need not in verbs and not (resource in held and need in ("fs:read", "net:read")):
            yield f"it causes the event {event}, but does not declare the capability {need}"


def _printing(bench: Bench, tool: ToolImplementation) -> Iterator[str]:
    if tool.name in _fork_report(bench)["printed"]:
        yield "it prints directly; use rt.println, which writes to the host's output"


def _touched(bench: Bench) -> dict[str, list[list[str]]]:
    touched: dict[str, list[list[str]]] = _fork_report(bench)["touched"]
    return touched


def _fork_report(bench: Bench) -> dict[str, Any]:
    """Return what a fork of this process reports about the examples of all tools, or nothing if fork is unsupported."""
    if "watched" not in bench.found:
        nothing: dict[str, Any] = {"touched": {}, "printed": []}
        told = run_in_fork(lambda: _watch(bench), TIMEOUT_SECONDS) if hasattr(os, "fork") else nothing
        bench.found["watched"] = told or {**nothing, "failed": True}
    found: dict[str, Any] = bench.found["watched"]
    return found


def _watch(bench: Bench) -> dict[str, Any]:
    """Run every example under an audit hook. The hook cannot be removed, so run this in a short-lived process."""
    touched: dict[str, list[list[str]]] = {}
    printed: list[str] = []
    current: list[str] = []
    scratch = Scratch()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if current and not scratch.holds(event, args):
            need = need_of_event(event, args)
            if need and [need, event] not in touched.setdefault(current[-1], []):
                touched[current[-1]].append([need, event])

    sys.dont_write_bytecode = True  # of a module that is imported on first use, which is not what a tool does
    sys.addaudithook(hook)
    for tool in bench.tools:
        for example in tool.spec.examples:
            marked = _marked(bench, tool, current)
            with bench.setup.world(marked, in_process=True) as world, contextlib.suppress(CallError):
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
    """Return all tools, one of which adds its name to *current* while it runs."""
    log = _Marks(tool, current)
    return [observe(each, log) if each.name == tool.name else each for each in bench.tools]


class _Marks(Log):
    """Records in a list which tool runs, from the start of its function to its return, or to the end of its stream."""

    def __init__(self, tool: ToolImplementation, current: list[str]) -> None:
        super().__init__()
        self._tool = tool
        self._current = current

    def entered(self, seen: Observation) -> None:
        """Record that the tool runs."""
        self._current.append(self._tool.name)

    def left(self, seen: Observation) -> None:
        """Record that it no longer runs."""
        if not (self._tool.spec.stream and is_iterator(seen.source)):
            self._current.clear()


def run_in_fork(run: Callable[[], Any], seconds: float) -> Any:
    """Run a function in a fork of this process; return its result through JSON, or None if it fails or times out."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which the child does not need
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
    with DefaultSelector() as selector:  # select() does not support descriptors above 1023
        selector.register(descriptor, EVENT_READ)
        while selector.select(max(0.0, end - monotonic())):
            part = os.read(descriptor, 65_536)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)
    return ""


def home_of(toolset: Toolset) -> tuple[str, str, str] | None:
    """Return a toolset's module, the file of the module and the toolset's name in it, or None if there is no such name.

    Candidates are, in this order: a module that defines functions of its tools, another module of the same package, and
    a module of that package whose hook provides a toolset of that name.
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


def _homes_of_all(bench: Bench) -> list[tuple[Toolset, tuple[str, str, str] | None]]:
    """Return each toolset with its home, found once, because that searches all imported modules."""
    if "homes" not in bench.found:
        bench.found["homes"] = [(toolset, home_of(toolset)) for toolset in bench.toolsets]
    found: list[tuple[Toolset, tuple[str, str, str] | None]] = bench.found["homes"]
    return found


def _importable(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, home in _homes_of_all(bench):
        if home is None:
            yield (
                f"toolset {toolset.name} is not a module attribute and is not provided by a hook, so no entry point "
                "can refer to it"
            )


def _imports(bench: Bench) -> Iterator[tuple[Toolset, dict[str, Any]]]:
    for toolset, home in _homes_of_all(bench):
        if home is not None:
            yield toolset, _imported(bench, *home)


def _imported(bench: Bench, module: str, file: str, name: str) -> dict[str, Any]:
    """Return the result of importing a module in a fresh process."""
    key = f"import {module}:{name}"
    if key not in bench.found:
        argv = [sys.executable, "-m", CHILD, module, file, name]
        path = os.pathsep.join(part for part in sys.path if part)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(  # noqa: S603
            argv, env=environment, capture_output=True, text=True, timeout=IMPORT_TIMEOUT_SECONDS, check=False
        )
        lines = done.stdout.splitlines()
        bench.found[key] = json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": True}
    found: dict[str, Any] = bench.found[key]
    return found


def _quiet(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, told in _imports(bench):
        for event in told.get("events", []):
            yield f"importing the module of toolset {toolset.name} causes the event {event}"


def _stable(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, told in _imports(bench):
        if told.get("failed"):
            yield f"toolset {toolset.name} cannot be imported in a fresh process"
            continue
        here = {tool.name: fingerprint(tool) for tool in toolset}
        others = told["tools"]
        for name in sorted(here.keys() | others.keys()):
            if here.get(name) != others.get(name):
                yield f"{name} has a different definition in another process"


def _api(bench: Bench, tool: None) -> Iterator[str]:
    for toolset, home in _homes_of_all(bench):
        wanted = getattr(sys.modules[home[0]], "RUNTIME_API", None) if home is not None else None
        if wanted is not None and misfit(wanted):
            yield f"toolset {toolset.name} {misfit(wanted)}"


CHECKS: Final = (
    ContractCheck(
        "capabilities-complete",
        "A tool declares a capability for all that it does with files, programs and the network.",
        _touching,
    ),
    ContractCheck("prints-with-runtime", "A tool prints only with `rt.println`.", _printing),
    ContractCheck(
        "importable", "The toolset is a module attribute, or is provided by a hook.", _importable, of_all=True
    ),
    ContractCheck("import-without-effects", "Importing it has no side effects.", _quiet, of_all=True),
    ContractCheck(
        "stable", "Its tools have the same definition in every process.", _stable, ("importable",), of_all=True
    ),
    ContractCheck("api-version", "It supports an existing version of the Runtime API.", _api, of_all=True),
)
