"""Response bodies: decompressed in pieces, limited in size, and decoded if they are text."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from neuroscript_http.faults import fault

CHUNK_BYTES: Final = 64 * 1024
"""Bytes to decompress at once; a response never uses more memory than its limit plus this."""

GZIP: Final = 16 + zlib.MAX_WBITS

TEXT: Final = re.compile(
    r"text/[^;]*|application/(?:[a-z0-9.+-]+\+)?(?:json|xml)"
    r"|application/(?:javascript|ecmascript|yaml|toml|x-www-form-urlencoded|x-ndjson)"
)
"""Media types with text content."""

CHARSET: Final = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|([^\s;]*))", re.IGNORECASE)
CHARSETS: Final = re.compile(
    r"ascii|utf-8|utf-16(-[lb]e)?|utf-32|iso8859-(1[0-6]?|[2-9])|cp125[0-8]|koi8-[ru]|shift_jis|euc_(jp|kr)"
    r"|iso2022_jp|gb2312|gbk|gb18030|big5"
)
"""Supported charsets, by their Python names; some other Python codecs are not charsets."""

MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@attrs.frozen
class Body:
    """The decoded content of a body.

    Attributes:
        media_type: Lowercase, without parameters; empty if the response has none.
        charset: The charset that decoded the body; empty if it is not text.
        text: The decoded body, or None if it is not text.
    """

    media_type: str
    charset: str
    text: str | None


def decode_body(pieces: Iterable[bytes], coding: str, limit: int) -> Iterator[bytes]:
    """Yield a body in decoded pieces.

    Args:
        coding: The value of the content-encoding header.
        limit: Maximum bytes after decoding.

    Raises:
        ToolFailed: ``http.too_large``; ``http.bad_encoding``, if the encoding is not gzip or the data is broken.
    """
    match coding.strip().lower():
        case "" | "identity":
            plain: Iterable[bytes] = pieces
        case "gzip" | "x-gzip":
            plain = _gunzipped(pieces)
        case _:
            raise fault("bad_encoding", "the response has an unsupported content encoding; only gzip is supported")
    size = 0
    for piece in plain:
        size += len(piece)
        if size > limit:
            raise fault("too_large", f"the response has more than {limit} bytes; raise limit or request less data")
        yield piece


def content_of(body: bytes, header: str) -> Body:
    """Return the content of a body, by its content-type header.

    A body that cannot be decoded with its declared charset is not text; no charset is guessed, no character replaced.
    """
    media_type = header.partition(";")[0].strip().lower()
    if TEXT.fullmatch(media_type) is None:
        return Body(media_type, "", None)
    charset = _charset(body, header)
    try:
        return Body(media_type, charset.removesuffix("-sig"), body.decode(charset)) if charset else _none(media_type)
    except UnicodeDecodeError:
        return _none(media_type)


def as_map(body: bytes, content: Body) -> dict[str, Any]:
    """Return the part of a result for the body: as text or as bytes, never both."""
    return {
        "media_type": content.media_type,
        "charset": content.charset,
        "text": content.text,
        "bytes": body if content.text is None else None,
        "size": len(body),
    }


def _none(media_type: str) -> Body:
    return Body(media_type, "", None)


def _charset(body: bytes, header: str) -> str:
    for mark, name in MARKS:
        if body.startswith(mark):
            return name
    found = CHARSET.search(header)
    if found is None:
        return "utf-8"
    try:
        name = codecs.lookup(found[1] or found[2] or "utf-8").name
    except (LookupError, ValueError):
        return ""
    return name if CHARSETS.fullmatch(name) else ""


def _gunzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(GZIP)
    begun = False
    for piece in pieces:
        rest = piece
        while rest:
            if member.eof:
                member = zlib.decompressobj(GZIP)
            begun = True
            yield _part(member, rest)
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if begun and not member.eof:
        raise fault("bad_encoding", "the response is incomplete gzip data")


def _part(member: Any, data: bytes) -> bytes:
    try:
        part: bytes = member.decompress(data, CHUNK_BYTES)
    except zlib.error:
        raise fault("bad_encoding", "the response is not valid gzip data") from None
    return part
