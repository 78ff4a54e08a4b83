"""Directories of suspended calls: listing them, and claiming one for the first answer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from neuroscript.approval.pending import PendingApproval
from neuroscript.errors import SpecError

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}\.json")
"""The names of files that are listed, such as those that `FileApprover` writes; other files are left out."""

MAX_LISTED_FILES: Final = 1_000
"""Maximum number of files of a directory that are listed, the newest ones."""


@attrs.frozen
class PendingFile:
    """A file of a directory of suspended calls.

    Attributes:
        path: Its path.
        written: When it was written, in seconds since 1970-01-01 UTC.
        pending: The suspended call, or None if the file cannot be used.
        problem: Why the file cannot be used, or ``""``.
    """

    path: Path
    written: float
    pending: PendingApproval | None = attrs.field(default=None, repr=False)
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.name


def file_names(directory: str | os.PathLike[str]) -> tuple[tuple[str, float], ...]:
    """Return the names of the files in a directory of suspended calls, with their times, newest first.

    A directory that does not exist has none.
    """
    try:
        with os.scandir(directory) as entries:
            found = [*_entries(entries)]
    except FileNotFoundError:  # it is created for the first suspended call
        return ()
    found.sort(key=lambda each: (-each[1], each[0]))
    return tuple(found[:MAX_LISTED_FILES])


def _entries(entries: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, float]]:
    for entry in entries:
        if NAME.fullmatch(entry.name):
            try:
                yield entry.name, entry.stat(follow_symlinks=False).st_mtime
            except FileNotFoundError:  # it was answered meanwhile
                continue


def read_file(directory: str | os.PathLike[str], name: str) -> PendingFile | None:
    """Return a file of a directory of suspended calls, or None if it does not exist.

    Args:
        name: The name of the file, which may come from a user. A name with a path is not found.
    """
    if not NAME.fullmatch(name):
        return None
    path = Path(directory) / name
    try:
        written = path.lstat().st_mtime
        return PendingFile(path, written, PendingApproval.load(path))
    except FileNotFoundError:
        return None
    except SpecError as error:
        return PendingFile(path, written, problem="; ".join(error.problems))
    except OSError as error:
        return PendingFile(path, 0.0, problem=f"it cannot be read ({error.strerror or type(error).__name__})")


def claim(path: str | os.PathLike[str]) -> bool:
    """Take a suspended call out of its directory, and return whether this caller was the first to do so.

    Of several users and processes that answer the same call, one claims it. Its call runs at most once: if the process
    ends between the claim and the call, the call does not run.
    """
    try:
        Path(path).unlink()
    except FileNotFoundError:
        return False
    return True
