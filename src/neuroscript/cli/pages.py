"""What a person is shown, as blocks that know no terminal; laid out as plain text here, with colours in `styled`.

Every text in a block has been made safe to look at by whoever put it there with `cell`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from neuroscript.cli.output import visible

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
