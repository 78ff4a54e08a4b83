"""What an SDK's object holds, as plain data; without any SDK, for those of all of them are Pydantic's.

Source: issue "Models", tool calls in as the SDKs' objects or plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError


def dumped(thing: Any) -> Any:
    """Return what came over the wire of an SDK's object, at every level of plain data too, under the wire's names."""
    if isinstance(thing, Mapping):
        return {key: dumped(each) for key, each in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [dumped(each) for each in thing]
    dump = getattr(thing, "model_dump", None)
    if dump is None or isinstance(thing, type):
        return thing
    return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


def map_of(thing: Any) -> Mapping[str, Any]:
    """Return an SDK's object, or plain data, as a map.

    Raises:
        LLMError: ``llm.format``, it is something else, a page of HTML for one.
    """
    data = dumped(thing)
    if not isinstance(data, Mapping):
        raise strange(f"expected a map, got {type_name(data)}")
    return data


def maps_in(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of maps that stands under *key*; where nothing stands there, none.

    Raises:
        LLMError: ``llm.format``, it is something else.
    """
    found = data.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise strange(f"{key}: expected a list of maps, got {type_name(found)}")
    return found


def map_in(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the map that stands under *key*, an empty one where nothing does; `LLMError` for something else."""
    found = data.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise strange(f"{key}: expected a map, got {type_name(found)}")
    return found or {}


def text_in(data: Mapping[str, Any], key: str) -> str:
    """Return the text that stands under *key*, ``""`` where nothing does; `LLMError` for something else."""
    found = data.get(key)
    if found is not None and not isinstance(found, str):
        raise strange(f"{key}: expected string, got {type_name(found)}")
    return found or ""


def count_in(data: Mapping[str, Any], *keys: str) -> int:
    """Return the sum of the whole numbers that stand under *keys*; what is none counts as 0."""
    found = [data.get(key) for key in keys]
    return sum(each for each in found if type(each) is int and each > 0)


def strange(why: str) -> LLMError:
    """Return what is said of an answer of another shape."""
    return LLMError(f"what the server sent is no reply: {why}", code="llm.format", retry="host")
