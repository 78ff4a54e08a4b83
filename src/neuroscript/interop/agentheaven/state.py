"""A state that handles fill arguments from: maps within maps, reached by names with dots between them.

Source: seed-systems.md rows AH-12 to AH-14, AH-47.
"""

from __future__ import annotations

from typing import Any

from neuroscript.errors import SpecError
from neuroscript.io.text import shown


def set_default(state: dict[str, Any], key: str, value: Any) -> None:
    """Put a value where *key* says, with the maps on the way there, if nothing stands there yet.

    Raises:
        SpecError: Something on the way is no map.

    >>> state = {"config": {}}
    >>> set_default(state, "config.api.key", "k")
    >>> state
    {'config': {'api': {'key': 'k'}}}
    """
    *above, last = key.split(".")
    place = state
    for count, name in enumerate(above, 1):
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise SpecError("state", [f"{shown('.'.join(above[:count]))} is no map, so that nothing stands below it"])
    place.setdefault(last, value)


def copied_state(state: Any) -> Any:
    """Return a state whose maps and lists are new; all else in it is what it was, such as a connection."""
    if isinstance(state, dict):
        return {name: copied_state(each) for name, each in state.items()}
    return [copied_state(each) for each in state] if type(state) is list else state
