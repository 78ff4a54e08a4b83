"""The doors: call a tool by position or by name, from sync or async code, or as a model asked for it.

Source: contract sections 1 and 2.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Literal

import attrs

from neuroscript.binding import bound
from neuroscript.discovery import installed
from neuroscript.display import shown
from neuroscript.errors import (
    ArgumentError,
    CallError,
    LimitError,
    PluginError,
    Problem,
    RegistryError,
    SpecError,
    ToolNotFound,
)
from neuroscript.jsontext import NotJSON, parsed
from neuroscript.line import CallFrame, Compiled, Line
from neuroscript.names import canonical, from_wire, near
from neuroscript.policy import refusal
from neuroscript.registry import Registry
from neuroscript.repairs import repairs
from neuroscript.running import CallRuntime, Threads, Variables, adrive, drive
from neuroscript.runtime import ToolCall, ToolResult
from neuroscript.tools import ToolImplementation, Toolset
from neuroscript.walk import LAX, Coercion, SizeLimits, type_name

DEEPEST: Final = 16
"""How many calls may stand in each other (contract section 5, Limits.depth)."""

SPELLINGS: Final = 10_000
"""How many spellings of names are remembered beyond the canonical ones."""


@attrs.frozen(eq=False)
class Entry:
    """A tool that may be called: its line, and the line as a function for each manner of arguments."""

    line: Line
    positional: Compiled
    named: Compiled


class Engine:
    """Calls tools: finds them, asks whether they may run, fits their arguments, and keeps their results to their word.

    Args:
        toolsets: The tools of the host itself.
        plugins: ``"installed"`` for the toolsets of every installed distribution, ``"none"``, or the names of those
            distributions that may be loaded. A broken one is listed in `plugin_errors` and stops no other.
        mode: ``"lax"`` repairs what models and command lines send, ``"strict"`` takes only exact types.
        size_limits: How large the arguments of one call may be.
        adapters: For classes that are no built-ins, what makes a built-in of an object of that class; for callers whom
            the host trusts.

    Raises:
        RegistryError: Two of *toolsets* claim one name.
        SpecError: A keyword has no such value.

    >>> from neuroscript import Engine
    >>> with Engine() as engine:
    ...     engine.call("math.add", (2, " 3 "))
    5.0

    Source: contract sections 1 and 2.
    """

    def __init__(
        self,
        *,
        toolsets: Iterable[Toolset] = (),
        plugins: Literal["installed", "none"] | Collection[str] = "installed",
        mode: Literal["lax", "strict"] = "lax",
        size_limits: SizeLimits = LAX.sizes,
        adapters: Mapping[type, Callable[[Any], object]] | None = None,
    ) -> None:
        if mode not in ("lax", "strict"):
            raise SpecError("Engine", ["mode is 'lax' or 'strict'"])
        self._coercion = Coercion(mode, size_limits, tuple((adapters or {}).items()))
        self._registry = Registry()
        self._positional: dict[str, Compiled] = {}
        self._named: dict[str, Compiled] = {}
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self._threads = Threads()
        self._closed = False
        self.variables = Variables()
        self.plugin_errors: tuple[PluginError, ...] = ()
        for toolset in toolsets:
            self.register(toolset)
        if plugins != "none":
            self._load_installed(plugins)

    # Calls

    def call(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call a tool with arguments in order and return its result.

        Args:
            name: Any spelling, for example ``math.add`` or ``tool.Math.Add``.
            args: A list or a tuple; optional arguments at its end may be left out.

        Returns:
            The exact built-in that the tool's return type names.

        Raises:
            CallError: One of its kinds says what went wrong, and who can mend it.
        """
        try:
            line = self._positional[name] if type(name) is str else self._entry(name).positional
        except KeyError:
            line = self._entry(name).positional
        return line(args)

    def call_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call a tool with arguments by name, a dict, and return its result, as `call` does."""
        try:
            line = self._named[name] if type(name) is str else self._entry(name).named
        except KeyError:
            line = self._entry(name).named
        return line(mapping)

    async def acall(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Return what `call` returns, or raise what it raises, without holding up the loop that awaits it."""
        return await self._acall(name, args, by_name=False)

    async def acall_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Return what `call_named` returns, or raise what it raises, without holding up the loop that awaits it."""
        return await self._acall(name, mapping, by_name=True)

    async def _acall(self, name: str, given: object, *, by_name: bool) -> Any:
        entry = self._entry(name)
        line = entry.line
        if line.manner == "plain" and line.is_direct:
            return (entry.named if by_name else entry.positional)(given)
        return await adrive(line.steps(line.bind(given, by_name), line.frame), self._threads)

    def execute(self, call: ToolCall) -> ToolResult:
        """Take a call as a model sent it, and return its result or its error; a `CallError` is never raised.

        The name may be spelt for the wire (``math__add``), and the arguments may be JSON text.
        """
        started = perf_counter()
        name = call.name
        try:
            line = self._entry(from_wire(call.name) if isinstance(call.name, str) else call.name).line
            name = line.tool.name
            given = _arguments(call.arguments, name)
            values = line.bind(given, isinstance(given, dict))
            made = repairs(line.tool.spec, given, values)
            value = drive(line.steps(values, line.frame), self._threads)
        except CallError as error:
            return ToolResult(call.id, shown(str(name)), error=error, seconds=perf_counter() - started)
        return ToolResult(call.id, name, value, repairs=made, seconds=perf_counter() - started)

    def call_within(self, frame: CallFrame, name: str, given: object, by_name: bool) -> Any:
        """Make the call that the tool of *frame* asks for, through its Runtime."""
        entry = self._entry(name)
        if frame.depth >= DEEPEST:
            raise LimitError(f"calls may stand {DEEPEST} deep in each other, no deeper", tool=name, code="limit.depth")
        inner = CallFrame(self, entry.line.tool.name, frame.depth + 1)
        return (entry.named if by_name else entry.positional)(given, inner)

    # Tools

    @property
    def tools(self) -> Mapping[str, ToolImplementation]:
        """All tools by canonical name: a snapshot, read-only."""
        return self._registry.tools

    def register(self, tools: ToolImplementation | Toolset) -> None:
        """Add one tool, or all tools of a set.

        Raises:
            RegistryError: A name is taken; nothing has been added then.
        """
        added = (tools,) if isinstance(tools, ToolImplementation) else tuple(tools)
        with self._lock:
            self._registry = self._registry.with_tools(added)

    def _load_installed(self, plugins: str | Collection[str]) -> None:
        if isinstance(plugins, str) and plugins != "installed":
            raise SpecError("Engine", ["plugins is 'installed', 'none' or a collection of distributions"])
        problems: list[PluginError] = []
        for found in installed(None if isinstance(plugins, str) else plugins):
            try:
                if isinstance(found, PluginError):
                    raise found
                self.register(found.toolset)
            except PluginError as error:
                problems.append(error)
            except RegistryError as error:
                problems.append(PluginError(found.distribution, str(error)))
        self.plugin_errors = tuple(problems)

    def _entry(self, name: object) -> Entry:
        """Return the tool that *name* means, if it may be called.

        Raises:
            ToolNotFound: There is none, or the engine does not permit any of that name.
            PolicyError: It needs what this engine does not give.
        """
        if self._closed:
            raise CallError("the engine is closed", code="engine.closed")
        if not isinstance(name, str):
            raise ToolNotFound(f"<{type_name(name)}>")
        spelling = str.__str__(name)
        entry = self._entries.get(spelling)
        return self._resolved(spelling) if entry is None else entry

    def _resolved(self, spelling: str) -> Entry:
        tools, entries = self._registry.tools, self._entries
        tool = tools.get(canonical(spelling))
        if tool is None:
            callable_ = (name for name, each in tools.items() if refusal(name, each.policy) is None)
            raise ToolNotFound(shown(spelling), near(spelling, callable_))
        refused = refusal(tool.name, tool.policy)
        if refused is not None:
            raise refused
        entry = entries.get(tool.name) or self._made(tool)
        if len(entries) > len(tools) + SPELLINGS:
            self._forget()
        for each in (tool.name, spelling):
            self._entries[each], self._positional[each], self._named[each] = entry, entry.positional, entry.named
        return entry

    def _forget(self) -> None:
        """Forget which spellings were seen, for there is no end of them."""
        for seen in (self._entries, self._positional, self._named):
            seen.clear()

    def _made(self, tool: ToolImplementation) -> Entry:
        line = Line(tool, self._coercion, CallRuntime, CallFrame(self, tool.name))
        positional, named = (self._careful(line, by_name) for by_name in (False, True))
        if not line.is_direct:
            return Entry(line, positional, named)
        return Entry(line, line.compiled(positional, False), line.compiled(named, True))

    def _careful(self, line: Line, by_name: bool) -> Compiled:
        """Return the way through the steps, as a function of the same form as a compiled line."""
        spec, coercion, outside, threads = line.tool.spec, line.coercion, line.frame, self._threads

        def careful(given: object, frame: CallFrame = outside) -> Any:
            return drive(line.steps(bound(spec, coercion, given, by_name=by_name), frame), threads)

        return careful

    # Its end

    def close(self) -> None:
        """Refuse further calls and stop the engine's threads."""
        with self._lock:
            self._closed = True
            self._forget()
        self._threads.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _arguments(given: Any, tool: str) -> Any:
    """Return the arguments of a call as a dict, a list or a tuple; a blank text and None stand for none."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    if not isinstance(given, str):
        return given
    try:
        decoded = parsed(given)
    except NotJSON as error:
        raise ArgumentError([Problem("", error.code, "arguments as JSON", "str", error.hint)], tool=tool) from None
    if not isinstance(decoded, (dict, list)):
        problem = Problem("", "arg.type", "a JSON object or array of arguments", type_name(decoded))
        raise ArgumentError([problem], tool=tool)
    return decoded
