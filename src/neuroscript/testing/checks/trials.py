"""Calls of a tool through a real engine that observe what its function receives, does and retains."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from time import monotonic
from typing import Any, Final

import attrs

from neuroscript.errors import CallError, NeuroScriptError, ToolFailed
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.spec.tool_spec import Example
from neuroscript.testing.checks.samples import valid_samples
from neuroscript.testing.checks.setup import Setup, World
from neuroscript.tools.tool import OBSERVATION, ToolImplementation, WithoutRuntime
from neuroscript.tools.tool import Observation as ObservedTool

YOUNG: Final = 1
OLD: Final = 2
"""Generations of the garbage collector; each includes the younger ones."""

OUTSIDE: Final = frozenset({"exec", "net"})
"""Effects of tools that are called only with their own examples, because other values could have real consequences."""


@attrs.define(eq=False)
class Observation:
    """Observations of one call of a function.

    Attributes:
        members: The members of the Runtime that it used.
        files: The methods of ``rt.fs`` that it used.
        changed: Whether it changed an argument.
        raised: The exception that it raised.
        runtime: A weak reference to the Runtime.
        source: The iterator that it returned, if it is a stream.
    """

    members: set[str] = attrs.field(factory=set)
    files: set[str] = attrs.field(factory=set)
    changed: bool = False
    raised: BaseException | None = None
    runtime: Any = None
    source: Any = None


class WatchedRuntime:
    """A Runtime that records which of its members are used."""

    __slots__ = ("__weakref__", "_rt", "_seen")

    def __init__(self, rt: Any, seen: Observation) -> None:
        self._rt = rt
        self._seen = seen
        seen.runtime = weakref.ref(self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):  # a worker's side of the call uses the Runtime itself
            self._seen.members.add(name)
        found = getattr(self._rt, name)
        return WatchedFiles(found, self._seen) if name == "fs" else found


class WatchedFiles:
    """The files of a Runtime, recording which of their methods are used."""

    __slots__ = ("_files", "_seen")

    def __init__(self, files: Any, seen: Observation) -> None:
        self._files = files
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        self._seen.files.add(name)
        return getattr(self._files, name)


class Log:
    """Stores the observations of the last call."""

    def __init__(self) -> None:
        self.last: Observation | None = None

    def entered(self, seen: Observation) -> None:
        """Record that a function begins."""
        self.last = seen

    def left(self, seen: Observation) -> None:
        """Record that it has returned or raised."""


def observe(tool: ToolImplementation, log: Log) -> ToolImplementation:
    """Return a tool that behaves the same and reports observations of each call to *log*."""
    free = isinstance(tool.func, WithoutRuntime)
    func = tool.func.func if isinstance(tool.func, WithoutRuntime) else tool.func
    watching = _awaited(func, log, free) if tool.is_coroutine else _called(func, log, free)
    setattr(watching, OBSERVATION, ObservedTool(tool, lambda func: _called(func, log, free=False)))
    return attrs.evolve(tool, func=WithoutRuntime(watching) if free else watching)


def _called(func: Callable[..., Any], log: Log, free: bool) -> Callable[..., Any]:
    @wraps(func)
    def watching(*values: Any) -> Any:
        seen, values, before = _start_trial(values, log, free)
        try:
            seen.source = result = func(*values)
            return result
        except BaseException as error:
            seen.raised = error.with_traceback(None)
            raise
        finally:
            log.left(seen)
            seen.changed = _text(values, free) != before

    return watching


def _awaited(func: Callable[..., Any], log: Log, free: bool) -> Callable[..., Any]:
    @wraps(func)
    async def watching(*values: Any) -> Any:
        seen, values, before = _start_trial(values, log, free)
        try:
            return await func(*values)
        except BaseException as error:
            seen.raised = error
            raise
        finally:
            log.left(seen)
            seen.changed = _text(values, free) != before

    return watching


def _start_trial(values: tuple[Any, ...], log: Log, free: bool) -> tuple[Observation, tuple[Any, ...], str]:
    seen = Observation()
    if not free:
        values = (WatchedRuntime(values[0], seen), *values[1:])
    before = _text(values, free)
    log.entered(seen)
    return seen, values, before


def _text(values: tuple[Any, ...], free: bool) -> str:
    return repr(values if free else values[1:])


@attrs.frozen(eq=False)
class Trial:
    """One call and its outcome.

    Attributes:
        what: A description of the call, without argument values.
        value: The result; for a stream, the list of its items.
        error: The error, or None.
        seen: The observations of the function; None if it was not called.
        seconds: The duration.
        kept: Whether the Runtime was still referenced after the call had succeeded.
        state: The files and variables afterwards, see `World.state`.
    """

    what: str
    value: Any
    error: CallError | None
    seen: Observation | None
    seconds: float
    kept: bool = False
    state: tuple[Any, ...] = ()

    @property
    def came(self) -> str:
        """The outcome, in a form that is equal only for equal outcomes of the same types."""
        return f"error {self.error.code}" if self.error is not None else repr(exact(self.value))

    @property
    def crash(self) -> str:
        """The type of an exception that the function did not raise on purpose, or ``""``."""
        if type(self.error) is not ToolFailed or isinstance(self.error.__cause__, (NeuroScriptError, type(None))):
            return ""
        if self.seen is not None and isinstance(self.seen.raised, NeuroScriptError):
            return ""
        return type(self.error.__cause__).__name__


def exact(value: Any) -> Any:
    """Return a value in a form that is equal only for equal values of the same types."""
    match value:
        case list():
            return [exact(each) for each in value]
        case dict():
            return {key: exact(value[key]) for key in sorted(value, key=repr)}
        case _:
            return (type(value).__name__, repr(value))


def call(engine: Any, name: str, args: Any) -> Any:
    """Call a tool with positional or named arguments."""
    return engine.call_named(name, args) if isinstance(args, Mapping) else engine.call(name, args)


def acall(engine: Any, name: str, args: Any) -> Any:
    """Call a tool as a coroutine."""
    awaited = engine.acall_named if isinstance(args, Mapping) else engine.acall
    return asyncio.run(awaited(name, args))


def execute(engine: Any, name: str, args: Any) -> Any:
    """Call a tool as a model does."""
    result = engine.execute(ToolCall(engine.tools[name].spec.wire_name, args))
    if result.error is not None:
        raise result.error
    return result.value


ENTRY_POINTS: Final[dict[str, Callable[[Any, str, Any], Any]]] = {"call": call, "acall": acall, "execute": execute}
"""The entry points of an engine: each takes the engine, the name of a tool and its arguments, in order or by name."""


def run_trial(
    world: World, log: Log, tool: ToolImplementation, args: Any, what: str, entry_point: Callable[..., Any] = call
) -> Trial:
    """Make one call and return its outcome."""
    log.last = None
    started, value, failure = monotonic(), None, None
    try:
        value = entry_point(world.engine, tool.name, args)
    except CallError as error:
        failure = error
    seconds = monotonic() - started
    seen = log.last
    return Trial(what, value, failure, seen, seconds, failure is None and _is_kept(seen), world.state())


def _is_kept(seen: Observation | None) -> bool:
    if seen is None or seen.runtime is None:
        return False
    seen.source = seen.source if inspect.isgenerator(seen.source) and seen.source.gi_frame is not None else None
    for generation in (YOUNG, OLD):  # objects of the call are young, and collecting all other objects may be slow
        if seen.runtime() is not None:
            gc.collect(generation)
    return seen.runtime() is not None


@attrs.define(eq=False)
class Bench:
    """The tools to check and cached results, so that no call is made twice.

    Attributes:
        name: The common name of the tools.
        tools: All tools that can be called.
        setup: The environment that the examples need.
        toolsets: The toolsets of the tools.
        unimportable: Why a worker process cannot import a tool, by its name, if the tools are isolated.
        found: The results of separate processes.
    """

    name: str
    tools: tuple[ToolImplementation, ...]
    setup: Setup
    toolsets: tuple[Any, ...]
    unimportable: Mapping[str, str] = attrs.field(factory=dict)
    _examples: dict[tuple[str, str], list[tuple[Example, Trial]]] = attrs.field(factory=dict)
    _varied: dict[str, list[Trial]] = attrs.field(factory=dict)
    found: dict[str, Any] = attrs.field(factory=dict)
    _log: Log = attrs.field(init=False, factory=Log)

    def last_source(self) -> Any:
        """Return the last iterator that the function returned, and drop the reference to it."""
        return None if self._log.last is None else self._log.last.source

    def prepared(self, world: World, tool: ToolImplementation, args: Any) -> Any:
        """Return the arguments of an example after preparation."""
        prepare = self.setup.prepare
        return args if prepare is None else prepare(world.engine, tool.name, args)

    def with_watch(self, tool: ToolImplementation) -> list[ToolImplementation]:
        """Return all tools, one of which is observed."""
        return [observe(each, self._log) if each.name == tool.name else each for each in self.tools]

    def examples(self, tool: ToolImplementation, entry_point: str = "call") -> list[tuple[Example, Trial]]:
        """Return each example of a tool with its outcome, each in a new environment."""
        key = tool.name, entry_point
        if key not in self._examples:
            self._examples[key] = [
                (example, self._example(tool, index, example, entry_point))
                for index, example in enumerate(tool.spec.examples, 1)
            ]
        return self._examples[key]

    def _example(self, tool: ToolImplementation, index: int, example: Example, entry_point: str) -> Trial:
        with self.setup.world(self.with_watch(tool)) as world:
            args = self.prepared(world, tool, example.args)
            return run_trial(world, self._log, tool, args, f"example {index}", ENTRY_POINTS[entry_point])

    def twice(self, tool: ToolImplementation) -> Iterator[tuple[Trial, Trial]]:
        """Yield, for each example that succeeds, two consecutive calls in one environment."""
        for index, example in enumerate(tool.spec.examples, 1):
            if example.error:
                continue
            with self.setup.world(self.with_watch(tool)) as world:
                args = self.prepared(world, tool, example.args)
                first = run_trial(world, self._log, tool, args, f"example {index}")
                yield first, run_trial(world, self._log, tool, args, f"example {index}")

    def base(self, tool: ToolImplementation) -> dict[str, Any] | None:
        """Return the arguments by name of the first example that succeeds, or None."""
        for example, trial in self.examples(tool):
            if trial.error is None and not example.error:
                return _by_name(tool, example.args)
        return None

    def varied(self, tool: ToolImplementation, kind: str) -> list[Trial]:
        """Return calls that differ from the first successful example in one argument.

        Args:
            kind: ``common`` and ``hard`` values, each of the ``choices``, ``none``, or ``omitted``.
        """
        key = f"{tool.name} {kind}"
        if key not in self._varied:
            self._varied[key] = list(self._tried(tool, kind))
        return self._varied[key]

    def _tried(self, tool: ToolImplementation, kind: str) -> Iterator[Trial]:
        base = None if OUTSIDE.intersection(tool.policy.effects) else self.base(tool)
        if base is None:
            return
        with self.setup.world(self.with_watch(tool)) as world:
            for changed, what in variations(tool, base, kind):
                args = self.prepared(world, tool, changed)
                yield run_trial(world, self._log, tool, args, what)

    def all_trials(self, tool: ToolImplementation) -> Iterator[Trial]:
        """Yield the outcome of every call of a tool."""
        yield from (trial for _, trial in self.examples(tool))
        for kind in ("common", "hard", "choices", "none", "omitted"):
            yield from self.varied(tool, kind)


def _by_name(tool: ToolImplementation, args: Any) -> dict[str, Any]:
    if isinstance(args, Mapping):
        return dict(args)
    names = [arg.name for arg in tool.spec.args]
    if not tool.spec.variadic:
        return dict(zip(names, args, strict=False))
    count = len(names) - 1
    return {**dict(zip(names[:count], args, strict=False)), names[-1]: list(args[count:])}


def variations(tool: ToolImplementation, base: dict[str, Any], kind: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield arguments of which one is changed, and a description of the change without the value."""
    for place, arg in enumerate(tool.spec.args):
        is_rest = tool.spec.variadic and place == len(tool.spec.args) - 1
        if kind in ("common", "hard"):
            for value in valid_samples(arg, hard=kind == "hard"):
                what = f"{arg.name} as {type(value).__name__}"
                yield {**base, arg.name: [value] if is_rest else value}, what
        elif kind == "choices" and not is_rest:
            for index, choice in enumerate(arg.choices, 1):
                value = choice if arg.element is arg.type else [choice]
                yield {**base, arg.name: value}, f"{arg.name} as choice {index}"
        elif kind == "none" and arg.nullable and not is_rest:
            yield {**base, arg.name: None}, f"{arg.name} as None"
        elif kind == "omitted" and not arg.required:
            yield {name: value for name, value in base.items() if name != arg.name}, f"without {arg.name}"
