"""Validation of METADATA: reports every problem with its place.

The function is only checked for existence, its name, and being callable.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from neuroscript.coercion.context import type_name
from neuroscript.errors import MAX_LISTED_PROBLEMS, SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import bounded_schema
from neuroscript.interop.smith.json_values import iter_non_json, shown_key, size_problem
from neuroscript.io.near_names import did_you_mean
from neuroscript.io.text import quote_untrusted
from neuroscript.llm.wire.calls import CallField
from neuroscript.names import to_snake_case

TYPES: Final = ("string", "number", "integer", "boolean", "object", "array")
"""Types of a parameter; Smith's documentation lists all but ``integer``, which its own tools use."""

WORDS: Final = f"{', '.join(TYPES[:-1])} or {TYPES[-1]}"

GENERAL_WORDS: Final = frozenset(
    {
        *("action", "all", "any", "anything", "apply", "call", "command", "do", "entry", "entrypoint", "everything"),
        *("exec", "execute", "execution", "func", "function", "go", "handle", "handler", "input", "invoke", "it"),
        *("job", "main", "make", "method", "operate", "operation", "payload", "perform", "process", "request", "run"),
        *("runner", "something", "start", "stuff", "task", "thing", "things", "tool", "util", "utils", "work"),
    }
)
"""Words that do not describe a purpose; a function name must contain at least one other word."""


def problems_of(
    metadata: object, *, names: Mapping[str, object] | None = None, taken: Collection[str] = ()
) -> tuple[str, ...]:
    """Return every problem of a tool's METADATA as a sentence; an empty tuple if they are valid.

    Args:
        metadata: The METADATA in the file of the tool.
        names: What the file defines, by name, to check that the function exists; None skips that check.
        taken: Names of other tools.

    >>> problems_of({"name": "finance", "function": "run", "parameters": {}})[0]
    'function: expected a name that describes what the tool does, such as run_finance; run is too general'
    """
    if not isinstance(metadata, dict):
        return (f"METADATA: expected a dict, got {type_name(metadata)}",)
    if large := size_problem(metadata):
        return (f"METADATA: {large}",)
    found = [
        *_name_problems(metadata, taken),
        *_function_problems(metadata, names),
        *_flag_problems(metadata),
        *_parameters_problems(metadata),
    ]
    return (*found, *_json_problems(metadata))


def _json_problems(metadata: dict[str, Any]) -> Iterator[str]:
    """Yield the parts that JSON cannot represent."""
    strange = islice(iter_non_json(metadata, "METADATA"), MAX_LISTED_PROBLEMS)
    yield from (f"{where}: expected a JSON value, got {what}" for where, what in strange)


def _name_problems(metadata: dict[str, Any], taken: Collection[str]) -> Iterator[str]:
    member = CallField(metadata, "name")
    if not isinstance(member.value, str) or not member.value:
        yield str(member.problem("the name of the tool"))
        return
    word = to_snake_case(member.value)
    if not word:
        yield f"name: {quote_untrusted(member.value)} cannot be used as a name; expected ASCII letters or digits"
    elif word in {to_snake_case(each) for each in taken}:
        yield f"name: {quote_untrusted(member.value)} is the name of another tool"


def _function_problems(metadata: dict[str, Any], names: Mapping[str, object] | None) -> Iterator[str]:
    member = CallField(metadata, "function")
    name = member.value
    if not isinstance(name, str) or not name:
        yield str(member.problem("the name of the function"))
        return
    if not name.isidentifier():
        yield f"function: {quote_untrusted(name)} is not a valid function name"
        return
    if GENERAL_WORDS.issuperset(to_snake_case(name).split("_")):
        better = (
            f", such as run_{word}"
            if (word := to_snake_case(metadata.get("name"))) and word not in GENERAL_WORDS
            else ""
        )
        advice = f"expected a name that describes what the tool does{better}"
        yield f"function: {advice}; {quote_untrusted(name)} is too general"
    if names is None:
        return
    if name not in names:
        hint = did_you_mean(name, [each for each, value in names.items() if callable(value)], quote_untrusted)
        yield f"function: the file has no function {quote_untrusted(name)}{hint}"
    elif not callable(names[name]):
        yield f"function: {quote_untrusted(name)} is not a function but a {type_name(names[name])}"


def _flag_problems(metadata: dict[str, Any]) -> Iterator[str]:
    if type(metadata.get("dangerous", False)) is not bool:
        yield str(CallField(metadata, "dangerous").problem("True or False"))
    if not isinstance(metadata.get("description", ""), str):
        yield str(CallField(metadata, "description").problem("a string"))


def _parameters_problems(metadata: dict[str, Any]) -> Iterator[str]:
    member = CallField(metadata, "parameters")
    if not isinstance(member.value, dict):
        yield str(member.problem("a JSON Schema with type, properties and required"))
        return
    schema: dict[str, Any] = member.value
    is_plain = next(iter_non_json(schema, "parameters"), None) is None
    if is_plain:
        schema = json.loads(json.dumps(schema))  # converts tuples to lists
    if schema.get("type") != "object":
        yield _member(schema, "type", "parameters", "the string object")
    if not isinstance(schema.get("properties"), dict):
        yield _member(schema, "properties", "parameters", "a dict of parameters")
    own = [*_object_problems(schema, "parameters")]
    yield from own
    if is_plain and not own and schema.get("type") == "object":
        try:
            spec_from_schema("tool", bounded_schema(schema, "parameters"), group="smith")
        except SpecError as error:
            yield from (f"parameters: {problem}" for problem in error.problems)


def _object_problems(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Yield the problems of an object's properties, at every depth, and of its required list."""
    rest: list[tuple[dict[str, Any], str]] = [(schema, where)]
    for each, at in rest:
        parts = each.get("properties")
        yield from _required_problems(each, at)
        for name, part in parts.items() if isinstance(parts, dict) else ():
            inner = f"{at}['properties']['{shown_key(name)}']"
            yield from _type_problems(part, inner)
            rest.append((part if isinstance(part, dict) else {}, inner))
        if isinstance(each.get("items"), dict):
            rest.append((each["items"], f"{at}['items']"))


def _required_problems(schema: dict[str, Any], where: str) -> Iterator[str]:
    required, known = schema.get("required", []), schema.get("properties")
    if not isinstance(required, (list, tuple)) or not all(isinstance(each, str) for each in required):
        yield f"{where}['required']: expected a list of names, got {_kind(required)}"
    elif isinstance(known, dict):
        lost = dict.fromkeys(name for name in required if name not in known)
        yield from (f"{where}['required']: {quote_untrusted(name)} is not one of the properties" for name in lost)


def _type_problems(schema: object, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{where}: expected a JSON Schema with a type, got {type_name(schema)}"
        return
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kind is None or not any(each in TYPES for each in kinds):
        got = "another string" if isinstance(kind, str) and kind else None
        yield f"{where}['type']: expected {WORDS}, got {got}" if got else _member(schema, "type", where, WORDS)
    elif not all(each in (*TYPES, "null") for each in kinds):
        yield f"{where}['type']: expected {WORDS}, optionally with null, got another type"


def _member(holder: dict[str, Any], key: str, within: str, expected: str) -> str:
    return str(CallField(holder, key, within=within).problem(expected))


def _kind(value: object) -> str:
    return "another list" if isinstance(value, (list, tuple)) else type_name(value)
