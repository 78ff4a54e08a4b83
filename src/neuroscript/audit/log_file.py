"""An audit log as JSON lines in a hash chain, written by several threads and processes at the same time."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import ClassVar, Final

from neuroscript.audit.chain import KEY, ZEROS, Seal, seal_line
from neuroscript.audit.encoding import Forms, number_text
from neuroscript.audit.locks import lock, unlock
from neuroscript.audit.tail import recovery_members, tail_of
from neuroscript.coercion.parameters import FLAG, PATH, instance, optional, require
from neuroscript.errors import AuditError
from neuroscript.io.text_files import open_at_once
from neuroscript.runtime.records import CallRecord

MODE: Final = 0o600
"""The mode of new files: only the owner can read them."""

_sync: Final = getattr(os, "fdatasync", os.fsync)


class FileAudit:
    """An audit log in a file, with one line when a call begins, when it ends, and when it is refused.

    Each record is appended in a single ``write`` under a file lock, so that threads and processes extend one chain. An
    existing file is continued. If a crash has truncated the last line, the next writer ends it with a newline and adds
    a record of the kind ``recovered`` with the number of invalid bytes. A partial write raises an error and is undone.
    A device or a pipe that this process has open, such as ``/dev/stdout``, starts a new chain and must have only one
    writer. A named pipe is refused, because opening it would wait for another process.

    Args:
        path: The path of the file; it is created with mode 0600 if it is missing.
        key: At least 32 bytes, to use HMAC-SHA-256 for the chain, which also detects forgery; the default is SHA-256.
        durable: Whether `write` flushes each record to the disk before it returns.

    Attributes:
        digest_key: The key of argument digests, derived from *key* so that digests can be compared between runs; None
            without a key.

    Raises:
        SpecError: If the key is too short.
        AuditError: If the file is not an audit log, its last record does not match the key, it is a named pipe, or the
            system does not support file locks.
        OSError: If the file cannot be opened, read or written.
    """

    intents: ClassVar[bool] = True

    def __init__(self, path: str | os.PathLike[str], *, key: bytes | None = None, durable: bool = False) -> None:
        require("FileAudit", path=(path, PATH), key=(key, optional(KEY)), durable=(durable, FLAG))
        self._path = Path(path).absolute()
        self._seal = Seal(key)
        self.digest_key = None if key is None else sha256(b"neuroscript arguments" + key).digest()
        self._durable = durable
        self._forms = Forms()
        self._seq, self._hash, self._size = 0, ZEROS, 0
        self._torn = b""
        self._file = -1
        self._open()
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def head(self) -> str:
        """``seq:hash`` of the last record known to this sink. Keep it elsewhere to detect a truncated file."""
        return f"{self._seq}:{self._hash}"

    def write(self, record: CallRecord) -> None:
        """Append a record. When this returns, the record survives a crash of the process.

        Raises:
            AuditError: If the sink is closed, or the file was removed, truncated or only partly written.
            OSError: If the file cannot be written.
        """
        if not isinstance(record, CallRecord):
            require("FileAudit", record=(record, instance(CallRecord)))
        members = self._forms.text(record)
        if self._pid != os.getpid() and self._file >= 0:
            self._open()
        with self._lock:
            file = self._file
            if file < 0:
                raise AuditError("the audit log is closed")
            lock(file)
            try:
                self._catch_up()
                self._append(members)
            finally:
                unlock(file)
            if self._durable:
                _sync(file)

    def close(self) -> None:
        """Close the file; `head` stays available."""
        if self._pid != os.getpid():  # in a forked process, which may have copied a lock that is never released
            self._lock = threading.Lock()
        with self._lock:
            file, self._file = self._file, -1
            if file >= 0:
                os.close(file)

    def _open(self) -> None:
        """Open the file again, because a forked process would share locks with its parent through this descriptor."""
        inherited = self._file
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._regular = not self._path.exists() or self._path.is_file()
        access = os.O_RDWR if self._regular else os.O_WRONLY
        try:
            self._file = open_at_once(self._path, access | os.O_APPEND | os.O_CREAT, MODE)
        except OSError:
            if self._path.is_fifo():
                raise AuditError("an audit log cannot be a named pipe; specify a file") from None
            raise
        if inherited >= 0:
            os.close(inherited)

    def _begin(self) -> None:
        """Continue at the end of the file, and make its name as durable as its records."""
        lock(self._file)
        try:
            self._catch_up()
        finally:
            unlock(self._file)
        if self._durable and self._regular:
            directory = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def _catch_up(self) -> None:
        """Read what other processes have appended, and finish a truncated line."""
        if self._regular:
            status = os.fstat(self._file)
            if not status.st_nlink:
                raise AuditError("the file of the audit log was removed")
            if status.st_size != self._size:
                self._read_tail(status.st_size)
        elif self._torn:
            self._recover(self._torn, is_open=True)

    def _read_tail(self, size: int) -> None:
        tail = tail_of(self._file, size, self._seal)
        if tail.seq < self._seq or (tail.seq == self._seq and tail.hash != self._hash):
            raise AuditError(
                f"the audit log was truncated or replaced while it was written: record {self._seq} is gone"
            )
        self._seq, self._hash, self._size = tail.seq, tail.hash, size
        if tail.is_torn:
            self._recover(tail.torn, is_open=tail.is_open)

    def _recover(self, torn: bytes, *, is_open: bool) -> None:
        self._append(recovery_members(torn, number_text(time())), b"\n" if is_open else b"")
        self._torn = b""

    def _append(self, members: str, before: bytes = b"") -> None:
        line, hash = seal_line(self._seq + 1, self._hash, members, self._seal)
        data = before + line
        written = os.write(self._file, data)
        if written != len(data):
            self._take_back(data[:written])
            raise AuditError(f"only {written} of {len(data)} bytes of a record were written; the disk may be full")
        self._seq, self._hash, self._size = self._seq + 1, hash, self._size + written

    def _take_back(self, part: bytes) -> None:
        """Remove the written part of a line; if that fails, the next record finishes the line."""
        if not self._regular:
            self._torn += part
            return
        with suppress(OSError):  # the file may be append-only
            os.ftruncate(self._file, self._size)
