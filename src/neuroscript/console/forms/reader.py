"""Arguments from the fields of a form.

The values are those that a caller would pass: text that is not a number stays text, so coercion repairs or refuses it
as it does in a call.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.constraints import ABSENT
from neuroscript.coercion.context import Where, place
from neuroscript.coercion.types import ArgType
from neuroscript.console.forms.controls import (
    AS_ENTERED,
    AS_JSON,
    CONTAINERS,
    MAX_CONTROLS,
    NULL,
    Control,
    control_of,
    default_text,
    is_open,
    item_spec,
    key_spec,
    value_spec,
)
from neuroscript.console.forms.names import ENCODING, ENTRIES, KEY, ROOT, VALUE, VARIANT, child, part
from neuroscript.console.forms.submission import Submission
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.spec.tool_spec import ArgSpec

NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""

MAX_NUMBER_CHARS: Final = 400

SECRET_KEY: Final = "$secret"  # noqa: S105
"""The only key of an object that stands for a secret where arguments are shown."""


MAX_JSON_LEVELS: Final = 100
"""Maximum number of nested arrays and objects in JSON that a user writes. The parser reads more than pages can show."""


class TooManyFields(Exception):
    """The form has more controls than a form may have."""


@attrs.frozen
class FormProblem:
    """A field that cannot be read.

    Attributes:
        where: Its place in the arguments, as in errors: ``tags[1]``.
        text: What is wrong, and what to do.
    """

    where: str
    text: str


@attrs.frozen
class Reading:
    """What a form contains.

    Attributes:
        arguments: The arguments by name; fields that cannot be read are left out.
        shown: The same, with ``{"$secret": NAME}`` in place of each secret, for pages.
        secrets: The secrets by the name of their field.
        problems: The fields that cannot be read.
    """

    arguments: dict[str, Any] = attrs.field(repr=False)
    shown: dict[str, Any] = attrs.field(repr=False)
    secrets: dict[str, Any] = attrs.field(factory=dict, repr=False)
    problems: tuple[FormProblem, ...] = ()


def read_form(args: Sequence[ArgSpec], submission: Submission, *, variadic: bool = False) -> Reading:
    """Return the arguments that a form contains.

    Args:
        args: The specs of the arguments.
        variadic: Whether the last argument takes a list of values.

    Raises:
        TooManyFields: The form is too large.
    """
    reader = _Reader(submission)
    arguments = reader.arguments(args, variadic)
    masked = _Reader(submission, is_masked=True)
    shown = masked.arguments(args, variadic)
    return Reading(arguments, shown, reader.secrets, tuple(reader.problems))


class _Reader:
    """The state of reading one form.

    Args:
        is_masked: Whether secrets are replaced by the names of their fields.
    """

    def __init__(self, submission: Submission, *, is_masked: bool = False) -> None:
        self._sent = submission
        self._is_masked = is_masked
        self._controls = 0
        self.problems: list[FormProblem] = []
        self.secrets: dict[str, Any] = {}

    def arguments(self, args: Sequence[ArgSpec], variadic: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for arg in args:
            name, where = child(ROOT, arg.name), (None, arg.name)
            value = self._variadic(arg, name, where) if variadic and arg is args[-1] else self._value(arg, name, where)
            if value is not ABSENT:
                found[arg.name] = value
        return found

    def _variadic(self, arg: ArgSpec, name: str, where: Where) -> Any:
        if self._sent.state(name) == AS_JSON and not arg.holds_secret:
            return self._json(name, where, False)
        return self._items(arg, name, where, 1) or ABSENT

    def _value(self, arg: ArgSpec, name: str, where: Where, level: int = 0, *, is_item: bool = False) -> Any:
        """Return the value of a field, or `ABSENT`.

        Args:
            is_item: Whether the value is a part of a container, so it cannot be left out.
        """
        self._controls += 1
        if self._controls > MAX_CONTROLS:
            raise TooManyFields(f"a form may have at most {MAX_CONTROLS} fields; pass the arguments as JSON")
        control, state = control_of(arg, level), self._sent.state(name)
        if state == NULL:
            return None
        if control is Control.SECRET or (state == AS_JSON and arg.holds_secret):
            return self._secret(arg, name, is_item)
        if state == AS_JSON or control is Control.JSON:
            return self._json(name, where, is_item or state == AS_ENTERED)
        if control in CONTAINERS and not (is_item or arg.required) and self._is_blank(arg, name, level):
            return ABSENT
        match control:
            case Control.LIST:
                return self._items(item_spec(arg), name, where, level + 1)
            case Control.TUPLE:
                return self._tuple(arg, name, where, level)
            case Control.MAP:
                return self._map(arg, name, where, level)
            case Control.UNION:
                return self._union(arg, name, where, level, is_item)
            case Control.BYTES:
                return self._bytes(name, where, is_present=is_item or state == AS_ENTERED)
        text = self._sent.text(name, default_text(arg, control, is_item=is_item))
        if text == "" and not (is_item or state == AS_ENTERED):
            return ABSENT
        match control:
            case Control.NUMBER:
                return number_of(text, arg.type)
            case Control.BOOLEAN:
                return {"true": True, "false": False}.get(text, text)
            case Control.CHOICE:
                return self._choice(arg, text, where)
            case Control.NULL:
                return None
        return text

    def _is_blank(self, arg: ArgSpec, name: str, level: int, *, is_item: bool = False) -> bool:
        """Return whether the user has entered nothing for a value."""
        if self._sent.state(name) or self._sent.file(name) is not None:
            return False
        control = control_of(arg, level)
        match control:
            case Control.LIST:
                return not self._sent.items(name)
            case Control.TUPLE:
                parts = [(each, child(name, index)) for index, each in enumerate(arg.prefix_items)]
                return all(self._is_blank(each, inner, level + 1, is_item=True) for each, inner in parts)
            case Control.MAP:
                keys = all(self._is_blank(key, child(name, key.name), level + 1) for key in arg.keys)
                return keys and not self._sent.items(part(name, ENTRIES))
            case Control.UNION:
                default = default_text(arg, control, is_item=is_item)
                text = self._sent.text(part(name, VARIANT), default)
                index = _index(text, len(arg.any_of))
                if text != default or index is None:
                    return text == default
                return self._is_blank(arg.any_of[index], part(name, VALUE), level + 1, is_item=is_item)
        default = default_text(arg, control, is_item=is_item)
        return self._sent.text(name, default) == default

    def _problem(self, where: Where, text: str) -> Any:
        self.problems.append(FormProblem(place(where), text))
        return ABSENT

    def _json(self, name: str, where: Where, is_present: bool) -> Any:
        text = self._sent.text(name)
        if not text.strip():
            return self._problem(where, "empty; write JSON, such as null") if is_present else ABSENT
        try:
            return parse_shallow_json(text)
        except NotJSON as error:
            return self._problem(where, f"not JSON: {error.hint}; write strings in double quotes")

    def _secret(self, arg: ArgSpec, name: str, is_item: bool) -> Any:
        text = self._sent.text(name)
        if text == "" and not (is_item or self._sent.state(name) == AS_ENTERED):
            return ABSENT
        value = self.secrets[name] = _secret_value(arg, text)
        return {SECRET_KEY: name} if self._is_masked else value

    def _items(self, arg: ArgSpec, name: str, where: Where, level: int) -> list[Any]:
        values = [
            self._value(arg, child(name, index), (where, number), level, is_item=True)
            for number, index in enumerate(self._sent.items(name))
        ]
        return [None if value is ABSENT else value for value in values]

    def _tuple(self, arg: ArgSpec, name: str, where: Where, level: int) -> list[Any]:
        values = [
            self._value(each, child(name, index), (where, index), level + 1, is_item=True)
            for index, each in enumerate(arg.prefix_items)
        ]
        return [None if value is ABSENT else value for value in values]

    def _map(self, arg: ArgSpec, name: str, where: Where, level: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key in arg.keys:
            value = self._value(key, child(name, key.name), (where, key.name), level + 1)
            if value is not ABSENT:
                found[key.name] = value
        if is_open(arg):
            self._entries(arg, name, where, level, found)
        return found

    def _entries(self, arg: ArgSpec, name: str, where: Where, level: int, found: dict[Any, Any]) -> None:
        entries, declared = part(name, ENTRIES), {key.name for key in arg.keys}
        keys, values = key_spec(arg), value_spec(arg)
        for index in self._sent.items(entries):
            entry = child(entries, index)
            key = self._value(keys, part(entry, KEY), (where, f"key {index + 1}"), level + 1, is_item=True)
            if key is ABSENT:
                continue
            if not _is_key(key) or key in found or key in declared:
                text = "a key that is already used" if _is_key(key) else "not a string, number, boolean or null"
                self._problem((where, f"key {index + 1}"), text)
                continue
            value = self._value(values, part(entry, VALUE), (where, key), level + 1, is_item=True)
            found[key] = None if value is ABSENT else value

    def _union(self, arg: ArgSpec, name: str, where: Where, level: int, is_item: bool) -> Any:
        text = self._sent.text(part(name, VARIANT), default_text(arg, Control.UNION, is_item=is_item))
        if text == "":
            return self._problem(where, "choose one of the types") if is_item else ABSENT
        index = _index(text, len(arg.any_of))
        if index is None:
            return self._problem(where, "choose one of the types")
        return self._value(arg.any_of[index], part(name, VALUE), where, level + 1, is_item=is_item)

    def _choice(self, arg: ArgSpec, text: str, where: Where) -> Any:
        index = _index(text, len(arg.choices))
        return self._problem(where, "choose one of the options") if index is None else arg.choices[index]

    def _bytes(self, name: str, where: Where, *, is_present: bool) -> Any:
        file, text = self._sent.file(name), self._sent.text(name)
        if file is not None:
            return file
        if text == "":
            return b"" if is_present else ABSENT
        if self._sent.text(part(name, ENCODING)) != "base64":
            return text.encode("utf-8", "surrogatepass")
        try:
            return b64decode("".join(text.split()), validate=True)
        except (Error, ValueError):
            return self._problem(where, "not Base64; choose a file, or write the bytes as text")


def parse_shallow_json(text: str) -> Any:
    """Return the value of JSON text with at most `MAX_JSON_LEVELS` levels.

    Raises:
        NotJSON: The text is not JSON, or exceeds a limit.
    """
    data = parse_json(text)
    inside = [data]
    for _ in range(MAX_JSON_LEVELS + 1):
        inside = [part for each in inside if isinstance(each, (dict, list)) for part in _parts(each)]
    if inside:
        raise NotJSON("limit.depth", "the JSON text nests too deeply")
    return data


def _parts(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _index(text: str, count: int) -> int | None:
    is_index = text.isascii() and text.isdigit() and len(text) < 6 and int(text) < count
    return int(text) if is_index else None


def _is_key(key: object) -> bool:
    return key is None or isinstance(key, (str, int, float, bytes))


def number_of(text: str, kind: ArgType) -> Any:
    """Return the number that a string contains, or the string, which coercion repairs or refuses."""
    if len(text) > MAX_NUMBER_CHARS or NUMBER.fullmatch(text) is None:
        return text
    if kind is ArgType.INT and text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    return text if number - number != 0.0 else number


def _secret_value(arg: ArgSpec, text: str) -> Any:
    """Return a secret: text for strings and bytes, otherwise JSON."""
    if not arg.any_of and arg.type in (ArgType.STRING, ArgType.BLOB, ArgType.HANDLE, ArgType.NODEID):
        return text
    try:
        return parse_shallow_json(text)
    except NotJSON:
        return text
