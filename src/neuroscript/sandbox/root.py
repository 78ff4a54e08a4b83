"""One directory that tools may use: opened once, held, and asked for by its descriptor from then on.

Source: contract section 4; reliability.md parts 0 and 2.3.
"""

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
from neuroscript.policy.paths import relative, spelling
from neuroscript.sandbox.atomic_write import temporary_name
from neuroscript.sandbox.directory import Folder, Spend, failure, refusal
from neuroscript.sandbox.files import Files

Backend = Literal["auto", "openat2", "walk"]

BACKEND: Final = one_of(*get_args(Backend))
SYMLINKS: Final = one_of("deny")
UNWRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


class Sandbox:
    """A directory and what lies below it; no name, no link and no race leads out of it. One belongs to one engine.

    Links are not followed, whoever made them and wherever they lead. A directory that is moved away or removed while it
    is in use is gone, even if another one takes its name. Mounts below it are followed: only the system's operator can
    make them. On Windows it is best effort, see `named`.

    Attributes:
        directory: Where it is, as an absolute path.
        backend: How files are opened: ``openat2``, ``walk`` or, on Windows, ``named``.
    """

    def __init__(self, directory: str, *, backend: Backend = "auto", symlinks: Literal["deny"] = "deny") -> None:
        """Open the directory, make it if it is missing, and try to write to it.

        Args:
            backend: ``auto`` takes openat2 where the kernel has it, else the walk.
            symlinks: What becomes of links; there is one answer so far.

        Raises:
            SandboxError: ``sandbox.`` and one of missing, type, permission, readonly, full, backend.
        """
        require("sandbox", directory=(directory, STRING), backend=(backend, BACKEND), symlinks=(symlinks, SYMLINKS))
        if not directory:
            raise SandboxError("sandbox: no directory is given", code="sandbox.missing")
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
        """Return what one tool sees of the sandbox.

        Args:
            may: Is asked before anything is touched, with ``read``, ``write`` or ``delete`` and the path in its one
                spelling; raises a PolicyError to refuse.
            spend: Is told ``fs_bytes`` and how many: of a write before it, of a read after each part of it; and
                ``fs_entries``: how many names of a directory were looked at, before any is returned. Raises a
                LimitError to refuse.
        """
        require("sandbox", may=(may, FUNCTION), spend=(spend, FUNCTION))
        return Files(self, may, spend)

    def resolve(self, path: str) -> str:
        """Return an absolute path for those who can use nothing else; true only while nobody else changes the tree.

        What was looked at may be a link by the time it is opened. Tools use `Files`, which opens what it looked at.

        Raises:
            SandboxError: If the path leads out of the sandbox, or over a link.
        """
        require("sandbox", path=(path, STRING))
        segments = relative(path)
        with self.held(spelling(segments)) as root, suppress(FileNotFoundError), root.below(segments[:-1]) as folder:
            if segments and stat.S_ISLNK(folder.status(segments[-1]).st_mode):
                raise failure(errno.ELOOP)
        return os.path.join(self.directory, *segments)

    @contextmanager
    def held(self, path: str) -> Iterator[Folder]:
        """Lend the root for one operation on *path*, so that it is not closed meanwhile; tell OSErrors as ours."""
        with self._lock:
            if self._closed:
                raise _gone()
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
        """Let the directory go, once those who use it now have done; what is asked for later is refused as gone."""
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
        """Refuse if the directory is no longer where it was; this says only why, the descriptor leads nowhere else."""
        try:
            status = os.stat(self.directory)
        except PermissionError:
            return
        except OSError:
            raise _gone() from None
        if (status.st_dev, status.st_ino) != self._identity:
            raise _gone()


def _opened(directory: str, backend: Backend) -> tuple[str, Folder]:
    try:
        os.makedirs(directory, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SandboxError("sandbox: is not a directory", code="sandbox.type") from None
    except (OSError, ValueError):
        raise SandboxError("sandbox: is not there and can not be made", code="sandbox.missing") from None
    try:
        if os.name == "nt":
            from neuroscript.sandbox import by_path as named

            return named.opened(directory)
        from neuroscript.sandbox import open_beneath as beneath

        return beneath.opened(directory, backend)
    except OSError as error:
        raise refusal(error, "sandbox") from None


def _try_to_write(root: Folder) -> None:
    """Make a file, get it to the disk, and remove it: whether tools can write is not left to be found out by them."""
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
            raise SandboxError("sandbox: can not be written to", code="sandbox.readonly") from None
        raise refusal(error, "sandbox") from None


def _gone() -> SandboxError:
    return SandboxError("the sandbox is no longer there", code="sandbox.gone")
