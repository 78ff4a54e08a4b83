"""A regular file that is open for reading: each byte is spent as it is read, and nothing is read without an end.

Source: reliability.md part 2.2, T5 and T9.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Any, Final

from neuroscript.errors import LimitError, SandboxError
from neuroscript.sandbox.directory import Folder, Segments, Spend, failure

CHUNK: Final = 256 * 1024
"""How many bytes are read before it is asked whether that was too many."""


class Metered(io.FileIO):
    """The bytes of a file; the number of those that were read is told to *spend*, which may raise."""

    def __init__(self, descriptor: int, spend: Spend) -> None:
        super().__init__(descriptor, "r")
        self._spend = spend

    def read(self, size: int | None = -1) -> bytes:
        """Return at most *size* bytes, or all that are left, in chunks."""
        if size is None or size < 0:
            return self.readall()
        data = super().read(size) or b""
        self._spend("fs_bytes", len(data))
        return data

    def readall(self) -> bytes:
        """Return all that is left."""
        return b"".join(iter(lambda: self.read(CHUNK), b""))

    def readinto(self, buffer: Any) -> int:
        """Read into *buffer* and return how many bytes came."""
        count = super().readinto(buffer) or 0
        self._spend("fs_bytes", count)
        return count

    def within(self, limit: int) -> bytes:
        """Return all that is left, if that is no more than *limit* bytes, whatever size the file claims to have.

        Raises:
            LimitError: ``limit.fs_bytes``.
        """
        parts, limit = [], max(limit, 0)
        while part := self.read(min(CHUNK, limit + 1)):
            parts.append(part)
            limit -= len(part)
            if limit < 0:
                raise LimitError("the file has more bytes than may be read", code="limit.fs_bytes")
        return b"".join(parts)


def opened(folder: Folder, segments: Segments, spend: Spend) -> Metered:
    """Open a regular file; whatever else is there is opened without waiting, looked at, and closed."""
    descriptor = folder.open(segments, os.O_RDONLY)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise failure(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO)
        return Metered(descriptor, spend)
    except BaseException:
        os.close(descriptor)
        raise


def digest(file: Metered, algorithm: str) -> str:
    """Return a hash of all that is left, as hexadecimal digits.

    Raises:
        SandboxError: ``sandbox.argtype`` if *algorithm* is not one that every Python has.
    """
    import hashlib

    if type(algorithm) is not str or algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        raise SandboxError("expected the name of a hash, such as sha256", code="sandbox.argtype", retry="model")
    total = hashlib.new(algorithm, usedforsecurity=False)
    while part := file.read(CHUNK):
        total.update(part)
    return total.hexdigest()


def decoded(data: bytes, encoding: str, path: str) -> str:
    """Return the text that *data* is in an encoding, line ends as they are.

    Raises:
        SandboxError: ``sandbox.encoding`` if it is none, or there is no such encoding.
    """
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        raise SandboxError(f"{path}: is no text in that encoding", code="sandbox.encoding", retry="model") from None
