"""Files that a command writes for others: looked at before, whole when they are there, and written in one go."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from neuroscript.cli.exits import UsageError
from neuroscript.cli.output import reason_of
from neuroscript.display import shown_path
from neuroscript.textfile import open_at_once, write_whole


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
    return text_of(page.file) == page.text


def text_of(file: Path) -> str | None:
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
