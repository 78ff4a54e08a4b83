"""``str`` tools that serialize values to JSON and parse JSON.

Where JSON leaves a choice open, the tools decide: keys are unique and sorted, and integers stay integers.
"""

from __future__ import annotations

import datetime
import json
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any, Final

from neuroscript import (
    ArgSpec,
    ArgType,
    CoercionError,
    Example,
    Handle,
    Runtime,
    SizeLimits,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    coerce,
)
from neuroscript_std.jsontexts import TOO_DEEP, NotJSON, parse_json
from neuroscript_std.text.encodings import decode_base64
from neuroscript_std.text.size import (
    MAX_RESULT_BYTES,
    MAX_RESULT_VALUES,
    refuse_above_limit,
    refuse_above_values,
    require_within_limit,
    utf8_length,
)

PURE: Final = ToolPolicy(effects=("pure",))

RESULT: Final = SizeLimits(nodes=MAX_RESULT_VALUES, text=MAX_RESULT_BYTES)

REFUSED: Final[Mapping[str, str]] = {
    "coercion.range": "it contains an integer of more than 64 bits; write it as a string",
    "limit.depth": TOO_DEEP,
}
"""Messages for valid JSON that is not a plain value, by the code of the coercion problem."""

toolset = Toolset("str")


def _to_json_string(rt: Runtime, value: Any, pretty_print: bool, prefix: str, indent: str) -> str:
    return _indented(value, prefix, indent) if pretty_print else require_within_limit(compact(value))


toolset.add(
    ToolSpec(
        "tojsonstring",
        "str",
        (
            ArgSpec("value", ArgType.ANY, nullable=True, description="The value to serialize; None is allowed."),
            ArgSpec(
                "pretty_print",
                ArgType.BOOL,
                default=False,
                description=(
                    "True to put each entry on its own line, indented; otherwise the JSON contains no whitespace."
                ),
            ),
            ArgSpec(
                "prefix",
                ArgType.STRING,
                default="",
                max_length=64,
                description=(
                    "String at the start of each line except the first, at most 64 characters; only with pretty_print."
                ),
            ),
            ArgSpec(
                "indent",
                ArgType.STRING,
                default="  ",
                max_length=64,
                description="Indentation per level, at most 64 characters; only with pretty_print.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Convert (serialize) a value to a JSON string, optionally pretty-printed with indentation.",
        when_to_use=(
            "Use it to pass data on as JSON; to debug a value, use str.inspect, to parse JSON, str.parsejsonstring."
        ),
        return_help="JSON with sorted keys; bytes become {'$base64': string}, times ISO 8601 and handles their id.",
        error_conditions="ToolFailed: str.too_large.",
        examples=(
            Example(({"b": 2.0, "a": "<é>"},), '{"a":"<é>","b":2.0}'),
            Example(([1, None], True), "[\n  1,\n  null\n]"),
            Example((None,), "null"),
            Example(({}, "not-a-bool"), error="coercion.bool"),
        ),
    ),
    _to_json_string,
    PURE,
)


def compact(value: Any) -> str:
    """Return a plain value as JSON without whitespace, keys sorted."""
    return _encoder(separators=(",", ":")).encode(value)


def _indented(value: Any, prefix: str, indent: str) -> str:
    pieces, total = [], 0
    for piece in _encoder(indent=indent).iterencode(value):
        piece = piece.replace("\n", f"\n{prefix}")  # newlines inside strings are already escaped
        total += utf8_length(piece)
        refuse_above_limit(total)
        pieces.append(piece)
    return "".join(pieces)


def _encoder(*, separators: tuple[str, str] | None = None, indent: str | None = None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, sort_keys=True, separators=separators, indent=indent, default=_stand_in
    )


def _stand_in(value: bytes | datetime.datetime | Handle) -> Any:
    """Return the JSON form of a plain value that JSON has no type for."""
    if isinstance(value, bytes):
        return {"$base64": b2a_base64(value, newline=False).decode()}
    return value.id if isinstance(value, Handle) else value.isoformat()


@toolset.tool(
    name="parsejsonstring",
    policy=PURE,
    when_to_use="Use it for a JSON string; for Base64, use str.parsefromjsonbase64, to write JSON, str.tojsonstring.",
    examples=(
        Example(('{"key": [1, 2.0]}',), {"key": [1, 2.0]}, note="ints stay ints"),
        Example((" null ",), None),
        Example(('{"key": }',), error="str.not_json"),
    ),
)
def parse_json_string(json_string: str) -> Any:
    """Parse a JSON string and return its value.

    Args:
        json_string: One JSON value; the keys of an object must be unique.

    Returns:
        The value, made of maps, lists, strings, numbers, booleans and None.

    Raises:
        ToolFailed: str.not_json, str.too_large.
    """
    return _parsed(json_string)


@toolset.tool(
    name="parsefromjsonbase64",
    policy=PURE,
    when_to_use="Use it for JSON in Base64; for other text, use str.frombase64, for plain JSON, str.parsejsonstring.",
    examples=(
        Example(("eyJrZXkiOiAidmFsdWUifQ==",), {"key": "value"}),
        Example(("WyIxIiwyLCJ0aHJlZSJd",), ["1", 2, "three"]),
        Example(("eyJrZXki",), error="str.not_json", note="the object is not closed"),
    ),
)
def parse_from_json_base64(base64_string: str) -> Any:
    """Decode a Base64 encoded string and parse the JSON inside it.

    Args:
        base64_string: Strict Base64 of the UTF-8 bytes of one JSON value.

    Returns:
        The value, made of maps, lists, strings, numbers, booleans and None.

    Raises:
        ToolFailed: str.not_base64, str.not_json, str.too_large.
    """
    try:
        text = decode_base64(base64_string).decode()
    except UnicodeDecodeError:
        raise _not_json("the decoded bytes are not UTF-8") from None
    return _parsed(text)


def _parsed(text: str) -> Any:
    try:
        value = parse_json(text)
    except NotJSON as error:
        raise _not_json(str(error)) from None
    _refuse_unfit(value)
    return value


def _refuse_unfit(value: Any) -> None:
    """Raise `ToolFailed` for valid JSON that is not a plain value."""
    try:
        coerce(value, ArgType.ANY, mode="strict", limits=RESULT)
    except CoercionError as error:
        code = error.problems[0].code
        if code == "limit.nodes":
            refuse_above_values(MAX_RESULT_VALUES + 1)
        raise _not_json(REFUSED[code]) from None


def _not_json(why: str) -> ToolFailed:
    return ToolFailed(f"invalid JSON: {why}", code="str.not_json", retry="model")
