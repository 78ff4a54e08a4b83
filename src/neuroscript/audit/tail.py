"""The end of a trail that somebody goes on with: its last record, and what a crash or a full disk left behind it.

Source: reliability.md part 4.5, torn tails.
"""

from __future__ import annotations

import hashlib
import os
from io import BytesIO
from typing import Final

import attrs

from neuroscript.audit.chain import LONGEST, START, ZEROS, Line, Seal, line_of
from neuroscript.errors import AuditError

FIRST_LOOK: Final = 64 * 1024
"""How many bytes are read to find the last record; four times as many each time that there is none in them."""


@attrs.frozen
class Tail:
    """How a trail ends.

    Attributes:
        seq: The number of its last record, 0 where there is none.
        hash: The hash of that.
        torn: The bytes behind it that are no record, with a newline at their end even where the file has none.
        is_open: Whether the file lacks a newline at its end, behind those bytes or behind the record itself.
    """

    seq: int = 0
    hash: str = ZEROS
    torn: bytes = b""
    is_open: bool = False

    @property
    def is_torn(self) -> bool:
        """Whether somebody has to finish it."""
        return self.is_open or bool(self.torn)


def tail_of(file: int, size: int, seal: Seal) -> Tail:
    """Return how the first *size* bytes of a file end.

    Args:
        file: A descriptor that can be read.

    Raises:
        AuditError: The file is no trail, or its last record does not fit the key.
        OSError: It can not be read.
    """
    line, rest, is_open = _last(file, size)
    if line is not None and not seal.fits(line):
        raise AuditError(
            f"record {line.seq} at the end of the trail does not fit the key: it was written with another key or "
            "without one, or edited; verify the trail, and write to another file"
        )
    if not _is_torn(rest):
        where = "the file is no trail" if line is None else f"what follows record {line.seq} in the trail is no record"
        raise AuditError(f"{where}; verify it, and write to another file")
    return Tail(0, ZEROS, rest, is_open) if line is None else Tail(line.seq, line.hash, rest, is_open)


def recovered(torn: bytes, time: str) -> str:
    """Return the members of the record that follows a torn tail.

    Args:
        torn: The bytes that are no record, up to the newline before this record.
        time: The present one, as JSON.
    """
    return f'"kind":"recovered","time":{time},"cut":{len(torn)},"sha256":"{hashlib.sha256(torn).hexdigest()}"'


def _last(file: int, size: int) -> tuple[Line | None, bytes, bool]:
    """Return the last line that has the form of a record, all behind it, and whether a newline is missing at the end.

    The missing newline stands in what is returned: a record without it is whole, and will be one when it is finished.
    """
    wanted = FIRST_LOOK
    while True:
        start = max(0, size - wanted)
        lines = BytesIO(_read(file, start, size)).readlines()
        is_open = bool(lines) and not lines[-1].endswith(b"\n")
        if is_open:
            lines[-1] += b"\n"
        rest: list[bytes] = []
        for raw in reversed(lines if start == 0 else lines[1:]):
            line = line_of(raw)
            if line is not None:
                return line, b"".join(reversed(rest)), is_open
            rest.append(raw)
        if start == 0 or wanted > 2 * LONGEST:
            return None, b"".join(reversed(rest)), is_open
        wanted *= 4


def _read(file: int, start: int, end: int) -> bytes:
    parts: list[bytes] = []
    while start < end:
        part = os.pread(file, end - start, start)
        if not part:
            raise AuditError("the trail became shorter while it was read")
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _is_torn(rest: bytes) -> bool:
    """Tell whether bytes behind a record can be what a write left that was cut: at most that, and one try to go on."""
    parts = rest.removesuffix(b"\n").split(b"\n")
    return len(parts) <= 2 and all(_is_fragment(part) for part in parts)


def _is_fragment(part: bytes) -> bool:
    return part.startswith(START) or START.startswith(part.rstrip(b"\0"))
