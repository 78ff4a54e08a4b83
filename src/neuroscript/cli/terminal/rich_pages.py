"""Coloured pages with rich, which is imported only for terminals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from neuroscript._imports import missing_extra
from neuroscript.cli.terminal.output import GAP_COLUMNS, Cell, Output, Rows, Style

try:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text
except ImportError as error:
    raise missing_extra("coloured pages need rich", "cli", error) from None

STYLES: Final[dict[Style, str]] = {
    "": "",
    "title": "bold",
    "name": "bold cyan",
    "dim": "dim",
    "good": "green",
    "mended": "yellow",
    "bad": "red",
}


def render(blocks: Iterable[Rows], output: Output) -> str:
    """Return blocks as coloured text for the terminal of *output*, unless NO_COLOR is set."""
    console = Console(file=output.results, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        for block in blocks:
            if block.is_command:
                for (each,) in block.rows:
                    console.print(Text(" " * block.indent).append_text(_text(each)), soft_wrap=True)
                continue
            room = block.fitted(console.width)
            console.print(Padding(_table(block, room), (0, 0, 0, block.indent)), width=room)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _table(block: Rows, room: int) -> Table:
    table = Table.grid(padding=(0, GAP_COLUMNS, 0, 0))
    for width in block.columns(room):
        table.add_column(width=width, overflow="fold")
    table.add_column(overflow="fold")
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _text(each: Cell) -> Text:
    return Text(each.text, STYLES[each.style])
