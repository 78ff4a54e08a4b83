"""The input lines of a chat: typed at a terminal, with readline if it is available, or piped in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import attrs

from neuroscript.cli.chat.options import clean
from neuroscript.cli.terminal.inputs import MAX_LINE_BYTES, STDIN, lines, open_input
from neuroscript.io.text import is_terminal

PROMPT: Final = "you> "


@attrs.frozen
class InputLine:
    """One line of input.

    Attributes:
        text: The line, or ``""`` if it is invalid.
        fault: Why the line is invalid, or ``""``.
    """

    text: str = ""
    fault: str = ""


def terminal_lines() -> Iterator[InputLine]:
    """Yield lines from the terminal until Ctrl-D; Ctrl-C discards the current line."""
    with suppress(ImportError):
        import readline  # noqa: F401  -- from now on input() edits lines
    while True:
        try:
            yield InputLine(clean(_read_line()))
        except EOFError:
            _to_terminal("\n")
            return


def _read_line() -> str:
    while True:
        try:
            if is_terminal(sys.stdout):
                return input(PROMPT)
            _to_terminal(PROMPT)  # because stdout is redirected
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            _to_terminal("\n")
            continue
        if not line:
            raise EOFError
        return line


def _to_terminal(text: str) -> None:
    with suppress(OSError, ValueError):
        print(text, end="", file=sys.stderr, flush=True)


def piped_lines() -> Iterator[InputLine]:
    """Yield the non-blank lines of standard input.

    Raises:
        UsageError: It cannot be read.
    """
    with open_input(STDIN) as source:
        for line in lines(source):
            if line.data is None:
                yield InputLine(fault=f"line {line.number} has more than {MAX_LINE_BYTES} bytes")
                continue
            try:
                yield InputLine(line.data.decode("utf-8-sig" if line.number == 1 else "utf-8"))
            except UnicodeDecodeError:
                yield InputLine(fault=f"line {line.number} is not UTF-8 text")
