"""The forms in which a secret may be met: as it is, and as it is written in JSON, code, URLs, HTML and bytes.

Source: reliability.md parts 4.5 and 5.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from neuroscript.io.text import shown

SHORTEST: Final = 6
"""Characters, or bytes, of a secret; hiding a shorter one would hide much else."""

URL_SAFE: Final = str.maketrans("+/", "-_")
IN_SCRIPTS: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
"""How JSON is written by those who put it into HTML, Go's encoder among them."""

ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
"""One escape of JSON, and the digits in it."""

UNQUOTED: Final = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""What is left as it is in URLs: by ``quote_plus``, ``quote``, ``encodeURIComponent`` and ``encodeURI``."""

QUOTES: Final = (('"', "'"), ("&quot;", "&#x27;"), ("&quot;", "&#39;"), ("&#34;", "&#39;"), ("&quot;", "'"))
"""How the two quotes are written in HTML, by those who escape neither, both or the double one."""


class Form(NamedTuple):
    """One form of a secret.

    Attributes:
        text: What is looked for.
        before: Whether a character before it, of base64, has bits of the secret too.
        after: Whether a character behind it has, and ``=`` may follow.
    """

    text: str
    before: bool = False
    after: bool = False


def forms_of(secret: str | bytes) -> frozenset[Form]:
    """Return the forms of a secret: raw, JSON, repr, URL, HTML, hexadecimal digits and base64, as text and as bytes.

    What stands between blanks is hidden without them too: a file ends with a line, and who reads it strips that. So is
    what has several lines where they are made one.
    """
    folded = " ".join(secret.split()) if isinstance(secret, str) else b" ".join(secret.split())
    others = {secret.strip(), folded} - {secret}
    written = (secret, *(each for each in others if len(each) >= SHORTEST))
    return frozenset(form for each in written for form in _forms(each))


def _forms(secret: str | bytes) -> Iterator[Form]:
    data = _bytes_of(secret) if isinstance(secret, str) else bytes(secret)
    texts = _read(secret)
    inner = {*_repr_of_bytes(data), *(form for text in texts for form in (*_escaped(text), *_html(text)))}
    written = inner.union(texts, map(shown, texts), *map(_json, texts), *map(_escaped, inner), _url(data))
    for text in (*written, data.hex(), data.hex().upper()):
        yield Form(text)
        if not text.isascii():  # as the bytes of UTF-8 are, read as characters
            yield Form(_bytes_of(text).decode("latin-1"))
    yield from _base64(data)


def _bytes_of(text: str) -> bytes:
    """Return the bytes of a text, which may hold lone surrogates: in the environment they stand for bytes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _read(secret: str | bytes) -> set[str]:
    """Return the texts that a secret may be read as."""
    if isinstance(secret, str):
        return {secret}
    return {secret.decode("utf-8", "surrogateescape"), secret.decode("latin-1")}


def _escaped(text: str) -> Iterator[str]:
    """Yield a text in JSON and in repr; what is in some form is often a part of what is written so in its turn."""
    from json import dumps

    yield dumps(text)[1:-1]
    yield dumps(text, ensure_ascii=False)[1:-1]
    for write in (repr, ascii):
        yield from _quoted(write(f'"{text}')[2:-1])


def _json(text: str) -> Iterator[str]:
    """Yield a text in JSON as others write it."""
    from json import dumps

    for ascii_alone in (True, False):
        once = dumps(text, ensure_ascii=ascii_alone)[1:-1]
        yield from (once.replace("/", r"\/"), once.translate(IN_SCRIPTS))
        yield ESCAPE.sub(lambda found: rf"\u{found[1].upper()}" if found[1] else found[0], once)


def _repr_of_bytes(data: bytes) -> Iterator[str]:
    return _quoted(repr(b'"%s' % data)[3:-1])


def _quoted(body: str) -> Iterator[str]:
    """Yield what stands between quotes, by which of them they are."""
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
    """Yield what is sure of a secret in base64, by how many bytes stand before it."""
    from base64 import b64encode

    for offset, unsure in enumerate((0, 2, 3)):
        whole = b64encode(bytes(offset) + data).decode().rstrip("=")
        after = (offset + len(data)) % 3 != 0
        sure = whole[unsure : len(whole) - after]
        in_urls = sure.replace("+", "%2B").replace("/", "%2F")
        for each in (sure, sure.translate(URL_SAFE), *_cases(in_urls)):
            yield Form(each, offset > 0, after)
