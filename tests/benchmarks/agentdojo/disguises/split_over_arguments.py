"""Split each string over two arguments, two items of a list, or two words."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.agentdojo.strings import MIN_CHARS


def rewrite(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the disguised arguments of a call.

    The second half of each string becomes a word at the beginning of the next string argument, and that of the last
    string of the first one. A single string argument is split by a space, and each string of a list into two items.
    """
    names = [name for name, value in arguments.items() if isinstance(value, str) and len(value) >= MIN_CHARS]
    halves = {name: halved(arguments[name]) for name in names}
    split = {name: items_of(value) if isinstance(value, list) else value for name, value in arguments.items()}
    if len(names) == 1:
        return {**split, names[0]: " ".join(halves[names[0]])}
    before = dict(zip(names, names[-1:] + names[:-1], strict=True))
    return {**split, **{name: f"{halves[before[name]][1]} {halves[name][0]}" for name in names}}


def halved(text: str) -> tuple[str, str]:
    """Return the two halves of a string."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def items_of(items: list[Any]) -> list[Any]:
    """Return the items of a list, with two items for each string."""
    return [part for item in items for part in (halved(item) if isinstance(item, str) else (item,))]
