"""A scripted Runtime that records what a tool does, to test a tool's function without a host.

Files, variables, handles and limits behave as in a real engine; everything else comes from the script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from random import Random as SeededRandom
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

import attrs

from neuroscript.calls.steps import CallFrame
from neuroscript.coercion.parameters import (
    BY_NAME,
    NUMBER,
    STRING,
    STRINGS,
    Form,
    as_tuple,
    mapping_form,
    optional,
    require,
    sequence,
)
from neuroscript.engine.call_runtime import CallRuntime
from neuroscript.engine.engine import Engine
from neuroscript.policy.capabilities import Capability, Grant
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host, Progress
from neuroscript.runtime.interfaces import (
    LLM,
    Files,
    Handles,
    Launch,
    Logger,
    Random,
    Reservation,
    ToolCall,
    ToolInfo,
    Turn,
)
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.testing.checks.setup import FILES, IMPLEMENTATIONS, write_files
from neuroscript.tools.tool import ToolImplementation

ALL: Final = "*:*:*"
"""The grant that covers every need."""

TOOL: Final = "test.tool"
"""The name of the tool that this Runtime belongs to."""

NOON: Final = 1_700_000_000.0
"""The default time of the clock, in seconds since 1970-01-01 UTC."""

SEED: Final = 0
"""The seed of random numbers, so that every test draws the same ones."""


ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))
SCRIPTED_REPLY: Final = Form("a string, a Turn or an error", lambda said: isinstance(said, (str, Turn, Exception)))
CLOCK: Final = Form(
    "a number, or a list or tuple of numbers",
    lambda clock: NUMBER.accepts(clock) or (isinstance(clock, tuple) and all(map(NUMBER.accepts, clock))),
)
FORMS: Final = {
    "answers": sequence(STRING, "strings"),
    "model": sequence(SCRIPTED_REPLY, "strings, Turns or errors"),
    "clock": CLOCK,
    "files": optional(FILES),
    "variables": optional(BY_NAME),
    "secrets": optional(mapping_form(STRING, "strings")),
    "calls": optional(BY_NAME),
    "tools": IMPLEMENTATIONS,
    "grants": STRINGS,
    "deadline": optional(NUMBER),
    "labels": STRINGS,
}


class ScriptError(AssertionError):
    """A tool requested something that the script of its test does not provide, or left part of the script unused."""


class FakeRuntime:
    """A `Runtime` for one test. Pass it to a tool's function as the first argument.

    As a context manager, it raises a `ScriptError` at the end if part of the script is unused or something was missing,
    even if the tool caught that error.

    Args:
        answers: The answers of the user, in order.
        model: The replies of the model, in order: strings, `Turn` objects, or errors to raise.
        clock: The results of `now`: a single number, or several in order.
        files: The files in the sandbox by path: strings, bytes, or None for a directory.
        variables: The caller's variables.
        secrets: The secrets of the host, by name.
        calls: The results of other tools by canonical name: a value, an error to raise, or a function that takes the
            arguments.
        tools: The tools in `tools`.
        grants: The grants of the host; by default everything.
        deadline: The deadline on the clock of `time.monotonic`.
        labels: The labels of what the tool reads, such as ``untrusted``.

    Attributes:
        lines: The printed lines.
        prompts: The prompts shown to the user.
        turns: The turns passed to the model, in order.
        progress_updates: Each reported `Progress`.
        called: The calls of other tools, as `ToolCall`.
        logged: The level and the message of each log entry.
        is_cancelled: The value of `cancelled`; a test may set it.

    >>> from neuroscript.testing import FakeRuntime
    >>> with FakeRuntime(answers=["Ada"]) as rt:
    ...     rt.println("hello,", rt.prompt_user("who?"))
    >>> rt.lines, rt.prompts
    (['hello, Ada'], ['who?'])
    """

    def __init__(
        self,
        *,
        answers: Iterable[str] = (),
        model: Iterable[str | Turn | Exception] = (),
        clock: float | Iterable[float] = NOON,
        files: Mapping[str, str | bytes | None] | None = None,
        variables: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
        calls: Mapping[str, Any] | None = None,
        tools: Iterable[ToolImplementation] = (),
        grants: Iterable[str] = (ALL,),
        deadline: float | None = None,
        labels: Iterable[str] = (),
    ) -> None:
        answers, model, tools, grants, labels = map(as_tuple, (answers, model, tools, grants, labels))
        clock = clock if isinstance(clock, (int, float)) else as_tuple(clock)
        parameters = {"answers": answers, "model": model, "clock": clock, "files": files, "variables": variables}
        parameters |= {"secrets": secrets, "calls": calls, "tools": tools, "grants": grants, "deadline": deadline}
        parameters |= {"labels": labels}
        require("FakeRuntime", **{name: (each, FORMS[name]) for name, each in parameters.items()})
        self.prompts: list[str] = []
        self.turns: list[tuple[Turn, ...]] = []
        self.progress_updates: list[Progress] = []
        self.called: list[ToolCall] = []
        self.logged: list[tuple[str, str]] = []
        self.is_cancelled = False
        self._labels: tuple[str, ...] = tuple(labels)
        self._misuse: ScriptError | None = None
        self._answers = _Script("answers", answers, self)
        self._model_script = _Script("model", model, self)
        self._clock = None if isinstance(clock, (int, float)) else _Script("clock", clock, self)
        self._time = clock if isinstance(clock, (int, float)) else NOON
        self._calls = dict(calls or {})
        self._open(files or {}, variables or {}, secrets or {}, tuple(grants), tools, deadline)

    def _open(
        self,
        files: Mapping[str, str | bytes | None],
        variables: Mapping[str, Any],
        secrets: Mapping[str, str],
        grants: tuple[str, ...],
        tools: Iterable[ToolImplementation],
        deadline: float | None,
    ) -> None:
        self._place = TemporaryDirectory(prefix="neuroscript-fake-")
        write_files(Path(self._place.name), files)
        self._out = StringIO()
        host = Host(
            logger=_Log(self.logged),
            stdout=self._out,
            prompter=_User(self),
            sandbox_dir=self._place.name,
            llm=_Model(self),
            variables=variables,
            secrets=secrets,
            clock=self._now,
            random=SeededRandom(SEED),  # noqa: S311
            progress=self.progress_updates.append,
        )
        self._engine = Engine(host=host, policy=ExecutionPolicy(grants=grants), plugins="none")
        for tool in tools:
            self._engine.register(tool)
        self._rt = CallRuntime()
        self._rt._frame = CallFrame(self._engine, TOOL, deadline=deadline, grants=(Grant.parse(ALL),))

    # The script

    @property
    def lines(self) -> list[str]:
        """The printed lines."""
        return self._out.getvalue().splitlines()

    def misused(self, text: str) -> ScriptError:
        """Return the error for a request that is not in the script, and store the first one."""
        require("FakeRuntime", text=(text, STRING))
        error = ScriptError(text)
        self._misuse = self._misuse or error
        return error

    def verify(self) -> None:
        """Raise a `ScriptError` if something was missing in the script or part of it is unused."""
        if self._misuse is not None:
            raise self._misuse
        scripts = (self._answers, self._model_script, self._clock)
        left = [f"{len(each.left)} of {each.name}" for each in scripts if each is not None and each.left]
        if left:
            raise ScriptError(f"the tool did not use the whole script: {' and '.join(left)} left")

    def close(self) -> None:
        """End the call. Later requests are refused, as by a real Runtime, and the sandbox is deleted."""
        self._rt._frame = None
        self._engine.close()
        self._place.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if kind is None:
            self.verify()

    def __del__(self) -> None:
        place = getattr(self, "_place", None)
        if place is not None:
            place.cleanup()

    def _now(self) -> float:
        return self._time if self._clock is None else float(self._clock.next("the tool asks for the time"))

    # The Runtime

    def println(self, *values: object) -> None:
        """Record one printed line."""
        self._rt.println(*values)

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return the next answer of the script."""
        return self._rt.prompt_user(prompt, secret=secret)

    @property
    def logger(self) -> Logger:
        """A logger that writes to `logged`."""
        logger: Logger = self._rt.logger
        return logger

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of a variable."""
        return self._rt.get_var(name, default)

    def set_var(self, name: str, value: Any) -> None:
        """Set a variable."""
        self._rt.set_var(name, value)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set a variable to the result of *change*."""
        return self._rt.update_var(name, change)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self._rt.variables

    @property
    def sandbox_dir(self) -> str:
        """The temporary directory."""
        return self._rt.sandbox_dir

    @property
    def fs(self) -> Files:
        """The files of the temporary directory."""
        return self._rt.fs

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Return the scripted result of this tool."""
        require("call_tool", name=(name, STRING), args=(args, ITEMS))
        return self._called(name, tuple(args))

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Return the scripted result of this tool."""
        require("call_tool_named", name=(name, STRING), mapping=(mapping, BY_NAME))
        return self._called(name, dict(mapping))

    def _called(self, name: str, args: Any) -> Any:
        self.called.append(ToolCall(name, args))
        if name not in self._calls:
            raise self.misused(f"the tool calls {name}, but the script has no result for it: calls={{...}}")
        results = self._calls[name]
        if isinstance(results, Exception):
            raise results
        return results(args) if callable(results) else results

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that the test provides."""
        return self._rt.tools

    @property
    def llm(self) -> LLM:
        """The model of the script."""
        return self._rt.llm

    @property
    def handles(self) -> Handles:
        """The objects stored by tools; they are released with this Runtime."""
        return self._rt.handles

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` unless a grant of the test covers the capability."""
        self._rt.require(capability)

    def spend(self, what: str, amount: object) -> Reservation:
        """Reserve an amount; a test has no limits."""
        return self._rt.spend(what, amount)

    def labels(self) -> tuple[str, ...]:
        """Return the labels of the script."""
        return self._labels

    def confine(
        self,
        program: str,
        *,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        execute: Sequence[str] = (),
        granted: bool = False,
    ) -> Launch:
        """Provide nothing to add to a command; a test confines no programs."""
        return self._rt.confine(program, read=read, write=write, execute=execute, granted=granted)

    def secret(self, name: str) -> str:
        """Return a secret of the script."""
        return self._rt.secret(name)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Add to `progress_updates`."""
        self._rt.progress(done, total, text)

    @property
    def cancelled(self) -> bool:
        """The value set by the test, or True after the call has ended."""
        return self.is_cancelled or self._rt.cancelled

    @property
    def deadline(self) -> float | None:
        """The deadline set by the test."""
        return self._rt.deadline

    def now(self) -> float:
        """Return the time of the script."""
        return self._rt.now()

    @property
    def random(self) -> Random:
        """Random numbers that are the same in each test."""
        return self._rt.random


class _Script:
    """A sequence of scripted items, from one keyword argument of the test."""

    def __init__(self, name: str, items: Iterable[Any], rt: FakeRuntime) -> None:
        self.name = name
        self.left = list(items)
        self._rt = rt
        self._count = len(self.left)

    def next(self, wish: str) -> Any:
        if not self.left:
            raise self._rt.misused(f"{wish}, but the script has no more: all {self._count} of {self.name} are used")
        return self.left.pop(0)


@attrs.frozen
class _User:
    rt: FakeRuntime

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        self.rt.prompts.append(prompt)
        answer: str = self.rt._answers.next("the tool asks the user")
        return answer


@attrs.frozen
class _Model:
    rt: FakeRuntime

    def ask(self, turns: Sequence[Turn]) -> Turn:
        self.rt.turns.append(tuple(turns))
        reply = self.rt._model_script.next("the tool asks the model")
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Turn) else Turn("assistant", str(reply))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        return [float(len(text))]


@attrs.frozen
class _Log:
    lines: list[tuple[str, str]]

    def debug(self, msg: str, *args: object) -> None:
        self.lines.append(("debug", msg % args if args else msg))

    def info(self, msg: str, *args: object) -> None:
        self.lines.append(("info", msg % args if args else msg))

    def warning(self, msg: str, *args: object) -> None:
        self.lines.append(("warning", msg % args if args else msg))

    def error(self, msg: str, *args: object) -> None:
        self.lines.append(("error", msg % args if args else msg))
