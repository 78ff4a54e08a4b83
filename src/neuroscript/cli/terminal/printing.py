"""Print blocks to stdout: with colours on a terminal if rich is installed, otherwise as plain text."""

from __future__ import annotations

from collections.abc import Iterable

from neuroscript.cli.terminal.output import MAX_PAGE_COLUMNS, Output, Rows, align_rows, wrap_rows


def show(blocks: Iterable[Rows], output: Output) -> None:
    """Write blocks to stdout, with colours on a terminal if rich is installed."""
    if output.is_terminal:
        try:
            from neuroscript.cli.terminal.rich_pages import render
        except ModuleNotFoundError:
            pass
        else:
            output.write(render(blocks, output))
            return
    for block in blocks:
        is_table = block.is_command or not (output.is_terminal or block.wrapped)
        lines = align_rows(block) if is_table else wrap_rows(block, block.fitted(_columns()))
        output.write("".join(f"{each}\n" for each in lines))


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size((MAX_PAGE_COLUMNS, 24)).columns
