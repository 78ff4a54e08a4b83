"""The ArgTypes: one table with everything that the rest of the package has to know about each type.

A new scalar type is a member of `ArgType` and a row of `TYPES`; coercion, JSON Schema, stubs, samples and the rules
about compatible changes read it from there. A new type of container also needs a function in ``coercion.values``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from enum import StrEnum
from types import GenericAlias
from typing import Any, Final, NamedTuple

from neuroscript.coercion import scalars
from neuroscript.coercion.scalars import Reading, flatten_subclasses


class ArgType(StrEnum):
    """The types of arguments and results. The set is closed; `TYPES` describes each of them."""

    STRING = "string"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    MAP = "map"
    MAP_STRING_ANY = "map_string_any"
    MAP_STRING_STRING = "map_string_string"
    MAP_STRING_INT = "map_string_int"
    MAP_STRING_FLOAT = "map_string_float"
    MAP_STRING_BOOL = "map_string_bool"
    MAP_ANY_ANY = "map_any_any"
    SLICE = "slice"
    LIST = "list"
    SLICE_ANY = "slice_any"
    SLICE_STRING = "slice_string"
    SLICE_INT = "slice_int"
    SLICE_FLOAT = "slice_float"
    SLICE_BOOL = "slice_bool"
    SLICE_MAP = "slice_map"
    BLOB = "blob"
    EMBEDDING = "embedding"
    HANDLE = "handle"
    NODEID = "nodeid"
    ENTITYID = "entityid"
    ANY = "any"
    NIL = "nil"
    VOID = "void"


_NONE: Final[frozenset[ArgType]] = frozenset()
_ANY: Final = frozenset({ArgType.ANY})
UNTYPED_LISTS: Final = frozenset({ArgType.SLICE, ArgType.LIST, ArgType.SLICE_ANY})
"""Three names for one type."""

MAPS: Final = frozenset({ArgType.MAP, ArgType.MAP_STRING_ANY})
"""Two names for one type."""

NONE_TYPES: Final = frozenset({ArgType.NIL, ArgType.VOID})
"""Two names for a result that is None."""


_NO_SCHEMA: Final[Mapping[str, Any]] = {}


class TypeRow(NamedTuple):
    """The facts about one ArgType.

    Attributes:
        phrase: The name in errors; the default is the name of the type.
        builtin: The built-in of an exact value, or None if there are several.
        annotation: The annotation of an exact value, as Python source.
        argument_annotation: The annotation of all values that callers should pass, if it differs from *annotation*.
        json_type: The Python type in JSON form.
        json_result: The Python type of a result in JSON form, if it differs from *json_type*.
        annotations: The annotations of Python that mean this type.
        element: The type of the elements of a list.
        value: The type of the values of a map.
        lax: The reading in lax mode, for types without nested values.
        strict: The reading in strict mode.
        result: The reading of results; the default is *strict* for which subclasses are flattened.
        exact: An expression that is true only for exact values that need no further check, and is cheaper than
            *strict*. CPython compares ints of one digit (30 bits) without a call; the readings check larger ones.
        accepts_text: Whether it accepts strings, so ``""`` and ``"null"`` are values and do not mean a missing one.
        accepts_objects: Whether it accepts a dict, although it is not a map.
        has_choices: Whether an argument may declare choices, and a map may have keys of this type.
        has_bounds: Whether an argument may declare a minimum and a maximum.
        unit: What the length of a value counts, or ``""`` if it has none.
        schema: The JSON Schema of types other than lists and maps.
        json_word: The type name of JSON Schema that stands for this type alone.
        example: A value as JSON; errors show it because they never repeat the string that a caller sent.
        samples: Common values.
        rare_samples: Values that a tool has to handle but its author may not expect.
        wider: The other types that accept every value of this one as an argument, in every mode.
        wider_results: The other types for which every exact result of this one is valid, if they differ from *wider*.
    """

    annotation: str
    json_type: Any
    phrase: str = ""
    builtin: type | None = None
    argument_annotation: str = ""
    json_result: Any = None
    annotations: tuple[Any, ...] = ()
    element: ArgType | None = None
    value: ArgType | None = None
    lax: Reading | None = None
    strict: Reading | None = None
    result: Reading | None = None
    exact: str = ""
    accepts_text: bool = False
    accepts_objects: bool = False
    has_choices: bool = False
    has_bounds: bool = False
    unit: str = ""
    schema: Mapping[str, Any] = _NO_SCHEMA
    json_word: str = ""
    example: str = ""
    samples: tuple[Any, ...] = ()
    rare_samples: tuple[Any, ...] = ()
    wider: frozenset[ArgType] = _NONE
    wider_results: frozenset[ArgType] | None = None


_OTHERS: Final[Mapping[ArgType, TypeRow]] = {
    ArgType.STRING: TypeRow(
        builtin=str,
        annotation="str",
        json_type=str,
        annotations=(str,),
        lax=scalars.lax_string,
        strict=scalars.strict_string,
        result=scalars.lax_string,
        exact="type({0}) is str and {0}.isascii()",
        accepts_text=True,
        has_choices=True,
        unit="character",
        schema={"type": "string"},
        json_word="string",
        example='"a"',
        samples=("", "a", "two words", "é\U0001f600", "5", "[1]"),
        rare_samples=(
            *("\x00", "../../etc/passwd", "-rf", "$(id)", "%s%n{0}", "\r\n\x1b[31m", "\u202eabc", "\ufeff", "'\"\\"),
            *("a" * 10_000, "(((((", "9" * 400),
        ),
        wider=_ANY,
    ),
    ArgType.INT: TypeRow(
        builtin=int,
        annotation="int",
        json_type=int,
        annotations=(int,),
        lax=scalars.lax_int,
        strict=scalars.strict_int,
        exact="type({0}) is int and {0} >= -1073741823 and {0} <= 1073741823",
        has_choices=True,
        has_bounds=True,
        schema={"type": "integer"},
        json_word="integer",
        example="1",
        samples=(0, 1, -1, 3),
        rare_samples=(2**31, 2**53 + 1, 2**63 - 1, -(2**63)),
        wider=_ANY,
    ),
    ArgType.FLOAT: TypeRow(
        builtin=float,
        annotation="float",
        json_type=float,
        annotations=(float,),
        lax=scalars.lax_float,
        strict=scalars.strict_float,
        result=scalars.result_float,
        exact="type({0}) is float and {0} - {0} == 0.0",
        has_choices=True,
        has_bounds=True,
        schema={"type": "number"},
        json_word="number",
        example="0.5",
        samples=(0.0, 1.0, -1.0, 2.5),
        rare_samples=(-0.0, 5e-324, 1.7e308, -1.7e308),
        wider_results=_ANY,  # as an argument, `any` does not accept the integers of more than 64 bits that a float does
    ),
    ArgType.BOOL: TypeRow(
        builtin=bool,
        annotation="bool",
        json_type=bool,
        annotations=(bool,),
        lax=scalars.lax_bool,
        strict=scalars.strict_bool,
        result=scalars.strict_bool,
        exact="({0} is True or {0} is False)",
        has_choices=True,
        schema={"type": "boolean"},
        json_word="boolean",
        example="true",
        samples=(True, False),
        wider=_ANY,
    ),
    ArgType.BLOB: TypeRow(
        builtin=bytes,
        annotation="bytes",
        json_type=str,
        json_result=dict[str, str],
        annotations=(bytes,),
        lax=scalars.lax_blob,
        strict=scalars.strict_blob,
        exact="type({0}) is bytes",
        accepts_text=True,
        accepts_objects=True,
        unit="byte",
        schema={  # a string is the text of the bytes in UTF-8
            "type": ["string", "object"],
            "properties": {"$base64": {"type": "string", "contentEncoding": "base64"}},
            "required": ["$base64"],
            "additionalProperties": False,
        },
        example='{"$base64": "YQ=="}',
        samples=(b"", b"abc"),
        rare_samples=(b"\xff\xfe\x00", bytes(range(256))),
        wider_results=_ANY,  # as an argument, it accepts a bytearray, which `any` does not
    ),
    ArgType.EMBEDDING: TypeRow(
        phrase="list of numbers",
        builtin=array,
        annotation="array[float]",
        argument_annotation="list[float] | array[float]",
        json_type=list[float],
        annotations=(array,),
        unit="item",
        schema={"type": "array", "items": {"type": "number"}},
        example="[0.5, 1.5]",
        samples=([1.0, 2.5],),
        rare_samples=([],),
    ),
    ArgType.HANDLE: TypeRow(
        builtin=str,
        annotation="str",
        argument_annotation="str | Handle",
        json_type=str,
        lax=scalars.lax_handle,
        strict=scalars.strict_handle,
        result=scalars.lax_handle,
        accepts_text=True,
        schema={"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$"},
        example='"nothing-0"',
        samples=("nothing-0",),
        rare_samples=("a" * 128,),
        wider=_ANY,
        wider_results=_ANY | {ArgType.STRING},
    ),
    ArgType.NODEID: TypeRow(
        builtin=str,
        annotation="str",
        argument_annotation="str | dict[str, Any]",
        json_type=str,
        lax=scalars.lax_nodeid,
        strict=scalars.strict_nodeid,
        accepts_text=True,
        accepts_objects=True,
        schema={"type": "string", "pattern": "^N_", "minLength": 3},
        example='"N_none"',
        samples=("N_none",),
        rare_samples=("N_" + "a" * 100,),
        wider=_ANY,
        wider_results=_ANY | {ArgType.STRING},
    ),
    ArgType.ENTITYID: TypeRow(
        annotation="str | dict[str, Any]",
        json_type=str,
        json_result=Any,
        accepts_text=True,
        accepts_objects=True,
        schema={
            "type": ["string", "object"],
            "pattern": "^E_",
            "minLength": 3,
            "properties": {"id": {"type": "string", "pattern": "^E_", "minLength": 3}},
            "required": ["id"],
        },
        example='"E_none"',
        samples=("E_none",),
        rare_samples=("E_" + "a" * 100, {"id": "E_1"}),
        wider=_ANY,
    ),
    ArgType.ANY: TypeRow(
        phrase="a JSON-like value",
        annotation="Any",
        json_type=Any,
        annotations=(Any,),
        accepts_text=True,
        accepts_objects=True,
        schema={"type": ["string", "number", "boolean", "object", "array"]},
        example='"a"',
        samples=(0, "a", [1], {"a": 1}),
        rare_samples=(None, "\x00", 2**63 - 1, 1.7e308, [], {}, [[[[[]]]]], [None], b"\xff"),
    ),
    ArgType.NIL: TypeRow(
        phrase="nothing",
        builtin=type(None),
        annotation="None",
        json_type=None,
        annotations=(None, type(None)),
        schema={"type": "null"},
        json_word="null",
        example="null",
        wider=_ANY,
        wider_results=NONE_TYPES,
    ),
    ArgType.VOID: TypeRow(
        builtin=type(None),
        annotation="None",
        json_type=None,
        schema={"type": "null"},
        example="null",
        wider_results=NONE_TYPES,
    ),
}


def _map(value: ArgType, example: str, *annotations: Any, key: str = "str", is_wide: bool = True) -> TypeRow:
    inner = _OTHERS[value]
    wider = MAPS | _ANY | {ArgType.MAP_ANY_ANY}
    return TypeRow(
        phrase="map" if value is ArgType.ANY else f"map of {value}",
        builtin=dict,
        annotation=f"dict[{key}, {inner.annotation}]",
        json_type=GenericAlias(dict, (str, inner.json_type)),
        annotations=annotations,
        value=value,
        unit="key",
        json_word="object" if dict in annotations else "",
        example=example,
        wider=wider if is_wide else _NONE,
        wider_results=_NONE if key == "Any" else wider,
    )


_MAPS: Final[Mapping[ArgType, TypeRow]] = {
    ArgType.MAP: _map(ArgType.ANY, '{"key": "value"}', dict, dict[str, Any])._replace(
        samples=({}, {"a": 1}),
        rare_samples=({"": None}, {"a": {"b": {"c": []}}}, {"__class__": 1, "$base64": "?"}),
    ),
    ArgType.MAP_STRING_ANY: _map(ArgType.ANY, '{"key": "value"}'),
    ArgType.MAP_ANY_ANY: _map(ArgType.ANY, '{"key": "value"}', dict[Any, Any], key="Any", is_wide=False),
    ArgType.MAP_STRING_STRING: _map(ArgType.STRING, '{"key": "value"}', dict[str, str]),
    ArgType.MAP_STRING_INT: _map(ArgType.INT, '{"key": 1}', dict[str, int]),
    ArgType.MAP_STRING_FLOAT: _map(ArgType.FLOAT, '{"key": 0.5}', dict[str, float], is_wide=False),
    ArgType.MAP_STRING_BOOL: _map(ArgType.BOOL, '{"key": true}', dict[str, bool]),
}


def _list(element: ArgType, example: str, *annotations: Any, is_wide: bool = True) -> TypeRow:
    inner = _OTHERS.get(element) or _MAPS[element]
    wider = UNTYPED_LISTS | _ANY
    return TypeRow(
        phrase="list" if element is ArgType.ANY else f"list of {element}",
        builtin=list,
        annotation=f"list[{inner.annotation}]",
        json_type=GenericAlias(list, inner.json_type),
        annotations=annotations,
        element=element,
        unit="item",
        json_word="array" if list in annotations else "",
        example=example,
        wider=wider if is_wide else _NONE,
        wider_results=wider,
    )


_LISTS: Final[Mapping[ArgType, TypeRow]] = {
    ArgType.SLICE: _list(ArgType.ANY, '["a", 1]'),
    ArgType.LIST: _list(ArgType.ANY, '["a", 1]'),
    ArgType.SLICE_ANY: _list(ArgType.ANY, '["a", 1]', list, list[Any]),
    ArgType.SLICE_STRING: _list(ArgType.STRING, '["a", "b"]', list[str]),
    ArgType.SLICE_INT: _list(ArgType.INT, "[1, 2]", list[int]),
    ArgType.SLICE_FLOAT: _list(ArgType.FLOAT, "[0.5, 1.5]", list[float], is_wide=False),
    ArgType.SLICE_BOOL: _list(ArgType.BOOL, "[true, false]", list[bool]),
    ArgType.SLICE_MAP: _list(ArgType.MAP, '[{"key": "value"}]', GenericAlias(list, dict), list[dict[str, Any]]),
}


TYPES: Final[Mapping[ArgType, TypeRow]] = {kind: ({**_OTHERS, **_MAPS, **_LISTS})[kind] for kind in ArgType}
"""The table of ArgTypes. Lists and maps of floats are not wide, because `any` refuses ints of more than 64 bits."""

READINGS: Final[Mapping[str, Mapping[str, Reading]]] = {
    "lax": {kind: row.lax for kind, row in TYPES.items() if row.lax is not None},
    "strict": {kind: row.strict for kind, row in TYPES.items() if row.strict is not None},
    "result": {
        kind: row.result or flatten_subclasses(row.strict) for kind, row in TYPES.items() if row.strict is not None
    },
}
"""The function that reads a type without nested values, by mode and by the name of the type."""

EXACT: Final[Mapping[ArgType, str]] = {kind: row.exact for kind, row in TYPES.items() if row.exact}
"""The expression that is true only for exact values, for types that have one."""

ELEMENTS: Final = {kind: row.element for kind, row in TYPES.items() if row.element is not None}
"""The element type of each slice type."""

LISTS: Final = {element: kind for kind, element in ELEMENTS.items()}
"""The slice type for each element type."""

VALUES: Final = {kind: row.value for kind, row in TYPES.items() if row.value is not None}
"""The value type of each map type."""

TEXT_HOLDERS: Final = frozenset(kind for kind, row in TYPES.items() if row.accepts_text)
"""Types that accept strings, so ``""`` and ``"null"`` are values for them and do not mean a missing value."""

CHOICE_TYPES: Final = frozenset(kind for kind, row in TYPES.items() if row.has_choices)
"""The types of choices, and of the keys that a map may have."""

NUMBER_TYPES: Final = frozenset(kind for kind, row in TYPES.items() if row.has_bounds)

LENGTH_TYPES: Final = frozenset(kind for kind, row in TYPES.items() if row.unit)

BUILTINS: Final[Mapping[ArgType, type]] = {kind: row.builtin for kind, row in TYPES.items() if row.builtin is not None}
"""The built-in for each type. `any` may be any of them, and `entityid` is a str or a dict."""

ANNOTATIONS: Final[Mapping[Any, ArgType]] = {each: kind for kind, row in TYPES.items() for each in row.annotations}
"""The type that each annotation of Python means."""


def type_phrase(kind: ArgType) -> str:
    """Return the name of a type as errors show it, such as ``list of int`` for `slice_int`."""
    return TYPES[kind].phrase or kind


def accepts_all(new: ArgType, old: ArgType) -> bool:
    """Return whether an argument of type *new* accepts every value of type *old*. The spec decides about None.

    `float` is not wider than `int` because it cannot represent every integer.

    >>> accepts_all(ArgType.ANY, ArgType.STRING), accepts_all(ArgType.STRING, ArgType.ANY)
    (True, False)
    """
    return new is old or new in TYPES[old].wider


def returns_subset(new: ArgType, old: ArgType) -> bool:
    """Return whether every result of type *new* is a valid result of type *old*. The spec decides about None.

    A tool that no longer returns anything does not return a subset, even if None was allowed.

    >>> returns_subset(ArgType.INT, ArgType.ANY), returns_subset(ArgType.INT, ArgType.FLOAT)
    (True, False)
    """
    row = TYPES[new]
    return new is old or old in (row.wider if row.wider_results is None else row.wider_results)
