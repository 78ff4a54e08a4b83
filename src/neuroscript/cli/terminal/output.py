"""What the command writes: results to one stream, sentences to the other, and both made safe to look at.

Either stream may be closed, may lead to a reader that has gone, or may not know every character.

What a person is shown, as blocks that know no terminal; laid out as plain text here, with colours in `styled`.

Every text in a block has been made safe to look at by whoever put it there with `cell`.
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
from neuroscript.io.text import escaped, is_terminal, json_text

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
            from neuroscript.io.tracebacks import traceback_text

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


Style = Literal["", "name", "dim", "good", "mended", "bad", "title"]


WIDEST: Final = 100
"""How many columns a page is wide at most; tables that are not wrapped may be wider."""


GAP: Final = 2
"""Columns between two cells."""


WIDEST_COLUMN: Final = 48
"""How wide a column of a table is at most where a program reads it; a longer cell pushes its own row alone."""


NARROWEST: Final = 16
"""How narrow a column may become that gives way to others."""


class Cell(NamedTuple):
    """A text in one style, which a layout without colours ignores."""

    text: str
    style: Style = ""


class Rows(NamedTuple):
    """Cells below each other; the last of a row is wrapped to what is left of the page.

    Attributes:
        rows: All of one length.
        indent: Columns to the left of all of them.
        widths: The least width of each column but the last, where columns of several blocks are to stand in line.
        wrapped: Whether it is prose: never wider than `WIDEST`, and wrapped where a program reads it, too.
    """

    rows: tuple[tuple[Cell, ...], ...]
    indent: int = 0
    widths: tuple[int, ...] = ()
    wrapped: bool = True

    def fitted(self, width: int) -> int:
        """Return how many of *width* columns the block takes: a page of prose is not read well where it is wide."""
        return min(width, WIDEST) if self.wrapped else width

    def columns(self, room: int) -> tuple[int, ...]:
        """Return the width of each column but the last; the widest gives way where the last would have no place.

        Args:
            room: Columns of the page.
        """
        lengths = [[len(cell.text) for cell in row[:-1]] for row in self.rows]
        columns = [max(each) for each in zip(*lengths, self.widths or [0] * len(lengths[0]), strict=True)]
        last = max(len(row[-1].text) for row in self.rows)
        over = self.indent + sum(columns) + GAP * len(columns) + min(last, room // 3) - room
        if columns and over > 0:
            widest = columns.index(max(columns))
            columns[widest] = max(NARROWEST, columns[widest] - over)
        return tuple(columns)


def cell(text: str, style: Style = "") -> Cell:
    """Return a text from outside as a cell: control characters escaped, but lines kept, and tabs as blanks."""
    return Cell(visible(text).expandtabs(4), style)


def line(text: str, style: Style = "", *, indent: int = 0) -> Rows:
    """Return a block of one text from outside."""
    return Rows(((cell(text, style),),), indent=indent)


EMPTY: Final = Rows(((Cell(""),),))
"""A line that holds nothing apart."""


def aligned(block: Rows) -> Iterator[str]:
    """Yield each row of a table as one line of plain text, however long it is.

    >>> list(aligned(Rows(((Cell("a"), Cell("one")), (Cell("bcd"), Cell("two"))))))
    ['a    one', 'bcd  two']
    """
    lengths = [[min(len(each.text), WIDEST_COLUMN) for each in row[:-1]] for row in block.rows]
    widths = [*map(max, zip(*lengths, strict=True)), 0]
    for row in block.rows:
        cells = (" ".join(each.text.split("\n")) for each in row)
        text = "".join(f"{cell:<{width}}{' ' * GAP}" for cell, width in zip(cells, widths, strict=True))
        yield f"{' ' * block.indent}{text}".rstrip()


def laid_out(block: Rows, width: int) -> Iterator[str]:
    """Yield the lines of one block as plain text, each at most *width* columns wide unless a word is longer.

    >>> list(laid_out(Rows(((Cell("a"), Cell("one two")),), indent=1), 8))
    [' a  one', '    two']
    """
    columns = block.columns(width)
    left = block.indent + sum(columns) + GAP * len(columns)
    widths = [*columns, max(1, width - left)]
    for row in block.rows:
        cells = [_wrapped(each.text, room) for each, room in zip(row, widths, strict=True)]
        for index in range(max(map(len, cells))):
            parts = (lines[index] if index < len(lines) else "" for lines in cells)
            text = "".join(f"{part:<{room + GAP}}" for part, room in zip(parts, columns + (0,), strict=True))
            yield f"{' ' * block.indent}{text}".rstrip()


def _wrapped(text: str, room: int) -> list[str]:
    if len(text) <= room and "\n" not in text:  # as nearly all are
        return [text.rstrip()]
    from textwrap import wrap

    return [part for line in text.split("\n") for part in wrap(line, room, expand_tabs=False) or [""]]
