"""The file operations that a tool can use. Each checks permissions first, opens once, and leaves nothing half done.

Two callables decide: ``may`` about permissions, ``spend`` about bytes and entries. Policies and ledgers are not used
directly.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any, Final, Literal, Protocol, overload

import attrs

from neuroscript.coercion.scalars import to_builtin
from neuroscript.errors import PolicyError, SandboxError
from neuroscript.io.text import quote_untrusted
from neuroscript.policy.paths import canonical_path, names_directory, relative
from neuroscript.runtime.interfaces import DirEntry, Entries
from neuroscript.sandbox.atomic_write import append, encode_text, plain, replace
from neuroscript.sandbox.directory import Folder, Segments, Spend, create_directory, ensure_directory, failure
from neuroscript.sandbox.listing import ALL_BELOW, CHILDREN, Pattern, entry, find_entries, split
from neuroscript.sandbox.reader import MeteredFile, decode_text, digest, open_file

MAX_READ_BYTES: Final = 100 * 1024 * 1024
"""Maximum number of bytes read at once, unless the caller sets a limit."""


class SandboxRoot(Protocol):
    """The owner of the root; see `Sandbox`."""

    def open_root(self, path: str) -> AbstractContextManager[Folder]:
        """Provide the root for one operation on *path*."""

    def resolve(self, path: str) -> str:
        """Return an absolute path, valid only as long as no other process changes the tree."""


@attrs.frozen(eq=False, repr=False)
class CheckedPath:
    """A validated and permitted path.

    Attributes:
        segments: Its names.
        directory: Whether it is written so that only a directory matches.
    """

    segments: Segments
    directory: bool

    @property
    def path(self) -> str:
        """The canonical form of the path."""
        return canonical_path(self.segments)

    @property
    def name(self) -> str:
        """The last name; raises for the sandbox itself, which cannot be changed."""
        if not self.segments:
            raise SandboxError(".: the sandbox itself cannot be changed", code="sandbox.isroot", retry="model")
        return self.segments[-1]


@attrs.frozen(eq=False, repr=False)
class Files:
    """Files below the sandbox, by relative paths with ``/``. The only exceptions raised are CallError and SandboxError.

    A path that ends in ``/`` means a directory. Links can be listed and deleted, but are never followed or moved.
    """

    _root: SandboxRoot
    _may: Callable[[str, str], None]
    _spend: Spend

    def read_bytes(self, path: str, *, limit: int = MAX_READ_BYTES) -> bytes:
        """Return the content of a file of at most *limit* bytes."""
        with self._reading(path) as (file, _):
            return file.within(limit)

    def read_text(self, path: str, *, encoding: str = "utf-8") -> str:
        """Return the content of a file as a string, with line endings unchanged."""
        with self._reading(path) as (file, place):
            return decode_text(file.within(MAX_READ_BYTES), encoding, quote_untrusted(place.path))

    @overload
    def open(self, path: str, mode: Literal["rb"] = "rb") -> IO[bytes]: ...

    @overload
    def open(self, path: str, mode: Literal["r"]) -> IO[str]: ...

    def open(self, path: str, mode: str = "rb") -> IO[Any]:
        """Open a file for reading as bytes, or as UTF-8 with line endings unchanged. The caller must close it."""
        if mode not in ("r", "rb"):
            raise SandboxError(
                "files are opened for reading, with mode 'r' or 'rb'", code="sandbox.argtype", retry="model"
            )
        place = self._check_path("read", path)
        with self._root.open_root(place.path) as root:
            file = io.BufferedReader(self._opened(root, place))
        return file if mode == "rb" else io.TextIOWrapper(file, encoding="utf-8", newline="")

    def hash(self, path: str, algorithm: str = "sha256") -> str:
        """Return the hash of a file's content in hexadecimal digits."""
        with self._reading(path) as (file, _):
            return digest(file, algorithm)

    def stat(self, path: str) -> DirEntry:
        """Return the metadata of an entry; for a link, of the link itself."""
        place = self._check_path("read", path)
        with self._root.open_root(place.path) as root, root.below(place.segments[:-1]) as folder:
            status = folder.status(place.segments[-1] if place.segments else ".")
            _require_directory(place, status)
            return entry(place.segments, status)

    def exists(self, path: str) -> bool:
        """Return whether an entry exists. A link exists even if its target does not."""
        try:
            self.stat(path)
        except SandboxError as error:
            if error.code not in ("sandbox.notfound", "sandbox.notdir"):
                raise
            return False
        return True

    def list(self, path: str = "") -> Entries:
        """Return the entries of a directory, sorted by name, without those that may not be read."""
        return self._below(path, CHILDREN)

    def walk(self, path: str = "") -> Entries:
        """Return all entries below a directory, sorted by name, each directory before its entries."""
        return self._below(path, ALL_BELOW)

    def glob(self, pattern: str) -> Entries:
        """Return the entries that match a pattern of ``*``, ``?``, ``[a-z]``, and ``**`` for zero or more names.

        Names that begin with a dot match like all others. A pattern that ends in ``/`` matches directories only.
        """
        place = _placed(pattern)
        start, rest = split(place.segments)
        self._may("read", canonical_path(start))
        with self._root.open_root(canonical_path(start)) as root:
            try:
                entries = find_entries(root, start, Pattern.of(rest), self._may_read, self._spend)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return [each for each in entries if each.is_dir or not place.directory]

    @contextmanager
    def pinned(self, path: str) -> Iterator[str]:
        """Provide a path for libraries that open files by name, such as databases and subprocesses.

        On Linux the path leads to the opened file or directory, even if the tree changes meanwhile. On other systems it
        is an ordinary absolute path. Operations through this path, including writes, are neither checked nor counted.
        """
        place = self._check_path("read", path)
        if sys.platform != "linux":
            yield self._root.resolve(place.path)
            return
        with self._root.open_root(place.path) as root:
            descriptor = root.open(place.segments, os.O_RDONLY)
        try:
            with self._root.open_root(place.path):
                _require_plain(place, os.fstat(descriptor))
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)

    def resolve(self, path: str) -> str:
        """Return an absolute path, valid only as long as no other process changes the tree."""
        place = self._check_path("read", path)
        return self._root.resolve(place.path)

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the content of a file atomically.

        Missing directories are created. A replaced file keeps its permissions.
        """
        self._change(path, plain(data), replace)

    def write_text(self, path: str, text: str) -> None:
        """Replace the content of a file with a string as UTF-8; see `write_bytes`."""
        self._change(path, encode_text(text), replace)

    def append(self, path: str, data: str | bytes) -> None:
        """Append bytes, or a string as UTF-8, to a file; the file and missing directories are created."""
        self._change(path, encode_text(data) if isinstance(data, str) else plain(data), append)

    def mkdir(self, path: str) -> bool:
        """Create a directory and its missing parents; return whether it was missing."""
        place = self._check_path("write", path)
        with self._root.open_root(place.path) as root:
            if not place.segments:
                return False
            with ensure_directory(root, place.segments[:-1]) as folder:
                return create_directory(folder, place.name)

    def delete(self, path: str) -> bool:
        """Delete a file, a link or an empty directory; return whether it existed."""
        place = self._check_path("delete", path)
        with self._root.open_root(place.path) as root:
            try:
                with root.below(place.segments[:-1]) as folder:
                    _delete(folder, place)
            except FileNotFoundError:
                return False
        return True

    def move(self, source: str, destination: str) -> None:
        """Move a file or a directory to a path that does not exist, in a directory that exists.

        Moving a directory moves everything below it, so permission for each of these paths is checked too.
        """
        origin, target = _placed(source), _placed(destination)
        self._may("delete", origin.path)
        self._may("write", target.path)
        name, new = origin.name, target.name
        with self._root.open_root(origin.path) as root, root.below(origin.segments[:-1]) as folder:
            status = folder.status(name)
            _require_plain(attrs.evolve(origin, directory=origin.directory or target.directory), status)
            if stat.S_ISDIR(status.st_mode):
                find_entries(root, origin.segments, ALL_BELOW, self._may_move(origin, target), self._spend)
            with self._root.open_root(target.path), root.below(target.segments[:-1]) as new_folder:
                _require_elsewhere(origin, target)
                folder.move(name, new_folder, new)

    def _check_path(self, verb: str, path: object) -> CheckedPath:
        place = _placed(path)
        self._may(verb, place.path)
        return place

    @contextmanager
    def _reading(self, path: str) -> Iterator[tuple[MeteredFile, CheckedPath]]:
        place = self._check_path("read", path)
        with self._root.open_root(place.path) as root, self._opened(root, place) as file:
            yield file, place

    def _opened(self, root: Folder, place: CheckedPath) -> MeteredFile:
        file = open_file(root, place.segments, self._spend)
        if place.directory:
            file.close()
            raise failure(errno.ENXIO)
        return file

    def _below(self, path: str, pattern: Pattern) -> Entries:
        place = self._check_path("read", "." if type(path) is str and not path else path)
        with self._root.open_root(place.path) as root:
            return find_entries(root, place.segments, pattern, self._may_read, self._spend)

    def _may_read(self, path: str) -> bool:
        try:
            self._may("read", path)
        except PolicyError:
            return False
        return True

    def _may_move(self, origin: CheckedPath, target: CheckedPath) -> Callable[[str], bool]:
        def permits(path: str) -> bool:
            self._may("delete", path)
            self._may("write", f"{target.path}{path.removeprefix(origin.path)}")
            return True

        return permits

    def _change(self, path: str, data: memoryview, change: Callable[[Folder, str, memoryview], None]) -> None:
        place = self._check_path("write", path)
        name = place.name
        self._spend("fs_bytes", len(data))
        with self._root.open_root(place.path) as root:
            if place.directory:
                raise failure(errno.EISDIR)
            with ensure_directory(root, place.segments[:-1]) as folder:
                change(folder, name, data)


def _placed(path: object) -> CheckedPath:
    text = to_builtin(path)
    return CheckedPath(relative(text), names_directory(text))


def _require_directory(place: CheckedPath, status: os.stat_result) -> None:
    if place.directory and not stat.S_ISDIR(status.st_mode):
        raise failure(errno.ELOOP if stat.S_ISLNK(status.st_mode) else errno.ENXIO)


def _require_plain(place: CheckedPath, status: os.stat_result) -> None:
    """Refuse anything but files and directories, and files where only a directory matches."""
    _require_directory(place, status)
    if stat.S_ISLNK(status.st_mode):
        raise failure(errno.ELOOP)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise failure(errno.ENXIO)


def _require_elsewhere(origin: CheckedPath, target: CheckedPath) -> None:
    if target.segments == origin.segments:
        raise failure(errno.EEXIST)
    if target.segments[: len(origin.segments)] == origin.segments:
        text = f"{quote_untrusted(target.path)}: a directory cannot be moved into itself"
        raise SandboxError(text, code="sandbox.name", retry="model")


def _delete(folder: Folder, place: CheckedPath) -> None:
    status = folder.status(place.name)
    _require_directory(place, status)
    if stat.S_ISDIR(status.st_mode):
        folder.rmdir(place.name)
    else:
        folder.unlink(place.name)
