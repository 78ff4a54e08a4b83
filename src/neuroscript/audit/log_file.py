"""Calls as JSON lines in a chain of hashes: one write for each record, by threads and processes side by side.

Source: issue "Authority", audit; reliability.md part 4.5.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import ClassVar, Final

from neuroscript.audit.chain import KEY, ZEROS, Seal, sealed
from neuroscript.audit.encoding import Forms, number_text
from neuroscript.audit.locks import lock, unlock
from neuroscript.audit.tail import recovered, tail_of
from neuroscript.coercion.parameters import FLAG, PATH, instance, optional, require
from neuroscript.errors import AuditError
from neuroscript.io.text_files import open_at_once
from neuroscript.runtime.records import CallRecord

MODE: Final = 0o600
"""Who may read a trail that is made here: its owner."""

_sync: Final = getattr(os, "fdatasync", os.fsync)


class FileAudit:
    """A trail in a file: a line when a call begins, when it has ended, and when it is refused.

    Each record is one ``write`` on a descriptor that appends, under a lock of the file, so that threads and processes
    go on with one chain. A file that is there is gone on with. A tail that a crash has torn is finished with a newline
    and a record of the kind ``recovered`` that says how many bytes are none. A write that the disk takes in part raises
    and is taken back. A device and a pipe that this process has open, such as ``/dev/stdout``, get a chain from its
    beginning, from one writer alone. A named pipe is refused, because opening it would wait for another process.

    Args:
        path: Of the file; it is made with mode 0600 where it is missing.
        key: 32 bytes or more that make the chain an HMAC-SHA-256, which finds forgers too; without it is SHA-256.
        durable: Whether each record is on the disk when `write` returns, and not only with the system.

    Attributes:
        digest_key: What the digests of arguments are keyed with, made of *key*, so that they can be compared from one
            run to the next; None without a key.

    Raises:
        SpecError: The key is too short.
        AuditError: The file is not a trail, its last record does not fit the key, it is a named pipe, or the system has
            no locks of files.
        OSError: The file can not be opened, read or written.
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
        """``seq:hash`` of the last record that this sink knows of; whoever keeps it can tell when a tail is cut."""
        return f"{self._seq}:{self._hash}"

    def write(self, record: CallRecord) -> None:
        """Append a record; when this returns, the system has it, and a crash of the process does not lose it.

        Raises:
            AuditError: The sink is closed, the file was removed or cut, or took a part of the record.
            OSError: The file can not be written.
        """
        if not isinstance(record, CallRecord):
            require("FileAudit", record=(record, instance(CallRecord)))
        members = self._forms.text(record)
        if self._pid != os.getpid() and self._file >= 0:
            self._open()
        with self._lock:
            file = self._file
            if file < 0:
                raise AuditError("the audit is closed")
            lock(file)
            try:
                self._catch_up()
                self._append(members)
            finally:
                unlock(file)
            if self._durable:
                _sync(file)

    def close(self) -> None:
        """Close the file; `head` stays."""
        if self._pid != os.getpid():  # in a forked process, whose copy of the lock nobody may ever let go
            self._lock = threading.Lock()
        with self._lock:
            file, self._file = self._file, -1
            if file >= 0:
                os.close(file)

    def _open(self) -> None:
        """Open the file anew: a process that was forked shares locks with its parent as long as it shares this."""
        inherited = self._file
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._regular = not self._path.exists() or self._path.is_file()
        access = os.O_RDWR if self._regular else os.O_WRONLY
        try:
            self._file = open_at_once(self._path, access | os.O_APPEND | os.O_CREAT, MODE)
        except OSError:
            if self._path.is_fifo():
                raise AuditError("a trail cannot be kept in a named pipe; name a file") from None
            raise
        if inherited >= 0:
            os.close(inherited)

    def _begin(self) -> None:
        """Go on where the file ends, and make its name as durable as its records."""
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
        """Learn what others have appended, and finish a tail that was torn."""
        if self._regular:
            status = os.fstat(self._file)
            if not status.st_nlink:
                raise AuditError("the file of the trail was removed")
            if status.st_size != self._size:
                self._read_tail(status.st_size)
        elif self._torn:
            self._recover(self._torn, is_open=True)

    def _read_tail(self, size: int) -> None:
        tail = tail_of(self._file, size, self._seal)
        if tail.seq < self._seq or (tail.seq == self._seq and tail.hash != self._hash):
            raise AuditError(f"the trail was cut or replaced while it was written: record {self._seq} is gone")
        self._seq, self._hash, self._size = tail.seq, tail.hash, size
        if tail.is_torn:
            self._recover(tail.torn, is_open=tail.is_open)

    def _recover(self, torn: bytes, *, is_open: bool) -> None:
        self._append(recovered(torn, number_text(time())), b"\n" if is_open else b"")
        self._torn = b""

    def _append(self, members: str, before: bytes = b"") -> None:
        line, hash = sealed(self._seq + 1, self._hash, members, self._seal)
        data = before + line
        written = os.write(self._file, data)
        if written != len(data):
            self._take_back(data[:written])
            raise AuditError(f"the file took {written} of {len(data)} bytes of a record, as a full disk does")
        self._seq, self._hash, self._size = self._seq + 1, hash, self._size + written

    def _take_back(self, part: bytes) -> None:
        """Cut off the part of a line that was written; where that can not be done, the next record finishes it."""
        if not self._regular:
            self._torn += part
            return
        with suppress(OSError):  # of a file that can only be appended to
            os.ftruncate(self._file, self._size)
