"""The exception hierarchy. Each error says who must act, both in its message and as data.

NeuroScriptError
├── SpecError (ValueError)      the author     a spec or tool is invalid when it is created
├── RegistryError               the host       two tools have the same name
├── PluginError                 the host       .distribution .reason .code .errors
├── AuditError                  the host       an audit log cannot be written, continued or read
├── HostError                   .text .code .retry   something that the host provides could not be used
│   ├── SandboxError            the tool       a path leaves the sandbox, or the sandbox is unusable
│   ├── PromptError             the host       no user is available to answer
│   └── LLMError                the host       no model is configured, or it did not answer
└── CallError                   .tool .code .number .retry
    ├── ToolNotFound            the caller     with similar names among the tools that may be called
    ├── ArgumentError (ValueError)  the caller  .problems, with all of them
    │   └── CoercionError                      one value that does not fit its type
    ├── PolicyError             the host       .need, .rule
    ├── LimitError              the host
    ├── CallTimeout             .state: "stopped", "abandoned" or "killed"
    ├── ToolFailed              the tool       __cause__ is the original
    └── ReturnError             the tool

A `HostError` that a tool does not catch reaches the caller as `ToolFailed` with the same code, retry and text.

``retry`` says who can make the same call succeed: ``"model"`` with other arguments, ``"later"`` by waiting, ``"host"``
with a different configuration, ``"never"`` no one. Messages never contain values, only types, sizes and names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NamedTuple, get_args

Retry = Literal["model", "later", "host", "never"]

RETRIES: Final = get_args(Retry)

MAX_LISTED_PROBLEMS: Final = 20
"""Maximum number of problems that a message lists; the rest are counted."""

MAX_PROBLEMS: Final = 100
"""Maximum number of problems that one error describes; the rest are counted."""

MAX_PROBLEM_CHARS: Final = 1_000
"""The maximum length of one problem, or of the name of its subject, in an error; the rest is counted."""

MAX_TEXT_CHARS: Final = 20_000
"""The maximum length of the reason of an error that is not about a call; the rest is counted."""


MAX_NOTE_CHARS: Final = 40
"""The maximum length of the note at the end of a shortened string."""


def shorten_text(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return *text*, shortened if it is too long, with a note of how many characters were left out.

    A string that is already shortened, or too long by less than the length of the note, is returned unchanged.

    >>> shorten_text("abcdef" * 10, 4)
    'abcd… (56 more characters)'
    """
    if len(text) <= most + MAX_NOTE_CHARS:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"


class Unset(Enum):
    """The type of `UNSET`, so that type checkers can distinguish it from other values."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""No value was passed. None, in contrast, is a value."""


class NeuroScriptError(Exception):
    """The base class of all exceptions of this project."""


class SpecError(NeuroScriptError, ValueError):
    """An invalid spec, policy or tool. It is raised when the object is created, never during a call.

    The message lists at most `MAX_LISTED_PROBLEMS` problems and counts the rest.

    Attributes:
        subject: The invalid object, for example ``math.add``, or the name of the file that declares it.
        problems: The first `MAX_PROBLEMS` problems, one sentence each. Problems of more than `MAX_PROBLEM_CHARS`
            characters are shortened.
        lines: The line of each problem if the subject is a file, otherwise empty.
        total: The total number of problems.
    """

    def __init__(self, subject: str, problems: Sequence[str], lines: Sequence[int] = (), found: int = 0) -> None:
        """Create the error.

        Args:
            found: The total number of problems, if *problems* does not contain all of them.
        """
        _check(SpecError, subject=subject)
        _check_items(SpecError, str, problems=problems)
        _check_items(SpecError, int, lines=lines)
        if type(found) is not int:
            raise _wrong(SpecError, "found", "an integer", found)
        self.subject = shorten_text(subject, MAX_PROBLEM_CHARS)
        self.problems = tuple(shorten_text(each, MAX_PROBLEM_CHARS) for each in problems[:MAX_PROBLEMS])
        self.lines = tuple(lines[:MAX_PROBLEMS])
        self.total = max(found, len(problems))
        super().__init__(self.subject, self.problems, self.lines, self.total)

    @property
    def unlisted(self) -> int:
        """The number of problems that are not in `problems`."""
        return self.total - len(self.problems)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each problem as a separate sentence, with the subject and, for files, the line.

        A final sentence gives the number of problems that are not included.
        """
        more = (f"{self.subject}: and {self.unlisted} more",) if self.unlisted else ()
        return (*self._sentences(), *more)

    def _sentences(self) -> tuple[str, ...]:
        places = [f"{self.subject}:{line}" for line in self.lines] or [self.subject] * len(self.problems)
        return tuple(f"{place}: {problem}" for place, problem in zip(places, self.problems, strict=True))

    def __str__(self) -> str:
        sentences = [*(self._sentences() if self.lines else self.problems)[:MAX_LISTED_PROBLEMS]]
        if self.total > len(sentences):
            sentences.append(f"and {self.total - len(sentences)} more")
        text = "; ".join(sentences)
        return text if self.lines else f"{self.subject}: {text}"


class RegistryError(NeuroScriptError):
    """Two tools have the same name. No tool of the second toolset was registered."""

    def __init__(self, text: str = "") -> None:
        _check(RegistryError, text=text)
        super().__init__(shorten_text(text))


class PluginError(NeuroScriptError):
    """An unusable distribution or plugin, or several of them.

    Attributes:
        distribution: The name and version, for example ``acme-tools 1.2``.
        reason: The reason in one sentence, shortened to `MAX_TEXT_CHARS` characters.
        code: A stable dotted code, for example ``plugin.import``.
        errors: The error of each plugin if there are several, otherwise empty.
    """

    def __init__(
        self, distribution: str, reason: str, *, code: str = "plugin.broken", errors: Sequence[PluginError] = ()
    ) -> None:
        _check(PluginError, distribution=distribution, reason=reason, code=code)
        _check_items(PluginError, PluginError, errors=errors)
        self.distribution = shorten_text(distribution, MAX_PROBLEM_CHARS)
        self.reason = shorten_text(reason)
        super().__init__(self.distribution, self.reason)
        self.code = code
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return f"{self.distribution}: {self.reason}"


class AuditError(NeuroScriptError):
    """An audit log cannot be written, continued or read. Errors of the file system remain OSError."""

    def __init__(self, text: str = "") -> None:
        _check(AuditError, text=text)
        super().__init__(shorten_text(text))


class HostError(NeuroScriptError):
    """A part of the host that the Runtime provides could not be used. A tool may catch this error.

    Attributes:
        text: What happened, for the caller of the tool.
        code: A stable dotted code, for example ``sandbox.escape``.
        retry: Who can make the call succeed.
    """

    CODE: ClassVar[str] = "host.failed"
    RETRY: ClassVar[Retry] = "host"

    def __init__(self, text: str, *, code: str = "", retry: Retry | None = None) -> None:
        _check(type(self), retry, text=text, code=code)
        super().__init__(text)
        self.text = text
        self.code = code or self.CODE
        self.retry: Retry = retry or self.RETRY

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.__dict__)


class SandboxError(HostError):
    """A path leaves the sandbox or is not what the operation needs, or the sandbox is unusable."""

    CODE = "sandbox.io"


class PromptError(HostError):
    """No user is available to answer."""

    CODE = "prompt.unavailable"


class LLMError(HostError):
    """No model is configured, or it did not answer."""

    CODE = "llm.no_model"


class CallError(NeuroScriptError):
    """A call did not return a result.

    Attributes:
        text: What happened, without the name of the tool.
        tool: The canonical name of the tool, or ``""`` if the error is not about a tool.
        items: How many items a stream had produced before this error; None if it was not a stream.
        is_logged: Whether the traceback of the failure was logged for the host.
        remedy: What the host can change so that the call succeeds, or ``""``. It is meant for people: it may contain a
            host name or path from the call, and is never part of text for a model.
    """

    CODE: ClassVar[str] = "call.failed"
    NUMBER: ClassVar[int] = 6
    RETRY: ClassVar[Retry] = "never"

    items: int | None = None
    remedy: str = ""
    is_logged: bool = False

    def __init__(self, text: str, *, tool: str = "", code: str = "", retry: Retry | None = None) -> None:
        if not (type(text) is type(tool) is type(code) is str and (retry is None or retry in RETRIES)):
            _check(type(self), retry, text=text, tool=tool, code=code)
        super().__init__(text)
        self.text = text
        self.tool = tool
        self._code = code or self.CODE
        self._retry: Retry = retry or self.RETRY

    @property
    def code(self) -> str:
        """A stable dotted code for the kind of failure."""
        return self._code

    @property
    def number(self) -> int:
        """The upstream number for this kind of error."""
        return self.NUMBER

    @property
    def retry(self) -> Retry:
        """Who can make the call succeed."""
        return self._retry

    def __str__(self) -> str:
        return f"{self.tool}: {self.text}" if self.tool else self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.__dict__)


def _rebuilt(kind: type[NeuroScriptError], state: dict[str, Any]) -> NeuroScriptError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


class ToolNotFound(CallError):
    """No tool with this name may be called here.

    Attributes:
        near: At most three names that are spelled alike.
    """

    CODE = "tool.not_found"
    NUMBER = 3
    RETRY = "model"

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        _check(ToolNotFound, name=name)
        _check_items(ToolNotFound, str, near=near)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"unknown tool {name}{hint}")
        self.near = tuple(near)


class Problem(NamedTuple):
    """One problem with the arguments of a call.

    Attributes:
        where: The argument and the place within it, in Python syntax: ``tags[1]``, ``headers['x']``.
        code: A stable dotted code, for example ``arg.missing``.
        expected: What is expected.
        got: The type or size of what was received, never the value.
        hint: How to correct it, or ``""``.
    """

    where: str
    code: str
    expected: str
    got: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}expected {self.expected}, got {self.got}{hint}"


class ArgumentError(CallError, ValueError):
    """The arguments do not fit the spec. The message lists at most `MAX_LISTED_PROBLEMS` and counts the rest."""

    CODE = "arg.invalid"
    NUMBER = 4
    RETRY = "model"

    text = ""

    def __init__(
        self, problems: Sequence[Problem] | Callable[[], Sequence[Problem]], tool: str = "", found: int = 0
    ) -> None:
        """Create the error. *problems* may be a function, called on first access because many callers never read it.

        Args:
            found: The total number of problems, if *problems* does not contain all of them.
        """
        self._problems = problems
        self._found = found
        self.tool = tool

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The first `MAX_PROBLEMS` problems, in the order of the spec."""
        problems = self._problems
        if type(problems) is not tuple or len(problems) > MAX_PROBLEMS:
            found = tuple(problems() if callable(problems) else problems)
            self._found = max(self._found, len(found))
            problems = self._problems = found[:MAX_PROBLEMS]
        return problems

    @property
    def total(self) -> int:
        """The total number of problems."""
        return max(len(self.problems), self._found)

    @property
    def unlisted(self) -> int:
        """The number of problems that are not in `problems`."""
        return self.total - len(self.problems)

    @property
    def code(self) -> str:
        """The common code of all problems, or ``arg.invalid``."""
        codes = {problem.code for problem in self.problems}
        return codes.pop() if len(codes) == 1 and not self.unlisted else self.CODE

    @property
    def retry(self) -> Retry:
        """Who can make the call succeed: the model, with other arguments."""
        return self.RETRY

    def __str__(self) -> str:
        sentences = [str(problem) for problem in self.problems[:MAX_LISTED_PROBLEMS]]
        if self.total > len(sentences):
            sentences.append(f"and {self.total - len(sentences)} more")
        text = "; ".join(sentences)
        return f"{self.tool}: {text}" if self.tool else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {**self.__dict__, "_problems": self.problems})


class CoercionError(ArgumentError):
    """A value does not fit its type; raised by `coerce`."""


class PolicyError(CallError):
    """The policy of the host denies the call.

    Attributes:
        need: The missing capability, for example ``fs:read``, or ``""``.
        rule: The rule that denied the call, for example ``trust``.
        needs: All missing capabilities with their scopes, if grants are missing. Like `remedy`, only for the host.
        grants: The narrowest grants that cover these needs; empty if a scope is secret or too long to display.
    """

    CODE = "policy.denied"
    NUMBER = 1003
    RETRY = "host"

    needs: tuple[str, ...] = ()
    grants: tuple[str, ...] = ()

    def __init__(
        self,
        text: str,
        *,
        tool: str = "",
        code: str = "",
        need: str = "",
        rule: str = "",
        retry: Retry | None = None,
    ) -> None:
        if not type(need) is type(rule) is str:
            _check(PolicyError, need=need, rule=rule)
        super().__init__(text, tool=tool, code=code, retry=retry)
        self.need = need
        self.rule = rule


class LimitError(CallError):
    """A limit of the host has been reached."""

    CODE = "limit.reached"
    NUMBER = 37
    RETRY = "host"


class CallTimeout(CallError):
    """The tool did not finish in time.

    Attributes:
        state: ``"stopped"`` if the tool has ended, ``"abandoned"`` if it may still run but its result is ignored,
            ``"killed"`` if it ran in a worker process, which was ended.
        seconds: The time limit in seconds, or None if it is unknown.
    """

    CODE = "call.timeout"
    NUMBER = 32
    RETRY = "later"

    def __init__(
        self,
        text: str,
        *,
        tool: str = "",
        state: Literal["stopped", "abandoned", "killed"],
        seconds: float | None = None,
        has_ended: Callable[[], bool] | None = None,
    ) -> None:
        """Create the error. *has_ended*, if available, returns whether an abandoned tool has ended since."""
        if state not in ("stopped", "abandoned", "killed"):
            raise _wrong(CallTimeout, "state", "'stopped', 'abandoned' or 'killed'", state)
        if seconds is not None and type(seconds) not in (int, float):
            raise _wrong(CallTimeout, "seconds", "a number or None", seconds)
        if has_ended is not None and not callable(has_ended):
            raise _wrong(CallTimeout, "has_ended", "a function or None", has_ended)
        super().__init__(text, tool=tool)
        self.state: Literal["stopped", "abandoned", "killed"] = state
        self.seconds = seconds
        self._has_ended = has_ended

    @property
    def still_runs(self) -> bool:
        """Whether the tool may still run. Always True for an abandoned tool in another process."""
        if self.state != "abandoned":
            return False
        return self._has_ended is None or not self._has_ended()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {**self.__dict__, "_has_ended": None})


class ToolFailed(CallError):
    """The tool raised an exception. It is available as ``__cause__``; its message is not shown.

    A tool may raise ``ToolFailed(text, retry=…)`` itself. That text is meant for the caller and is shown.
    """

    CODE = "tool.failed"
    NUMBER = 21


class ReturnError(CallError):
    """The tool returned a value that does not match its spec."""

    CODE = "return.type"
    NUMBER = 6


def _check(kind: type, retry: object = None, **texts: object) -> None:
    """Reject parts of an error with the wrong type before they cause failures where the error is handled."""
    for name, text in texts.items():
        if not isinstance(text, str):
            raise _wrong(kind, name, "a string", text)
    if retry is not None and retry not in RETRIES:
        raise _wrong(kind, "retry", "'model', 'later', 'host' or 'never'", retry)


def _check_items(kind: type, item: type, **parts: object) -> None:
    for name, values in parts.items():
        if not isinstance(values, (list, tuple)):
            raise _wrong(kind, name, "a list or tuple", values)
        for index, value in enumerate(values):
            if not isinstance(value, item):
                raise _wrong(kind, f"{name}[{index}]", f"{item.__name__}", value)


def _wrong(kind: type, name: str, words: str, value: object) -> SpecError:
    got = "None" if value is None else type(value).__name__
    return SpecError(kind.__name__, [f"{name} must be {words}, not {got}"])


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is an interrupt of the main thread, which must always propagate."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    from threading import current_thread, main_thread

    return current_thread() is main_thread()
