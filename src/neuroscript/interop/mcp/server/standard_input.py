"""The standard input of a server over stdio: reserved for the protocol, and with a maximum length of a line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Final, TextIO

from neuroscript._imports import missing_extra

try:
    import anyio
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
except ImportError as error:
    raise missing_extra("serving over MCP needs its SDK", "mcp", error) from None

MAX_LINE_CHARS: Final = 16 * 1024 * 1024
"""Maximum length of a message, in characters; as long as a message that our client accepts."""

TOO_LONG: Final = f"the client sent a message of more than {MAX_LINE_CHARS} characters; the connection is closed"


class BoundedLines:
    """A text stream that ends with the first line of more than `MAX_LINE_CHARS` characters.

    The server cannot answer such a message, because it does not know its id. A client that waits for the answer learns
    from the end of the connection that none will come.

    Args:
        stream: The stream to read.
        report: Is called with `TOO_LONG` before the stream ends.
    """

    def __init__(self, stream: TextIO, report: Callable[[str], object]) -> None:
        self._stream = stream
        self._report = report

    def readline(self) -> str:
        """Return the next line, or ``""`` at the end."""
        line = self._stream.readline(MAX_LINE_CHARS + 1)
        if len(line) <= MAX_LINE_CHARS:
            return line
        self._report(TOO_LONG)
        return ""


@contextmanager
def protocol_input(report: Callable[[str], object]) -> Iterator[anyio.AsyncFile[str]]:
    """Provide standard input, of which only lines can be read; meanwhile, tools and their programs find it empty.

    Args:
        report: As for `BoundedLines`.
    """
    private = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    _replace_input(nothing)
    os.close(nothing)
    try:
        # The descriptor is not closed, because a thread may still read from it.
        stream = os.fdopen(private, "rb", closefd=False)
        lines: Any = BoundedLines(TextIOWrapper(stream, encoding="utf-8", errors="replace"), report)
        yield anyio.wrap_file(lines)
    finally:
        _replace_input(private)


def _replace_input(descriptor: int) -> None:
    os.dup2(descriptor, 0)
    if sys.platform == "win32":
        rebind_std_handle_to_fd(0)
