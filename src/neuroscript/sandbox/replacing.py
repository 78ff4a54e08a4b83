"""Writing so that a file is the old or the new one, whatever happens meanwhile, and clearing up after who was killed.

What is written goes into a temporary file beside the old one, ``.<name>.<process>-<random>.tmp``, to the disk, and then
takes the name. A file that is being written is locked, so that a left-over can be told from it.

Source: reliability.md part 2.3, invariant I17.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from itertools import islice
from typing import Final

from neuroscript.errors import SandboxError
from neuroscript.sandbox.folder import Folder, Segments, failure
from neuroscript.scalars import STRING_ENCODING, lax_blob, lax_string

TEMPORARY: Final = re.compile(r"\..*\.(\d{1,10})-[0-9a-f]{16}\.tmp", re.DOTALL)
NAME_KEPT: Final = 200
"""How many bytes of a name its temporary one keeps, so that it is no longer than a name may be."""

SWEPT: Final = 20_000
"""How many names are looked at for left-overs, those near the root first; it takes some 20 ms."""

PERMISSIONS: Final = 0o777
TRIES: Final = 32


def replace(folder: Folder, name: str, data: memoryview) -> None:
    """Make *data* the content of a file; an old one keeps its permissions, and its content if anything fails."""
    permissions = _permissions(folder, name)
    temporary = temporary_name(name)
    descriptor = folder.create(temporary, os.O_RDWR)
    try:
        _fill(descriptor, data, permissions)
        folder.put(descriptor, temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.unlink(temporary)
        raise


def plain(data: object) -> memoryview:
    """Return the bytes that are to be written.

    Raises:
        SandboxError: ``sandbox.argtype`` if it is none of bytes, bytearray and memoryview.
    """
    content = lax_blob(data) if isinstance(data, (bytes, bytearray, memoryview)) else None
    if type(content) is not bytes:
        raise SandboxError("what is written must be bytes", code="sandbox.argtype", retry="model")
    return memoryview(content)


def encoded(text: object) -> memoryview:
    """Return the bytes of a text that is to be written, as UTF-8.

    Raises:
        SandboxError: ``sandbox.argtype`` if it is no text, ``sandbox.encoding`` if it has lone surrogates.
    """
    content = lax_string(text)
    if type(content) is str:
        return memoryview(content.encode())
    if content is STRING_ENCODING:
        raise SandboxError(f"what is written: {STRING_ENCODING.hint}", code="sandbox.encoding", retry="model")
    raise SandboxError("what is written must be a text", code="sandbox.argtype", retry="model")


def temporary_name(name: str) -> str:
    """Return a name that nobody has yet, and that says which process took it."""
    kept = name.encode()[:NAME_KEPT].decode(errors="ignore")
    return f".{kept}.{os.getpid()}-{os.urandom(8).hex()}.tmp"


def append(folder: Folder, name: str, data: memoryview) -> None:
    """Add *data* to the end of a file, which is made if it is missing; if anything fails, it is as it was.

    The file is written in place, so one that has a second name is refused: that may lie outside.
    """
    descriptor, created = _opened_at_end(folder, name)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise failure(errno.ENXIO)
        if status.st_nlink > 1:
            raise failure(errno.EMLINK)
        _add(descriptor, data, status.st_size)
    except BaseException:
        if created:
            with suppress(OSError):
                folder.unlink(name)
        raise
    finally:
        os.close(descriptor)


def sweep(root: Folder) -> None:
    """Remove the temporary files of processes that did not live to do it; what can not be removed stays."""
    left = SWEPT
    waiting: list[Segments] = [()]
    while waiting and left > 0:
        segments = waiting.pop(0)
        with suppress(OSError), root.below(segments) as folder:
            for each in islice(folder.scan(), left):
                left -= 1
                if each.is_dir(follow_symlinks=False):
                    waiting.append((*segments, each.name))
                else:
                    _remove_left_over(folder, each.name)


def _remove_left_over(folder: Folder, name: str) -> None:
    """Remove a temporary file that no process writes; in another container, one may have the number of one here."""
    match = TEMPORARY.fullmatch(name)
    if match is None or (int(match[1]) != os.getpid() and _runs(int(match[1]))):
        return
    with suppress(OSError):
        if not _is_locked(folder, name):
            folder.unlink(name)


def _runs(process: int) -> bool:
    if os.name == "nt":  # there a signal would end it, and an open file can not be removed anyway
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _is_locked(folder: Folder, name: str) -> bool:
    descriptor = folder.open((name,), os.O_RDONLY)
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed, without waiting; True also where there are no such locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock

        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


def _permissions(folder: Folder, name: str) -> int | None:
    """Return the permissions of the file that is to be replaced, None where there is none; nothing else is replaced."""
    try:
        mode = folder.status(name).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise failure(errno.ELOOP)
    if not stat.S_ISREG(mode):
        raise failure(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO)
    return mode & PERMISSIONS


def _fill(descriptor: int, data: memoryview, permissions: int | None) -> None:
    try:
        _lock(descriptor)
        if permissions is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, permissions)
        _write(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _opened_at_end(folder: Folder, name: str) -> tuple[int, bool]:
    """Return a descriptor at the end of a file, and whether the file was made for it."""
    for _ in range(TRIES):
        with suppress(FileExistsError):
            return folder.create(name, os.O_WRONLY | os.O_APPEND), True
        with suppress(FileNotFoundError):
            return folder.open((name,), os.O_WRONLY | os.O_APPEND), False
    raise failure(errno.EAGAIN)


def _add(descriptor: int, data: memoryview, size: int) -> None:
    try:
        _write(descriptor, data)
    except OSError:
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if size < end == os.fstat(descriptor).st_size <= size + len(data):  # nobody else has added anything
            os.ftruncate(descriptor, size)
        raise
