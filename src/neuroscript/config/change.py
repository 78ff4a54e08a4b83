"""One change in the definition of a tool, and whether existing calls continue to work."""

from __future__ import annotations

from typing import Final, Literal

import attrs

Kind = Literal["compatible", "breaking"]

NEW_DESCRIPTION: Final = "the text for models changed; review it before use"

ADDED: Final = {True: "a new required {}", False: "a new optional {}"}
"""The text for a new argument or key, by whether it is required."""


@attrs.frozen
class Change:
    """One change in a definition.

    Attributes:
        kind: ``"compatible"`` or ``"breaking"``.
        path: The part that changed, for example ``args.options.keys.depth.required``, or ``""`` for the whole.
        text: A description without values.
    """

    kind: Kind
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


def compatible(path: str, text: str) -> Change:
    """Return a change that needs no action from callers and hosts."""
    return Change("compatible", path, text)


def breaking_change(path: str, text: str) -> Change:
    """Return a change that has to be reviewed."""
    return Change("breaking", path, text)


def change_of(is_compatible: bool, path: str, text: str) -> Change:
    """Return a compatible or a breaking change."""
    return Change("compatible" if is_compatible else "breaking", path, text)
