"""A question to whoever sits at the console, and one line as the answer.

Source: contract section 4; reliability.md T20 and part 4.6.
"""

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
from neuroscript.io.text import escaped, is_terminal

LONGEST: Final = 64 * 1024
"""Bytes of an answer."""


TERMINAL: Final = Lock()
"""Held while a question stands on a terminal: whoever asks there, the process asks one thing at a time."""


ReadLine = Callable[[int], bytes]
"""Takes at most so many bytes of the next line, its end included; none at the end of the input."""


class Prompter(Protocol):
    """Asks the user for tools."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*, one line; a *secret* one is not to be seen while it is typed.

        Raises:
            PromptError: There is no answer.
        """


class ConsolePrompter:
    """Asks on a terminal, or takes piped answers line by line; one question at a time, whichever thread asks.

    It takes one line from the input's descriptor and not a byte more: whoever reads there next finds all the rest.

    Args:
        stdin: Where answers come from; None is ``sys.stdin`` at the time of the question.
        output: Where questions go; None is ``sys.stderr`` at that time.
    """

    def __init__(self, stdin: TextIO | None = None, output: TextIO | None = None) -> None:
        require("ConsolePrompter", stdin=(stdin, optional(INPUT)), output=(output, optional(OUTPUT)))
        self._stdin = stdin
        self._output = output
        self._lock = Lock()

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Write *prompt*, escaped, and return the next line without its end; what is not Unicode in it is replaced.

        Args:
            secret: Whether a terminal is not to echo what is typed.

        Raises:
            PromptError: prompt.noninteractive, where no terminal, pipe, socket or file is there to read, or nothing to
                write to; prompt.eof; prompt.toolong, for an answer above `LONGEST`, of which nothing is left over.
            KeyboardInterrupt: Ctrl-C.
        """
        require("ConsolePrompter", prompt=(prompt, STRING), secret=(secret, FLAG))
        with self._lock:
            stdin = sys.stdin if self._stdin is None else self._stdin
            descriptor = _descriptor(stdin)
            with alone_on(stdin), _silent(descriptor) if secret else nullcontext():
                output = sys.stderr if self._output is None else self._output
                write_out(f"{escaped(prompt.rstrip())} ", output)
                line = line_of(_reader(stdin, descriptor, secret))
                return line.decode(encoding_of(stdin), "replace").removesuffix("\n").removesuffix("\r")


@contextmanager
def alone_on(stream: TextIO | None) -> Iterator[None]:
    """Let nobody else of this process ask on a terminal meanwhile; any other stream holds nobody up."""
    if not is_terminal(stream):
        yield
        return
    with TERMINAL:
        yield


def typed(stdin: TextIO) -> bytes:
    """Return the next line that somebody types at a terminal, its end included unless the input ended in it.

    Raises:
        PromptError: As `ConsolePrompter.ask`.
        KeyboardInterrupt: Ctrl-C.
    """
    return line_of(_reader(stdin, _descriptor(stdin), secret=False))


def _descriptor(stdin: TextIO | None) -> int | None:
    """Return the descriptor that answers come from, None for a stream that is to be read itself."""
    if stdin is None or stdin.closed:
        raise noninteractive("no terminal, pipe or file is there to answer")
    try:
        descriptor = stdin.fileno()
    except OSError:
        return None
    if not _can_answer(descriptor):
        raise noninteractive("no terminal, pipe or file is there to answer")
    return None if sys.platform == "win32" else descriptor


def _can_answer(descriptor: int) -> bool:
    """Tell a terminal, a pipe, a socket or a file from a device such as ``/dev/null``."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return S_ISFIFO(mode) or S_ISREG(mode) or S_ISSOCK(mode) or os.isatty(descriptor)


def noninteractive(what: str) -> PromptError:
    """Return the error for a question that nobody can answer here."""
    return PromptError(what, code="prompt.noninteractive")


@contextmanager
def _silent(descriptor: int | None) -> Iterator[None]:
    """Let a terminal echo nothing but the end of a line, and as before when that is over, however it ends."""
    if descriptor is None or not os.isatty(descriptor):
        yield
        return
    import atexit
    import termios

    before = termios.tcgetattr(descriptor)
    silent = [*before]
    silent[3] = before[3] & ~termios.ECHO | termios.ECHONL
    restore = partial(_set_terminal, descriptor, before)
    atexit.register(restore)  # for a thread that still waits when the process ends
    try:
        _set_terminal(descriptor, silent)
        yield
    finally:
        restore()
        atexit.unregister(restore)


def _set_terminal(descriptor: int, settings: list[Any]) -> None:
    import termios

    with suppress(termios.error):  # the terminal has gone, and nobody types there
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)


def write_out(text: str, output: TextIO | None) -> None:
    """Write a question in one piece; what steers a terminal has to be taken out of it before.

    Raises:
        PromptError: prompt.noninteractive, where it can not be written.
    """
    if output is None:
        raise noninteractive("no output is there to ask on")
    encoding = encoding_of(output)
    try:
        output.write(text.encode(encoding, "backslashreplace").decode(encoding))
        output.flush()
    except (OSError, ValueError):
        raise noninteractive("no output is there to ask on") from None


def encoding_of(stream: TextIO) -> str:
    """Return how a stream turns text into bytes."""
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
        except BlockingIOError:  # somebody who shares it has set it not to wait
            from selectors import EVENT_READ, DefaultSelector

            with DefaultSelector() as selector:
                selector.register(descriptor, EVENT_READ)
                selector.select()


def _typed_on_windows(size: int) -> bytes:
    from getpass import getpass

    return f"{getpass('')}\n".encode()


def line_of(read: ReadLine) -> bytes:
    """Return the next line, or raise a `PromptError` that says why there is none."""
    try:
        line = _whole_line(read)
    except (OSError, ValueError):
        raise noninteractive("no terminal, pipe or file is there to answer") from None
    if not line:
        raise PromptError("the input ended before an answer came", code="prompt.eof")
    return line


def _whole_line(read: ReadLine) -> bytes:
    line = read(LONGEST + 1)
    if len(line) <= LONGEST or line.endswith(b"\n"):
        return line
    while (rest := read(LONGEST)) and not rest.endswith(b"\n"):
        pass
    raise PromptError(f"the answer is longer than {LONGEST} bytes", code="prompt.toolong")
