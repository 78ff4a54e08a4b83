"""What tools are called: one canonical spelling, the spelling for wires that know no dot, and names spelt alike.

Source: contract sections 1 and 2; upstream ``canonicalizer.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

WORD: Final = re.compile(r"[a-z](?:_?[a-z0-9])*_?")
"""A tool's name or one segment of a group: no ``__``, which the wire keeps for itself."""

WIRE_DOT: Final = re.compile(r"__(?=[a-z])")
"""A dot on the wire; what follows it begins a word, so that a segment may end in ``_``."""

LONGEST: Final = 64
"""How many characters of a name are compared with others."""

COMPARED: Final = 2_000
"""How many names are compared letter by letter; of more, only those that begin or end alike."""


def canonical(name: str) -> str:
    """Return the one spelling of a tool's name: lower case, without any leading ``tool.``

    >>> canonical("Tool.tool.Math.Add")
    'math.add'
    """
    spelling = name.lower()
    while spelling.startswith("tool."):
        spelling = spelling[5:]
    return spelling


def upstream_name(name: str) -> str:
    """Return upstream's spelling of a canonical name: ``tool.group.name``."""
    return f"tool.{name}"


def wire_name(name: str) -> str:
    """Return the spelling for model APIs that allow no dot: ``group__name``."""
    return name.replace(".", "__")


def from_wire(name: str) -> str:
    """Return the canonical spelling of a name as a model API sends it, with dots or without.

    >>> from_wire("system__io__get")
    'system.io.get'
    """
    return canonical(WIRE_DOT.sub(".", name.lower()))


def is_word(text: str) -> bool:
    """Tell whether *text*, already lower case, can be a tool's name or one segment of a group."""
    return WORD.fullmatch(text) is not None


def is_full_name(text: str) -> bool:
    """Tell whether *text*, already canonical, can be the whole name of a tool, ``group.name``."""
    return "." in text and all(map(is_word, text.split(".")))


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return at most three of the *known* names that are spelt like *name*, the nearest first."""
    from difflib import get_close_matches

    wanted, names = name[:LONGEST].lower(), list(known)
    if len(names) > COMPARED:
        names = [each for each in names if each[:3] == wanted[:3] or each[-3:] == wanted[-3:]][:COMPARED]
    return tuple(get_close_matches(wanted, names, n=3, cutoff=0.6))
