"""Opening below one directory so that no name, no link and no race leads out of it.

Two ways that give the same answers. openat2 lets the kernel refuse every link on the way (Linux 5.6). The walk opens
one name after the other with O_NOFOLLOW. ``..`` is never given to the kernel: with O_NOFOLLOW it would leave the root.

Source: reliability.md part 2.3; openat2(2), rename(2).
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
"""The descriptor of a directory, names below it and the flags of open(2) give a descriptor, or OSError."""

Renamer = Callable[[int, str, int, str], None]
"""As renameat(2); EEXIST where the new name is taken."""

ALWAYS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
STEP: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is held only to go on from it; O_PATH needs no right to read it, as the kernel's own way down."""

UNNAMED: Final = getattr(os, "O_TMPFILE", 0) | os.O_RDWR | os.O_CLOEXEC
NO_UNNAMED: Final = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT}
"""What file systems and kernels answer that have no files without names."""

SYS_OPENAT2: Final = 437
BENEATH: Final = 0x08 | 0x04 | 0x02
"""RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS."""

RENAME_NOREPLACE: Final = 1
TRIES: Final = 32
"""How often a look-up is tried that the kernel gave up because directories moved meanwhile."""

PSEUDO: Final = {0x9FA0, 0x62656572}
"""The file systems proc and sysfs, whose files are doors into the system."""


def opened(directory: str, backend: str) -> tuple[str, Folder]:
    """Open the root of a sandbox; return the name of the way that is taken below it, and the root."""
    libc = _libc() if sys.platform == "linux" else None
    by_kernel = _openat2(libc) if libc and backend != "walk" else None
    if backend == "openat2" and by_kernel is None:
        raise SandboxError("sandbox: openat2 is not offered here", code="sandbox.backend")
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if libc and _file_system(libc, descriptor) in PSEUDO:
        os.close(descriptor)
        raise SandboxError("sandbox: a file system of the kernel can not be one", code="sandbox.type")
    rename = _renameat2(libc) if libc else None
    unnamed = sys.platform == "linux" and _has_unnamed(descriptor)
    return ("openat2" if by_kernel else "walk"), Beneath(descriptor, by_kernel or walk, rename, unnamed)


@attrs.frozen(eq=False, repr=False)
class Beneath:
    """A `Folder` by its descriptor."""

    descriptor: int
    opener: Opener
    rename: Renamer | None
    has_unnamed: bool

    def below(self, segments: Segments) -> Beneath:
        """Return the directory that *segments* lead to."""
        return attrs.evolve(self, descriptor=self.opener(self.descriptor, segments, STEP))

    def open(self, segments: Segments, flags: int) -> int:
        """Return a descriptor of what is there."""
        return self.opener(self.descriptor, segments, flags | ALWAYS)

    def create(self, name: str, flags: int) -> int:
        """Return a descriptor of a new file, readable and writable as the process's umask has it."""
        return os.open(name, flags | os.O_CREAT | os.O_EXCL | ALWAYS, 0o666, dir_fd=self.descriptor)

    def create_unnamed(self) -> int | None:
        """Return a descriptor of a new file without a name, or None where the file system has no such files."""
        if not self.has_unnamed:
            return None
        try:
            return os.open(".", UNNAMED, 0o666, dir_fd=self.descriptor)
        except OSError as error:  # such as a mount below the root
            if error.errno in NO_UNNAMED:
                return None
            raise

    def status(self, name: str) -> os.stat_result:
        """Return what is known of a name itself."""
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield what is in the directory."""
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            with os.scandir(descriptor) as entries:
                yield from entries
        finally:
            os.close(descriptor)

    def mkdir(self, name: str) -> None:
        """Make an empty directory."""
        os.mkdir(name, dir_fd=self.descriptor)

    def rmdir(self, name: str) -> None:
        """Remove an empty directory."""
        os.rmdir(name, dir_fd=self.descriptor)

    def unlink(self, name: str) -> None:
        """Remove a name that is no directory."""
        os.unlink(name, dir_fd=self.descriptor)

    def put(self, descriptor: int, temporary: str, name: str) -> None:
        """Rename the file, and close it."""
        try:
            if not os.fstat(descriptor).st_nlink:
                _link_unnamed(descriptor, temporary, self.descriptor)
            os.rename(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        finally:
            os.close(descriptor)

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Rename without replacing; where the system can not do that in one step, see `_link_or_rename`."""
        assert isinstance(folder, Beneath)
        if self.rename is not None:
            try:
                return self.rename(self.descriptor, name, folder.descriptor, new)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS):
                    raise
        return _link_or_rename(self.descriptor, name, folder.descriptor, new)

    def close(self) -> None:
        """Hold the directory no longer."""
        os.close(self.descriptor)

    def __enter__(self) -> Beneath:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def walk(root: int, segments: Segments, flags: int) -> int:
    """Open one name after the other below *root*, none of which may be a link."""
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
    """Return whether a file in a directory can be written before it has a name; it is tried."""
    name = temporary_name("probe")
    try:
        descriptor = os.open(".", UNNAMED, 0o600, dir_fd=folder)
    except OSError:
        return False
    try:
        _link_unnamed(descriptor, name, folder)
        os.unlink(name, dir_fd=folder)
    except OSError:  # without /proc, or where a security module forbids hard links
        return False
    finally:
        os.close(descriptor)
    return True


def _link_unnamed(descriptor: int, name: str, folder: int) -> None:
    os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder, follow_symlinks=True)


def _step(name: str, flags: int, folder: int) -> int:
    for _ in range(TRIES):
        try:
            return os.open(name, flags, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.EMLINK:  # FreeBSD's word for a link
                raise failure(errno.ELOOP) from None
            if error.errno != errno.ENOTDIR:
                raise
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode  # this only says why, and decides nothing
        if not stat.S_ISDIR(mode):
            raise failure(errno.ELOOP if stat.S_ISLNK(mode) else errno.ENOTDIR)
    raise failure(errno.EAGAIN)


def _link_or_rename(source: int, name: str, target: int, new: str) -> None:
    """Give a file its second name and take the first; that refuses a taken name at once.

    A directory, and a file where there are no hard links, is renamed after a look at the new name: whoever takes it in
    between loses an empty directory or that file.
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
    """Return the C library, or None where Python can not call it."""
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


def _openat2(libc: Any) -> Opener | None:
    """Return an opener by openat2, or None where the kernel is too old or a filter hides it."""
    import ctypes

    how_to = ctypes.c_uint64 * 3
    call = libc.syscall
    call.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.POINTER(how_to), ctypes.c_size_t)
    call.restype = ctypes.c_long

    def opener(root: int, segments: Segments, flags: int) -> int:
        path = "/".join(segments).encode() or b"."
        how = how_to(flags & ~os.O_NOFOLLOW, 0, BENEATH)  # with O_NOFOLLOW a last link is ENOTDIR, not ELOOP
        for _ in range(TRIES):
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
    """Return a rename that refuses a taken name, or None where the C library has none."""
    import ctypes

    if not hasattr(libc, "renameat2"):
        return None

    def rename(source: int, name: str, target: int, new: str) -> None:
        if libc.renameat2(source, os.fsencode(name), target, os.fsencode(new), RENAME_NOREPLACE) < 0:
            raise failure(ctypes.get_errno())

    return rename


def _file_system(libc: Any, descriptor: int) -> int:
    """Return the number of a file system's kind, or 0."""
    import ctypes

    status = (ctypes.c_long * 32)()
    return int(status[0]) if libc.fstatfs(descriptor, status) == 0 else 0
