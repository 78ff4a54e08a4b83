"""The doors: call a tool by position or by name, for a result or a stream, from sync or async code, or as a model asks.

A session is one caller's: it has variables and handles of its own, over the tools that all sessions of an engine share.

Source: contract sections 1, 2 and 4.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self

from neuroscript.bodies import Steps
from neuroscript.display import shown
from neuroscript.entries import Entries, Entry
from neuroscript.errors import ArgumentError, CallError, LimitError, Problem
from neuroscript.frames import CallFrame
from neuroscript.host import Host
from neuroscript.jsontext import NotJSON, parsed
from neuroscript.line import Compiled
from neuroscript.memory import Memory
from neuroscript.names import from_wire
from neuroscript.policy import ExecutionPolicy
from neuroscript.repairs import repairs
from neuroscript.running import adrive, adrive_stream, drive, drive_stream
from neuroscript.runtime import ToolCall, ToolInfo, ToolResult
from neuroscript.walk import type_name

DEEPEST: Final = 16
"""How many calls may stand in each other (contract section 5, Limits.depth)."""

SPELLINGS: Final = 10_000
"""How many spellings of names are remembered beyond the canonical ones."""


class Known:
    """A tool as one session calls it.

    Attributes:
        line: Its line.
        frame: Where its calls from outside stand.
    """

    def __init__(self, entry: Entry, frame: CallFrame) -> None:
        self.line = entry.line
        self.frame = frame
        self._entry = entry
        self._functions: dict[bool, Compiled] = {}

    def function(self, by_name: bool) -> Compiled:
        """Return the line as a function of arguments in order, or by name."""
        function = self._functions.get(by_name)
        if function is None:
            function = self._functions[by_name] = self._entry.function(by_name, self.frame)
        return function


class Session:
    """One caller's way to the tools of an engine; `Engine` is the first one, and `Engine.session` makes others.

    Args:
        entries: What all sessions of the engine share.
        variables: What its variables are at first, besides those of the host.

    Attributes:
        is_closed: Whether no further call begins.
        is_over: Whether calls that have not ended are left behind.
    """

    def __init__(self, entries: Entries, variables: Mapping[str, Any] | None = None) -> None:
        host = entries.host
        self._entries = entries
        self._positional: dict[str, Compiled] = {}
        self._named: dict[str, Compiled] = {}
        self._known: dict[str, Known] = {}
        self.memory = Memory({**host.variables, **(variables or {})}, host.constants)
        self.is_closed = entries.is_closed
        self.is_over = False
        entries.sessions.add(self)

    # Calls

    def call(self, name: str, args: Sequence[Any] = (), timeout: float | None = None) -> Any:
        """Call a tool with arguments in order and return its result.

        Args:
            name: Any spelling, for example ``math.add`` or ``tool.Math.Add``.
            args: A list or a tuple; optional arguments at its end may be left out.
            timeout: Seconds that the tool may take; its own policy may give it fewer.

        Returns:
            The exact built-in that the tool's return type names; of a stream, the list of its items.

        Raises:
            CallError: One of its kinds says what went wrong, and who can mend it.
        """
        if timeout is not None:
            return drive(self._steps(name, args, False, timeout), self._entries.threads)
        try:
            line = self._positional[name] if type(name) is str else self._found(name, False)
        except KeyError:
            line = self._found(name, False)
        return line(args)

    def call_named(self, name: str, mapping: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Call a tool with arguments by name, a dict, and return its result, as `call` does."""
        if timeout is not None:
            return drive(self._steps(name, mapping, True, timeout), self._entries.threads)
        try:
            line = self._named[name] if type(name) is str else self._found(name, True)
        except KeyError:
            line = self._found(name, True)
        return line(mapping)

    async def acall(self, name: str, args: Sequence[Any] = (), timeout: float | None = None) -> Any:
        """Return what `call` returns, or raise what it raises, without holding up the loop that awaits it."""
        return await self._acall(name, args, False, timeout)

    async def acall_named(self, name: str, mapping: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Return what `call_named` returns, or raise what it raises, without holding up the loop that awaits it."""
        return await self._acall(name, mapping, True, timeout)

    async def _acall(self, name: str, given: object, by_name: bool, timeout: float | None) -> Any:
        known = self._entry(name)
        if timeout is None and known.line.is_direct and known.line.manner == "plain":
            return known.function(by_name)(given)
        return await adrive(self._steps(name, given, by_name, timeout), self._entries.threads)

    def stream(
        self, name: str, args: Sequence[Any] | Mapping[str, Any] = (), timeout: float | None = None
    ) -> Iterator[Any]:
        """Call a tool and give its items as they come; a tool that is no stream gives its one result.

        The tool is ended when the iterator is closed, or when it is read to its end.

        Args:
            name: Any spelling of its name.
            args: In order, or a dict by name.
            timeout: Seconds for the whole stream.

        Raises:
            CallError: At once where the call can not begin; later where the tool fails.
        """
        return drive_stream(self._steps(name, args, isinstance(args, dict), timeout), self._entries.threads)

    def astream(
        self, name: str, args: Sequence[Any] | Mapping[str, Any] = (), timeout: float | None = None
    ) -> AsyncIterator[Any]:
        """Call a tool and give its items as they come, as `stream` does, to a reader that awaits each."""
        return adrive_stream(self._steps(name, args, isinstance(args, dict), timeout), self._entries.threads)

    def _steps(self, name: object, given: object, by_name: bool, timeout: float | None) -> Steps:
        known = self._entry(name)
        return known.line.steps(known.line.bind(given, by_name), self._timed(known, timeout))

    def _timed(self, known: Known, timeout: float | None) -> CallFrame:
        return known.frame if timeout is None else CallFrame(self, known.frame.tool, timeout=_seconds(timeout))

    def execute(self, call: ToolCall, timeout: float | None = None) -> ToolResult:
        """Take a call as a model sent it, and return its result or its error; a `CallError` is never raised.

        The name may be spelt for the wire (``math__add``), and the arguments may be JSON text.
        """
        started = perf_counter()
        name = call.name
        try:
            known = self._entry(from_wire(call.name) if isinstance(call.name, str) else call.name)
            line, name = known.line, known.frame.tool
            given = _arguments(call.arguments, name)
            values = line.bind(given, isinstance(given, dict))
            made = repairs(line.tool.spec, given, values)
            value = drive(line.steps(values, self._timed(known, timeout)), self._entries.threads)
        except CallError as error:
            return ToolResult(call.id, shown(str(name)), error=error, seconds=perf_counter() - started)
        return ToolResult(call.id, name, value, repairs=made, seconds=perf_counter() - started)

    def call_within(self, frame: CallFrame, name: str, given: object, by_name: bool) -> Any:
        """Make the call that the tool of *frame* asks for, through its Runtime."""
        known = (self._known.get(name) if type(name) is str else None) or self._entry(name)
        if frame.depth >= DEEPEST:
            raise LimitError(f"calls may stand {DEEPEST} deep in each other, no deeper", tool=name, code="limit.depth")
        inner = CallFrame(self, known.frame.tool, frame.depth + 1, frame, (), None, frame.deadline)
        return known.function(by_name)(given, inner)

    # What tools see of it

    @property
    def host(self) -> Host:
        """What the host lends."""
        return self._entries.host

    @property
    def policy(self) -> ExecutionPolicy:
        """What the host permits."""
        return self._entries.policy

    @property
    def sandbox(self) -> Any:
        """The sandbox, opened when it is first needed."""
        return self._entries.sandbox

    @property
    def infos(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, without their functions."""
        return self._entries.infos

    @property
    def running(self) -> set[CallFrame]:
        """The calls of all sessions that are carried out in steps."""
        return self._entries.running

    # Names

    def _found(self, name: object, by_name: bool) -> Compiled:
        function = self._entry(name).function(by_name)
        (self._named if by_name else self._positional)[str.__str__(name)] = function
        if self.is_closed:  # since it was looked at
            self.forget()
        return function

    def _entry(self, name: object) -> Known:
        """Return the tool that *name* means, if it may be called, and where a call of it from outside stands.

        Raises:
            ToolNotFound: There is none, or the engine does not permit any of that name.
            PolicyError: It needs what this engine does not give.
        """
        if self.is_closed:
            raise CallError("the engine is closed", code="engine.closed")
        spelling = str.__str__(name) if isinstance(name, str) else None
        known = None if spelling is None else self._known.get(spelling)
        return self._resolved(spelling, name) if known is None else known

    def _resolved(self, spelling: str | None, name: object) -> Known:
        entry = self._entries.of(spelling, name)
        canonical = entry.line.tool.name
        if len(self._known) > self._entries.count + SPELLINGS:
            self.forget()
        known = self._known.get(canonical) or Known(entry, CallFrame(self, canonical))
        for each in {canonical, spelling or canonical}:
            self._known[each] = known
        return known

    def forget(self) -> None:
        """Forget which spellings were seen: there is no end of them, and a closed engine knows none."""
        for seen in (self._known, self._positional, self._named):
            seen.clear()

    # Its end

    def refuse(self) -> None:
        """Begin no further call."""
        self.is_closed = True
        self.forget()

    def end(self) -> None:
        """Refuse further calls, end the Runtimes of those that run, and give up all handles."""
        self.refuse()
        self.is_over = True
        self.memory.handles.close()

    def close(self) -> Any:
        """End this session; the engine and its other sessions go on."""
        self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _seconds(timeout: Any) -> float:
    if type(timeout) not in (int, float) or not 0 < timeout < float("inf"):
        problem = Problem("timeout", "arg.type", "seconds above 0", type_name(timeout))
        raise ArgumentError([problem])
    return float(timeout)


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
