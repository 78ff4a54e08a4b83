"""Arguments for APIs that take nothing but a map of them.

Source: Anthropic documentation, "Fine-grained tool streaming", invalid JSON in tool responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.jsonable import plain
from neuroscript.jsontext import NotJSON, parsed

MALFORMED: Final = "INVALID_JSON"
"""Under which a text stands that is no JSON, so that a model can see what it wrote."""

IN_ORDER: Final = "arguments"
"""Under which arguments stand that were given in order."""


def mapped(arguments: Any) -> dict[str, Any]:
    """Return the arguments of a `ToolCall` as a map that JSON holds.

    >>> mapped('{"a": 1}'), mapped('{"a": '), mapped([1, 2])
    ({'a': 1}, {'INVALID_JSON': '{"a": '}, {'arguments': [1, 2]})
    """
    given = read(arguments)
    if isinstance(given, Mapping):
        return {str(key): plain(each) for key, each in given.items()}
    if isinstance(given, str):
        return {MALFORMED: given}
    return {IN_ORDER: plain(given)} if given else {}


def renamed(arguments: Any, keys: Mapping[str, str]) -> Any:
    """Return arguments with other names for some of them, where they are a map; everything else as it is.

    >>> renamed({"$top": 1, "b": 2}, {"$top": "_top"})
    {'_top': 1, 'b': 2}
    """
    if not keys or not isinstance(arguments, Mapping):
        return arguments
    return {keys.get(name, name): each for name, each in arguments.items()}


def read(arguments: Any) -> Any:
    """Return what the JSON text of arguments says, where it is a map or a list; everything else as it is."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.strip():
        return {}
    try:
        said = parsed(arguments)
    except NotJSON:
        return arguments
    return said if isinstance(said, (dict, list)) else arguments
