"""Files and the standard input of the command, read as bytes; what can not be read is a `UsageError`.

Files that a command writes for others: looked at before, whole when they are there, and written in one go.
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
from neuroscript.io.text import shown, shown_path
from neuroscript.io.text_files import open_at_once, write_whole

LONGEST: Final = 16 * 1024 * 1024
"""How many bytes a line of calls, or a file of arguments, may have."""


STDIN: Final = "-"


@attrs.frozen
class Input:
    """An open source of bytes.

    Attributes:
        title: What people call it.
        stream: Where the bytes come from.
    """

    title: str
    stream: BinaryIO

    def line(self, most: int) -> bytes:
        """Return the next bytes up to the end of a line, at most *most*; none at the end.

        Raises:
            UsageError: They can not be read.
        """
        try:
            return self.stream.readline(most)
        except (OSError, ValueError) as error:
            raise unreadable(self.title, error) from None


@attrs.frozen
class Line:
    """One line of an input.

    Attributes:
        number: Which one, from 1.
        data: Its bytes without the end of the line, or None where they are more than `LONGEST`.
    """

    number: int
    data: bytes | None


@contextmanager
def reading(name: str, *, waits: bool = False) -> Iterator[Input]:
    """Lend the file *name*, or the standard input for ``-``, which stays open.

    Args:
        waits: Whether a named pipe waits for a process that writes to it. It is refused otherwise.

    Raises:
        UsageError: It can not be opened.
    """
    if name == STDIN:
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise UsageError("the standard input is closed")
        yield Input("the standard input", stream)
        return
    with _file(name, waits) as file:
        yield Input(shown(name), file)


def _file(name: str, waits: bool) -> BinaryIO:
    try:
        return open(name, "rb", opener=None if waits else open_at_once)
    except (OSError, ValueError) as error:
        raise unreadable(shown(name), error) from None


def lines(source: Input) -> Iterator[Line]:
    """Yield the lines of a source that are not blank, as they come; of one that is too long no more than that is held.

    Raises:
        UsageError: The source can not be read further.
    """
    number = 0
    while data := source.line(LONGEST + 1):
        number += 1
        if len(data) > LONGEST and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = source.line(io.DEFAULT_BUFFER_SIZE)
            yield Line(number, None)
        elif not data.isspace():
            yield Line(number, data.removesuffix(b"\n").removesuffix(b"\r"))


def is_json_text(word: str) -> bool:
    """Tell whether a word is a JSON object or array itself, rather than the name of a file.

    >>> is_json_text(' {"a": 1}'), is_json_text("./{a}"), is_json_text("-")
    (True, False, False)
    """
    return word.lstrip().startswith(("{", "["))


def json_of(word: str) -> str:
    """Return JSON text: the word itself if it is an object or an array, else the text of that file.

    Raises:
        UsageError: The file cannot be read.
    """
    return word if is_json_text(word) else text_of(word)


def text_of(name: str) -> str:
    """Return the whole text of a file, or of the standard input for ``-``.

    Raises:
        UsageError: It can not be read, is longer than `LONGEST`, or is no UTF-8.
    """
    with reading(name) as source:
        try:
            data = source.stream.read(LONGEST + 1)
        except (OSError, ValueError) as error:
            raise unreadable(source.title, error) from None
        if len(data) > LONGEST:
            raise UsageError(f"{source.title} has more than {LONGEST} bytes")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError(f"{source.title} is not UTF-8 text") from None


def check_path(name: str) -> None:
    """Raise a `UsageError` for a name that no file can have."""
    if not PATH.holds(name):
        raise UsageError(f"{shown(name)} is not a path that the system can open")


def unreadable(title: str, error: OSError | ValueError) -> UsageError:
    """Return the error for a source that can not be read."""
    return UsageError(f"can not read {title}: {reason_of(error)}")


class Written(NamedTuple):
    """A file as it is to be."""

    file: Path
    text: str


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "page"), counted(2, "page")
    ('1 page', '2 pages')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def is_current(page: Written) -> bool:
    """Tell whether a file is as it is to be already.

    Raises:
        UsageError: Something is there that can not be read.
    """
    return existing_text(page.file) == page.text


def existing_text(file: Path) -> str | None:
    """Return the text of a file, ``""`` where it is no UTF-8, or None where there is none.

    Raises:
        UsageError: Something is there that can not be read.
    """
    try:
        with open(file, "rb", opener=open_at_once) as opened:
            return opened.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise UsageError(f"can not read {shown_path(str(file))}: {reason_of(error)}") from None


def write(pages: Iterable[Written]) -> None:
    """Write files, each whole or not at all; their directory is made.

    Raises:
        UsageError: One can not be written.
    """
    for file, text in pages:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text, encoding="utf-8")
        except (OSError, ValueError) as error:
            raise UsageError(f"can not write {shown_path(str(file))}: {reason_of(error)}") from None


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Tell what is wrong with a file as a usage error; what is wrong with the output stays what it is."""
    check_path(name)
    try:
        yield
    except AuditError as error:
        raise UsageError(f"{shown(name)}: {error}") from None
    except SpecError:  # which is a ValueError, and not about the file
        raise
    except (OSError, ValueError) as error:
        raise unreadable(shown(name), error) from None


def key_of(name: str, output: Output) -> bytes:
    """Return the key in a file, and say so where others may read it.

    Raises:
        UsageError: It can not be read, or holds no key.
    """
    from neuroscript.audit.keys import read_key

    with readable(name):
        file = read_key(name)
    if not file.is_private:
        output.say(f"{shown(name)}: others than its owner may read or write the key; 'chmod 600' mends that")
    return file.key
