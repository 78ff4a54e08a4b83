"""A Runtime that follows a script and remembers what a tool did with it, so that a function is tested without a host.

Files, variables, handles and limits are those of a real engine; what comes from outside is in the script.

Source: contract section 4; issue "Plugins", the publisher's kit.
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
    mapping,
    optional,
    require,
    sequence,
)
from neuroscript.engine.call_runtime import CallRuntime
from neuroscript.engine.engine import Engine
from neuroscript.policy.capabilities import Capability, Grant
from neuroscript.policy.execution_policy import ExecutionPolicy
from neuroscript.runtime.host import Host, Progress
from neuroscript.runtime.interfaces import LLM, Files, Handles, Logger, Random, Reservation, ToolCall, ToolInfo, Turn
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.testing.checks.setup import FILES, IMPLEMENTATIONS, write_files
from neuroscript.tools.tool import ToolImplementation

ALL: Final = "*:*:*"
"""The grant that covers every need."""

TOOL: Final = "test.tool"
"""What the tool is called whose Runtime this is."""

NOON: Final = 1_700_000_000.0
"""What the clock shows where the script says nothing, in seconds since 1970-01-01 UTC."""

SEED: Final = 0
"""So that a test draws the same numbers each time."""


ITEMS: Final = Form("a list or tuple", lambda items: isinstance(items, (list, tuple)))
SAID: Final = Form("a string, a Turn or an error", lambda said: isinstance(said, (str, Turn, Exception)))
CLOCK: Final = Form(
    "a number, or a list or tuple of numbers",
    lambda clock: NUMBER.accepts(clock) or (isinstance(clock, tuple) and all(map(NUMBER.accepts, clock))),
)
FORMS: Final = {
    "answers": sequence(STRING, "strings"),
    "model": sequence(SAID, "strings, Turns or errors"),
    "clock": CLOCK,
    "files": optional(FILES),
    "variables": optional(BY_NAME),
    "secrets": optional(mapping(STRING, "strings")),
    "calls": optional(BY_NAME),
    "tools": IMPLEMENTATIONS,
    "grants": STRINGS,
    "deadline": optional(NUMBER),
}


class ScriptError(AssertionError):
    """A tool asked for what the script of its test does not have, or left something of it unused."""


class FakeRuntime:
    """A `Runtime` for one test, to be given to the function of a tool as its first argument.

    Used as a context, it ends with a `ScriptError` where the script was not used up, or had not enough, even when the
    tool caught the error of that.

    Args:
        answers: What the user answers, in order.
        model: What the model says, in order: a text, a `Turn`, or an error that it raises.
        clock: What `now` gives: one number for good, or several in order.
        files: What the sandbox holds, by path: a text, bytes, or None for a directory.
        variables: The caller's variables.
        secrets: What the host lends, by name.
        calls: What other tools give, by canonical name: a value, an error that is raised, or a function of the
            arguments that were given.
        tools: Tools that `tools` shows.
        grants: What the host grants; by default all.
        deadline: On the clock of `time.monotonic`.

    Attributes:
        lines: What was printed, a text for each line.
        prompts: What the user was asked.
        turns: What the model was asked, in order.
        told: Each `Progress`.
        called: The calls of other tools, as `ToolCall`.
        logged: Level and text of each line of the log.
        is_cancelled: What `cancelled` says; a test may set it.

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
    ) -> None:
        answers, model, tools, grants = map(as_tuple, (answers, model, tools, grants))
        clock = clock if isinstance(clock, (int, float)) else as_tuple(clock)
        given = {"answers": answers, "model": model, "clock": clock, "files": files, "variables": variables}
        given |= {"secrets": secrets, "calls": calls, "tools": tools, "grants": grants, "deadline": deadline}
        require("FakeRuntime", **{name: (each, FORMS[name]) for name, each in given.items()})
        self.prompts: list[str] = []
        self.turns: list[tuple[Turn, ...]] = []
        self.told: list[Progress] = []
        self.called: list[ToolCall] = []
        self.logged: list[tuple[str, str]] = []
        self.is_cancelled = False
        self._misuse: ScriptError | None = None
        self._answers = _Script("answers", answers, self)
        self._said = _Script("model", model, self)
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
            progress=self.told.append,
        )
        self._engine = Engine(host=host, policy=ExecutionPolicy(grants=grants), plugins="none")
        for tool in tools:
            self._engine.register(tool)
        self._rt = CallRuntime()
        self._rt._frame = CallFrame(self._engine, TOOL, deadline=deadline, held=(Grant.parse(ALL),))

    # The script

    @property
    def lines(self) -> list[str]:
        """What was printed, a text for each line."""
        return self._out.getvalue().splitlines()

    def misused(self, text: str) -> ScriptError:
        """Return the error of a tool that asks for what is not in the script, and remember the first one."""
        require("FakeRuntime", text=(text, STRING))
        error = ScriptError(text)
        self._misuse = self._misuse or error
        return error

    def verify(self) -> None:
        """Raise a `ScriptError` where the script had not enough, or something of it was not used."""
        if self._misuse is not None:
            raise self._misuse
        scripts = (self._answers, self._said, self._clock)
        left = [f"{len(each.left)} of {each.name}" for each in scripts if each is not None and each.left]
        if left:
            raise ScriptError(f"the tool did not use the whole script: {' and '.join(left)} left")

    def close(self) -> None:
        """End the call: whatever is asked now is refused, as after a real one. The sandbox is deleted."""
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
        """Write one line."""
        self._rt.println(*values)

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return the next answer of the script."""
        return self._rt.prompt_user(prompt, secret=secret)

    @property
    def logger(self) -> Logger:
        """What writes to `logged`."""
        logger: Logger = self._rt.logger
        return logger

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of a variable."""
        return self._rt.get_var(name, default)

    def set_var(self, name: str, value: Any) -> None:
        """Set a variable."""
        self._rt.set_var(name, value)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set a variable to what *change* makes of it."""
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
        """Return what the script says that this tool gives."""
        require("call_tool", name=(name, STRING), args=(args, ITEMS))
        return self._called(name, tuple(args))

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Return what the script says that this tool gives."""
        require("call_tool_named", name=(name, STRING), mapping=(mapping, BY_NAME))
        return self._called(name, dict(mapping))

    def _called(self, name: str, args: Any) -> Any:
        self.called.append(ToolCall(name, args))
        if name not in self._calls:
            raise self.misused(f"the tool calls {name}, and the script does not say what that gives: calls={{...}}")
        given = self._calls[name]
        if isinstance(given, Exception):
            raise given
        return given(args) if callable(given) else given

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that the test lends."""
        return self._rt.tools

    @property
    def llm(self) -> LLM:
        """The model of the script."""
        return self._rt.llm

    @property
    def handles(self) -> Handles:
        """What tools keep; it dies with this Runtime."""
        return self._rt.handles

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` where no grant of the test covers it."""
        self._rt.require(capability)

    def spend(self, what: str, amount: object) -> Reservation:
        """Reserve something; a test has no limits."""
        return self._rt.spend(what, amount)

    def secret(self, name: str) -> str:
        """Return a secret of the script."""
        return self._rt.secret(name)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Add to `told`."""
        self._rt.progress(done, total, text)

    @property
    def cancelled(self) -> bool:
        """What the test set, or whether the call has ended."""
        return self.is_cancelled or self._rt.cancelled

    @property
    def deadline(self) -> float | None:
        """What the test says."""
        return self._rt.deadline

    def now(self) -> float:
        """Return the time of the script."""
        return self._rt.now()

    @property
    def random(self) -> Random:
        """Numbers that are the same in each test."""
        return self._rt.random


class _Script:
    """What comes in turn, from one keyword of the test."""

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
        said = self.rt._said.next("the tool asks the model")
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Turn) else Turn("assistant", str(said))

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
