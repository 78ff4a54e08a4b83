"""The directory operations that every platform provides to the sandbox, and the mapping of their errors.

The methods of a `Folder` take one name, or names leading downwards, and raise OSError; ELOOP means that a name is a
link. `refusal` converts these errors to `SandboxError`. The implementations are in `open_beneath` and `by_path`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from neuroscript.errors import Retry, SandboxError
from neuroscript.io.text import quote_untrusted

Segments = tuple[str, ...]
"""Names leading downwards; ``()`` is the directory itself."""

Spend = Callable[[str, int], object]
"""Called with ``fs_bytes`` or ``fs_entries`` and an amount; raises a LimitError to refuse."""


class Folder(Protocol):
    """The root of the sandbox or a directory below it; closed at the end of its ``with`` block."""

    def below(self, segments: Segments) -> Folder:
        """Return the directory at *segments*; raise ENOTDIR if it is something else."""

    def open(self, segments: Segments, flags: int) -> int:
        """Return a descriptor of the entry at *segments*, without blocking and without acquiring a terminal."""

    def create(self, name: str, flags: int) -> int:
        """Return a descriptor of a new file; raise EEXIST if the name is taken, even by a link."""

    def create_unnamed(self) -> int | None:
        """Return a descriptor of a new unnamed file, or None if the file system does not support unnamed files."""

    def status(self, name: str) -> os.stat_result:
        """Return the status of a name without following links."""

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of the directory in no order; an entry is valid only until the next one is yielded."""

    def mkdir(self, name: str) -> None:
        """Create an empty directory."""

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""

    def unlink(self, name: str) -> None:
        """Remove a name that is not a directory; for a link, remove the link itself."""

    def put(self, descriptor: int, temporary: str, name: str) -> None:
        """Rename the file created as *temporary*, or without a name, to *name*, and close it.

        An existing file is replaced. An unnamed file is called *temporary* for a moment.
        """

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Move the entry *name* to *new* in *folder*; raise EEXIST if that name is taken."""

    def close(self) -> None:
        """Close the directory."""

    def __enter__(self) -> Folder: ...

    def __exit__(self, *error: object) -> None: ...


def ensure_directory(root: Folder, segments: Segments) -> Folder:
    """Return the directory at *segments*, and create missing directories."""
    with suppress(FileNotFoundError):
        return root.below(segments)
    folder = root.below(())
    for name in segments:
        with folder:
            folder = _step(folder, name)
    return folder


def _step(folder: Folder, name: str) -> Folder:
    with suppress(FileNotFoundError):
        return folder.below((name,))
    with suppress(FileExistsError):
        folder.mkdir(name)
    return folder.below((name,))


def create_directory(folder: Folder, name: str) -> bool:
    """Create a directory, and return whether it was missing; raise ELOOP or EEXIST if another kind of entry exists."""
    try:
        folder.mkdir(name)
    except FileExistsError:
        mode = folder.status(name).st_mode
        if stat.S_ISDIR(mode):
            return False
        raise failure(errno.ELOOP if stat.S_ISLNK(mode) else errno.EEXIST) from None
    return True


REFUSALS: Final[dict[int, tuple[str, str, Retry]]] = {
    errno.ENOENT: ("notfound", "no such file or directory", "model"),
    errno.ELOOP: ("symlink", "links are not followed", "model"),
    errno.EMLINK: ("hardlink", "has several hard links, so it is not written in place", "model"),
    errno.ENOTDIR: ("notdir", "is not a directory, or is below something that is not a directory", "model"),
    errno.EISDIR: ("type", "is a directory", "model"),
    errno.ENXIO: ("type", "is not the expected kind of file", "model"),
    errno.ENODEV: ("type", "is not the expected kind of file", "model"),
    errno.EOPNOTSUPP: ("type", "is not the expected kind of file", "model"),
    errno.EEXIST: ("exists", "already exists", "model"),
    errno.ENOTEMPTY: ("notempty", "is a directory that is not empty", "model"),
    errno.ENAMETOOLONG: ("toolong", "is too long for the file system", "model"),
    errno.EINVAL: ("name", "is not a valid name on this file system", "model"),
    errno.EILSEQ: ("name", "is not a valid name on this file system", "model"),
    errno.EACCES: ("permission", "the operating system denied permission", "host"),
    errno.EPERM: ("permission", "the operating system denied permission", "host"),
    errno.EROFS: ("readonly", "the file system is read-only", "host"),
    errno.ENOSPC: ("full", "no space left", "host"),
    errno.EDQUOT: ("full", "no space left", "host"),
    errno.EFBIG: ("full", "no space left", "host"),
    errno.EAGAIN: ("raced", "the directories kept changing", "later"),
    errno.ESTALE: ("gone", "the sandbox directory no longer exists", "host"),
}
"""By error number: the last part of the error code, the message, and who can correct the problem."""


def refusal(error: OSError, path: str) -> SandboxError:
    """Return the error that a tool receives in place of an OSError; *path* is canonical and relative to the sandbox."""
    number = error.errno or errno.EIO
    word, text, retry = REFUSALS.get(number, ("io", os.strerror(number).lower(), "host"))
    return SandboxError(f"{quote_untrusted(path)}: {text}", code=f"sandbox.{word}", retry=retry)


def failure(number: int) -> OSError:
    """Return the OSError for an error number, without a path."""
    return OSError(number, os.strerror(number))
