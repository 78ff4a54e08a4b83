"""Plain data from SDK objects. No SDK is imported, because the objects of all SDKs are Pydantic models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroscript.coercion.context import type_name
from neuroscript.errors import LLMError


def to_plain_data(value: Any) -> Any:
    """Return the wire data of an SDK object, with the API's names; objects nested in plain data are converted too."""
    if isinstance(value, Mapping):
        return {key: to_plain_data(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain_data(each) for each in value]
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        return value
    return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)


def map_of(value: Any) -> Mapping[str, Any]:
    """Return an SDK object or plain data as a map.

    Raises:
        LLMError: ``llm.format``, if it is anything else, such as an HTML page.
    """
    data = to_plain_data(value)
    if not isinstance(data, Mapping):
        raise format_error(f"expected a map, got {type_name(data)}")
    return data


def maps_in(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of maps under *key*, or an empty list if it is missing.

    Raises:
        LLMError: ``llm.format``, if it is anything else.
    """
    found = data.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise format_error(f"{key}: expected a list of maps, got {type_name(found)}")
    return found


def map_in(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the map under *key*, or an empty map if it is missing; `LLMError` for anything else."""
    found = data.get(key)
    if found is not None and not isinstance(found, Mapping):
        raise format_error(f"{key}: expected a map, got {type_name(found)}")
    return found or {}


def text_in(data: Mapping[str, Any], key: str) -> str:
    """Return the string under *key*, or ``""`` if it is missing; `LLMError` for anything else."""
    found = data.get(key)
    if found is not None and not isinstance(found, str):
        raise format_error(f"{key}: expected string, got {type_name(found)}")
    return found or ""


def count_in(data: Mapping[str, Any], *keys: str) -> int:
    """Return the sum of the positive integers under *keys*; other values count as 0."""
    found = [data.get(key) for key in keys]
    return sum(each for each in found if type(each) is int and each > 0)


def format_error(why: str) -> LLMError:
    """Return the error for a response in the wrong format."""
    return LLMError(f"the server did not send a valid reply: {why}", code="llm.format", retry="host")
