"""Conversion between specs and JSON Schema 2020-12.

Facts that JSON Schema cannot express are stored under the keyword ``x-neuroscript``, at the root and at each rule, so
that a spec survives a round trip. A third-party schema with constraints that a spec cannot express is stored with the
tool, exported unchanged, and checked against the exact values of each call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import coerce_present
from neuroscript.coercion.context import LAX, ROOT, CoercionPass
from neuroscript.coercion.parameters import FLAG, STRING, instance, optional, require
from neuroscript.coercion.plain_data import freeze, to_plain
from neuroscript.coercion.rule_text import expected_type
from neuroscript.coercion.schema_inspection import FORMATS_FACT, MARK, VALIDATE_FACT, inspect_schema
from neuroscript.coercion.types import ELEMENTS, MAPS, TYPES, VALUES, ArgType
from neuroscript.errors import UNSET, SpecError
from neuroscript.formats.json_schema_reader import (
    LENGTH_WORDS,
    PLAINLY,
    data_of,
    is_anything,
    read,
    read_result,
)
from neuroscript.formats.tagged_values import tag
from neuroscript.names import canonical
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, Example, ToolSpec
from neuroscript.tools.serialization import spec_to_data

FACTS: Final[Mapping[str, str]] = {
    "when_to_use": "whenToUse",
    "return_help": "returnHelp",
    "category": "category",
    "error_conditions": "errorConditions",
    "deprecated": "deprecated",
    "variadic": "variadic",
    "stream": "stream",
    "return_nullable": "returnNullable",
}
"""Fields of a tool, and their names under ``x-neuroscript`` at the root."""

SPEC: Final = instance(ToolSpec)


def spec_to_schema(spec: ToolSpec, *, exact: bool = True) -> dict[str, Any]:
    """Return the arguments of a tool as JSON Schema 2020-12.

    Args:
        exact: Whether to include ``x-neuroscript``, so that `spec_from_schema` returns the same spec. Without it, the
            result is standard JSON Schema, and an imported schema is unchanged.

    Returns:
        A schema of type ``object``. It is created once per spec and shared, so it is read-only at every level.
        ``copy.deepcopy`` returns a plain copy.

    Raises:
        SpecError: An example contains a value that JSON cannot represent.

    >>> spec_to_schema(ToolSpec("ping", "net", (ArgSpec("host", ArgType.STRING),)))["properties"]
    {'host': {'type': 'string'}}
    """
    if type(spec) is not ToolSpec or type(exact) is not bool:
        require("spec_to_schema", spec=(spec, SPEC), exact=(exact, FLAG))
    key = "schema" if exact else "schema, plain"
    kept = spec.exports.get(key)
    if kept is None:
        kept = spec.exports[key] = freeze(_foreign(spec, exact) if spec.schema else _own(spec, exact))
    schema: dict[str, Any] = kept
    return schema


def spec_from_schema(
    name: str,
    schema: Mapping[str, Any],
    *,
    group: str = "",
    description: str | None = None,
    return_type: ArgType | str | None = None,
    formats: bool = False,
) -> ToolSpec:
    """Return the spec of a tool whose arguments a schema describes.

    Args:
        name: A canonical name, or one word if *group* is passed.
        schema: JSON Schema 2020-12, 2019-09 or draft 7, of type ``object``. OpenAPI's ``nullable: true`` is supported.
        description: What the tool does; None uses the description of the schema.
        return_type: The type of the result; None uses the one under ``x-neuroscript``, or ``any``.
        formats: Whether to check the standard formats of strings, such as ``date-time``. The string itself is never
            changed.

    Raises:
        SpecError: With every problem and its path: the schema is too large, refers to another document, has a property
            whose name no argument can have, or requires the ``schema`` extra, which is not installed.
    """
    parts: dict[str, Any] = {"name": (name, STRING), "group": (group, STRING)}
    parts |= {"description": (description, optional(STRING)), "return_type": (return_type, optional(STRING))}
    require("spec_from_schema", **parts, formats=(formats, FLAG))
    group, word = (group, name) if group else canonical(name).rpartition(".")[::2]
    plainly = data_of(schema, name)
    found = read(plainly, name)
    fields = dict(found.fields)
    if description is not None:
        fields["description"] = description
    if return_type is not None:
        fields |= {"return_type": return_type, "returns": None}
    spec = ToolSpec(word, group, found.args, **fields)
    foreign = {key: each for key, each in plainly.items() if key != MARK}
    if _own(spec, True) == plainly or _own(spec, False) == foreign:
        return spec
    facts: dict[str, Any] = {}
    if formats or found.checks_formats:
        facts[FORMATS_FACT] = True
    if found.is_partial and not inspect_schema({**foreign, MARK: facts}).asks_more:
        facts[VALIDATE_FACT] = True
    return attrs.evolve(spec, schema=json.dumps({**foreign, MARK: facts} if facts else foreign))


def result_from_schema(schema: Any, key: str = "") -> ArgSpec:
    """Return the spec of a result that a schema describes, as far as a spec can express it. Defaults are left out.

    Args:
        schema: JSON Schema of any type, with its own ``$defs``.
        key: The property of the schema that describes the result; ``""`` stands for the whole schema.

    Raises:
        SpecError: The schema is too large, or refers to another document.

    >>> result_from_schema({"type": "array", "items": {"type": "integer"}}).type
    <ArgType.SLICE_INT: 'slice_int'>
    """
    return read_result(data_of(schema, "result"), key)


def result_schema(spec: ToolSpec) -> dict[str, Any]:
    """Return the JSON Schema of a tool's result as `to_plain` converts it; for a stream, the schema of each item.

    For a tool that may return a stream, it is the schema of one result or a list of items.

    >>> result_schema(ToolSpec("ping", "net", return_type=ArgType.FLOAT))
    {'type': 'number'}
    """
    require("result_schema", spec=(spec, SPEC))
    kind = ArgType.NIL if spec.return_type is ArgType.VOID else spec.return_type
    returns = spec.returns or ArgSpec("result", kind)
    schema = _rule(returns, has_null=spec.return_nullable or _takes_null(returns), exact=False)
    if spec.stream == MAYBE:
        schema = {"anyOf": [schema, {"type": "array", "items": schema}]}
    return {**schema, "description": spec.return_help} if spec.return_help else schema


def _foreign(spec: ToolSpec, exact: bool) -> dict[str, Any]:
    """Return the imported schema, with the spec added if it cannot be derived from the schema."""
    schema: dict[str, Any] = json.loads(spec.schema)
    foreign = {key: each for key, each in schema.items() if key != MARK}
    if not exact:
        return foreign
    if spec_from_schema(spec.full_name, schema) == spec:
        return schema
    data = spec_to_data(spec)
    said = {"spec": {key: each for key, each in data.items() if key != "schema"}}
    return {**foreign, MARK: {**schema.get(MARK, {}), **said}}


def _own(spec: ToolSpec, exact: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if spec.description:
        schema["description"] = spec.description
    if spec.deprecated:
        schema["deprecated"] = True
    last = spec.args[-1] if spec.variadic else None
    schema["properties"] = {
        arg.name: _further(arg, exact) if arg is last else _argument(arg, exact) for arg in spec.args
    }
    required = [arg.name for arg in spec.args if arg.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    facts = _facts(spec) if exact else {}
    return {**schema, MARK: facts} if facts else schema


def _facts(spec: ToolSpec) -> dict[str, Any]:
    """Return the facts of a tool that JSON Schema cannot express."""
    facts = _order(spec.args) | {word: getattr(spec, name) for name, word in FACTS.items() if getattr(spec, name)}
    if spec.returns is not None:
        facts["returns"] = _part(spec.returns, exact=True)
    elif spec.return_type is not ArgType.ANY:
        facts["returnType"] = str(spec.return_type)
    if spec.examples:
        facts["examples"] = [_example(spec, each) for each in spec.examples]
    return facts


def _example(spec: ToolSpec, example: Example) -> dict[str, Any]:
    try:
        said: dict[str, Any] = {"args": tag(example.args)}
        if example.result is not UNSET:
            said["result"] = tag(example.result)
    except TypeError as error:
        raise SpecError(spec.full_name, [f"an example contains {error}, which JSON cannot represent"]) from None
    return {**said, **{name: getattr(example, name) for name in ("error", "note") if getattr(example, name)}}


def _argument(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    """Return the schema of an argument or key. Optional ones may be null, which means the same as missing."""
    return _rule(arg, has_null=arg.nullable or not arg.required, exact=exact)


def _further(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    """Return the schema of the list of trailing values of a variadic tool."""
    schema: dict[str, Any] = {
        "type": "array" if arg.required else ["array", "null"],
        "items": _rule(arg, has_null=_takes_null(arg), exact=exact),
    }
    return {**schema, "minItems": 1} if arg.required else schema


def _takes_null(arg: ArgSpec) -> bool:
    """Return whether null is a value of a rule that is never missing."""
    return arg.nullable or (arg.type is ArgType.ANY and not arg.any_of)


def _reads_null(arg: ArgSpec) -> bool:
    """Return whether null is valid according to the standard keywords of an alternative."""
    return any(map(_reads_null, arg.any_of)) if arg.any_of else _takes_null(arg)


def _rule(arg: ArgSpec, *, has_null: bool, exact: bool) -> dict[str, Any]:
    schema = _form(arg, exact)
    beyond: dict[str, Any] = {}
    _say_bounds(arg, schema, beyond)
    if arg.format:
        _say_format(arg, schema, beyond)
    if has_null:
        _let_null(schema)
    description = arg.description if exact else _description(arg)
    if description:
        schema["description"] = description
    if arg.secret:
        schema["writeOnly"] = True
    if arg.default is not UNSET:
        schema["default"] = to_plain(arg.default)
        if not _comes_back(arg, schema["default"]):
            beyond["default"] = tag(arg.default)
    if arg.type not in PLAINLY or (arg.any_of and is_anything(arg.any_of)):
        beyond["type"] = str(arg.type)
    if arg.any_of and "type" in beyond:
        beyond["nullable"] = arg.nullable
    elif not arg.nullable and (has_null or any(map(_reads_null, arg.any_of))):
        beyond["nullable"] = False
    if arg.key_spec is not None and (arg.keys or arg.type not in MAPS):
        beyond["propertyNames"] = _part(arg.key_spec, exact)
    if exact and beyond:
        schema[MARK] = {**schema.get(MARK, {}), **beyond}
    return schema


def _description(arg: ArgSpec) -> str:
    """Return the description of a rule, with the bounds of a decimal number, for which text has no keywords."""
    bounds = (arg.minimum, arg.maximum, arg.exclusive_minimum, arg.exclusive_maximum)
    if not arg.format or bounds == NO_BOUNDS:
        return arg.description
    return f"{arg.description} {expected_type(arg).capitalize()}.".lstrip()


NO_BOUNDS: Final = (None,) * 4


def _part(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    """Return the schema of an item, a value, a key, an alternative or a result."""
    if arg.type is not ArgType.ANY or arg.any_of:
        return _rule(arg, has_null=arg.nullable, exact=exact)
    schema: dict[str, Any] = {"description": arg.description} if arg.description else {}
    return {**schema, MARK: {"nullable": True}} if exact and arg.nullable else schema


def _form(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    """Return the schema of a type, including its keys, items, values and alternatives."""
    kind = arg.type
    if arg.any_of:
        return _alternatives(arg, exact)
    if kind in ELEMENTS:
        return _list(arg, exact)
    if kind in VALUES:
        return _map(arg, exact)
    return {word: list(each) if type(each) is list else each for word, each in TYPES[kind].schema.items()}


def _alternatives(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    ways = [_part(each, exact) for each in arg.any_of]
    return (
        {"anyOf": ways, "discriminator": {"propertyName": arg.discriminator}} if arg.discriminator else {"anyOf": ways}
    )


def _list(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if arg.prefix_items:
        count = len(arg.prefix_items)
        schema |= {"prefixItems": [_part(each, exact) for each in arg.prefix_items], "items": False}
        schema |= {"minItems": count, "maxItems": count}
    elif arg.items is not None:
        schema["items"] = _part(arg.items, exact)
    else:
        element = _keys(arg, exact) if arg.keys else _element(ELEMENTS[arg.type])
        if element:
            schema["items"] = element
    return {**schema, "uniqueItems": True} if arg.unique_items else schema


def _map(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    schema: dict[str, Any] = _keys(arg, exact) if arg.keys else {"type": "object"}
    element = _element(VALUES[arg.type]) if arg.value_spec is None else _part(arg.value_spec, exact)
    if element:
        schema["additionalProperties"] = element
    if arg.key_spec is not None and arg.type in MAPS and not arg.keys:
        schema["propertyNames"] = _part(arg.key_spec, exact)
    return schema


def _element(kind: ArgType) -> dict[str, Any]:
    if kind is ArgType.MAP:
        return {"type": "object"}
    return {} if kind is ArgType.ANY else dict(TYPES[kind].schema)


def _keys(arg: ArgSpec, exact: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {key.name: _argument(key, exact) for key in arg.keys}}
    required = [key.name for key in arg.keys if key.required]
    if required:
        schema["required"] = required
    if not arg.extra_keys:
        schema["additionalProperties"] = False
    order = _order(arg.keys) if exact else {}
    return {**schema, MARK: order} if order else schema


def _order(rules: Sequence[ArgSpec]) -> dict[str, Any]:
    """Return the order of the properties, unless it is alphabetical; tools that sort keys would lose it."""
    names = [rule.name for rule in rules]
    return {} if names == sorted(names) else {"order": names}


def _say_bounds(arg: ArgSpec, schema: dict[str, Any], beyond: dict[str, Any]) -> None:
    inner = schema["items"] if arg.type in ELEMENTS and arg.items is None and "items" in schema else schema
    if arg.choices:
        inner["enum"] = list(arg.choices)
    for word, number in (
        ("minimum", arg.minimum),
        ("maximum", arg.maximum),
        ("exclusiveMinimum", arg.exclusive_minimum),
        ("exclusiveMaximum", arg.exclusive_maximum),
    ):
        if number is not None:
            (beyond if arg.format else inner)[word] = number
    unit = LENGTH_WORDS.get(TYPES[arg.type].unit, "")
    lowest, highest = (f"min{unit}", f"max{unit}") if unit else NO_WORDS
    filled = any(key.default is not UNSET for key in arg.keys) and arg.type in VALUES
    if arg.min_length is not None and (filled or not lowest):
        beyond["minLength"] = arg.min_length
    elif arg.min_length is not None:
        schema[lowest] = arg.min_length
    if arg.max_length is not None:
        (schema if highest else beyond)[highest or "maxLength"] = arg.max_length


def _say_format(arg: ArgSpec, schema: dict[str, Any], beyond: dict[str, Any]) -> None:
    """Write the format; it is repeated in our keyword because the formats of other programs are not checked."""
    schema["format"] = beyond["format"] = arg.format
    if arg.format == "base64":
        schema["contentEncoding"] = "base64"


NO_WORDS: Final = ("", "")


def _let_null(schema: dict[str, Any]) -> None:
    if "anyOf" in schema:
        schema["anyOf"].append({"type": "null"})
        return
    words = schema["type"]
    if words != "null":
        schema["type"] = [*(words if type(words) is list else [words]), "null"]
    if "enum" in schema:
        schema["enum"].append(None)


def _comes_back(arg: ArgSpec, said: Any) -> bool:
    """Return whether reading a default from the schema returns exactly the same value."""
    kind = type(arg.default)
    if kind is str or kind is bool or kind is int or kind is float or arg.default is None:
        return True
    walk = CoercionPass(LAX)
    return ascii(walk.limited(coerce_present, arg, said, ROOT)) == ascii(arg.default)
