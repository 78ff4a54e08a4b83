"""The encoded forms in which a secret may appear: raw, and in JSON, code, URLs, HTML and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from neuroscript.io.text import quote_untrusted

MIN_SECRET_CHARS: Final = 6
"""Minimum length of a secret, in characters or bytes; redacting a shorter one would also redact unrelated text."""

URL_SAFE: Final = str.maketrans("+/", "-_")
IN_SCRIPTS: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
"""JSON escapes for embedding in HTML, as written by Go's encoder, for example."""

ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
"""One JSON escape and its digits."""

UNQUOTED: Final = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""Characters left unescaped in URLs by ``quote_plus``, ``quote``, ``encodeURIComponent`` and ``encodeURI``."""

QUOTES: Final = (('"', "'"), ("&quot;", "&#x27;"), ("&quot;", "&#39;"), ("&#34;", "&#39;"), ("&quot;", "'"))
"""HTML escapes of the two quotation marks, by encoders that escape neither, both or only the double one."""


class Form(NamedTuple):
    """One form of a secret.

    Attributes:
        text: The string to search for.
        before: Whether a base64 character before it may also encode bits of the secret.
        after: Whether a base64 character after it may, and ``=`` may follow.
    """

    text: str
    before: bool = False
    after: bool = False


def forms_of(secret: str | bytes) -> frozenset[Form]:
    """Return the forms of a secret: raw, JSON, repr, URL, HTML, hexadecimal digits and base64, as text and as bytes.

    The secret is also hidden without surrounding whitespace, because the line end of a file is often stripped, and with
    several lines joined into one.
    """
    folded = " ".join(secret.split()) if isinstance(secret, str) else b" ".join(secret.split())
    others = {secret.strip(), folded} - {secret}
    written = (secret, *(each for each in others if len(each) >= MIN_SECRET_CHARS))
    return frozenset(form for each in written for form in _forms(each))


def _forms(secret: str | bytes) -> Iterator[Form]:
    data = _bytes_of(secret) if isinstance(secret, str) else bytes(secret)
    texts = _read(secret)
    inner = {*_repr_of_bytes(data), *(form for text in texts for form in (*_escaped(text), *_html(text)))}
    written = inner.union(texts, map(quote_untrusted, texts), *map(_json, texts), *map(_escaped, inner), _url(data))
    for text in (*written, data.hex(), data.hex().upper()):
        yield Form(text)
        if not text.isascii():  # UTF-8 bytes that are decoded as characters
            yield Form(_bytes_of(text).decode("latin-1"))
    yield from _base64(data)


def _bytes_of(text: str) -> bytes:
    """Return the bytes of a string, which may contain lone surrogates: in the environment they stand for bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _read(secret: str | bytes) -> set[str]:
    """Return the strings that a secret may be decoded as."""
    if isinstance(secret, str):
        return {secret}
    return {secret.decode("utf-8", "surrogateescape"), secret.decode("latin-1")}


def _escaped(text: str) -> Iterator[str]:
    """Yield a string in JSON and repr form, and these forms escaped once more."""
    from json import dumps

    yield dumps(text)[1:-1]
    yield dumps(text, ensure_ascii=False)[1:-1]
    for write in (repr, ascii):
        yield from _quoted(write(f'"{text}')[2:-1])


def _json(text: str) -> Iterator[str]:
    """Yield a string as other JSON encoders write it."""
    from json import dumps

    for ascii_alone in (True, False):
        once = dumps(text, ensure_ascii=ascii_alone)[1:-1]
        yield from (once.replace("/", r"\/"), once.translate(IN_SCRIPTS))
        yield ESCAPE.sub(lambda found: rf"\u{found[1].upper()}" if found[1] else found[0], once)


def _repr_of_bytes(data: bytes) -> Iterator[str]:
    return _quoted(repr(b'"%s' % data)[3:-1])


def _quoted(body: str) -> Iterator[str]:
    """Yield the contents of a quoted string, for each style of quotation mark."""
    yield body
    yield body.replace(r"\'", "'")


def _html(text: str) -> Iterator[str]:
    from html import escape

    escaped = escape(text, quote=False)
    for double, single in QUOTES:
        yield escaped.replace('"', double).replace("'", single)


def _url(data: bytes) -> Iterator[str]:
    from urllib.parse import quote_from_bytes

    quoted = {quote_from_bytes(data, safe) for safe in UNQUOTED} | {"".join(f"%{byte:02X}" for byte in data)}
    for each in quoted:
        yield from _cases(each)
        yield from _cases(each.replace("%20", "+"))


def _cases(quoted: str) -> Iterator[str]:
    yield quoted
    yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)


def _base64(data: bytes) -> Iterator[Form]:
    """Yield the parts of a secret in base64 that do not depend on neighbouring bytes, for each alignment."""
    from base64 import b64encode

    for offset, unsure in enumerate((0, 2, 3)):
        whole = b64encode(bytes(offset) + data).decode().rstrip("=")
        after = (offset + len(data)) % 3 != 0
        sure = whole[unsure : len(whole) - after]
        in_urls = sure.replace("+", "%2B").replace("/", "%2F")
        for each in (sure, sure.translate(URL_SAFE), *_cases(in_urls)):
            yield Form(each, offset > 0, after)
