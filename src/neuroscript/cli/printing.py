"""Pages to the results: with colours where a person looks at them and rich is installed, else as plain text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from neuroscript.cli.output import Output
from neuroscript.cli.pages import WIDEST, Rows, laid_out

ENDLESS: Final = 1_000_000
"""The width of a page that is not wrapped."""


def show(blocks: Iterable[Rows], output: Output) -> None:
    """Write blocks to the results, with colours where a person looks at them and rich is installed."""
    if output.is_terminal:
        try:
            from neuroscript.cli.styled import styled
        except ModuleNotFoundError:
            pass
        else:
            output.write(styled(blocks, output))
            return
    for block in blocks:
        width = _columns() if output.is_terminal or block.wrapped else ENDLESS
        output.write("".join(f"{each}\n" for each in laid_out(block, block.fitted(width))))


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size((WIDEST, 24)).columns
