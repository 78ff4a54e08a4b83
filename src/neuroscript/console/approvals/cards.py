"""Approval cards for pages: the parts of the card that a terminal shows, as text that cannot hide or reorder anything.

The structure of the page separates labels from values, so no value can imitate a label.
"""

from __future__ import annotations

import json
from typing import Any, Final

import attrs

from neuroscript.approval.card import CardPart, card_parts, visible_text
from neuroscript.approval.request import ApprovalRequest
from neuroscript.coercion.plain_data import to_plain

MAX_OPEN_CHARS: Final = 600
"""Maximum number of characters of a value that is shown without opening it."""

MAX_VALUE_CHARS: Final = 100_000
"""Maximum number of characters of a value that is shown at all."""


@attrs.frozen
class CardText:
    """A value on a card.

    Attributes:
        start: Its first characters, escaped.
        rest: The other ones, escaped, up to `MAX_VALUE_CHARS`.
        length: How many characters it has.
        is_cut: Whether some of them are not shown.
    """

    start: str
    rest: str
    length: int
    is_cut: bool


@attrs.frozen
class CardSection:
    """A labelled part of a card.

    Attributes:
        label: Its label.
        texts: Its values.
        is_trusted: Whether the values come from the registry, the engine or the host.
        omitted: How many further values there are.
    """

    label: str
    texts: tuple[CardText, ...]
    is_trusted: bool
    omitted: int


def card_sections(request: ApprovalRequest) -> tuple[CardSection, ...]:
    """Return the card of a request, with secrets masked."""
    return tuple(_section(part) for part in card_parts(request))


def _section(part: CardPart) -> CardSection:
    return CardSection(part.label, tuple(map(_text, part.texts)), part.is_trusted, part.omitted)


def _text(text: str) -> CardText:
    shown = text[:MAX_VALUE_CHARS]
    start, rest = visible_text(shown[:MAX_OPEN_CHARS]), visible_text(shown[MAX_OPEN_CHARS:])
    return CardText(start, rest, len(text), len(text) > MAX_VALUE_CHARS)


def arguments_text(request: ApprovalRequest) -> str:
    """Return the arguments of a request as indented JSON for editing, without the secret ones."""
    arguments: dict[str, Any] = {
        name: to_plain(value) for name, value in request.arguments.items() if name not in request.secrets
    }
    return json.dumps(arguments, indent=2, default=str)
