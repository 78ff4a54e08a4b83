"""Write a file so that its content is the old or the new one, whatever happens meanwhile.

The content goes to a file without a name, from there to the disk, and then takes the place of the old one. The system
removes a file without a name when its writer is killed. To replace another file it needs a name for a moment,
``.<name>.<random>.tmp``; a process that is killed in that moment leaves it behind. On a file system without such files,
a process that is killed at any time while it writes leaves it behind. Nothing here deletes what another process left: a
name does not prove that the file is not the user's own.
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
"""How many bytes of a name its temporary one keeps, so that it is no longer than a name may be."""

PERMISSIONS: Final = 0o777
TRIES: Final = 32


def replace(folder: Folder, name: str, data: memoryview) -> None:
    """Make *data* the content of a file; an old one keeps its permissions, and its content if anything fails."""
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
    """Return a name that no file has yet."""
    kept = name.encode()[:NAME_KEPT].decode(errors="ignore")
    return f".{kept}.{os.urandom(8).hex()}.tmp"


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
