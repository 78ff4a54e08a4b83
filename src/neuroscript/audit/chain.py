"""Lines of an audit log: a record, its number, the hash of the previous line, and a hash over all of them.

``{"seq":2,"prev":"<hash of line 1>",…,"hash":"<64 hexadecimal digits>"}`` and a newline. The hash covers the exact
bytes before ``,"hash":"``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final, NamedTuple

from neuroscript.coercion.parameters import BYTES, Form, optional, require
from neuroscript.errors import AuditError, SpecError

START: Final = b'{"seq":'
"""The beginning of every line."""

ZEROS: Final = "0" * 64
"""The value of ``prev`` in the first line."""

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a line in bytes."""

MIN_KEY_BYTES: Final = 32
"""Minimum size of a key in bytes."""

KEY: Final = Form(f"{MIN_KEY_BYTES} bytes or more", BYTES.accepts, lambda key: len(key) >= MIN_KEY_BYTES)
LINE: Final = re.compile(
    rb'\{"seq":([1-9][0-9]{0,17}),"prev":"([0-9a-f]{64})",[^\n]*,"hash":"([0-9a-f]{64})"\}\n', re.ASCII
)
HEAD: Final = re.compile(r"(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")
_END: Final = len(f',"hash":"{ZEROS}"}}\n')


class Line(NamedTuple):
    """A line with the correct format.

    Attributes:
        seq: Its number, from 1.
        prev: The hash of the previous line.
        hash: Its own hash, not yet verified.
        body: The bytes that the hash covers.
    """

    seq: int
    prev: str
    hash: str
    body: bytes


class Seal:
    """Computes the hashes of lines.

    Args:
        key: With a key the hash is HMAC-SHA-256, without one SHA-256.

    Raises:
        SpecError: If the key is shorter than `MIN_KEY_BYTES` bytes.
    """

    def __init__(self, key: bytes | None = None) -> None:
        require("audit", key=(key, optional(KEY)))
        self._key = None if key is None else bytes(key)

    @property
    def is_keyed(self) -> bool:
        """Whether hashes can be computed only with a key."""
        return self._key is not None

    def of(self, body: bytes) -> str:
        """Return the hash of *body* in hexadecimal digits."""
        if self._key is None:
            return hashlib.sha256(body).hexdigest()
        return hmac.digest(self._key, body, "sha256").hex()

    def fits(self, line: Line) -> bool:
        """Return whether a line has the correct hash."""
        return hmac.compare_digest(self.of(line.body), line.hash)


def seal_line(seq: int, prev: str, members: str, seal: Seal) -> tuple[bytes, str]:
    """Return a line with its newline, and its hash.

    Args:
        members: The members of the record as ASCII JSON, without braces.

    Raises:
        AuditError: If the line is longer than `MAX_LINE_BYTES`.
    """
    body = f'{{"seq":{seq},"prev":"{prev}",{members}'.encode("ascii")
    if len(body) + _END > MAX_LINE_BYTES:
        raise AuditError(f"a record has more than {MAX_LINE_BYTES} bytes")
    hash = seal.of(body)
    return b'%b,"hash":"%b"}\n' % (body, hash.encode()), hash


def line_of(raw: bytes) -> Line | None:
    """Parse a line, or return None unless every byte of it has the correct format."""
    found = LINE.fullmatch(raw)
    if found is None:
        return None
    return Line(int(found[1]), found[2].decode(), found[3].decode(), raw[:-_END])


def head_of(text: str) -> tuple[int, str]:
    """Parse a head such as ``12:9f…`` into a number and a hash.

    Raises:
        SpecError: If *text* is not a valid head.
    """
    found = HEAD.fullmatch(text)
    if found is None:
        raise SpecError("audit", ["head must be seq:hash, as 'audit tail' prints it"])
    return int(found[1]), found[2]
