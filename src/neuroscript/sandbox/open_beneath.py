"""Opening files below a directory so that no name, link or race condition leads out of it.

Two backends behave identically. With openat2 the kernel rejects every link in a path (Linux 5.6). Otherwise each path
segment is opened separately with O_NOFOLLOW. ``..`` is never passed to the kernel, because O_NOFOLLOW does not prevent
it from leaving the root. See openat2(2) and rename(2).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import attrs

from neuroscript.errors import SandboxError
from neuroscript.sandbox.atomic_write import temporary_name
from neuroscript.sandbox.directory import Folder, Segments, failure

Opener = Callable[[int, Segments, int], int]
"""Opens a path, given the descriptor of a directory, the names below it and the flags of open(2)."""

Renamer = Callable[[int, str, int, str], None]
"""Like renameat(2), but raises EEXIST if the new name is taken."""

ALWAYS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to open an intermediate directory. Like path resolution in the kernel, O_PATH needs no read permission."""

UNNAMED: Final = getattr(os, "O_TMPFILE", 0) | os.O_RDWR | os.O_CLOEXEC
NO_UNNAMED: Final = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}
"""Errors of file systems and kernels without unnamed files."""

SYS_OPENAT2: Final = 437
BENEATH: Final = 0x08 | 0x04 | 0x02
"""RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS."""

RENAME_NOREPLACE: Final = 1
MAX_ATTEMPTS: Final = 32
"""Attempts at a look-up that the kernel abandons because directories are moved meanwhile."""

KERNEL_FILE_SYSTEMS: Final = {0x9FA0, 0x62656572}
"""The file systems proc and sysfs, whose files give access to the system."""


def open_root(directory: str, backend: str) -> tuple[str, Folder]:
    """Open the root of a sandbox; return the name of the backend and the root."""
    libc = _libc() if sys.platform == "linux" else None
    by_kernel = _openat2(libc) if libc and backend != "walk" else None
    if backend == "openat2" and by_kernel is None:
        raise SandboxError("sandbox: openat2 is not available on this system", code="sandbox.backend")
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if libc and _file_system(libc, descriptor) in KERNEL_FILE_SYSTEMS:
        os.close(descriptor)
        raise SandboxError("sandbox: a kernel file system such as /proc cannot be used", code="sandbox.type")
    rename = _renameat2(libc) if libc else None
    unnamed = sys.platform == "linux" and _has_unnamed(descriptor)
    return ("openat2" if by_kernel else "walk"), DescriptorFolder(descriptor, by_kernel or walk, rename, unnamed)


@attrs.frozen(eq=False, repr=False)
class DescriptorFolder:
    """A `Folder` identified by its descriptor."""

    descriptor: int
    opener: Opener
    rename: Renamer | None
    has_unnamed: bool

    def below(self, segments: Segments) -> DescriptorFolder:
        """Return the directory at *segments*."""
        return attrs.evolve(self, descriptor=self.opener(self.descriptor, segments, STEP))

    def open(self, segments: Segments, flags: int) -> int:
        """Return a descriptor of the entry at *segments*."""
        return self.opener(self.descriptor, segments, flags | ALWAYS)

    def create(self, name: str, flags: int) -> int:
        """Return a descriptor of a new file, with permissions according to the process's umask."""
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | ALWAYS, 0o666, dir_fd=self.descriptor)

    def create_unnamed(self) -> int | None:
        """Return a descriptor of a new unnamed file, or None if the file system does not support unnamed files."""
        if not self.has_unnamed:
            return None
        try:
            return os.open(".", UNNAMED, 0o666, dir_fd=self.descriptor)
        except OSError as error:  # for example below a mount point
            if error.errno in NO_UNNAMED:
                return None
            raise

    def status(self, name: str) -> os.stat_result:
        """Return the status of a name without following links."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of the directory."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            with os.scandir(descriptor) as entries:
                yield from entries
        finally:
            os.close(descriptor)

    def mkdir(self, name: str) -> None:
        """Create an empty directory."""
        os.mkdir(name, dir_fd=self.descriptor)

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(name, dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        """Remove a name that is not a directory."""
        os.unlink(name, dir_fd=self.descriptor)

    def put(self, descriptor: int, temporary: str, name: str) -> None:
        """Rename the file and close it."""
        try:
            if not os.fstat(descriptor).st_nlink:
                _link_unnamed(descriptor, temporary, self.descriptor)
            os.rename(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        finally:
            os.close(descriptor)

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Rename without replacing; see `_link_or_rename` for systems that cannot do this in one step."""
        assert isinstance(folder, DescriptorFolder)
        if self.rename is not None:
            try:
                return self.rename(self.descriptor, name, folder.descriptor, new)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS):
                    raise
        return _link_or_rename(self.descriptor, name, folder.descriptor, new)

    def close(self) -> None:
        """Close the directory."""
        os.close(self.descriptor)

    def __enter__(self) -> DescriptorFolder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def walk(root: int, segments: Segments, flags: int) -> int:
    """Open one segment after the other below *root*; none of them may be a link."""
    if not segments:
        return os.open(".", flags, dir_fd=root)
    folder = root
    try:
        for name in segments[:-1]:
            inner = _step(name, STEP, folder)
            if folder != root:
                os.close(folder)
            folder = inner
        return _step(segments[-1], flags, folder)
    finally:
        if folder != root:
            os.close(folder)


def _has_unnamed(folder: int) -> bool:
    """Return whether unnamed files work in a directory, by trying it."""
    name = temporary_name("probe")
    try:
        descriptor = os.open(".", UNNAMED, 0o600, dir_fd=folder)
    except OSError:
        return False
    try:
        _link_unnamed(descriptor, name, folder)
        os.unlink(name, dir_fd=folder)
    except OSError:  # /proc is missing, or a security module forbids hard links
        return False
    finally:
        os.close(descriptor)
    return True


def _link_unnamed(descriptor: int, name: str, folder: int) -> None:
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)


def _step(name: str, flags: int, folder: int) -> int:
    for _ in range(MAX_ATTEMPTS):
        try:
            return os.open(name, flags, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.EMLINK:  # FreeBSD reports links this way
                raise failure(errno.ELOOP) from None
            if error.errno != errno.ENOTDIR:
                raise
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode  # only selects the error; decides nothing
        if not stat.S_ISDIR(mode):
            raise failure(errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTDIR)
    raise failure(errno.EAGAIN)


def _link_or_rename(source: int, name: str, target: int, new: str) -> None:
    """Add the new hard link to a file and remove the old one, which fails atomically if the new name is taken.

    A directory, or a file on a file system without hard links, is renamed after checking that the new name is free. If
    another process creates it meanwhile, its empty directory or file is overwritten.
    """
    if not stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode):
        try:
            os.link(name, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            return os.unlink(name, dir_fd=source)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
                raise
    with suppress(FileNotFoundError):
        os.stat(new, dir_fd=target, follow_symlinks=False)
        raise failure(errno.EEXIST)
    return os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _libc() -> Any:
    """Return the C library, or None if Python cannot call it."""
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


def _openat2(libc: Any) -> Opener | None:
    """Return an opener that uses openat2, or None if the kernel is too old or a filter blocks the call."""
    import ctypes

    how_to = ctypes.c_uint64 * 3
    call = libc.syscall
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.POINTER(how_to), ctypes.c_size_t)
    call.restype = ctypes.c_long

    def opener(root: int, segments: Segments, flags: int) -> int:
        path = "/".join(segments).encode() or b"."
        how = how_to(flags & ~os.O_NOFOLLOW, 0, BENEATH)  # O_NOFOLLOW would turn ELOOP into ENOTDIR for a final link
        for _ in range(MAX_ATTEMPTS):
            descriptor = call(SYS_OPENAT2, root, path, how, ctypes.sizeof(how))
            if descriptor >= 0:
                return int(descriptor)
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                break
        raise failure(ctypes.get_errno())

    try:
        opener(-1, (), STEP)
    except OSError as error:
        return opener if error.errno == errno.EBADF else None
    return None


def _renameat2(libc: Any) -> Renamer | None:
    """Return a rename function that never replaces, or None if the C library has none."""
    import ctypes

    if not hasattr(libc, "renameat2"):
        return None

    def rename(source: int, name: str, target: int, new: str) -> None:
        if libc.renameat2(source, os.fsencode(name), target, os.fsencode(new), RENAME_NOREPLACE) < 0:
            raise failure(ctypes.get_errno())

    return rename


def _file_system(libc: Any, descriptor: int) -> int:
    """Return the magic number of a file system, or 0."""
    import ctypes

    status = (ctypes.c_long * 32)()
    return int(status[0]) if libc.fstatfs(descriptor, status) == 0 else 0
