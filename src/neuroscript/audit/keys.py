"""The key of a chain, out of a file that nobody else should read."""

from __future__ import annotations

import os
import re
from typing import Final

import attrs

from neuroscript.audit.chain import LEAST_KEY
from neuroscript.coercion.parameters import BYTES, FLAG, PATH, require, require_fields
from neuroscript.errors import AuditError
from neuroscript.io.private_files import is_shared
from neuroscript.io.text_files import open_at_once

MOST: Final = 4096
"""How many bytes a file of a key has at most."""

HEX: Final = re.compile(rb"\s*((?:[0-9A-Fa-f]{2})+)\s*")


@attrs.frozen
class KeyFile:
    """What a file of a key holds.

    Attributes:
        key: At least 32 bytes.
        is_private: Whether its owner alone may read or write the file.
    """

    key: bytes = attrs.field(repr=False)
    is_private: bool = True

    def __attrs_post_init__(self) -> None:
        require_fields("key file", self, key=BYTES, is_private=FLAG)


def read_key(path: str | os.PathLike[str]) -> KeyFile:
    """Return the key in a file: as hexadecimal digits where it holds nothing else, or else its bytes as they are.

    Raises:
        AuditError: It has fewer than 32 bytes, or more than a key has.
        OSError: The file can not be read.
    """
    require("read_key", path=(path, PATH))
    with open(path, "rb", opener=open_at_once) as file:
        data = file.read(MOST + 1)
        is_private = not is_shared(os.fstat(file.fileno()))
    if len(data) > MOST:
        raise AuditError(f"the key file has more than {MOST} bytes; a key has {LEAST_KEY} or some more")
    digits = HEX.fullmatch(data)
    key = bytes.fromhex(digits[1].decode()) if digits else data
    if len(key) < LEAST_KEY:
        raise AuditError(f"the key file holds fewer than {LEAST_KEY} bytes; make one with 'openssl rand -hex 32'")
    return KeyFile(key, is_private)
