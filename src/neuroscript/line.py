"""One call, from its arguments to its result: the one line of the contract, and a compiled form of it.

`Line.steps` is the line. It does no waiting: where something has to be run it yields a `Body`, and a driver hands it
what came of that. `Line.compiled` is the same line written as one function, for a tool whose function is simply called;
at the first doubt about an argument that function leaves the call to the steps. Nothing that a tool raises gets past
either of them as it is.

Source: contract sections 2 and 6; design.md, rules 4 and 6; performance.md part 2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from types import CodeType
from typing import Any, Final, Literal

import attrs

from neuroscript.binding import GLOBALS, Source, bound, named, positional
from neuroscript.data import maker_of
from neuroscript.errors import CallError, LentError, LimitError, PolicyError, ReturnError, ToolFailed
from neuroscript.scalars import EXACT
from neuroscript.tools import ToolImplementation, WithoutRuntime, fit_result
from neuroscript.walk import RESULT, Coercion, Walk, type_name

DOUBT: Final = "return careful(given, frame)"
INDENT: Final = "    "

Compiled = Callable[..., Any]
"""``(given, frame)`` in, the result out; the frame may be left out for a call from outside."""


@attrs.define(eq=False)
class CallFrame:
    """Where a call stands; nobody changes it, but a frozen one would cost each nested call 200 ns.

    Attributes:
        engine: What runs it, and the calls that its tool makes.
        tool: The canonical name of its tool.
        depth: 1 for a call from outside, one more for each call within.
    """

    engine: Any
    tool: str
    depth: int = 1


@attrs.frozen
class Body:
    """What a driver is to run.

    Attributes:
        tool: The canonical name of the tool.
        func: Its function.
        values: The Runtime and the exact values.
        manner: ``"plain"`` is simply called, ``"waits"`` not on a thread that has to go on, ``"coroutine"`` is awaited.
        timeout: Seconds after which nobody waits for it any more, or None.
    """

    tool: str
    func: Callable[..., Any]
    values: tuple[Any, ...]
    manner: Literal["plain", "waits", "coroutine"]
    timeout: float | None


@attrs.frozen(eq=False)
class Line:
    """What all calls of one tool have in common.

    Attributes:
        tool: The tool.
        coercion: The terms on which its arguments are taken.
        runtime: Makes the Runtime of one call, which is alive while its ``_frame`` is set.
        frame: Where a call from outside stands.
        manner: How its function is run, see `Body`.
    """

    tool: ToolImplementation
    coercion: Coercion
    runtime: Callable[[], Any]
    frame: CallFrame
    manner: Literal["plain", "waits", "coroutine"] = attrs.field(init=False)
    _makers: tuple[tuple[int, Callable[[Any], Any]], ...] = attrs.field(init=False)

    @manner.default
    def _find_manner(self) -> Literal["plain", "waits", "coroutine"]:
        return "coroutine" if self.tool.is_coroutine else "waits" if self.tool.policy.waits else "plain"

    @_makers.default
    def _find_makers(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        makers = ((index, maker_of(arg, self.tool.name)) for index, arg in enumerate(self.tool.spec.args))
        return tuple((index, maker) for index, maker in makers if maker is not None)

    def bind(self, given: object, by_name: bool) -> tuple[Any, ...]:
        """Return the exact values of the arguments, which every gate and record sees, or raise an `ArgumentError`."""
        return bound(self.tool.spec, self.coercion, given, by_name=by_name)

    def steps(self, values: tuple[Any, ...], frame: CallFrame) -> Generator[Body, Any, Any]:
        """Take one call from its exact values to its exact result.

        Yields:
            What is to be run; the driver sends what it returned, or throws what it raised.

        Raises:
            CallError: Whatever goes wrong.
            KeyboardInterrupt: Of the main thread.
        """
        handed = self._handed(values)
        rt = self.runtime()
        rt._frame = frame
        try:
            result = yield Body(frame.tool, self.tool.func, (rt, *handed), self.manner, self.tool.policy.timeout)
        except BaseException as error:
            raise failure(error, frame.tool)
        finally:
            rt._frame = None
        return self.kept(result)

    def _handed(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values as the function receives them: instances where the spec names a class."""
        if not self._makers:
            return values
        handed = list(values)
        for index, maker in self._makers:
            end = len(handed) if self.tool.spec.variadic and index == len(self.tool.spec.args) - 1 else index + 1
            handed[index:end] = map(maker, handed[index:end])
        return tuple(handed)

    def kept(self, result: object) -> Any:
        """Return a result as the exact value of the declared type, or raise a `ReturnError`."""
        walk = Walk(RESULT)
        exact = fit_result(walk, self.tool.spec, result)
        if walk.noted:
            _close(result)
            text = "; ".join(
                f"result{problem}" if problem.where else f"result: {problem}" for problem in walk.problems()
            )
            raise ReturnError(text, tool=self.tool.name)
        return exact

    @property
    def is_direct(self) -> bool:
        """Whether a sync caller simply calls the function, so that the line can be compiled."""
        return self.manner != "coroutine" and self.tool.policy.timeout is None

    def compiled(self, careful: Compiled, by_name: bool) -> Compiled:
        """Return the line as one function, or *careful* itself where every call would be left to it.

        Args:
            careful: Takes the same call through `steps`.
            by_name: Whether the arguments are a dict.
        """
        source = Source()
        statements = source.inner()
        if not (named if by_name else positional)(self.tool.spec, self.coercion, statements, DOUBT):
            return careful
        self._add_body(statements)
        source.add("def line(given, frame=root):")
        source.add(*statements.lines, indent=1)
        return _made(source, {"careful": careful, "root": self.frame, "failure": failure, "tool": self.tool.name})

    def _add_body(self, source: Source) -> None:
        values = [f"a{index}" for index in range(len(self.tool.spec.args))]
        for index, maker in self._makers:
            source.add(f"{values[index]} = {source.name(maker)}({values[index]})")
        if isinstance(self.tool.func, WithoutRuntime):
            call, before, after = source.name(self.tool.func.func), [], []
        else:
            call, values = source.name(self.tool.func), ["rt", *values]
            before = [f"rt = {source.name(self.runtime)}()", "rt._frame = frame"]
            after = ["finally:", "    rt._frame = None"]
        source.add(*before, "try:", f"    result = {call}({', '.join(values)})", "except BaseException as error:")
        source.add("    raise failure(error, tool)", *after)
        test = EXACT.get(self.tool.spec.return_type, "False").format("result")
        source.add(f"if {test}:", "    return result", f"return {source.name(self.kept)}(result)")


def _made(source: Source, names: dict[str, object]) -> Compiled:
    """Return the function that a source describes; sources of one text are compiled once."""
    parameters = [*names, *(f"k{index}" for index in range(len(source.objects)))]
    text = "\n".join(
        [f"def make({', '.join(parameters)}):", *(f"{INDENT}{line}" for line in source.lines), f"{INDENT}return line"]
    )
    namespace: dict[str, Any] = dict(GLOBALS)
    exec(_code(text), namespace)
    made: Compiled = namespace["make"](*names.values(), *source.objects)
    return made


@functools.lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    return compile(text, "<neuroscript line>", "exec")


def failure(error: BaseException, tool: str) -> BaseException:
    """Return what the caller of *tool* is told when its function raised *error*.

    A refusal by policy or limit passes as it is, and so does a `ToolFailed` that the tool raised itself; a `LentError`
    keeps its code, retry and text. Any other error of a call within becomes the tool's own, for the caller did not
    write those arguments. GeneratorExit and an interrupt of the main thread end what stands around the call, and pass.

    Source: contract section 6.
    """
    if isinstance(error, (PolicyError, LimitError, GeneratorExit)) or _is_interrupt(error):
        return error
    if isinstance(error, ToolFailed) and error.tool in ("", tool):
        error.tool = tool
        return error
    if isinstance(error, LentError):
        failed = ToolFailed(error.text, tool=tool, code=error.code, retry=error.retry)
    else:
        failed = ToolFailed(_told(error), tool=tool)
    failed.__cause__ = error
    return failed


def _told(error: BaseException) -> str:
    if isinstance(error, CallError):
        return f"its call of {error.tool or 'the runtime'} failed ({error.code})"
    return f"the tool failed ({type_name(error)})"


def _is_interrupt(error: BaseException) -> bool:
    if not isinstance(error, KeyboardInterrupt):
        return False
    from threading import current_thread, main_thread

    return current_thread() is main_thread()


def _close(result: object) -> None:
    """End a coroutine that a function returned without being a coroutine function, so that nobody waits for it."""
    from inspect import iscoroutine

    if iscoroutine(result):
        result.close()
