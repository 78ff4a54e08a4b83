"""Forms of a server: the fields that it requests, and the user's answers to them, one prompt for each field.

See MCP 2026-07-28, "Elicitation". All text of a form comes from the server, so it is sanitized and attributed to it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.types import ArgType
from neuroscript.errors import ArgumentError, SpecError
from neuroscript.formats.json_schema import spec_from_schema
from neuroscript.interop.foreign import MAX_DESCRIPTION_CHARS
from neuroscript.io.text import one_line
from neuroscript.spec.binding import bind_named
from neuroscript.spec.tool_spec import ToolSpec

MAX_FIELDS: Final = 20
"""Maximum number of fields of a form."""

MAX_FORM_CHARS: Final = 64 * 1024
"""Maximum size of a form's schema, in characters of JSON."""

MAX_CHOICES: Final = 100
"""Maximum number of choices of a field."""

MAX_ATTEMPTS: Final = 3
"""Maximum number of invalid answers to one field."""

MAX_LABEL_CHARS: Final = 100
"""Maximum length of the name of a field and of a choice in a prompt, in characters."""

DECLINE: Final = "/decline"
"""The answer with which the user declines a form."""

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array"})
RULES: Final = ("type", "minLength", "maxLength", "format", "minimum", "maximum", "minItems", "maxItems")
"""The types and rules of the protocol's fields; the server checks other rules, such as patterns, itself."""

SPOKEN: Final = {"yes": "true", "y": "true", "no": "false", "n": "false"}

Ask = Callable[[str], str]
"""Prompts the user, and returns the answer."""


class FormDeclined(Exception):
    """The form is not filled in.

    Attributes:
        action: What the server is answered: ``decline`` or ``cancel``.
        reason: Why.
    """

    def __init__(self, action: Literal["decline", "cancel"], reason: str) -> None:
        super().__init__(reason)
        self.action: Literal["decline", "cancel"] = action
        self.reason = reason


@attrs.frozen
class Field:
    """One field of a form.

    Attributes:
        name: The name on the server.
        label: What the user reads.
        spec: Coerces an answer.
        is_required: Whether the form needs a value.
        is_list: Whether several choices can be selected.
        default: The value for an empty answer; None without one.
        choices: The values by spelling: a title in any case, or a value itself; empty if any value is possible.
    """

    name: str
    label: str
    spec: ToolSpec
    is_required: bool
    is_list: bool
    default: Any
    choices: Mapping[str, str]


def fill_form(ask: Ask, server: str, message: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's values for the fields of a form.

    An empty answer selects the default, or omits an optional field.

    Args:
        server: The host's name for the server.
        message: Why the server asks.
        schema: The requested schema.

    Raises:
        FormDeclined: The form is unsupported, or the user declines it or does not answer correctly.
        PromptError: There is no answer.
    """
    fields = read_fields(schema)
    if not fields:
        confirm(ask, attributed(server, message))
    found = {}
    reason = f"{message} ({DECLINE} to decline)"
    for field in fields:
        value = _answer(ask, f"{attributed(server, reason)} {field.label}", field)
        reason = ""
        if value is not None:
            found[field.name] = value
    return found


def attributed(server: str, message: str) -> str:
    """Return the beginning of a prompt, which says who asks."""
    return f"The MCP server {server} asks: {one_line(message, MAX_DESCRIPTION_CHARS)}".rstrip()


def confirm(ask: Ask, question: str) -> None:
    """Ask for a confirmation; every answer but a yes declines.

    Raises:
        FormDeclined: The user did not confirm.
        PromptError: There is no answer.
    """
    if SPOKEN.get(ask(f"{question} [yes/no]").strip().lower()) != "true":
        raise FormDeclined("decline", "the user declined")


def read_fields(schema: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a form, or raise a `FormDeclined` if it is unsupported."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list) or len(properties) > MAX_FIELDS:
        raise _unsupported(f"expected an object with at most {MAX_FIELDS} properties")
    if len(json.dumps(schema)) > MAX_FORM_CHARS:
        raise _unsupported(f"expected at most {MAX_FORM_CHARS} characters")
    return [_field(name, _without_null(each), name in required) for name, each in properties.items()]


def _without_null(schema: object) -> Mapping[str, Any]:
    """Return the schema of a field; libraries describe an optional one as a union with null."""
    if not isinstance(schema, dict):
        return {}
    kinds = schema.get("anyOf")
    match [each for each in kinds if each != {"type": "null"}] if isinstance(kinds, list) else []:
        case [dict(only)] if "type" not in schema:
            return {**only, **{key: each for key, each in schema.items() if key != "anyOf"}}
    return schema


def _unsupported(what: str) -> FormDeclined:
    return FormDeclined("decline", f"the form is unsupported: {what}")


def _field(name: str, schema: Mapping[str, Any], is_required: bool) -> Field:
    label = one_line(name, MAX_LABEL_CHARS)
    if not isinstance(schema.get("type"), str) or schema["type"] not in TYPES:
        raise _unsupported(f"{label}: expected a string, a number, a boolean or a list of choices")
    is_list = schema["type"] == "array"
    items = schema.get("items") if is_list else schema
    titles = dict(_titles(items if isinstance(items, dict) else {}))
    if len(titles) > MAX_CHOICES or (is_list and not titles):
        raise _unsupported(f"{label}: expected at most {MAX_CHOICES} choices")
    rule = {key: schema[key] for key in RULES if key in schema}
    if titles:
        allowed = {"type": "string", "enum": [*titles]}
        rule = {**rule, "items": allowed} if is_list else allowed
    try:
        spec = spec_from_schema(
            "answer",
            {"type": "object", "properties": {"answer": rule}, "required": ["answer"]},
            group="form",
            formats=True,
        )
    except SpecError as error:
        raise _unsupported(f"{label}: {error.problems[0]}") from None
    default = _valid(spec, schema["default"]) if "default" in schema else None
    choices = {each: each for each in titles}
    for read in (str.lower, str):  # the user reads titles, so they precede values
        choices |= {read(title.strip()): value for value, title in titles.items()}
    return Field(name, _label(label, schema, titles, default), spec, is_required, is_list, default, choices)


def _titles(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the value and the title of each choice."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if isinstance(titled, list):
        pairs = [(each.get("const"), each.get("title")) for each in titled if isinstance(each, dict)]
    else:
        values, names = schema.get("enum"), schema.get("enumNames")
        values = values if isinstance(values, list) else []
        names = names if isinstance(names, list) and len(names) == len(values) else values
        pairs = [*zip(values, names, strict=True)]
    yield from ((value, title if isinstance(title, str) else value) for value, title in pairs if isinstance(value, str))


def _label(name: str, schema: Mapping[str, Any], titles: Mapping[str, str], default: Any) -> str:
    parts = [one_line(schema.get("title"), MAX_LABEL_CHARS) or name]
    about = one_line(schema.get("description"), MAX_DESCRIPTION_CHARS)
    if about:
        parts.append(f"({about})")
    if titles:
        listed = ", ".join(one_line(each, MAX_LABEL_CHARS) for each in titles.values())
        parts.append(f"[{'some of' if schema['type'] == 'array' else 'one of'} {listed}]")
    elif schema["type"] == "boolean":
        parts.append("[yes/no]")
    if default is not None:
        parts.append(f"[default: {one_line(json.dumps(default, ensure_ascii=False), MAX_LABEL_CHARS)}]")
    return f"{' '.join(parts)}:"


def _valid(spec: ToolSpec, value: object) -> Any:
    """Return a default with its exact type, or None if it is invalid."""
    try:
        return bind_named(spec, {"answer": value})[0]
    except ArgumentError:
        return None


def _answer(ask: Ask, prompt: str, field: Field) -> Any:
    """Return the user's value for a field; None omits it."""
    fault = ""
    for _ in range(MAX_ATTEMPTS):
        text = ask(f"{fault}{prompt}").strip()
        if text == DECLINE:
            raise FormDeclined("decline", "the user declined")
        if not text and (field.default is not None or not field.is_required):
            return field.default
        try:
            return bind_named(field.spec, {"answer": _meant(field, text)})[0]
        except ArgumentError as error:
            fault = f"Invalid: {one_line(str(error.problems[0]._replace(where='')), MAX_DESCRIPTION_CHARS)}. "
    raise FormDeclined("cancel", f"{MAX_ATTEMPTS} answers were invalid")


def _meant(field: Field, text: str) -> object:
    """Return the value that an answer stands for: the value of a title, a list, or the spelling of a boolean."""
    if field.is_list:
        return [_choice(field, each.strip()) for each in text.split(",") if each.strip()]
    if field.choices:
        return _choice(field, text)
    return SPOKEN.get(text.lower(), text) if field.spec.args[0].type is ArgType.BOOL else text


def _choice(field: Field, text: str) -> str:
    return field.choices.get(text, field.choices.get(text.lower(), text))
