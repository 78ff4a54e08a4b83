"""Exceptions between the host and a worker.

What the host raises crosses whole, so that a tool can catch it. What a worker raises is not trusted: it becomes one of
a few known types, or an exception of the host's own that has the same name.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from neuroscript import errors
from neuroscript.errors import (
    MAX_PROBLEM_CHARS,
    MAX_PROBLEMS,
    RETRIES,
    ArgumentError,
    HostError,
    LimitError,
    NeuroScriptError,
    PolicyError,
    Problem,
    ToolFailed,
    shorten_text,
)
from neuroscript.io.text import type_name
from neuroscript.io.tracebacks import REMOTE, traceback_text
from neuroscript.isolation.frames import ProtocolError, UnsendableValue, encode

KINDS: Final[Mapping[str, type[NeuroScriptError]]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, NeuroScriptError)
}
"""The exceptions of this project, by name."""

MAX_REPORT_CHARS: Final = 100_000
"""Maximum length of the text and of the traceback of an exception that a worker reports; the rest is left out."""

MAX_WORD_CHARS: Final = 1_000
"""Maximum length of a code, of the name of a tool and of a need that a worker reports."""

MAX_CAUSES: Final = 10
"""Maximum number of exceptions in a report: one, its cause, the cause of that, and so on."""


MAX_REPORTED_PROBLEMS: Final = 10 * MAX_PROBLEMS
"""Maximum number of problems with arguments in a report."""

MAX_RAISED: Final = 20
"""How many of the exceptions that the host has raised in a worker are remembered until the call ends."""


class WorkerException(Exception):
    """An exception that a tool raised in a worker. Its class has the name of the original class."""


# From the host to a worker


def described(error: BaseException) -> tuple[str, dict[str, Any]]:
    """Return the name of an exception's type and what a worker needs to raise it."""
    if not isinstance(error, NeuroScriptError):
        return type(error).__name__, {"args": [str(error)]}
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in KINDS)
    state: dict[str, Any] = {"args": [str(error)]}
    for name, value in error.__dict__.items():
        if name == "remedy":  # it is meant for the host alone
            continue
        try:
            encode(value, [])
        except UnsendableValue:
            continue
        state[name] = value
    if isinstance(error, ArgumentError):
        state["_problems"] = [tuple(each) for each in error.problems]
    return kind, state


def rebuilt(kind: str, state: dict[str, Any]) -> BaseException:
    """Return the exception for what `described` returned."""
    texts = state.pop("args")
    known = KINDS.get(kind)
    if known is None:
        found = getattr(builtins, kind, None)
        is_usual = isinstance(found, type) and issubclass(found, Exception)
        made: Any = found if is_usual else type(kind, (Exception,), {})
        try:
            usual: BaseException = made(*texts)
        except TypeError:  # such as UnicodeDecodeError, which has five arguments
            usual = Exception(*texts)
        return usual
    error = known.__new__(known)
    error.args = tuple(texts)
    if issubclass(known, ArgumentError):
        state["_problems"] = tuple(Problem(*each) for each in state["_problems"])
    error.__dict__.update(state)
    return error


# From a worker to the host


def reported(error: BaseException, depth: int = 1) -> dict[str, Any]:
    """Return what a worker tells the host about an exception. The code of the exception itself may fail."""
    text = shorten_text(_guarded(str, error), MAX_REPORT_CHARS)
    found: dict[str, Any] = {"kind": type_name(error), "text": text, "traceback": _traceback(error)}
    for kind in (ToolFailed, PolicyError, LimitError, HostError):
        if issubclass(type(error), kind):
            with suppress(Exception):
                found |= _details(error, kind, depth)
    return found


def _details(error: Any, kind: type[BaseException], depth: int) -> dict[str, Any]:
    text = shorten_text(error.text, MAX_REPORT_CHARS)
    found = {"kind": kind.__name__, "text": text, "code": error.code, "retry": error.retry}
    found |= {"tool": error.tool} if kind is not HostError else {}
    found |= {"need": error.need, "rule": error.rule} if kind is PolicyError else {}
    cause = error.__cause__
    found["cause"] = None if cause is None or depth == MAX_CAUSES else reported(cause, depth + 1)
    return found


def _traceback(error: BaseException) -> str:
    return shorten_text(_guarded(traceback_text, error) or type_name(error), MAX_REPORT_CHARS)


def _guarded(func: Callable[[BaseException], str], error: BaseException) -> str:
    try:
        return str.__str__(func(error))
    except BaseException:
        return ""


def received(data: Any, depth: int = 1) -> BaseException:
    """Return the exception for what a worker has reported.

    Raises:
        ProtocolError: It is not a report.
    """
    if type(data) is not dict or not all(type(data.get(key)) is str for key in ("kind", "text", "traceback")):
        raise ProtocolError("it reported an exception in an unknown form")
    kind, text, trace = data["kind"], *(shorten_text(data[key], MAX_REPORT_CHARS) for key in ("text", "traceback"))
    if kind in OWN:
        error = _own(kind, text, data)
        if data.get("cause") is not None:
            if depth == MAX_CAUSES:
                raise ProtocolError("it reported too many exceptions at once")
            error.__cause__ = received(data["cause"], depth + 1)
        return error
    return _foreign(kind, text, trace)


OWN: Final = ("ToolFailed", "PolicyError", "LimitError", "HostError")


def _own(kind: str, text: str, data: Mapping[str, Any]) -> BaseException:
    code, tool, need, rule = (data.get(key, "") for key in ("code", "tool", "need", "rule"))
    retry: Any = data.get("retry")
    if not all(type(each) is str and len(each) <= MAX_WORD_CHARS for each in (code, tool, need, rule)):
        raise ProtocolError("it reported an error in an unknown form")
    if retry not in RETRIES:
        raise ProtocolError("it reported an error in an unknown form")
    if kind == "HostError":
        return HostError(text, code=code, retry=retry)
    if kind == "PolicyError":
        return PolicyError(text, tool=tool, code=code, need=need, rule=rule, retry=retry)
    made = ToolFailed if kind == "ToolFailed" else LimitError
    return made(text, tool=tool, code=code, retry=retry)


def _foreign(kind: str, text: str, trace: str) -> BaseException:
    name = kind if kind.isidentifier() and len(kind) <= 100 else "Exception"
    error: BaseException = type(name, (WorkerException,), {"__module__": "builtins"})(text)
    setattr(error, REMOTE, trace)
    return error


def problems_from(data: Any) -> Sequence[Problem]:
    """Return the problems with arguments that a worker has reported, or raise `ProtocolError`."""
    if type(data) is not list or not 0 < len(data) <= MAX_REPORTED_PROBLEMS:
        raise ProtocolError("it reported problems in an unknown form")
    try:
        found = [Problem(*each) for each in data]
    except TypeError:
        raise ProtocolError("it reported problems in an unknown form") from None
    if not all(type(part) is str for each in found for part in each):
        raise ProtocolError("it reported problems in an unknown form")
    return [Problem(*(shorten_text(part, MAX_PROBLEM_CHARS) for part in each)) for each in found]
