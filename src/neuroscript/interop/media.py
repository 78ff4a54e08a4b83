"""Detection of media types from the first bytes of a value.

See the IANA media types, the signatures of each format, and the WHATWG "MIME Sniffing" standard, section 6.
"""

from __future__ import annotations

from typing import Final

BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS\x00", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
)
"""The first bytes of each media type."""

RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
"""The form type of a RIFF file, after its length."""


def media_type(value: object) -> str:
    r"""Return the media type of bytes, or ``""`` if it is unknown or the value is not bytes.

    >>> media_type(b"GIF89a\x01\x00"), media_type(b"hello")
    ('image/gif', '')
    """
    if type(value) is not bytes:
        return ""
    if value[:4] == b"RIFF":
        return RIFF.get(value[8:12], "")
    return next((kind for beginning, kind in BEGINNINGS if value.startswith(beginning)), "")
