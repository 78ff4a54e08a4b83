"""Files that nobody but their owner may read or change: written whole or not at all, looked at before they are read.

Source: contract section 5; reliability.md part 2.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from neuroscript.errors import SpecError
from neuroscript.io.text import shown_path

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
ALWAYS: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
READING: Final = os.O_RDONLY | ALWAYS | getattr(os, "O_NONBLOCK", 0)
"""A pipe is not waited for, and is then found to be no file."""

WRITERS: Final = stat.S_IWGRP | stat.S_IWOTH
LINKS: Final = 40
"""How many links a path may lead over, as Linux has it."""

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


def is_foreign(status: os.stat_result) -> bool:
    """Tell whether a file belongs to another user; only POSIX says so."""
    return os.name == "posix" and status.st_uid != os.geteuid()


def is_shared(status: os.stat_result) -> bool:
    """Tell whether others than its owner may use a file in any way; only POSIX says so."""
    return os.name == "posix" and bool(status.st_mode & OTHERS)


def _faults(status: os.stat_result, most: int) -> Iterator[str]:
    if not stat.S_ISREG(status.st_mode):
        yield "it is no regular file"
        return
    if is_foreign(status):
        yield "the file belongs to another user"
    if is_shared(status):
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


@attrs.frozen
class Exposure:
    """Why others than this user and the system's could change what stands at a path.

    Attributes:
        place: The path, or a directory or a link on the way to it.
        is_foreign: Whether another user owns it; else they may write to it.
    """

    place: Path
    is_foreign: bool

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        name = shown_path(str(self.place))
        return f"{name} belongs to another user" if self.is_foreign else f"others than its owner may write to {name}"

    def __str__(self) -> str:
        return self.reason if self.is_foreign else f"{self.reason}; 'chmod go-w' mends that"


def exposure(path: str | os.PathLike[str]) -> Exposure | None:
    """Return why others than this user and the system's could change what stands at a path, or None.

    Nobody else may own it, or a directory or a link on the way to it, nor write to one of them; but a directory on the
    way may be one like ``/tmp``, in which only owners rename and remove. Where a system knows no such modes, nothing is
    found.

    Raises:
        OSError: It can not be looked at, for example because it is not there.
    """
    if os.name != "posix":
        return None
    places = [*_places(Path(path).absolute())]
    for place in places:
        status = place.lstat()
        if status.st_uid not in (0, os.geteuid()):
            return Exposure(place, True)
        is_way = stat.S_ISLNK(status.st_mode) or (status.st_mode & stat.S_ISVTX and place != places[-1])
        if status.st_mode & WRITERS and not is_way:
            return Exposure(place, False)
    return None


def _places(path: Path) -> Iterator[Path]:
    """Yield all that decides what an absolute path means: directories and links on the way, and at last what it is."""
    place, left, links = Path(path.anchor), [*reversed(path.parts[1:])], 0
    yield place
    while left:
        name = left.pop()
        here = place.parent if name == os.pardir else place / name
        yield here
        if not here.is_symlink():
            place = here
            continue
        links += 1
        if links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = here.readlink()
        place = Path(target.anchor) if target.is_absolute() else place
        left += reversed(target.parts[target.is_absolute() :])
