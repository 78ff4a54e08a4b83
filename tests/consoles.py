"""Console blocks of documents: lines that begin with ``$`` are commands, and the lines below are their output."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from typing import Final

FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a block with the output below it. A command continues after a backslash."""
    for part in f"\n{block}".split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        while command.endswith("\\"):
            line, _, expected = expected.partition("\n")
            command = f"{command[:-1]}{line.strip()}"
        yield command, expected


def is_output(expected: str, printed: str) -> bool:
    """Return whether a command printed what a document shows, where ``...`` stands for any text."""
    return doctest.OutputChecker().check_output(expected.strip("\n") + "\n", printed.strip("\n") + "\n", FLAGS)
