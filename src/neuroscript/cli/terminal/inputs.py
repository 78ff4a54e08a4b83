"""Files and standard input that a command reads, and files that it generates.

A file that cannot be read or written is a `UsageError`. Generated files are replaced atomically.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import attrs

from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output, reason_of
from neuroscript.coercion.parameters import PATH
from neuroscript.errors import AuditError, SpecError
from neuroscript.io.text import quote_path, quote_untrusted
from neuroscript.io.text_files import open_at_once, write_atomically

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Maximum bytes in a line of calls, or in a file of arguments."""


STDIN: Final = "-"


@attrs.frozen
class Input:
    """An open source of bytes.

    Attributes:
        title: Its name in messages.
        stream: The stream to read from.
    """

    title: str
    stream: BinaryIO

    def line(self, max_bytes: int) -> bytes:
        """Return the next line, at most *max_bytes* bytes of it, or ``b""`` at the end.

        Raises:
            UsageError: The source cannot be read.
        """
        try:
            return self.stream.readline(max_bytes)
        except (OSError, ValueError) as error:
            raise unreadable(self.title, error) from None


@attrs.frozen
class Line:
    """One line of an input.

    Attributes:
        number: Its number, from 1.
        data: Its bytes without the line ending, or None if there are more than `MAX_LINE_BYTES`.
    """

    number: int
    data: bytes | None


@contextmanager
def open_input(name: str, *, waits: bool = False) -> Iterator[Input]:
    """Open the file *name* for reading, or standard input for ``-``, which stays open.

    Args:
        waits: Whether to wait for a process that writes to a named pipe. Otherwise named pipes are refused.

    Raises:
        UsageError: It cannot be opened.
    """
    if name == STDIN:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise UsageError("standard input is closed")
        yield Input("standard input", stream)
        return
    with _file(name, waits) as file:
        yield Input(quote_untrusted(name), file)


def _file(name: str, waits: bool) -> BinaryIO:
    try:
        return open(name, "rb", opener=None if waits else open_at_once)
    except (OSError, ValueError) as error:
        raise unreadable(quote_untrusted(name), error) from None


def lines(source: Input) -> Iterator[Line]:
    """Yield the non-blank lines of a source as they arrive, without holding a line that is too long in memory.

    Raises:
        UsageError: The source cannot be read.
    """
    number = 0
    while data := source.line(MAX_LINE_BYTES + 1):
        number += 1
        if len(data) > MAX_LINE_BYTES and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = source.line(io.DEFAULT_BUFFER_SIZE)
            yield Line(number, None)
        elif not data.isspace():
            yield Line(number, data.removesuffix(b"\n").removesuffix(b"\r"))


def is_json_text(word: str) -> bool:
    """Return whether an argument is a JSON object or array itself, rather than the name of a file.

    >>> is_json_text(' {"a": 1}'), is_json_text("./{a}"), is_json_text("-")
    (True, False, False)
    """
    return word.lstrip().startswith(("{", "["))


def json_of(word: str) -> str:
    """Return JSON text: the argument itself if it is an object or an array, else the contents of that file.

    Raises:
        UsageError: The file cannot be read.
    """
    return word if is_json_text(word) else text_of(word)


def text_of(name: str) -> str:
    """Return the contents of a file, or of standard input for ``-``.

    Raises:
        UsageError: It cannot be read, is longer than `MAX_LINE_BYTES`, or is not UTF-8.
    """
    with open_input(name) as source:
        try:
            data = source.stream.read(MAX_LINE_BYTES + 1)
        except (OSError, ValueError) as error:
            raise unreadable(source.title, error) from None
        if len(data) > MAX_LINE_BYTES:
            raise UsageError(f"{source.title} has more than {MAX_LINE_BYTES} bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"{source.title} is not UTF-8 text") from None


def check_path(name: str) -> None:
    """Raise a `UsageError` for a string that cannot be a path."""
    if not PATH.holds(name):
        raise UsageError(f"{quote_untrusted(name)} is not a path that the system can open")


def unreadable(title: str, error: OSError | ValueError) -> UsageError:
    """Return the error for a source that cannot be read."""
    return UsageError(f"cannot read {title}: {reason_of(error)}")


class GeneratedFile(NamedTuple):
    """The path and the intended contents of a generated file."""

    file: Path
    text: str


def count_of(number: int, what: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1.

    >>> count_of(1, "page"), count_of(2, "page")
    ('1 page', '2 pages')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def is_current(page: GeneratedFile) -> bool:
    """Return whether a file already has its intended contents.

    Raises:
        UsageError: The path exists and cannot be read.
    """
    return existing_text(page.file) == page.text


def existing_text(file: Path) -> str | None:
    """Return the contents of a file, ``""`` if it is not UTF-8, or None if it does not exist.

    Raises:
        UsageError: The path exists and cannot be read.
    """
    try:
        with open(file, "rb", opener=open_at_once) as opened:
            return opened.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise UsageError(f"cannot read {quote_path(str(file))}: {reason_of(error)}") from None


def write(pages: Iterable[GeneratedFile]) -> None:
    """Write each file atomically, and create its directory.

    Raises:
        UsageError: A file cannot be written.
    """
    for file, text in pages:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot write {quote_path(str(file))}: {reason_of(error)}") from None


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors about the file *name* into usage errors; errors about the output pass unchanged."""
    check_path(name)
    try:
        yield
    except AuditError as error:
        raise UsageError(f"{quote_untrusted(name)}: {error}") from None
    except SpecError:  # a ValueError that is not about the file
        raise
    except (OSError, ValueError) as error:
        raise unreadable(quote_untrusted(name), error) from None


def key_of(name: str, output: Output) -> bytes:
    """Return the key in a file, and warn if other users can access it.

    Raises:
        UsageError: The file cannot be read, or does not contain a key.
    """
    from neuroscript.audit.keys import read_key

    with readable(name):
        file = read_key(name)
    if not file.is_private:
        output.say(f"warning: {quote_untrusted(name)}: other users can access the key; run chmod 600 on the file")
    return file.key
