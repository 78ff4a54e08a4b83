"""What can go wrong, as a tree: each error says who must act, in words and as data.

NeuroScriptError
├── SpecError (ValueError)      the author     when a spec or a tool is made
├── RegistryError               the host       two tools claim one name
├── PluginError                 the host       .distribution .reason .code .errors
├── AuditError                  the host       a trail of calls can not be written, gone on with or read
├── LentError                   .text .code .retry   what the host lends could not be used
│   ├── SandboxError            the tool       a path would leave the sandbox, or the sandbox is unusable
│   ├── PromptError             the host       nobody is there to answer
│   └── LLMError                the host       no model is lent, or it gave no answer
└── CallError                   .tool .code .number .retry
    ├── ToolNotFound            the caller     with near names among the tools that may be called
    ├── ArgumentError (ValueError)  the caller  .problems, all of them at once
    │   └── CoercionError                      one value that does not fit its type
    ├── PolicyError             the host       .need, .rule
    ├── LimitError              the host
    ├── CallTimeout             .state: "stopped" or "abandoned"
    ├── ToolFailed              the tool       __cause__ is the original
    └── ReturnError             the tool

A `LentError` that a tool does not catch leaves the line as `ToolFailed` with its own code, retry and text.

``retry`` says who can make the same call succeed: ``"model"`` by other arguments, ``"later"`` by waiting, ``"host"`` by
a change of set-up, ``"never"`` nobody. No text here ever holds a value: only types, sizes and names.

Source: contract section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Final, Literal, NamedTuple, get_args

Retry = Literal["model", "later", "host", "never"]

RETRIES: Final = get_args(Retry)

LISTED: Final = 20
"""How many problems a text lists before it only counts them."""

MAX_PROBLEMS: Final = 100
"""How many problems of one error are described; the others are counted."""

MAX_PROBLEM_CHARS: Final = 1_000
"""How many characters of one problem, or of the name of what it concerns, an error has; the others are counted."""

MAX_TEXT_CHARS: Final = 20_000
"""How many characters the whole reason of an error has that describes no call; the others are counted."""


NOTE_CHARS: Final = 40
"""How many characters the note at the end of a cut text may have."""


def bounded(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return a text, cut where it is too long, with how many characters were left out.

    A text that was cut, or is longer by less than that note, is returned as it is.

    >>> bounded("abcdef" * 10, 4)
    'abcd… (56 more characters)'
    """
    if len(text) <= most + NOTE_CHARS:
        return text
    return f"{text[:most]}… ({len(text) - most} more characters)"


class Unset(Enum):
    """The type of `UNSET`, so that a type checker can tell it from every other value."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""No value was given; None is a value."""


class NeuroScriptError(Exception):
    """The root of every error that this project raises."""


class SpecError(NeuroScriptError, ValueError):
    """A spec, a policy or a tool that can not exist; raised when it is made, never when it is called.

    Its text lists at most `LISTED` problems, and says how many more there are.

    Attributes:
        subject: What was being made, for example ``math.add``, or the name of the file that says so.
        problems: The first `MAX_PROBLEMS` faults, one sentence each; one of more than `MAX_PROBLEM_CHARS` characters is
            cut, and says how many it had more.
        lines: Of a file, the line of each problem; else none.
        total: How many faults there are in all.
    """

    def __init__(self, subject: str, problems: Sequence[str], lines: Sequence[int] = (), found: int = 0) -> None:
        """Take the problems.

        Args:
            found: How many there are in all, where that is more than *problems* says.
        """
        _check(SpecError, subject=subject)
        _check_items(SpecError, str, problems=problems)
        _check_items(SpecError, int, lines=lines)
        if type(found) is not int:
            raise _wrong(SpecError, "found", "a whole number", found)
        self.subject = bounded(subject, MAX_PROBLEM_CHARS)
        self.problems = tuple(bounded(each, MAX_PROBLEM_CHARS) for each in problems[:MAX_PROBLEMS])
        self.lines = tuple(lines[:MAX_PROBLEMS])
        self.total = max(found, len(problems))
        super().__init__(self.subject, self.problems, self.lines, self.total)

    @property
    def unlisted(self) -> int:
        """How many problems there are beyond `problems`."""
        return self.total - len(self.problems)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each problem as a sentence of its own, with the subject, and with its line where there is one.

        One more sentence says how many problems are not listed.
        """
        more = (f"{self.subject}: and {self.unlisted} more",) if self.unlisted else ()
        return (*self._sentences(), *more)

    def _sentences(self) -> tuple[str, ...]:
        places = [f"{self.subject}:{line}" for line in self.lines] or [self.subject] * len(self.problems)
        return tuple(f"{place}: {problem}" for place, problem in zip(places, self.problems, strict=True))

    def __str__(self) -> str:
        texts = [*(self._sentences() if self.lines else self.problems)[:LISTED]]
        if self.total > len(texts):
            texts.append(f"and {self.total - len(texts)} more")
        text = "; ".join(texts)
        return text if self.lines else f"{self.subject}: {text}"


class RegistryError(NeuroScriptError):
    """Two tools claim one name; nothing of the second toolset was registered."""

    def __init__(self, text: str = "") -> None:
        _check(RegistryError, text=text)
        super().__init__(bounded(text))


class PluginError(NeuroScriptError):
    """An installed distribution, or a plugin, that can not be used; or several of them, with all that is wrong.

    Attributes:
        distribution: Its name and version, for example ``acme-tools 1.2``.
        reason: Why, in one sentence.
        code: A stable dotted word for it, for example ``plugin.import``.
        errors: Of several, the error of each; else none. A *reason* of more than `MAX_TEXT_CHARS` characters is cut.
    """

    def __init__(
        self, distribution: str, reason: str, *, code: str = "plugin.broken", errors: Sequence[PluginError] = ()
    ) -> None:
        _check(PluginError, distribution=distribution, reason=reason, code=code)
        _check_items(PluginError, PluginError, errors=errors)
        self.distribution = bounded(distribution, MAX_PROBLEM_CHARS)
        self.reason = bounded(reason)
        super().__init__(self.distribution, self.reason)
        self.code = code
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return f"{self.distribution}: {self.reason}"


class AuditError(NeuroScriptError):
    """A trail of calls can not be written, gone on with or read; what the system says of files stays an OSError."""

    def __init__(self, text: str = "") -> None:
        _check(AuditError, text=text)
        super().__init__(bounded(text))


class LentError(NeuroScriptError):
    """Something that the host lends through the Runtime could not be used; a tool may catch it.

    Attributes:
        text: What happened, for whoever called the tool.
        code: A stable dotted word for it, for example ``sandbox.escape``.
        retry: Who can make the call succeed.
    """

    CODE: ClassVar[str] = "lent.failed"
    RETRY: ClassVar[Retry] = "host"

    def __init__(self, text: str, *, code: str = "", retry: Retry | None = None) -> None:
        _check(type(self), retry, text=text, code=code)
        super().__init__(text)
        self.text = text
        self.code = code or self.CODE
        self.retry: Retry = retry or self.RETRY

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.__dict__)


class SandboxError(LentError):
    """A path would leave the sandbox, or does not name what the operation needs, or the sandbox is unusable."""

    CODE = "sandbox.io"


class PromptError(LentError):
    """Nobody is there to answer."""

    CODE = "prompt.unavailable"


class LLMError(LentError):
    """No model is lent, or it gave no answer."""

    CODE = "llm.none"


class CallError(NeuroScriptError):
    """One call did not give its result.

    Attributes:
        text: What happened, without the name of the tool.
        tool: The canonical name of the tool, or ``""`` where no tool is meant.
        items: How many items a stream had given when this ended it; None where it ended no stream.
        is_logged: Whether the traceback of the failure was logged for the host.
        remedy: What the host can change so that the call succeeds, or ``""``. It is for people: it may hold a host name
            or a path of the call, and is part of no text that a model sees.
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
        """A stable dotted word for what went wrong."""
        return self._code

    @property
    def number(self) -> int:
        """Upstream's number for this kind of error."""
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
    """No tool of that name may be called here.

    Attributes:
        near: At most three names that are spelt alike.
    """

    CODE = "tool.not_found"
    NUMBER = 3
    RETRY = "model"

    def __init__(self, name: str, near: Sequence[str] = ()) -> None:
        _check(ToolNotFound, name=name)
        _check_items(ToolNotFound, str, near=near)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"no tool is called {name}{hint}")
        self.near = tuple(near)


class Problem(NamedTuple):
    """One thing that is wrong with the arguments of a call.

    Attributes:
        where: The argument and the place in it, as in Python: ``tags[1]``, ``headers['x']``.
        code: A stable dotted word, for example ``arg.missing``.
        expected: What would have fitted.
        got: The type or the number of what was given, never the value.
        hint: How to mend it, or ``""``.
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
    """The arguments do not fit the spec. Its text lists at most `LISTED` problems, and says how many more there are."""

    CODE = "arg.invalid"
    NUMBER = 4
    RETRY = "model"

    text = ""

    def __init__(
        self, problems: Sequence[Problem] | Callable[[], Sequence[Problem]], tool: str = "", found: int = 0
    ) -> None:
        """Take the problems, or what gives them when they are first looked at; many callers never look.

        Args:
            found: How many there are in all, where that is more than *problems* says.
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
        """How many problems there are in all."""
        return max(len(self.problems), self._found)

    @property
    def unlisted(self) -> int:
        """How many problems there are beyond `problems`."""
        return self.total - len(self.problems)

    @property
    def code(self) -> str:
        """The code that all problems share, else ``arg.invalid``."""
        codes = {problem.code for problem in self.problems}
        return codes.pop() if len(codes) == 1 and not self.unlisted else self.CODE

    @property
    def retry(self) -> Retry:
        """Who can make the call succeed: the model, by other arguments."""
        return self.RETRY

    def __str__(self) -> str:
        texts = [str(problem) for problem in self.problems[:LISTED]]
        if self.total > len(texts):
            texts.append(f"and {self.total - len(texts)} more")
        text = "; ".join(texts)
        return f"{self.tool}: {text}" if self.tool else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {**self.__dict__, "_problems": self.problems})


class CoercionError(ArgumentError):
    """One value does not fit one type; what `coerce` raises."""


class PolicyError(CallError):
    """The host does not permit this call.

    Attributes:
        need: What the tool needs and was not permitted, for example ``fs:read``, or ``""``.
        rule: What decided, for example ``trust``.
        needs: Of a refusal for lack of grants, everything that is missing, with scopes; for the host, as `remedy`.
        grants: The narrowest grants that cover these needs, or none where a scope is too long to be shown or secret.
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
    """A limit of the host is used up."""

    CODE = "limit.reached"
    NUMBER = 37
    RETRY = "host"


class CallTimeout(CallError):
    """The tool did not end in time.

    Attributes:
        state: ``"stopped"`` when the tool has ended, ``"abandoned"`` when it may run on and nobody listens any more.
        seconds: After how many seconds nobody waited any more, or None where that is not told.
    """

    CODE = "call.timeout"
    NUMBER = 32
    RETRY = "later"

    def __init__(
        self,
        text: str,
        *,
        tool: str = "",
        state: Literal["stopped", "abandoned"],
        seconds: float | None = None,
        has_ended: Callable[[], bool] | None = None,
    ) -> None:
        """Take what tells whether a tool that was left behind has ended since, where that can be known."""
        if state not in ("stopped", "abandoned"):
            raise _wrong(CallTimeout, "state", "'stopped' or 'abandoned'", state)
        if seconds is not None and type(seconds) not in (int, float):
            raise _wrong(CallTimeout, "seconds", "a number or None", seconds)
        if has_ended is not None and not callable(has_ended):
            raise _wrong(CallTimeout, "has_ended", "a function or None", has_ended)
        super().__init__(text, tool=tool)
        self.state: Literal["stopped", "abandoned"] = state
        self.seconds = seconds
        self._has_ended = has_ended

    @property
    def still_runs(self) -> bool:
        """Whether the tool may still run; of one that was left behind in another process, True."""
        if self.state == "stopped":
            return False
        return self._has_ended is None or not self._has_ended()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), {**self.__dict__, "_has_ended": None})


class ToolFailed(CallError):
    """The tool raised something; ``__cause__`` holds it, and its text is not shown.

    A tool may raise ``ToolFailed(text, retry=…)`` itself: that text is meant for the caller and is shown.
    """

    CODE = "tool.failed"
    NUMBER = 21


class ReturnError(CallError):
    """The tool returned what its spec does not promise."""

    CODE = "return.type"
    NUMBER = 6


def _check(kind: type, retry: object = None, **texts: object) -> None:
    """Refuse parts of an error that have the wrong type, before they fail where the error is handled."""
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
    """Tell whether an error is an interrupt of the main thread, which ends whatever stands around."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    from threading import current_thread, main_thread

    return current_thread() is main_thread()
