"""The sandbox directory: opened once, and accessed only through its descriptor from then on."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, get_args

from neuroscript.coercion.parameters import FUNCTION, STRING, one_of, require
from neuroscript.errors import SandboxError
from neuroscript.policy.paths import canonical_path, relative
from neuroscript.sandbox.atomic_write import temporary_name
from neuroscript.sandbox.directory import Folder, Spend, failure, refusal
from neuroscript.sandbox.files import Files

Backend = Literal["auto", "openat2", "walk"]

BACKEND: Final = one_of(*get_args(Backend))
SYMLINKS: Final = one_of("deny")
UNWRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


class Sandbox:
    """A directory that confines all access to the files below it. A sandbox belongs to one engine.

    Links are not followed, regardless of their origin and target. A directory that is moved or removed while in use is
    gone, even if another one takes its name. Mounts below it are followed, because only administrators can create them.
    On Windows, confinement is best effort; see `by_path`.

    Attributes:
        directory: Its absolute path.
        backend: How files are opened: ``openat2``, ``walk`` or, on Windows, ``named``.
    """

    def __init__(self, directory: str, *, backend: Backend = "auto", symlinks: Literal["deny"] = "deny") -> None:
        """Open the directory, create it if it is missing, and test whether it is writable.

        Args:
            backend: ``auto`` uses openat2 if the kernel supports it, and otherwise ``walk``.
            symlinks: How to treat links; ``deny`` is the only option.

        Raises:
            SandboxError: With the code ``sandbox.`` and one of missing, type, permission, readonly, full, backend.
        """
        require("sandbox", directory=(directory, STRING), backend=(backend, BACKEND), symlinks=(symlinks, SYMLINKS))
        if not directory:
            raise SandboxError("sandbox: no directory is specified", code="sandbox.missing")
        self.directory = os.path.abspath(directory)
        self._lock = threading.Lock()
        self._users = 1  # the sandbox itself, until it is closed
        self._closed = False
        self.backend, self._root = _opened(self.directory, backend)
        status = self._root.status(".")
        self._identity = (status.st_dev, status.st_ino)
        try:
            _try_to_write(self._root)
        except SandboxError:
            self.close()
            raise

    def files(self, may: Callable[[str, str], None], spend: Spend) -> Files:
        """Return the file operations for one tool.

        Args:
            may: Called before each operation with ``read``, ``write`` or ``delete`` and the canonical path; raises a
                PolicyError to refuse.
            spend: Called with ``fs_bytes`` and a number of bytes, before a write and after each part of a read, and
                with ``fs_entries`` and a number of directory entries before any is returned. Raises a LimitError to
                refuse.
        """
        require("sandbox", may=(may, FUNCTION), spend=(spend, FUNCTION))
        return Files(self, may, spend)

    def resolve(self, path: str) -> str:
        """Return an absolute path for code that cannot use anything else.

        It is valid only as long as no other process changes the tree: a checked path may be a link by the time it is
        opened. Tools use `Files`, which opens exactly what it has checked.

        Raises:
            SandboxError: If the path leads out of the sandbox or through a link.
        """
        require("sandbox", path=(path, STRING))
        segments = relative(path)
        with (
            self.open_root(canonical_path(segments)) as root,
            suppress(FileNotFoundError),
            root.below(segments[:-1]) as folder,
        ):
            if segments and stat.S_ISLNK(folder.status(segments[-1]).st_mode):
                raise failure(errno.ELOOP)
        return os.path.join(self.directory, *segments)

    @contextmanager
    def open_root(self, path: str) -> Iterator[Folder]:
        """Hold the root open for one operation on *path*, and convert OSError to SandboxError."""
        with self._lock:
            if self._closed:
                raise _missing_directory_error()
            self._users += 1
        try:
            self._require()
            yield self._root
        except OSError as error:
            self._require()
            raise refusal(error, path) from None
        finally:
            self._leave()

    def close(self) -> None:
        """Close the directory as soon as running operations have ended; later operations are refused."""
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed:
            self._leave()

    def __del__(self) -> None:
        if hasattr(self, "_identity"):
            self.close()

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self._root.close()

    def _require(self) -> None:
        """Refuse if the directory was moved. This only selects the error; the descriptor never leads elsewhere."""
        try:
            status = os.stat(self.directory)
        except PermissionError:
            return
        except OSError:
            raise _missing_directory_error() from None
        if (status.st_dev, status.st_ino) != self._identity:
            raise _missing_directory_error()


def _opened(directory: str, backend: Backend) -> tuple[str, Folder]:
    try:
        os.makedirs(directory, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SandboxError("sandbox: is not a directory", code="sandbox.type") from None
    except (OSError, ValueError):
        raise SandboxError("sandbox: does not exist and cannot be created", code="sandbox.missing") from None
    try:
        if os.name == "nt":
            from neuroscript.sandbox import by_path as named

            return named.open_root(directory)
        from neuroscript.sandbox import open_beneath as beneath

        return beneath.open_root(directory, backend)
    except OSError as error:
        raise refusal(error, "sandbox") from None


def _try_to_write(root: Folder) -> None:
    """Create, flush and remove a file, so that a read-only sandbox is reported early and not by tools."""
    name = temporary_name("probe")
    try:
        descriptor = root.create(name, os.O_WRONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            root.unlink(name)
    except OSError as error:
        if error.errno in UNWRITABLE:
            raise SandboxError("sandbox: is not writable", code="sandbox.readonly") from None
        raise refusal(error, "sandbox") from None


def _missing_directory_error() -> SandboxError:
    return SandboxError("the sandbox directory no longer exists", code="sandbox.gone")
