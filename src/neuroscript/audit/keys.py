"""Keys of hash chains, read from private files."""

from __future__ import annotations

import os
import re
from typing import Final

import attrs

from neuroscript.audit.chain import MIN_KEY_BYTES
from neuroscript.coercion.parameters import BYTES, FLAG, PATH, require, require_fields
from neuroscript.errors import AuditError
from neuroscript.io.private_files import is_shared
from neuroscript.io.text_files import open_at_once

MAX_KEY_FILE_BYTES: Final = 4096
"""Maximum size of a key file in bytes."""

HEX: Final = re.compile(rb"\s*((?:[0-9A-Fa-f]{2})+)\s*")


@attrs.frozen
class KeyFile:
    """The content of a key file.

    Attributes:
        key: At least 32 bytes.
        is_private: Whether only the owner can read or write the file.
    """

    key: bytes = attrs.field(repr=False)
    is_private: bool = True

    def __attrs_post_init__(self) -> None:
        require_fields("key file", self, key=BYTES, is_private=FLAG)


def read_key(path: str | os.PathLike[str]) -> KeyFile:
    """Read a key: hexadecimal digits if the file contains nothing else, otherwise its raw bytes.

    Raises:
        AuditError: If the file has fewer than 32 bytes or is too large.
        OSError: If the file cannot be read.
    """
    require("read_key", path=(path, PATH))
    with open(path, "rb", opener=open_at_once) as file:
        data = file.read(MAX_KEY_FILE_BYTES + 1)
        is_private = not is_shared(os.fstat(file.fileno()))
    if len(data) > MAX_KEY_FILE_BYTES:
        raise AuditError(f"the key file has more than {MAX_KEY_FILE_BYTES} bytes; a key has at least {MIN_KEY_BYTES}")
    digits = HEX.fullmatch(data)
    key = bytes.fromhex(digits[1].decode()) if digits else data
    if len(key) < MIN_KEY_BYTES:
        raise AuditError(f"the key file has fewer than {MIN_KEY_BYTES} bytes; create one with 'openssl rand -hex 32'")
    return KeyFile(key, is_private)
