"""Files that nobody but their owner may read or change: written whole or not at all, looked at before they are read.

Source: contract section 5; reliability.md part 2.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from neuroscript.errors import SpecError

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
ALWAYS: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
READING: Final = os.O_RDONLY | ALWAYS | getattr(os, "O_NONBLOCK", 0)
"""A pipe is not waited for, and is then found to be no file."""

WRITING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | ALWAYS


def write_private(path: Path, data: bytes) -> None:
    """Make a file of mode 0600 with *data* in it; a process that dies meanwhile leaves none of that name.

    Raises:
        FileExistsError: There is something of this name; it stays as it is.
        OSError: It can not be written.
    """
    unfinished = path.with_name(f".{os.urandom(8).hex()}.tmp")
    descriptor = os.open(unfinished, WRITING, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        path.hardlink_to(unfinished)  # as a rename, but never over another file
    finally:
        unfinished.unlink()
    _keep_names(path.parent)


def _keep_names(directory: Path) -> None:
    """Have the system write down which names a directory has, where it offers that."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_private(path: Path, subject: str, most: int) -> bytes:
    """Return what is in a file.

    Args:
        subject: What the file is, for the error.
        most: How many bytes it may have.

    Raises:
        SpecError: With everything that is wrong with it: it is a link or no file, belongs to another user, others may
            read or change it, or it is too large.
        OSError: It can not be opened, for example because it is not there.
    """
    if path.is_symlink():
        raise SpecError(subject, ["the file is a link; name the file itself"])
    descriptor = os.open(path, READING)
    try:
        faults = [*_faults(os.fstat(descriptor), most)]
        data = b"" if faults else _all_of(descriptor, most)
    finally:
        os.close(descriptor)
    if len(data) > most:
        faults.append(f"the file has more than {most} bytes")
    if faults:
        raise SpecError(subject, faults)
    return data


def _faults(status: os.stat_result, most: int) -> Iterator[str]:
    if not stat.S_ISREG(status.st_mode):
        yield "it is no regular file"
        return
    if os.name == "posix" and status.st_uid != os.geteuid():
        yield "the file belongs to another user"
    if os.name == "posix" and status.st_mode & OTHERS:
        yield f"others may use the file: its mode is {stat.S_IMODE(status.st_mode):04o}, and must be 0600"
    if status.st_size > most:
        yield f"the file has more than {most} bytes"


def _all_of(descriptor: int, most: int) -> bytes:
    """Return what a file holds, and no more than one byte above *most*, should it grow meanwhile."""
    parts: list[bytes] = []
    left = most + 1
    while left and (part := os.read(descriptor, min(left, 1024 * 1024))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
