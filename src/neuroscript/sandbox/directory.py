"""A directory of the sandbox that is held: what every system must be able to do with it, and how its refusals are told.

The methods of a `Folder` take one name, or names that lead downwards, and raise OSError; ELOOP says that a name is a
link. `refusal` turns that into a `SandboxError`. Where nothing can be held open, see `named`; else see `beneath`.

Source: reliability.md part 2.3.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Protocol

from neuroscript.errors import Retry, SandboxError
from neuroscript.io.text import shown

Segments = tuple[str, ...]
"""Names that lead downwards; ``()`` is the directory itself."""

Spend = Callable[[str, int], object]
"""Is told ``fs_bytes`` or ``fs_entries`` and how many; raises a LimitError to refuse."""


class Folder(Protocol):
    """One directory, the root of the sandbox or below it; closed when its ``with`` block ends."""

    def below(self, segments: Segments) -> Folder:
        """Return the directory that *segments* lead to; ENOTDIR where something else is there."""

    def open(self, segments: Segments, flags: int) -> int:
        """Return a descriptor of what is there, without waiting for anybody and without becoming a terminal's owner."""

    def create(self, name: str, flags: int) -> int:
        """Return a descriptor of a new file; EEXIST where the name is taken, by a link too."""

    def create_unnamed(self) -> int | None:
        """Return a descriptor of a new file without a name, or None where the file system has no such files."""

    def status(self, name: str) -> os.stat_result:
        """Return what is known of a name itself, a link not followed."""

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield what is in the directory, in no order; an entry may be asked only while it is the last one."""

    def mkdir(self, name: str) -> None:
        """Make an empty directory."""

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""

    def unlink(self, name: str) -> None:
        """Remove a name that is no directory; of a link the link itself."""

    def put(self, descriptor: int, temporary: str, name: str) -> None:
        """Rename the file that was created as *temporary*, or without a name, to *name*, and close it.

        It replaces what had that name. A file without a name is called *temporary* for a moment.
        """

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Call what has *name* here *new* in *folder*; EEXIST where that name is taken."""

    def close(self) -> None:
        """Hold the directory no longer."""

    def __enter__(self) -> Folder: ...

    def __exit__(self, *error: object) -> None: ...


def made(root: Folder, segments: Segments) -> Folder:
    """Return the directory that *segments* lead to, and make what is missing of it."""
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


def made_one(folder: Folder, name: str) -> bool:
    """Make a directory, and tell whether it was missing; ELOOP or EEXIST where something else has its name."""
    try:
        folder.mkdir(name)
    except FileExistsError:
        mode = folder.status(name).st_mode
        if stat.S_ISDIR(mode):
            return False
        raise failure(errno.ELOOP if stat.S_ISLNK(mode) else errno.EEXIST) from None
    return True


REFUSALS: Final[dict[int, tuple[str, str, Retry]]] = {
    errno.ENOENT: ("notfound", "there is no such file or directory", "model"),
    errno.ELOOP: ("symlink", "links are not followed", "model"),
    errno.EMLINK: ("hardlink", "has a second name, and is not written in place", "model"),
    errno.ENOTDIR: ("notdir", "is not a directory, or lies below something that is none", "model"),
    errno.EISDIR: ("type", "is a directory", "model"),
    errno.ENXIO: ("type", "is not the kind of file that is asked for", "model"),
    errno.ENODEV: ("type", "is not the kind of file that is asked for", "model"),
    errno.EOPNOTSUPP: ("type", "is not the kind of file that is asked for", "model"),
    errno.EEXIST: ("exists", "exists already", "model"),
    errno.ENOTEMPTY: ("notempty", "is a directory that is not empty", "model"),
    errno.ENAMETOOLONG: ("toolong", "is too long for the file system", "model"),
    errno.EINVAL: ("name", "is a name that the file system does not take", "model"),
    errno.EILSEQ: ("name", "is a name that the file system does not take", "model"),
    errno.EACCES: ("permission", "the system does not permit it", "host"),
    errno.EPERM: ("permission", "the system does not permit it", "host"),
    errno.EROFS: ("readonly", "the file system is read-only", "host"),
    errno.ENOSPC: ("full", "there is no room left", "host"),
    errno.EDQUOT: ("full", "there is no room left", "host"),
    errno.EFBIG: ("full", "there is no room left", "host"),
    errno.EAGAIN: ("raced", "the directories changed all the time", "later"),
    errno.ESTALE: ("gone", "the sandbox is no longer there", "host"),
}
"""By error number: the word of the code, the text, and who can mend it."""


def refusal(error: OSError, path: str) -> SandboxError:
    """Return what a tool is told instead of an OSError; *path* is below the sandbox, as its one spelling."""
    number = error.errno or errno.EIO
    word, text, retry = REFUSALS.get(number, ("io", os.strerror(number).lower(), "host"))
    return SandboxError(f"{shown(path)}: {text}", code=f"sandbox.{word}", retry=retry)


def failure(number: int) -> OSError:
    """Return the OSError of an error number, which does not say what it happened to."""
    return OSError(number, os.strerror(number))
