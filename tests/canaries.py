"""Canary values: random strings in eight encodings, each behind its own label, and the search for them."""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
from collections.abc import Callable
from urllib.parse import quote

import attrs

ODD = " \"'&<>?%\\~é"
"""Characters that each encoding writes differently; their base64 contains ``+`` and ``/``."""

ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "JSON": json.dumps,
    "repr": repr,
    "URL": lambda text: quote(text, safe=""),
    "HTML": html.escape,
    "hex": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}


@attrs.frozen
class Canary:
    """A random string that occurs nowhere else.

    Attributes:
        text: The value to hide, with characters that each encoding writes differently.
        word: The same for names and paths: letters and digits only.
    """

    first: str = attrs.field(factory=lambda: _random())
    last: str = attrs.field(factory=lambda: _random())

    @property
    def text(self) -> str:
        return f"{self.first}{ODD}{self.last}"

    @property
    def word(self) -> str:
        return f"{self.first}{self.last}"

    def traces(self, encoding: str) -> set[str]:
        """Return strings, one of which remains in any encoding that contains this value."""
        ends = (self.first.encode(), self.last.encode())
        match encoding:
            case "hex":
                return {end.hex() for end in ends} | {end.hex().upper() for end in ends}
            case "base64" | "base64url":
                return {_core(end, shift) for end in ends for shift in range(3)}
            case _:
                return {self.first, self.last}


def _random() -> str:
    """Return letters that are not hexadecimal digits, because records contain many of those."""
    return "".join(secrets.choice("ghijklmnopqrstuvwxyz") for _ in range(8))


def _core(data: bytes, shift: int) -> str:
    """Return the base64 characters that encode only these bytes, after a prefix of *shift* bytes."""
    return base64.b64encode(b"\0" * shift + data)[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6].decode()


def written(text: str) -> list[str]:
    """Return a string in each encoding, behind a label."""
    return [f"{label(name)}{encode(text)}" for name, encode in ENCODINGS.items()]


def bare(texts: list[str], encoding: str) -> str:
    """Return one of the strings from `written`, without its label."""
    return texts[[*ENCODINGS].index(encoding)].removeprefix(label(encoding))


def label(encoding: str) -> str:
    """Return the label of an encoded string."""
    return f"in{encoding}:"


def found(canary: Canary, text: str) -> set[str]:
    """Return the encodings that left a trace in a string."""
    return {name for name in ENCODINGS for trace in canary.traces(name) if trace in text}


def labelled(canary: Canary, text: str) -> set[str]:
    """Return the encodings that left a trace behind their own label."""
    return {
        name
        for name in ENCODINGS
        for trace in canary.traces(name)
        if re.search(f"{re.escape(label(name))}.{{0,6}}?{re.escape(trace)}", text)
    }
