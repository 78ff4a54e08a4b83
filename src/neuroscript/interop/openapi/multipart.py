"""Multipart forms: fields and files in one request body.

See RFC 7578 and RFC 2046, section 5.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import attrs


@attrs.frozen
class Part:
    """One field or file.

    Attributes:
        name: The name of the field.
        content: Its value.
        media_type: Its media type; ``""`` means text.
        is_file: Whether the part has a file name, without which servers do not accept it as a file.
    """

    name: str
    content: bytes
    media_type: str = ""
    is_file: bool = False

    def written(self) -> bytes:
        """Return the part with its headers. The name of the field is also the name of the file."""
        name = _quoted(self.name)
        lines = [f"Content-Disposition: form-data; name={name}{f'; filename={name}' if self.is_file else ''}"]
        if self.media_type:
            lines.append(f"Content-Type: {self.media_type}")
        return "\r\n".join([*lines, "", ""]).encode() + self.content + b"\r\n"


def join_parts(parts: Iterable[Part]) -> tuple[bytes, str]:
    """Return the body and its media type.

    The boundary depends only on the parts, so that equal calls send equal requests, and no part contains it.
    """
    written = [part.written() for part in parts]
    boundary = sha256(b"".join(written)).hexdigest()
    while any(boundary.encode() in each for each in written):
        boundary = sha256(boundary.encode()).hexdigest()
    line = f"--{boundary}".encode()
    body = b"".join(line + b"\r\n" + each for each in written)
    return body + line + b"--\r\n", f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    """Return a name as browsers write it, so that it cannot end the header.

    >>> _quoted('a"b')
    '"a%22b"'
    """
    for character, escape in (("\r", "%0D"), ("\n", "%0A"), ('"', "%22")):
        name = name.replace(character, escape)
    return f'"{name}"'
