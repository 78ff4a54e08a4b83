"""Atomic writes: a file has either its old content or the new one, whatever happens meanwhile.

The content is written to an unnamed file, flushed to the disk, and then replaces the old file. The system removes an
unnamed file if its writer is killed. To replace an existing file, it needs the name ``.<name>.<random>.tmp`` for a
moment; a process killed in that moment leaves the temporary file behind. On file systems without unnamed files, a
process killed at any time during the write leaves it behind. Such files are never deleted here, because a name does not
prove that a file is not the user's own.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Final

from neuroscript.coercion.scalars import STRING_ENCODING, lax_blob, lax_string
from neuroscript.errors import SandboxError
from neuroscript.sandbox.directory import Folder, failure

NAME_KEPT: Final = 200
"""Bytes of a file's name that its temporary name contains, so that it does not exceed the maximum length."""

PERMISSIONS: Final = 0o777
MAX_ATTEMPTS: Final = 32


def replace(folder: Folder, name: str, data: memoryview) -> None:
    """Replace the content of a file. An existing file keeps its permissions, and its content if anything fails."""
    permissions = _permissions(folder, name)
    temporary = temporary_name(name)
    descriptor = folder.create_unnamed()
    if descriptor is None:
        descriptor = folder.create(temporary, os.O_RDWR)
    try:
        _fill(descriptor, data, permissions)
        folder.put(descriptor, temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.unlink(temporary)
        raise


def plain(data: object) -> memoryview:
    """Return the bytes to write.

    Raises:
        SandboxError: With the code ``sandbox.argtype``, unless *data* is bytes, a bytearray or a memoryview.
    """
    content = lax_blob(data) if isinstance(data, (bytes, bytearray, memoryview)) else None
    if type(content) is not bytes:
        raise SandboxError("data must be bytes", code="sandbox.argtype", retry="model")
    return memoryview(content)


def encode_text(text: object) -> memoryview:
    """Return a string to write as UTF-8.

    Raises:
        SandboxError: With the code ``sandbox.argtype`` if it is not a string, or ``sandbox.encoding`` if it contains
            lone surrogates.
    """
    content = lax_string(text)
    if type(content) is str:
        return memoryview(content.encode())
    if content is STRING_ENCODING:
        raise SandboxError(f"data: {STRING_ENCODING.hint}", code="sandbox.encoding", retry="model")
    raise SandboxError("data must be a string", code="sandbox.argtype", retry="model")


def temporary_name(name: str) -> str:
    """Return a file name that is not in use."""
    stem = name.encode()[:NAME_KEPT].decode(errors="ignore")
    return f".{stem}.{os.urandom(8).hex()}.tmp"


def append(folder: Folder, name: str, data: memoryview) -> None:
    """Append to a file, which is created if it is missing. If anything fails, the file is restored.

    The file is written in place, so a file with several hard links is refused: another link may be outside the sandbox.
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


def _permissions(folder: Folder, name: str) -> int | None:
    """Return the permissions of the file to be replaced, or None if it is missing; refuse anything but a file."""
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
    """Return a descriptor at the end of a file, and whether the file was created."""
    for _ in range(MAX_ATTEMPTS):
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
        if size < end == os.fstat(descriptor).st_size <= size + len(data):  # no other process has appended anything
            os.ftruncate(descriptor, size)
        raise
