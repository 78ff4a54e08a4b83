"""One line of a trail: a record, its number, the hash of the line before it, and a hash over all of that.

``{"seq":2,"prev":"<hash of line 1>",…,"hash":"<64 hexadecimal digits>"}`` and a newline. The hash is taken over the
exact bytes before ``,"hash":"``.

Source: reliability.md part 4.5.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final, NamedTuple

from neuroscript.coercion.parameters import BYTES, Form, optional, require
from neuroscript.errors import AuditError, SpecError

START: Final = b'{"seq":'
"""What every line begins with."""

ZEROS: Final = "0" * 64
"""What stands for the hash of the line before the first."""

LONGEST: Final = 16 * 1024 * 1024
"""How many bytes a line may have."""

LEAST_KEY: Final = 32
"""How many bytes a key has at least."""

KEY: Final = Form(f"{LEAST_KEY} bytes or more", BYTES.accepts, lambda key: len(key) >= LEAST_KEY)
LINE: Final = re.compile(
    rb'\{"seq":([1-9][0-9]{0,17}),"prev":"([0-9a-f]{64})",[^\n]*,"hash":"([0-9a-f]{64})"\}\n', re.ASCII
)
HEAD: Final = re.compile(r"(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")
_END: Final = len(f',"hash":"{ZEROS}"}}\n')


class Line(NamedTuple):
    """A line that has the form of one.

    Attributes:
        seq: Its number, from 1.
        prev: The hash of the line before it.
        hash: Its own hash, as it says.
        body: The bytes under the hash.
    """

    seq: int
    prev: str
    hash: str
    body: bytes


class Seal:
    """What makes the hash of a line.

    Args:
        key: With one the hash is HMAC-SHA-256, without it is SHA-256.

    Raises:
        SpecError: The key is shorter than `LEAST_KEY` bytes.
    """

    def __init__(self, key: bytes | None = None) -> None:
        require("audit", key=(key, optional(KEY)))
        self._key = None if key is None else bytes(key)

    @property
    def is_keyed(self) -> bool:
        """Whether nobody without the key can make the hash."""
        return self._key is not None

    def of(self, body: bytes) -> str:
        """Return the hash of some bytes, in hexadecimal digits."""
        if self._key is None:
            return hashlib.sha256(body).hexdigest()
        return hmac.digest(self._key, body, "sha256").hex()

    def fits(self, line: Line) -> bool:
        """Tell whether a line has the hash that it should have."""
        return hmac.compare_digest(self.of(line.body), line.hash)


def sealed(seq: int, prev: str, members: str, seal: Seal) -> tuple[bytes, str]:
    """Return a line with its newline, and its hash.

    Args:
        members: Those of the record, as JSON in ASCII without the braces.

    Raises:
        AuditError: The line is longer than `LONGEST`.
    """
    body = f'{{"seq":{seq},"prev":"{prev}",{members}'.encode("ascii")
    if len(body) + _END > LONGEST:
        raise AuditError(f"a record has more than {LONGEST} bytes")
    hash = seal.of(body)
    return b'%b,"hash":"%b"}\n' % (body, hash.encode()), hash


def line_of(raw: bytes) -> Line | None:
    """Return the line that some bytes are, or None where they are none to the last byte."""
    found = LINE.fullmatch(raw)
    if found is None:
        return None
    return Line(int(found[1]), found[2].decode(), found[3].decode(), raw[:-_END])


def head_of(text: str) -> tuple[int, str]:
    """Return the number and the hash that a head such as ``12:9f…`` names.

    Raises:
        SpecError: It is no head.
    """
    found = HEAD.fullmatch(text)
    if found is None:
        raise SpecError("audit", ["head must be seq:hash, as 'audit tail' prints it"])
    return int(found[1]), found[2]
