"""Responses of Google's Gemini API in wire form, from SDK objects or plain data.

The Python SDK dumps its objects with snake-case keys, bytes, enums, and None for missing members. User data, such as
the arguments of a call, is not converted.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from neuroscript.llm.wire.sdk_data import map_of

USER_DATA_KEYS: Final = frozenset({"args", "response", "partMetadata", "parsed", "sdkHttpResponse"})
"""Members that hold user data, which is not converted."""


def to_wire(value: Any) -> dict[str, Any]:
    """Return an SDK object or plain data as the API writes it.

    Raises:
        LLMError: ``llm.format``, if it is not a JSON object.

    >>> to_wire({"usage_metadata": {"prompt_token_count": 5, "total_token_count": None}})
    {'usageMetadata': {'promptTokenCount': 5}}
    """
    return _map(map_of(value))


def _map(data: Mapping[str, Any]) -> dict[str, Any]:
    found = ((camel(str(key)), each) for key, each in data.items() if each is not None)
    return {key: each if key in USER_DATA_KEYS else _value(each) for key, each in found}


def _value(value: Any) -> Any:
    match value:
        case Mapping():
            return _map(value)
        case list() | tuple():
            return [_value(each) for each in value]
        case bytes():
            return b64encode(value).decode("ascii")
        case Enum():
            return value.value
        case _:
            return value


def camel(key: str) -> str:
    """Return a name of the Python SDK as the API writes it.

    >>> camel("function_call"), camel("functionCall")
    ('functionCall', 'functionCall')
    """
    first, *others = key.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in others)
