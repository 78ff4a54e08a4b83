"""Prompts on the console: one question, and one line as the answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from stat import S_ISFIFO, S_ISREG, S_ISSOCK
from threading import Lock
from typing import Any, Final, Protocol, TextIO

from neuroscript.coercion.parameters import FLAG, INPUT, OUTPUT, STRING, optional, require
from neuroscript.errors import PromptError
from neuroscript.io.text import escape, is_terminal

MAX_ANSWER_BYTES: Final = 64 * 1024
"""Maximum size of an answer in bytes."""


TERMINAL: Final = Lock()
"""Held while a prompt is shown on a terminal, so that the process shows one prompt at a time."""


ReadLine = Callable[[int], bytes]
"""Reads at most a number of bytes of the next line, including its end; returns nothing at the end of the input."""


class Prompter(Protocol):
    """Prompts a user on behalf of tools."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*, one line; a *secret* answer is not shown while it is typed.

        Raises:
            PromptError: If there is no answer.
        """


class ConsolePrompter:
    """Prompts on a terminal, or reads piped answers line by line. Thread-safe: it shows one prompt at a time.

    It reads exactly one line from the input's file descriptor, so that the next reader finds the rest.

    Args:
        stdin: The stream to read answers from; None means ``sys.stdin`` at the time of the prompt.
        output: The stream to write prompts to; None means ``sys.stderr`` at the time of the prompt.
    """

    def __init__(self, stdin: TextIO | None = None, output: TextIO | None = None) -> None:
        require("ConsolePrompter", stdin=(stdin, optional(INPUT)), output=(output, optional(OUTPUT)))
        self._stdin = stdin
        self._output = output
        self._lock = Lock()

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Write *prompt*, escaped, and return the next line without its newline. Invalid Unicode is replaced.

        Args:
            secret: Whether to turn off the terminal's echo.

        Raises:
            PromptError: ``prompt.noninteractive`` if there is no terminal, pipe, socket or file to read from, or no
                output to write to; ``prompt.eof``; ``prompt.too_long`` for an answer longer than `MAX_ANSWER_BYTES`,
                all of which is consumed.
            KeyboardInterrupt: If the user presses Ctrl-C.
        """
        require("ConsolePrompter", prompt=(prompt, STRING), secret=(secret, FLAG))
        with self._lock:
            stdin = sys.stdin if self._stdin is None else self._stdin
            descriptor = _descriptor(stdin)
            with terminal_lock(stdin), _silent(descriptor) if secret else nullcontext():
                output = sys.stderr if self._output is None else self._output
                write_out(f"{escape(prompt.rstrip())} ", output)
                line = line_of(_reader(stdin, descriptor, secret))
                return line.decode(encoding_of(stdin), "replace").removesuffix("\n").removesuffix("\r")


@contextmanager
def terminal_lock(stream: TextIO | None) -> Iterator[None]:
    """Hold the terminal for one prompt; does nothing for other streams."""
    if not is_terminal(stream):
        yield
        return
    with TERMINAL:
        yield


def read_typed_line(stdin: TextIO) -> bytes:
    """Return the next line typed at a terminal, including its end unless the input ended.

    Raises:
        PromptError: As for `ConsolePrompter.ask`.
        KeyboardInterrupt: If the user presses Ctrl-C.
    """
    return line_of(_reader(stdin, _descriptor(stdin), secret=False))


def _descriptor(stdin: TextIO | None) -> int | None:
    """Return the file descriptor to read answers from, or None for a stream that has to be read directly."""
    if stdin is None or stdin.closed:
        raise noninteractive("there is no terminal, pipe or file to read an answer from")
    try:
        descriptor = stdin.fileno()
    except OSError:
        return None
    if not _can_answer(descriptor):
        raise noninteractive("there is no terminal, pipe or file to read an answer from")
    return None if sys.platform == "win32" else descriptor


def _can_answer(descriptor: int) -> bool:
    """Return whether a descriptor is a terminal, a pipe, a socket or a file, not a device such as ``/dev/null``."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return S_ISFIFO(mode) or S_ISREG(mode) or S_ISSOCK(mode) or os.isatty(descriptor)


def noninteractive(what: str) -> PromptError:
    """Return the error for a prompt that cannot be answered."""
    return PromptError(what, code="prompt.noninteractive")


@contextmanager
def _silent(descriptor: int | None) -> Iterator[None]:
    """Turn off a terminal's echo except for line ends, and restore its settings on exit."""
    if descriptor is None or not os.isatty(descriptor):
        yield
        return
    import atexit
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before]
    silent[3] = before[3] & ~termios.ECHO | termios.ECHONL
    restore = partial(_set_terminal, descriptor, before)
    atexit.register(restore)  # in case a thread is still waiting when the process exits
    try:
        _set_terminal(descriptor, silent)
        yield
    finally:
        restore()
        atexit.unregister(restore)


def _set_terminal(descriptor: int, settings: list[Any]) -> None:
    import termios

    with suppress(termios.error):  # the terminal is gone
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)


def write_out(text: str, output: TextIO | None) -> None:
    """Write a prompt in one piece. The caller must have removed terminal control sequences.

    Raises:
        PromptError: With the code ``prompt.noninteractive``, if it cannot be written.
    """
    if output is None:
        raise noninteractive("there is no output to write the prompt to")
    encoding = encoding_of(output)
    try:
        output.write(text.encode(encoding, "backslashreplace").decode(encoding))
        output.flush()
    except (OSError, ValueError):
        raise noninteractive("there is no output to write the prompt to") from None


def encoding_of(stream: TextIO) -> str:
    """Return the encoding of a stream."""
    return getattr(stream, "encoding", None) or "utf-8"


def _reader(stdin: TextIO, descriptor: int | None, secret: bool) -> ReadLine:
    if descriptor is not None:
        return partial(_bytes_of, descriptor)
    if sys.platform == "win32" and secret and stdin.isatty():
        return _typed_on_windows
    if hasattr(stdin, "buffer"):
        return stdin.buffer.readline
    return lambda size: stdin.readline(size).encode(encoding_of(stdin), "replace")


def _bytes_of(descriptor: int, size: int) -> bytes:
    line = bytearray()
    while len(line) < size and not line.endswith(b"\n"):
        byte = _byte_of(descriptor)
        if not byte:
            break
        line += byte
    return bytes(line)


def _byte_of(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, 1)
        except BlockingIOError:  # another process that shares the descriptor made it non-blocking
            from selectors import EVENT_READ, DefaultSelector

            with DefaultSelector() as selector:
                selector.register(descriptor, EVENT_READ)
                selector.select()


def _typed_on_windows(size: int) -> bytes:
    from getpass import getpass

    return f"{getpass('')}\n".encode()


def line_of(read: ReadLine) -> bytes:
    """Return the next line, or raise a `PromptError` that says why it cannot be read."""
    try:
        line = _whole_line(read)
    except (OSError, ValueError):
        raise noninteractive("there is no terminal, pipe or file to read an answer from") from None
    if not line:
        raise PromptError("the input ended before an answer was received", code="prompt.eof")
    return line


def _whole_line(read: ReadLine) -> bytes:
    line = read(MAX_ANSWER_BYTES + 1)
    if len(line) <= MAX_ANSWER_BYTES or line.endswith(b"\n"):
        return line
    while (rest := read(MAX_ANSWER_BYTES)) and not rest.endswith(b"\n"):
        pass
    raise PromptError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes", code="prompt.too_long")
