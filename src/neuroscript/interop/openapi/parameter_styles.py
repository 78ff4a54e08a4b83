"""Serialization of values into the parts of a request, by parameter style.

A value that its style cannot represent is rejected before anything is sent: an item that contains the delimiter, a
nested value, or an empty path segment.

See the OpenAPI Specification 3.1.1, "Style Values" and appendix C; RFC 6570; RFC 9110, section 5; RFC 6265.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal
from urllib.parse import quote

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.errors import ToolFailed

Where = Literal["path", "query", "header", "cookie"]

STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles of each part of a request; the first one is the default."""

DELIMITERS: Final = {"form": (",", ","), "spaceDelimited": (" ", "%20"), "pipeDelimited": ("|", "%7C")}
"""The delimiter of each style: as it must not appear in an item, and as it is sent; form sends a comma as %2C."""

HEADER: Final = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
"""A valid header value."""


@attrs.frozen
class Style:
    """How one value is serialized.

    Attributes:
        name: The name that the server expects.
        arg: The name of the argument, for errors.
        style: The name of the style, or ``json`` for a value that is sent as JSON.
        explode: Whether each item or key is written separately.
    """

    name: str
    arg: str
    style: str
    explode: bool


def value_error(arg: str, text: str) -> ToolFailed:
    """Return the error for a value that cannot be sent as the description requires; it does not contain the value."""
    return ToolFailed(f"{arg}: {text}", code="openapi.value", retry="model")


def percent_encode(text: str) -> str:
    """Percent-encode every character of a string except letters, digits and ``-._~``."""
    return quote(text, safe="")


def scalar(value: Any, arg: str) -> str:
    """Convert a string, a number or a boolean to a string.

    Raises:
        ToolFailed: ``openapi.value``, for every other value.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
        case _:
            raise value_error(arg, f"expected a string, a number or a boolean, got {type_name(value)}")


def parts_of(value: Any, arg: str) -> str | list[str] | list[tuple[str, str]]:
    """Convert a value to a string, a list of strings, or a list of pairs of strings."""
    value = to_plain(value)
    match value:
        case list():
            return [scalar(each, arg) for each in value]
        case dict():
            return [(key, scalar(each, arg)) for key, each in value.items()]
        case _:
            return scalar(value, arg)


def flat(parts: Sequence[str] | Sequence[tuple[str, str]]) -> list[str]:
    """Return strings, or the keys and values of pairs, as one list."""
    return [text for part in parts for text in ((part,) if isinstance(part, str) else part)]


def serialize_path(style: Style, value: Any) -> str:
    """Serialize a value for the path; it cannot begin another segment.

    Raises:
        ToolFailed: ``openapi.value``, if the result would be empty.
    """
    parts = json_text(value) if style.style == "json" else parts_of(value, style.arg)
    if not parts:
        raise value_error(style.arg, "expected a non-empty value, because it is part of the path")
    match style.style:
        case "label":
            return _label(style, parts)
        case "matrix":
            return _matrix(style, parts)
    if isinstance(parts, str):
        return percent_encode(parts)
    return ",".join(_items(parts, style.explode))


def _items(parts: Sequence[str] | Sequence[tuple[str, str]], explode: bool) -> list[str]:
    """Percent-encode items; each pair becomes ``key=value``, or two items without *explode*."""
    if explode:
        return [
            percent_encode(part) if isinstance(part, str) else "=".join(map(percent_encode, part)) for part in parts
        ]
    return list(map(percent_encode, flat(parts)))


def _label(style: Style, parts: str | Sequence[str] | Sequence[tuple[str, str]]) -> str:
    if isinstance(parts, str):
        return f".{percent_encode(parts)}"
    if style.explode and any("." in text for text in flat(parts)):
        raise value_error(style.arg, "expected items without a dot, because dots separate them")
    return "." + ("." if style.explode else ",").join(_items(parts, style.explode))


def _matrix(style: Style, parts: str | Sequence[str] | Sequence[tuple[str, str]]) -> str:
    name = percent_encode(style.name)
    if isinstance(parts, str):
        return _semicolon(name, percent_encode(parts))
    if not style.explode:
        return f";{name}={','.join(_items(parts, False))}"
    pairs = [
        (name, percent_encode(each)) if isinstance(each, str) else (percent_encode(each[0]), percent_encode(each[1]))
        for each in parts
    ]
    return "".join(_semicolon(*pair) for pair in pairs)


def _semicolon(name: str, text: str) -> str:
    return f";{name}={text}" if text else f";{name}"


def serialize_query(style: Style, value: Any) -> list[tuple[str, str]]:
    """Serialize a value as pairs of name and value; an empty list or map gives no pairs.

    The values are percent-encoded, the names are not.

    Raises:
        ToolFailed: ``openapi.value``.
    """
    if style.style == "json":
        return [(style.name, percent_encode(json_text(value)))]
    parts = parts_of(value, style.arg)
    if style.style == "deepObject":
        return _deep(style, parts)
    if isinstance(parts, str):
        return [(style.name, percent_encode(parts))]
    if not parts:
        return []
    if style.explode:
        return [
            (style.name, percent_encode(each)) if isinstance(each, str) else (each[0], percent_encode(each[1]))
            for each in parts
        ]
    held, written = DELIMITERS[style.style]
    if held != "," and any(held in text for text in flat(parts)):
        raise value_error(style.arg, "expected items without the delimiter, a space or |")
    return [(style.name, written.join(map(percent_encode, flat(parts))))]


def _deep(style: Style, parts: str | Sequence[str] | Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    pairs = [each for each in parts if not isinstance(each, str)]
    if len(pairs) < len(parts):
        raise value_error(style.arg, "expected a map")
    if any("[" in key or "]" in key for key, _ in pairs):
        raise value_error(style.arg, "expected keys without brackets")
    return [(f"{style.name}[{key}]", percent_encode(text)) for key, text in pairs]


def join_pairs(fields: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> str:
    """Join the pairs of several arguments to a query string or a form body.

    Args:
        fields: The name of each argument, or ``""`` for pairs from the host, and its pairs.

    Raises:
        ToolFailed: ``openapi.value``, if a key of one argument is the name of another field.
    """
    names: set[str] = set()
    texts: list[str] = []
    for arg, pairs in fields:
        own = {name for name, _ in pairs}
        if own & names:
            raise value_error(arg, "expected keys that differ from the names of other fields")
        names |= own
        texts.extend(f"{percent_encode(name)}={text}" for name, text in pairs)
    return "&".join(texts)


def serialize_header(style: Style, value: Any) -> str | None:
    """Serialize a value for a header; return None for an empty list or map.

    Raises:
        ToolFailed: ``openapi.value``; a header value must be printable ASCII.
    """
    parts = json.dumps(to_plain(value)) if style.style == "json" else parts_of(value, style.arg)
    if isinstance(parts, str):
        return _header_value(style, parts)
    if not parts:
        return None
    for text in flat(parts):
        if "," in text or not text or text != text.strip(" \t"):
            raise value_error(style.arg, "expected non-empty items without commas or surrounding whitespace")
    if style.explode and any("=" in each[0] for each in parts if not isinstance(each, str)):
        raise value_error(style.arg, "expected keys without =")
    texts = [each if isinstance(each, str) else "=".join(each) for each in parts] if style.explode else flat(parts)
    return _header_value(style, ",".join(texts))


def _header_value(style: Style, text: str) -> str:
    if HEADER.fullmatch(text) is None:
        raise value_error(style.arg, "expected printable ASCII without surrounding whitespace in a header")
    return text


def serialize_cookie(style: Style, value: Any) -> str | None:
    """Serialize a value for a cookie; return None for an empty list or map."""
    pairs = serialize_query(attrs.evolve(style, explode=False), value)
    return pairs[0][1] if pairs else None


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(to_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
