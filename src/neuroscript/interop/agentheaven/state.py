"""The state that supplies bound arguments: nested maps with dotted keys."""

from __future__ import annotations

from typing import Any

from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted


def set_default(state: dict[str, Any], key: str, value: Any) -> None:
    """Store a value under a dotted key if it is missing, and create the maps on the path.

    Raises:
        SpecError: A value on the path is not a map.

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
            raise SpecError(
                "state", [f"{quote_untrusted('.'.join(above[:count]))} is not a map, so it cannot contain keys"]
            )
    place.setdefault(last, value)


def copied_state(state: Any) -> Any:
    """Return a copy of a state: maps and lists are copied, other values such as connections are shared."""
    if isinstance(state, dict):
        return {name: copied_state(each) for name, each in state.items()}
    return [copied_state(each) for each in state] if type(state) is list else state
