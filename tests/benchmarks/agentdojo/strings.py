"""Changes of all strings in the arguments of a call, for the files in ``disguises``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

MIN_CHARS: Final = 4
"""The least length of a string that is disguised: shorter ones pass as they are, and are often one of a few choices."""


def changed(arguments: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a copy of arguments in which each string of at least `MIN_CHARS` characters is changed."""
    return {name: _changed(value, change) for name, value in arguments.items()}


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value) if len(value) >= MIN_CHARS else value
        case list():
            return [_changed(each, change) for each in value]
        case dict():
            return {key: _changed(each, change) for key, each in value.items()}
        case _:
            return value
