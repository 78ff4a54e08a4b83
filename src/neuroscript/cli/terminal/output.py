"""Output of the command: results on stdout, messages on stderr, and blocks of rows laid out as plain text.

Either stream may be closed, lose its reader, or use an encoding without some characters. Control characters are escaped
before they reach a terminal: `cell` escapes the strings of a block, and `rich_pages.styled` adds colours.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Final, Literal, NamedTuple, TextIO

from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.errors import CallError, NeuroScriptError
from neuroscript.io.text import escape, is_terminal, json_text

ALLOWED_CONTROLS: Final = frozenset("\n\t")
"""Characters of a string result that are not printable but are written to a terminal unchanged."""


TRACEBACK: Final = "NEUROSCRIPT_TRACEBACK"
"""The environment variable that enables tracebacks for every command, as ``--traceback`` does."""


class OutputClosed(Exception):
    """The reader of the results has gone, and some results are lost."""


class OutputError(Exception):
    """The results cannot be written; the message says why."""


EXPECTED: Final = (NeuroScriptError, UsageError, OutputError, KeyboardInterrupt)
"""Exceptions that end a command without indicating a bug, so they need no traceback."""


class Output:
    """The two output streams of a command.

    Args:
        results: The stream for results; None if the process was started without stdout.
        sentences: The stream for errors and warnings; None if the process was started without stderr.

    Attributes:
        refusals: The refused calls that the logger has received, at most `MAX_REFUSALS`.
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
        """Whether results go to a terminal."""
        try:
            return self.results is not None and self.results.isatty()
        except ValueError:  # it has been closed
            return False

    @property
    def is_attended(self) -> bool:
        """Whether a standard stream of the process is a terminal."""
        return any(map(is_terminal, (sys.stdin, self.results, self._sentences)))

    def write(self, text: str) -> None:
        """Write *text* unchanged to the results, and flush.

        Raises:
            OutputClosed: The reader has gone.
            OutputError: It cannot be written for another reason.
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
        """Write a string result, with its control characters escaped if results go to a terminal."""
        self.write(f"{visible(text) if self.is_terminal else text}\n")

    def json(self, data: Any) -> None:
        """Write plain data as one line of JSON, with every non-printable character escaped."""
        self.write(f"{json_text(data, ascii_only=not self._knows_unicode)}\n")

    def say(self, sentence: str) -> None:
        """Write one message to stderr; do nothing if stderr is closed."""
        if self._sentences is not None:
            with suppress(OSError, ValueError):
                self._sentences.write(f"neuroscript: {escape(sentence)}\n")

    def say_help(self, code: object) -> None:
        """Write to a terminal how to get help about an error with this code.

        Do nothing for a code without help, and for a call that the user just rejected.
        """
        if isinstance(code, str) and code != "policy.rejected" and is_terminal(self._sentences):
            from neuroscript.cli.error_help import explained_code

            if explained_code(code):
                self.say(f"for help: neuroscript help {code}")

    def serve(self) -> None:
        """Enable tracebacks and refusals on stderr, because the operator of a server cannot see its results."""
        self.is_server = self.shows_tracebacks = True

    def say_lines(self, text: str) -> None:
        """Write several lines to stderr, such as a traceback."""
        if self._sentences is not None:
            with suppress(OSError, ValueError):
                self._sentences.write(f"{visible(text)}\n")

    def say_traceback(self, error: BaseException) -> None:
        """Write the traceback of a failure if tracebacks are enabled; for a `NeuroScriptError`, that of its cause."""
        cause = error.__cause__ if isinstance(error, NeuroScriptError) else error
        if self.shows_tracebacks and cause is not None and not isinstance(cause, EXPECTED):
            from neuroscript.io.tracebacks import traceback_text

            self.say_lines(traceback_text(cause))

    def settle(self) -> None:
        """Flush both streams, and close a stream that fails, so that the interpreter reports nothing at exit."""
        for stream in (self.results, self._sentences):
            if stream is not None:
                _settle(stream)

    @contextmanager
    def tools_aside(self, wanted: bool = True) -> Iterator[None]:
        """Redirect what tools print to stderr, so that it does not mix with machine-readable results."""
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
    """Return the reason of a system error, without the paths that its message contains."""
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or type(error).__name__).lower()


def visible(text: str) -> str:
    """Return *text* with every non-printable character escaped, except newlines and tabs.

    >>> visible("a\\tb\\x1b[2J\\n")
    'a\\tb\\\\x1b[2J\\n'
    """
    if text.isprintable():
        return text
    return text.translate({ord(each): escape(each) for each in set(text) - ALLOWED_CONTROLS if not each.isprintable()})


Style = Literal["", "name", "dim", "good", "mended", "bad", "title"]


MAX_PAGE_COLUMNS: Final = 100
"""Maximum width of a page in columns; tables that are not wrapped may be wider."""


GAP_COLUMNS: Final = 2
"""Columns between two cells."""


MAX_COLUMN_CELLS: Final = 48
"""Maximum width of a table column when a program reads it; a longer cell shifts only its own row."""


MIN_COLUMN_CELLS: Final = 16
"""Minimum width of a column that is shortened in favour of others."""


class Cell(NamedTuple):
    """A string in one style; plain text ignores the style."""

    text: str
    style: Style = ""


class Rows(NamedTuple):
    """Rows of cells; the last cell of a row is wrapped to the remaining width of the page.

    Attributes:
        rows: The rows, all of the same length.
        indent: Columns to the left of every row.
        widths: The minimum width of each column but the last, to align the columns of several blocks.
        wrapped: Whether it is prose, which is never wider than `MAX_PAGE_COLUMNS` and is wrapped for programs too.
    """

    rows: tuple[tuple[Cell, ...], ...]
    indent: int = 0
    widths: tuple[int, ...] = ()
    wrapped: bool = True

    @property
    def is_command(self) -> bool:
        """Whether it is only commands, which stay on one line each, so that they can be copied."""
        return not self.wrapped and len(self.rows[0]) == 1

    def fitted(self, width: int) -> int:
        """Return how many of *width* columns the block uses; wide prose is hard to read."""
        return min(width, MAX_PAGE_COLUMNS) if self.wrapped else width

    def columns(self, width: int) -> tuple[int, ...]:
        """Return the width of each column but the last, shortening the widest if the last would not fit.

        Args:
            width: The width of the page in columns.
        """
        lengths = [[len(cell.text) for cell in row[:-1]] for row in self.rows]
        columns = [max(each) for each in zip(*lengths, self.widths or [0] * len(lengths[0]), strict=True)]
        last = max(len(row[-1].text) for row in self.rows)
        over = self.indent + sum(columns) + GAP_COLUMNS * len(columns) + min(last, width // 3) - width
        if columns and over > 0:
            widest = columns.index(max(columns))
            columns[widest] = max(MIN_COLUMN_CELLS, columns[widest] - over)
        return tuple(columns)


def cell(text: str, style: Style = "") -> Cell:
    """Return an untrusted string as a cell: control characters escaped, newlines unchanged, tabs as spaces."""
    return Cell(visible(text).expandtabs(4), style)


def line(text: str, style: Style = "", *, indent: int = 0) -> Rows:
    """Return a block with one untrusted string."""
    return Rows(((cell(text, style),),), indent=indent)


EMPTY: Final = Rows(((Cell(""),),))
"""An empty line between two blocks."""


def align_rows(block: Rows) -> Iterator[str]:
    """Yield each row of a table as one line of plain text of any length.

    >>> list(align_rows(Rows(((Cell("a"), Cell("one")), (Cell("bcd"), Cell("two"))))))
    ['a    one', 'bcd  two']
    """
    lengths = [[min(len(each.text), MAX_COLUMN_CELLS) for each in row[:-1]] for row in block.rows]
    widths = [*map(max, zip(*lengths, strict=True)), 0]
    for row in block.rows:
        cells = (" ".join(each.text.split("\n")) for each in row)
        text = "".join(f"{cell:<{width}}{' ' * GAP_COLUMNS}" for cell, width in zip(cells, widths, strict=True))
        yield f"{' ' * block.indent}{text}".rstrip()


def wrap_rows(block: Rows, width: int) -> Iterator[str]:
    """Yield the lines of one block as plain text, each at most *width* columns wide unless a word is longer.

    >>> list(wrap_rows(Rows(((Cell("a"), Cell("one two")),), indent=1), 8))
    [' a  one', '    two']
    """
    columns = block.columns(width)
    left = block.indent + sum(columns) + GAP_COLUMNS * len(columns)
    widths = [*columns, max(1, width - left)]
    for row in block.rows:
        cells = [_wrapped(each.text, size) for each, size in zip(row, widths, strict=True)]
        for index in range(max(map(len, cells))):
            parts = (lines[index] if index < len(lines) else "" for lines in cells)
            text = "".join(f"{part:<{size + GAP_COLUMNS}}" for part, size in zip(parts, columns + (0,), strict=True))
            yield f"{' ' * block.indent}{text}".rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width and "\n" not in text:  # nearly always
        return [text.rstrip()]
    from textwrap import wrap

    return [part for line in text.split("\n") for part in wrap(line, width, expand_tabs=False) or [""]]
