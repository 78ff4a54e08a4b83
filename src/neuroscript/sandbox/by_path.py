"""Sandbox access by path, for systems such as Windows where directories cannot be held open.

This is best effort: each path segment is checked for links and other reparse points, and the real path of an opened
descriptor must be below the root. Another process can still replace a segment by a link between check and use.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import attrs

from neuroscript.sandbox.directory import Folder, Segments, failure

ALWAYS: Final = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0) | getattr(os, "O_NONBLOCK", 0)
REPARSE: Final = 0x400
"""FILE_ATTRIBUTE_REPARSE_POINT: links, junctions, mount points."""


@attrs.frozen
class PathFolder:
    """A `Folder` identified by its path, and the root that it must stay below, both as the system spells them."""

    root: str
    path: str

    def below(self, segments: Segments) -> PathFolder:
        """Return the directory at *segments*."""
        path = self._looked_at(segments)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise failure(errno.ENOTDIR)
        return PathFolder(self.root, path)

    def open(self, segments: Segments, flags: int) -> int:
        """Return a descriptor of the entry at *segments*."""
        path = self._looked_at(segments)
        if stat.S_ISDIR(os.lstat(path).st_mode):  # Windows cannot open directories
            raise failure(errno.EISDIR)
        return self._kept_below(os.open(path, flags | ALWAYS))

    def create(self, name: str, flags: int) -> int:
        """Return a descriptor of a new file."""
        return self._kept_below(os.open(self._at(name), flags | os.O_CREAT | os.O_EXCL | ALWAYS, 0o666))

    def create_unnamed(self) -> None:
        """Return None, because Windows has no unnamed files."""

    def status(self, name: str) -> os.stat_result:
        """Return the status of a name without following links."""
        return os.lstat(self._at(name))

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of the directory."""
        with os.scandir(self.path) as entries:
            yield from entries

    def mkdir(self, name: str) -> None:
        """Create an empty directory."""
        os.mkdir(self._at(name))

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(self._at(name))

    def unlink(self, name: str) -> None:
        """Remove a name that is not a directory."""
        os.unlink(self._at(name))

    def put(self, descriptor: int, temporary: str, name: str) -> None:
        """Close the file, then rename it, because Windows cannot rename an open file."""
        os.close(descriptor)
        os.replace(self._at(temporary), self._at(name))

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Rename an entry after checking that the new name is free."""
        assert isinstance(folder, PathFolder)
        with suppress(FileNotFoundError):
            folder.status(new)
            raise failure(errno.EEXIST)
        os.rename(self._at(name), folder._at(new))

    def close(self) -> None:
        """Do nothing, because nothing is held open."""

    def __enter__(self) -> PathFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _looked_at(self, segments: Segments) -> str:
        path = self.path
        for name in segments:
            path = os.path.join(path, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode) or getattr(status, "st_file_attributes", 0) & REPARSE:
                raise failure(errno.ELOOP)
        return path

    def _kept_below(self, descriptor: int) -> int:
        try:
            if os.path.commonpath((self.root, final_path(descriptor))) == self.root:
                return descriptor
        except ValueError:  # another drive
            pass
        os.close(descriptor)
        raise failure(errno.ELOOP)


def open_root(directory: str) -> tuple[str, Folder]:
    """Return the name of this backend, and the root of a sandbox."""
    root = os.path.realpath(directory)
    return "named", PathFolder(root, root)


def final_path(descriptor: int) -> str:
    """Return the real path of an open descriptor."""
    if sys.platform != "win32":
        return os.readlink(f"/proc/self/fd/{descriptor}")
    import ctypes
    import msvcrt

    path = ctypes.create_unicode_buffer(32768)
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
    if not ctypes.windll.kernel32.GetFinalPathNameByHandleW(handle, path, len(path), 0):
        raise ctypes.WinError()
    return path.value.removeprefix("\\\\?\\")
