"""The items of a stream as a call collects them, and whoever is told of each.

Source: docs/decisions/0010-collected-streams.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from neuroscript.bodies import Item
from neuroscript.errors import CallError, LimitError
from neuroscript.walk import RESULT

COLLECTED: Final = 100_000
"""How many items of a stream a call collects into its result."""


class Collected:
    """The items of a stream that a call collects; all of them together are no larger than one result may be.

    Args:
        on_item: Is told each item as it comes.
    """

    def __init__(self, on_item: Callable[[Any], object] | None = None) -> None:
        self.items: list[Any] = []
        self._tell = on_item
        self._nodes = self._text = 0

    def add(self, item: Item) -> object:
        """Add an item, tell of it, and return what whoever was told returned.

        Raises:
            LimitError: It is more than a call collects.
            BaseException: What whoever was told raised.
        """
        self.items.append(item.value)
        self._nodes += item.nodes
        self._text += item.text
        sizes = RESULT.sizes
        if len(self.items) > COLLECTED or self._nodes > sizes.nodes or self._text > sizes.text:
            raise self._refusal(item.tool)
        return None if self._tell is None else self._tell(item.value)

    def end(self) -> None:
        """See that there is no further item."""

    def ended(self, error: CallError) -> CallError:
        """Return an error that ended the stream, as whoever collects it tells it."""
        return error

    def _refusal(self, tool: str) -> LimitError:
        sizes = RESULT.sizes
        text = f"a call collects {COLLECTED} items of a stream, {sizes.nodes} values and {sizes.text} bytes of text"
        error = LimitError(f"{text}, no more", tool=tool, code="limit.items")
        error.items = len(self.items)
        return error
