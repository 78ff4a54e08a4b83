"""The variables of a session as text."""

from __future__ import annotations

from typing import Final

import attrs

from neuroscript.console.tools.results import item_text
from neuroscript.engine.session import Session
from neuroscript.io.text import shorten

MAX_VARIABLES: Final = 500
MAX_VALUE_CHARS: Final = 500


@attrs.frozen
class ShownVariable:
    """A variable of a session.

    Attributes:
        name: Its name.
        type: The name of the type of its value.
        text: The value, shortened, with secrets replaced.
    """

    name: str
    type: str
    text: str = attrs.field(repr=False)


def variables_of(session: Session) -> list[ShownVariable]:
    """Return the variables of a session, and the constants of its host, in order."""
    found = []
    for name in tuple(session.memory.variables)[:MAX_VARIABLES]:
        value = session._without_secrets(session.memory.variables.get(name, None))
        found.append(ShownVariable(name, type(value).__name__, shorten(item_text(value), MAX_VALUE_CHARS)))
    return found
