"""Tracebacks and summaries of errors for the host: the author's frames, no local variables, no secrets."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal

from neuroscript.io.text import escape, one_line, quote_path, type_name

MAX_LINES: Final = 200
"""The maximum number of lines of a traceback; of a longer one the first and last lines are shown."""

FIRST_LINES: Final = 20
"""Number of lines shown from the beginning of a traceback that is too long."""

MAX_LINE_CHARS: Final = 500
"""The maximum number of characters of a line, after secrets are redacted."""

MAX_MESSAGE_CHARS: Final = 200
"""The maximum number of characters of an error's message in a summary."""

PACKAGE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120
COMPILED: Final = "<neuroscript "
"""The prefix of the file names of generated code."""


REMOTE: Final = "__neuroscript_traceback__"
"""The attribute of an exception with its traceback as text, if it was raised in another process."""

LOGGER: Final = "traceback"
"""The child of the host's logger that receives tracebacks."""


def log_failure(
    host: Any, what: str, error: BaseException, redactor: Any = None, level: Literal["error", "debug"] = "error"
) -> None:
    """Log an exception raised by code of a tool or of the host, with its traceback, to the host's logger ``traceback``.

    Args:
        host: The `Host`. A logger that fails does not affect the call.
        what: What failed, for example the name of a tool.
        redactor: Replaces secrets; None if there are none.
    """
    with suppress(Exception):
        logger = host.logger_of(LOGGER)
        is_enabled = getattr(logger, "isEnabledFor", None)
        if is_enabled is None or is_enabled(40 if level == "error" else 10):
            text = _text_of(error, None if redactor is None else redactor.text)
            getattr(logger, level)("%s failed\n%s", what, text)


def _text_of(error: BaseException, redact: Callable[[str], str] | None) -> str:
    """Return the traceback of an error, or only its type if the error's own code makes it unreadable."""
    try:
        return traceback_text(error, redact)
    except Exception:
        return f"{type_name(error)} (its traceback cannot be read)"


def traceback_text(error: BaseException, redact: Callable[[str], str] | None = None) -> str:
    """Return the traceback of *error* and its causes, as Python prints it.

    The frames of this package that lead to the author's code are left out. Tracebacks never include local variables or
    arguments, but exception messages often quote values, so they are for the host and not for a model.

    Args:
        redact: Replaces secrets.
    """
    text = getattr(error, REMOTE, None) or _formatted(error)
    lines = (redact(text) if redact else text).split("\n")
    if len(lines) > MAX_LINES:
        rest = MAX_LINES - FIRST_LINES
        lines[FIRST_LINES:-rest] = [f"  ... {len(lines) - MAX_LINES} lines left out ..."]
    return "\n".join(map(_shown, lines))


def _formatted(error: BaseException) -> str:
    from traceback import TracebackException

    found = TracebackException(type(error), error, error.__traceback__)
    _trim(found)
    return "".join(found.format()).rstrip()


def error_summary(error: BaseException) -> str:
    """Return the type and message of an error in one line, with the file and line where it was raised.

    >>> error_summary(KeyError("x"))
    "KeyError: 'x'"
    """
    try:
        message = one_line(str(error), MAX_MESSAGE_CHARS)
    except Exception:  # the exception's own code may fail too
        message = ""
    summary = f"{type(error).__name__}: {message}" if message else type(error).__name__
    place = "" if isinstance(error, SyntaxError) else _place(error)  # its message already names the place
    return f"{summary} ({place})" if place else summary


def _place(error: BaseException) -> str:
    """Return the file and line of the last frame in the author's code."""
    place, trace = "", error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not _is_machinery(file):
            place = f"{quote_path(os.path.basename(file))}, line {trace.tb_lineno}"  # noqa: PTH119
        trace = trace.tb_next
    return place


def _trim(found: Any) -> None:
    """Remove the frames before the author's code, here and in the causes of the error."""
    pending = [found]
    while pending:
        each = pending.pop()
        first = next((index for index, frame in enumerate(each.stack) if not _is_machinery(frame.filename)), 0)
        del each.stack[:first]
        pending += filter(None, (each.__cause__, each.__context__, *(each.exceptions or ())))


def _is_machinery(file: str) -> bool:
    """Return whether a frame only leads to the author's code: it belongs to this package or to the import system."""
    return file.startswith((PACKAGE, COMPILED, "<frozen importlib")) or file == importlib.__file__


def _shown(line: str) -> str:
    shown = escape(line)
    return shown if len(shown) <= MAX_LINE_CHARS else f"{shown[:MAX_LINE_CHARS]}…"
