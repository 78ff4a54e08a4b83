"""The end of an existing audit log: its last record, and what a crash or a full disk left after it."""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from typing import Final

import attrs

from neuroscript.audit.chain import MAX_LINE_BYTES, START, ZEROS, Line, Seal, line_of
from neuroscript.errors import AuditError

FIRST_READ_BYTES: Final = 64 * 1024
"""Number of bytes read to find the last record; quadrupled as long as they contain none."""


@attrs.frozen
class Tail:
    """The end of an audit log.

    Attributes:
        seq: The number of the last record, or 0.
        hash: The hash of the last record.
        torn: The bytes after it that are not a record, ending in a newline even if the file does not.
        is_open: Whether the file lacks a newline at its end, after those bytes or after the record itself.
    """

    seq: int = 0
    hash: str = ZEROS
    torn: bytes = b""
    is_open: bool = False

    @property
    def is_torn(self) -> bool:
        """Whether the next writer has to finish a line."""
        return self.is_open or bool(self.torn)


def tail_of(file: int, size: int, seal: Seal) -> Tail:
    """Return the end of the first *size* bytes of a file.

    Args:
        file: A readable descriptor.

    Raises:
        AuditError: If the file is not an audit log, or its last record does not match the key.
        OSError: If the file cannot be read.
    """
    line, rest, is_open = _last_line(file, size)
    if line is not None and not seal.fits(line):
        raise AuditError(
            f"record {line.seq} at the end of the audit log does not match the key: it was edited, or written with "
            "another key or without one; verify the audit log, and write to another file"
        )
    if not _is_torn(rest):
        where = (
            "the file is not an audit log"
            if line is None
            else f"the data after record {line.seq} in the audit log is not a record"
        )
        raise AuditError(f"{where}; verify it, and write to another file")
    return Tail(0, ZEROS, rest, is_open) if line is None else Tail(line.seq, line.hash, rest, is_open)


def recovery_members(torn: bytes, time: str) -> str:
    """Return the members of the record that follows a torn tail.

    Args:
        torn: The bytes that are not a record, up to the newline before this record.
        time: The current time as JSON.
    """
    return f'"kind":"recovered","time":{time},"cut":{len(torn)},"sha256":"{hashlib.sha256(torn).hexdigest()}"'


def _last_line(file: int, size: int) -> tuple[Line | None, bytes, bool]:
    """Return the last line with the format of a record, all bytes after it, and whether the final newline is missing.

    The result includes the missing newline, because a record without it is complete and becomes valid with it.
    """
    size_to_read = FIRST_READ_BYTES
    while True:
        start = max(0, size - size_to_read)
        lines = BytesIO(_read_range(file, start, size)).readlines()
        is_open = bool(lines) and not lines[-1].endswith(b"\n")
        if is_open:
            lines[-1] += b"\n"
        rest: list[bytes] = []
        for raw in reversed(lines if start == 0 else lines[1:]):
            line = line_of(raw)
            if line is not None:
                return line, b"".join(reversed(rest)), is_open
            rest.append(raw)
        if start == 0 or size_to_read > 2 * MAX_LINE_BYTES:
            return None, b"".join(reversed(rest)), is_open
        size_to_read *= 4


def _read_range(file: int, start: int, end: int) -> bytes:
    parts: list[bytes] = []
    while start < end:
        part = os.pread(file, end - start, start)
        if not part:
            raise AuditError("the audit log became shorter while it was read")
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _is_torn(rest: bytes) -> bool:
    """Return whether bytes after a record can be from an interrupted write, and at most one attempt to continue."""
    parts = rest.removesuffix(b"\n").split(b"\n")
    return len(parts) <= 2 and all(_is_fragment(part) for part in parts)


def _is_fragment(part: bytes) -> bool:
    return part.startswith(START) or START.startswith(part.rstrip(b"\0"))
