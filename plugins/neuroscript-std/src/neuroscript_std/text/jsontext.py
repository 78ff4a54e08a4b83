"""Values as JSON text and back, with what JSON leaves open decided: one key once, sorted keys, whole numbers whole.

Source: contract section 3; upstream ``tools_string_extra.go``; RFC 8259.
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
from neuroscript_std.jsontexts import TOO_DEEP, NotJSON, parsed
from neuroscript_std.text.codes import decoded
from neuroscript_std.text.size import LIMIT, VALUES, refuse_above_limit, refuse_above_values, size, within_limit

PURE: Final = ToolPolicy(effects=("pure",))

RESULT: Final = SizeLimits(nodes=VALUES, text=LIMIT)

REFUSED: Final[Mapping[str, str]] = {
    "coercion.range": "a whole number in it has more than 64 bits; write it as a text",
    "limit.depth": TOO_DEEP,
}
"""What valid JSON may say that no value holds, by the code of the coercion's problem."""

toolset = Toolset("str")


def _to_json_string(rt: Runtime, value: Any, pretty_print: bool, prefix: str, indent: str) -> str:
    return _indented(value, prefix, indent) if pretty_print else within_limit(compact(value))


toolset.add(
    ToolSpec(
        "tojsonstring",
        "str",
        (
            ArgSpec("value", ArgType.ANY, nullable=True, description="The value to write; None too."),
            ArgSpec(
                "pretty_print",
                ArgType.BOOL,
                default=False,
                description="Whether each entry has a line of its own; else there are no blanks at all.",
            ),
            ArgSpec(
                "prefix",
                ArgType.STRING,
                default="",
                max_length=64,
                description="What begins each line but the first, at most 64 characters; only with pretty_print.",
            ),
            ArgSpec(
                "indent",
                ArgType.STRING,
                default="  ",
                max_length=64,
                description="What stands before an entry, once a level, at most 64 characters; only with pretty_print.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Write a value as JSON text.",
        when_to_use="To hand a value on as JSON; str.inspect is for looking at one, str.parsejsonstring goes back.",
        return_help="JSON with sorted keys; bytes are {'$base64': text}, a time is ISO 8601, a handle is its id.",
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
    """Return a value of exact built-ins as JSON without blanks, keys sorted."""
    return _encoder(separators=(",", ":")).encode(value)


def _indented(value: Any, prefix: str, indent: str) -> str:
    pieces, total = [], 0
    for piece in _encoder(indent=indent).iterencode(value):
        piece = piece.replace("\n", f"\n{prefix}")  # a line break within a text is escaped by now
        total += size(piece)
        refuse_above_limit(total)
        pieces.append(piece)
    return "".join(pieces)


def _encoder(*, separators: tuple[str, str] | None = None, indent: str | None = None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False, allow_nan=False, sort_keys=True, separators=separators, indent=indent, default=_stand_in
    )


def _stand_in(value: bytes | datetime.datetime | Handle) -> Any:
    """Return what stands in JSON for a leaf that JSON does not know; there are no others."""
    if isinstance(value, bytes):
        return {"$base64": b2a_base64(value, newline=False).decode()}
    return value.id if isinstance(value, Handle) else value.isoformat()


@toolset.tool(
    name="parsejsonstring",
    policy=PURE,
    when_to_use="For JSON as it stands; str.parsefromjsonbase64 for JSON in Base64, str.tojsonstring to write it.",
    examples=(
        Example(('{"key": [1, 2.0]}',), {"key": [1, 2.0]}, note="ints stay ints"),
        Example((" null ",), None),
        Example(('{"key": }',), error="str.not_json"),
    ),
)
def parse_json_string(json_string: str) -> Any:
    """Read a value out of JSON text.

    Args:
        json_string: One JSON value, each key of an object once.

    Returns:
        The value, made of maps, lists, texts, numbers, truth values and None.

    Raises:
        ToolFailed: str.not_json, str.too_large.
    """
    return _parsed(json_string)


@toolset.tool(
    name="parsefromjsonbase64",
    policy=PURE,
    when_to_use="For JSON that comes in Base64; str.frombase64 for any other text, str.parsejsonstring for bare JSON.",
    examples=(
        Example(("eyJrZXkiOiAidmFsdWUifQ==",), {"key": "value"}),
        Example(("WyIxIiwyLCJ0aHJlZSJd",), ["1", 2, "three"]),
        Example(("eyJrZXki",), error="str.not_json", note="the object does not end"),
    ),
)
def parse_from_json_base64(base64_string: str) -> Any:
    """Read a value out of JSON that was written in Base64.

    Args:
        base64_string: Base64, to the letter, of the UTF-8 bytes of one JSON value.

    Returns:
        The value, made of maps, lists, texts, numbers, truth values and None.

    Raises:
        ToolFailed: str.not_base64, str.not_json, str.too_large.
    """
    try:
        text = decoded(base64_string).decode()
    except UnicodeDecodeError:
        raise _not_json("the decoded bytes are not UTF-8") from None
    return _parsed(text)


def _parsed(text: str) -> Any:
    try:
        value = parsed(text)
    except NotJSON as error:
        raise _not_json(str(error)) from None
    _refuse_unfit(value)
    return value


def _refuse_unfit(value: Any) -> None:
    """Raise a `ToolFailed` for what is JSON, and yet no value of the contract."""
    try:
        coerce(value, ArgType.ANY, mode="strict", limits=RESULT)
    except CoercionError as error:
        code = error.problems[0].code
        if code == "limit.nodes":
            refuse_above_values(VALUES + 1)
        raise _not_json(REFUSED[code]) from None


def _not_json(why: str) -> ToolFailed:
    return ToolFailed(f"the text is not JSON: {why}", code="str.not_json", retry="model")
