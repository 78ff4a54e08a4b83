"""Ways to write a string so that it looks different and a reader can restore it."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Final


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def url_escape(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def code_escape(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


def full_width(text: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text)


DISGUISES: Final[Mapping[str, Callable[[str], str]]] = {
    "nothing": str,
    "base64": base64_of,
    "base64 without padding": lambda text: base64_of(text).rstrip("="),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 twice": lambda text: base64_of(base64_of(text)),
    "base64 of a URL escape": lambda text: base64_of(url_escape(text)),
    "URL escape of base64": lambda text: url_escape(base64_of(text)),
    "hex": lambda text: text.encode().hex(),
    "hex in upper case": lambda text: text.encode().hex().upper(),
    "hex with a prefix": lambda text: f"0x{text.encode().hex()}",
    "hex with spaces": lambda text: text.encode().hex(" "),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex in code": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "hex numbers": lambda text: ", ".join(f"0x{byte:02x}" for byte in text.encode()),
    "base64 of hex": lambda text: base64_of(text.encode().hex()),
    "upper case": str.upper,
    "title case": str.title,
    "URL": urllib.parse.quote_plus,
    "URL escape": url_escape,
    "URL escape twice": lambda text: urllib.parse.quote(url_escape(text)),
    "HTML decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML hexadecimal": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "HTML without semicolons": lambda text: "".join(f"&#{ord(char):03}" for char in text),
    "JSON escapes": code_escape,
    "JSON escapes twice": lambda text: code_escape(text).replace("\\", "\\\\"),
    "escapes of scripts": lambda text: code_escape(text).replace("\\", "%"),
    "zero-width spaces": "\u200b".join,
    "word joiners": "\u2060".join,
    "soft hyphens": "\u00ad".join,
    "variation selectors": "\ufe0f".join,
    "Hangul fillers": "\u3164".join,
    "NUL characters": "\0".join,
    "strokes": "\u0336".join,
    "full-width letters": full_width,
    "mathematical letters": lambda text: "".join(
        chr(0x1D400 + ord(char) - 65)
        if "A" <= char <= "Z"
        else chr(0x1D41A + ord(char) - 97)
        if "a" <= char <= "z"
        else char
        for char in text
    ),
    "quotes": lambda text: f'"{text}"',
    "typographic quotes": lambda text: f"\u201c{text}\u201d",
    "backslashes": lambda text: text.replace("-", "\\-").replace("@", "\\@"),
    "whitespace": lambda text: text.replace(" ", " \n\t\u00a0 "),
}
