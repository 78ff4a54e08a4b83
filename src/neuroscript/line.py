"""One call, from its arguments to its result: the one line of the contract, and a compiled form of it.

`Line.steps` is the line. It does no waiting: where something has to be run it yields a `Body`, and a driver hands it
what came of that; of a stream it yields each `Item`. `Line.compiled` is the same line written as one function, for a
tool whose function is simply called; at the first doubt about an argument that function leaves the call to the steps.
Nothing that a tool raises gets past either of them as it is.

Source: contract sections 2 and 6; design.md, rules 4 and 6; performance.md part 2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import Any, Final

import attrs

from neuroscript.binding import GLOBALS, Source, bound, named, positional
from neuroscript.bodies import (
    END,
    GRACE,
    Closed,
    Item,
    Manner,
    Steps,
    close,
    ended_with_engine,
    failure,
    outcome,
    reading,
)
from neuroscript.data import maker_of
from neuroscript.errors import ArgumentError, CallError, ReturnError
from neuroscript.frames import CallFrame
from neuroscript.policy import ExecutionPolicy, refused
from neuroscript.scalars import EXACT
from neuroscript.tools import ToolImplementation, WithoutRuntime, fit_result
from neuroscript.walk import RESULT, Coercion, Walk

FILE: Final = "<neuroscript line>"
"""What compiled lines name as their file, in tracebacks and on stacks."""

DOUBT: Final = "return careful(given, frame)"
INDENT: Final = "    "

Compiled = Callable[..., Any]
"""``(given, frame)`` in, the result out; without a frame the call comes from outside."""


@attrs.frozen(eq=False, repr=False)
class Line:
    """What all calls of one tool have in common.

    Attributes:
        tool: The tool.
        coercion: The terms on which its arguments are taken.
        policy: What the host permits.
        runtime: Makes the Runtime of one call, which is alive while its ``_frame`` is set.
        manner: How its function is run.
    """

    tool: ToolImplementation
    coercion: Coercion
    policy: ExecutionPolicy
    runtime: Callable[[], Any]
    manner: Manner = attrs.field(init=False)
    _makers: tuple[tuple[int, Callable[[Any], Any]], ...] = attrs.field(init=False)

    @manner.default
    def _find_manner(self) -> Manner:
        return "coroutine" if self.tool.is_coroutine else "waits" if self.tool.policy.waits else "plain"

    @_makers.default
    def _find_makers(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        makers = ((index, maker_of(arg, self.tool.name)) for index, arg in enumerate(self.tool.spec.args))
        return tuple((index, maker) for index, maker in makers if maker is not None)

    def bind(self, given: object, by_name: bool) -> tuple[Any, ...]:
        """Return the exact values of the arguments, which every gate and record sees, or raise an `ArgumentError`."""
        return bound(self.tool.spec, self.coercion, given, by_name=by_name)

    def admitted(self, frame: CallFrame, *values: Any) -> CallFrame:
        """Return a frame in which the tool may do what it needs for these arguments.

        Raises:
            PolicyError: The host, or a tool that asks for this call, does not give it.
            ArgumentError: A value can not say what is needed, such as a URL without a host.
        """
        try:
            needs = tuple(need for template in self.tool.templates for need in template.fill(values))
        except ArgumentError as error:
            error.tool = self.tool.name
            raise
        lacking = self.policy.uncovered(needs)
        if lacking is None and frame.parent is not None:
            lacking = frame.parent.uncovered(needs)
        if lacking is not None:
            raise refused(self.tool.name, lacking)
        return CallFrame(frame.session, frame.tool, frame.depth, frame.parent, needs, frame.timeout, frame.deadline)

    def steps(self, values: tuple[Any, ...], frame: CallFrame) -> Steps:
        """Take one call from its exact values to its exact result, or to the items of its stream.

        Yields:
            What is to be run, for which the driver sends what it returned, or throws what it raised; and each `Item`.

        Raises:
            PolicyError: At once, where the tool may not do what it needs for these values.
            CallError: Whatever goes wrong.
            KeyboardInterrupt: Of the main thread.
        """
        return self._steps(values, self.admitted(frame, *values) if self.tool.templates else frame)

    def _steps(self, values: tuple[Any, ...], frame: CallFrame) -> Steps:
        frame = frame.started(self.tool.policy.timeout)
        handed = self._handed(values)
        rt = self.runtime()
        rt._frame = frame
        running: set[CallFrame] = frame.session.running
        running.add(frame)
        try:
            result = yield from outcome(frame, self.tool.func, (rt, *handed), self.manner)
            if not self.tool.spec.stream:
                return self.kept(result)
            yield from self._items(frame, result)
            return END
        finally:
            rt._frame = None
            frame.ended = True
            running.discard(frame)

    def _items(self, frame: CallFrame, source: Any) -> Steps:
        """Give each item of what a tool returned; whatever happens, that is closed."""
        step, end, manner = reading(source, "waits" if self.tool.policy.waits else "plain", self.tool.name)
        try:
            while (item := (yield from outcome(frame, step, (source,), manner))) is not END:
                yield self._item(item)
                if frame.session.is_over:
                    raise ended_with_engine()
        except Closed:
            pass
        except GeneratorExit:  # nobody is left who could run anything
            raise
        except BaseException:
            with suppress(CallError):
                yield from outcome(frame, end, (source,), manner, GRACE)
            raise
        yield from outcome(frame, end, (source,), manner, GRACE)

    def _item(self, item: object) -> Item:
        walk = Walk(RESULT)
        return Item(self.tool.name, self._fitted(walk, item), walk.nodes, walk.text)

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
        return self._fitted(Walk(RESULT), result)

    def _fitted(self, walk: Walk, result: object) -> Any:
        exact = fit_result(walk, self.tool.spec, result)
        if walk.noted:
            close(result)
            text = "; ".join(
                f"result{problem}" if problem.where else f"result: {problem}" for problem in walk.problems()
            )
            raise ReturnError(text, tool=self.tool.name)
        return exact

    @property
    def is_direct(self) -> bool:
        """Whether a sync caller simply calls the function, so that the line can be compiled."""
        return self.manner != "coroutine" and self.tool.policy.timeout is None and not self.tool.spec.stream

    def compiled(self, careful: Compiled, by_name: bool) -> Callable[[CallFrame], Compiled]:
        """Return what makes the line as one function, for a frame in which calls from outside stand.

        Args:
            careful: Takes the same call through `steps`; also where nothing can be compiled.
            by_name: Whether the arguments are a dict.
        """
        source = Source()
        statements = source.inner()
        if not (named if by_name else positional)(self.tool.spec, self.coercion, statements, DOUBT):
            statements.add(DOUBT)
        else:
            self._add_body(statements)
        source.add("def line(given, frame=root):")
        source.add(*statements.lines, indent=1)
        return _made(source, {"careful": careful, "failure": failure, "tool": self.tool.name})

    def _add_body(self, source: Source) -> None:
        values = [f"a{index}" for index in range(len(self.tool.spec.args))]
        if self.tool.templates:
            source.add(f"frame = {source.name(self.admitted)}({', '.join(['frame', *values])})")
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


def _made(source: Source, names: dict[str, object]) -> Callable[[CallFrame], Compiled]:
    """Return what makes the function that a source describes; sources of one text are compiled once."""
    parameters = [*names, *(f"k{index}" for index in range(len(source.objects))), "root"]
    text = "\n".join(
        [f"def make({', '.join(parameters)}):", *(f"{INDENT}{line}" for line in source.lines), f"{INDENT}return line"]
    )
    namespace: dict[str, Any] = dict(GLOBALS)
    exec(_code(text), namespace)
    return functools.partial(namespace["make"], *names.values(), *source.objects)


@functools.lru_cache(maxsize=1024)
def _code(text: str) -> CodeType:
    return compile(text, FILE, "exec")
