"""Files that only their owner may read or change: written atomically, and checked before they are read."""

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
from neuroscript.io.text import quote_path

OTHER_USERS_MODE: Final = stat.S_IRWXG | stat.S_IRWXO
ALWAYS: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
READING: Final = os.O_RDONLY | ALWAYS | getattr(os, "O_NONBLOCK", 0)
"""The flags for reading. O_NONBLOCK keeps a named pipe from blocking; it is then rejected as not a regular file."""

WRITERS: Final = stat.S_IWGRP | stat.S_IWOTH
MAX_LINKS: Final = 40
"""Maximum number of symbolic links in a path, as on Linux."""

WRITING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | ALWAYS


def write_private(path: Path, data: bytes) -> None:
    """Create a file of mode 0600 with *data*. If the process dies before the end, no file of that name exists.

    Raises:
        FileExistsError: A file of this name exists. It is not changed.
        OSError: The file cannot be written.
    """
    unfinished = path.with_name(f".{os.urandom(8).hex()}.tmp")
    descriptor = os.open(unfinished, WRITING, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        path.hardlink_to(unfinished)  # like a rename, but never replaces another file
    finally:
        unfinished.unlink()
    _keep_names(path.parent)


def _keep_names(directory: Path) -> None:
    """Flush the entries of a directory to disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_private(path: Path, subject: str, most: int) -> bytes:
    """Return the content of a file after checking that it is private.

    Args:
        subject: The name of the file in errors.
        most: The maximum size in bytes.

    Raises:
        SpecError: With every problem: the file is a symbolic link or not a regular file, belongs to another user, is
            accessible to other users, or is too large.
        OSError: The file cannot be opened, for example because it does not exist.
    """
    if path.is_symlink():
        raise SpecError(subject, ["the file is a symbolic link; pass the path of the file itself"])
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
    """Return whether a file belongs to another user; always False outside POSIX."""
    return os.name == "posix" and status.st_uid != os.geteuid()


def is_shared(status: os.stat_result) -> bool:
    """Return whether users other than the owner have any access to a file; always False outside POSIX."""
    return os.name == "posix" and bool(status.st_mode & OTHER_USERS_MODE)


def _faults(status: os.stat_result, most: int) -> Iterator[str]:
    if not stat.S_ISREG(status.st_mode):
        yield "it is not a regular file"
        return
    if is_foreign(status):
        yield "the file belongs to another user"
    if is_shared(status):
        yield f"other users can access the file: its mode is {stat.S_IMODE(status.st_mode):04o}, but must be 0600"
    if status.st_size > most:
        yield f"the file has more than {most} bytes"


def _all_of(descriptor: int, most: int) -> bytes:
    """Return the content of a file, at most *most* + 1 bytes in case the file grows while it is read."""
    parts: list[bytes] = []
    left = most + 1
    while left and (part := os.read(descriptor, min(left, 1024 * 1024))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@attrs.frozen
class Exposure:
    """The reason why users other than this one and root could change what is at a path.

    Attributes:
        place: The path, or a directory or symbolic link on the way to it.
        is_foreign: Whether another user owns it; otherwise other users can write to it.
    """

    place: Path
    is_foreign: bool

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        name = quote_path(str(self.place))
        return f"{name} belongs to another user" if self.is_foreign else f"other users can write to {name}"

    def __str__(self) -> str:
        return self.reason if self.is_foreign else f"{self.reason}; run 'chmod go-w' to fix this"


def exposure(path: str | os.PathLike[str]) -> Exposure | None:
    """Return why users other than this one and root could change what is at a path, or None.

    No other user may own the path, or a directory or symbolic link on the way to it, or be able to write to one of
    them. Sticky directories such as ``/tmp``, in which only owners can rename and remove, are allowed on the way.
    Systems without POSIX modes always return None.

    Raises:
        OSError: The path cannot be examined, for example because it does not exist.
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
    """Yield every path that decides where *path* leads: the directories and links on the way, then its target."""
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
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = here.readlink()
        place = Path(target.anchor) if target.is_absolute() else place
        left += reversed(target.parts[target.is_absolute() :])
