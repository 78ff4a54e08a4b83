"""Names of fields: dotted paths with indexes, such as ``arg.options.tags.0``.

Parts that begin with ``$`` do not come from the spec: ``arg.tags.$state`` is how the value of ``arg.tags`` is read.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "arg"
"""The first part of the names of all fields."""

STATE: Final = "$state"
"""How a value is read: one of the states of `neuroscript.console.forms.controls`."""

ITEM: Final = "$item"
"""Present for each item of a list, also if the item has no fields."""

VARIANT: Final = "$variant"
"""The index of the alternative of a union."""

VALUE: Final = "$value"
"""The value of a union, or of an entry of a map."""

KEY: Final = "$key"
"""The key of an entry of a map."""

ENTRIES: Final = "$entries"
"""The entries of a map that have no declared key."""

FILE: Final = "$file"
"""The uploaded file for a byte string."""

ENCODING: Final = "$as"
"""How the text of a byte string is read: ``text`` or ``base64``."""


def child(name: str, step: str | int) -> str:
    """Return the name of a field within another one.

    >>> child("arg", "user.id"), child("arg.tags", 0)
    ('arg.user~1id', 'arg.tags.0')
    """
    return f"{name}.{step}" if isinstance(step, int) else f"{name}.{_escaped(step)}"


def part(name: str, special: str) -> str:
    """Return the name of a field that belongs to another one but is not in the spec.

    >>> part("arg.tags", STATE)
    'arg.tags.$state'
    """
    return f"{name}.{special}"


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace(".", "~1").replace("$", "~2")
