"""Reading of regular files: every byte counts against the limits as it is read, and no read is unbounded."""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import Any, Final

from neuroscript.errors import LimitError, SandboxError
from neuroscript.sandbox.directory import Folder, Segments, Spend, failure

CHUNK_BYTES: Final = 256 * 1024
"""Number of bytes read between two checks of the limit."""


class MeteredFile(io.FileIO):
    """The bytes of a file. The number of bytes read is reported to *spend*, which may raise."""

    def __init__(self, descriptor: int, spend: Spend) -> None:
        super().__init__(descriptor, "r")
        self._spend = spend

    def read(self, size: int | None = -1) -> bytes:
        """Return at most *size* bytes, or all remaining ones, in chunks."""
        if size is None or size < 0:
            return self.readall()
        data = super().read(size) or b""
        self._spend("fs_bytes", len(data))
        return data

    def readall(self) -> bytes:
        """Return all remaining bytes."""
        return b"".join(iter(lambda: self.read(CHUNK_BYTES), b""))

    def readinto(self, buffer: Any) -> int:
        """Read into *buffer* and return the number of bytes read."""
        count = super().readinto(buffer) or 0
        self._spend("fs_bytes", count)
        return count

    def within(self, limit: int) -> bytes:
        """Return all remaining bytes if there are at most *limit*, regardless of the file's reported size.

        Raises:
            LimitError: With the code ``limit.fs_bytes``.
        """
        parts, limit = [], max(limit, 0)
        while part := self.read(min(CHUNK_BYTES, limit + 1)):
            parts.append(part)
            limit -= len(part)
            if limit < 0:
                raise LimitError("the file has more bytes than the limit permits", code="limit.fs_bytes")
        return b"".join(parts)


def open_file(folder: Folder, segments: Segments, spend: Spend) -> MeteredFile:
    """Open a regular file. Any other kind of file is opened without blocking, examined and closed."""
    descriptor = folder.open(segments, os.O_RDONLY)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise failure(errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO)
        return MeteredFile(descriptor, spend)
    except BaseException:
        os.close(descriptor)
        raise


def digest(file: MeteredFile, algorithm: str) -> str:
    """Return the hash of all remaining bytes in hexadecimal digits.

    Raises:
        SandboxError: With the code ``sandbox.argtype``, if not every Python provides *algorithm*.
    """
    import hashlib

    if type(algorithm) is not str or algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        raise SandboxError("expected the name of a hash, such as sha256", code="sandbox.argtype", retry="model")
    total = hashlib.new(algorithm, usedforsecurity=False)
    while part := file.read(CHUNK_BYTES):
        total.update(part)
    return total.hexdigest()


def decode_text(data: bytes, encoding: str, path: str) -> str:
    """Decode *data*, with line endings unchanged.

    Raises:
        SandboxError: With the code ``sandbox.encoding``, if *data* is not valid or the encoding is unknown.
    """
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        raise SandboxError(
            f"{path}: is not valid text in that encoding", code="sandbox.encoding", retry="model"
        ) from None
