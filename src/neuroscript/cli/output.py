"""What the command writes: results to one stream, sentences to the other, and both made safe to look at.

Either stream may be closed, may lead to a reader that has gone, or may not know every character.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Final, TextIO

from neuroscript.cli.exits import UsageError
from neuroscript.display import escaped
from neuroscript.errors import CallError, NeuroScriptError
from neuroscript.jsontext import json_text
from neuroscript.prompting import is_terminal

KEPT: Final = frozenset("\n\t")
"""Characters of a text result that a terminal may see although they are not printable."""

TRACEBACK: Final = "NEUROSCRIPT_TRACEBACK"
"""The environment variable that has every command show tracebacks, as ``--traceback`` does."""


class OutputClosed(Exception):
    """Nobody reads the results any more, and some are lost."""


class OutputError(Exception):
    """The results can not be written; its text says why."""


EXPECTED: Final = (NeuroScriptError, UsageError, OutputError, KeyboardInterrupt)
"""What ends a command without being a fault of anybody's code."""


class Output:
    """The two streams of a command.

    Args:
        results: Where results go; None where the process was started without.
        sentences: Where errors and warnings go.

    Attributes:
        refusals: The refusals of calls, as far as the log of the command has received them, at most `MAX_REFUSALS`.
    """

    def __init__(self, results: TextIO | None, sentences: TextIO | None) -> None:
        self.results = results
        self.is_server = False
        self.refusals: list[CallError] = []
        self.shows_tracebacks = os.environ.get(TRACEBACK, "") not in ("", "0")
        self._sentences = sentences
        for stream in (results, sentences):
            if isinstance(stream, io.TextIOWrapper):
                with suppress(OSError, ValueError):
                    stream.reconfigure(errors="backslashreplace")

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at the results."""
        try:
            return self.results is not None and self.results.isatty()
        except ValueError:  # it has been closed
            return False

    @property
    def is_attended(self) -> bool:
        """Whether the command stands at a terminal: one of the three streams of its process is one."""
        return any(map(is_terminal, (sys.stdin, self.results, self._sentences)))

    def write(self, text: str) -> None:
        """Write *text* as it is, at once.

        Raises:
            OutputClosed: Nobody reads it any more.
            OutputError: It can not be written for another reason.
        """
        if self.results is None:
            raise OutputClosed
        try:
            self.results.write(text)
            self.results.flush()
        except OSError as error:
            lost = isinstance(error, BrokenPipeError) or error.errno == errno.EBADF
            raise OutputClosed if lost else OutputError(reason_of(error)) from None
        except ValueError:
            if not self.results.closed:
                raise
            raise OutputClosed from None

    def text(self, text: str) -> None:
        """Write a text result: as it is, or with its control characters escaped where a person looks at it."""
        self.write(f"{visible(text) if self.is_terminal else text}\n")

    def json(self, data: Any) -> None:
        """Write plain data as one line of JSON, in which every character that is not printable is an escape."""
        self.write(f"{json_text(data, ascii_only=not self._knows_unicode)}\n")

    def say(self, sentence: str) -> None:
        """Write one line about the command itself; where nobody can read it, nothing happens."""
        if self._sentences is not None:
            with suppress(OSError, ValueError):
                self._sentences.write(f"neuroscript: {escaped(sentence)}\n")

    def serve(self) -> None:
        """Show what a server would otherwise hide from the person who runs it: tracebacks and refusals."""
        self.is_server = self.shows_tracebacks = True

    def say_lines(self, text: str) -> None:
        """Write lines about the command itself, such as a traceback."""
        if self._sentences is not None:
            with suppress(OSError, ValueError):
                self._sentences.write(f"{visible(text)}\n")

    def say_traceback(self, error: BaseException) -> None:
        """Write the traceback of a failure, if tracebacks were asked for; of one of our errors, that of its cause."""
        cause = error.__cause__ if isinstance(error, NeuroScriptError) else error
        if self.shows_tracebacks and cause is not None and not isinstance(cause, EXPECTED):
            from neuroscript.tracebacks import traceback_text

            self.say_lines(traceback_text(cause))

    def settle(self) -> None:
        """Write out what tools left unwritten, or close what can not be written to: the interpreter would complain."""
        for stream in (self.results, self._sentences):
            if stream is not None:
                _settle(stream)

    @contextmanager
    def tools_aside(self, wanted: bool = True) -> Iterator[None]:
        """Lead what tools print to the sentences, where it would stand between results that a program reads."""
        if not wanted and self.results is not None:
            yield
            return
        with redirect_stdout(self._sentences or io.StringIO()):
            yield

    @property
    def _knows_unicode(self) -> bool:
        encoding = getattr(self.results, "encoding", None) or "utf-8"
        return codecs.lookup(encoding).name.startswith("utf")


def _settle(stream: TextIO) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            stream.close()


def reason_of(error: OSError | ValueError) -> str:
    """Return why the system refused something, without the paths that such errors hold."""
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or type(error).__name__).lower()


def visible(text: str) -> str:
    """Return *text* with every character that is not printable as an escape, but with its lines and tabs.

    >>> visible("a\\tb\\x1b[2J\\n")
    'a\\tb\\\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return text.translate({ord(each): escaped(each) for each in set(text) - KEPT if not each.isprintable()})
