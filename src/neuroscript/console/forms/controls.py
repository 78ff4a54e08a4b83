"""Which control shows a spec, and the specs of the parts of a value."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from neuroscript.coercion.types import ELEMENTS, NUMBER_TYPES, VALUES, ArgType
from neuroscript.spec.tool_spec import ELEMENT_FIELDS, ArgSpec

MAX_LEVELS: Final = 8
"""Maximum number of nested controls; deeper values are written as JSON."""

MAX_ITEMS: Final = 100
"""Maximum number of items or entries with a control of their own; longer values are written as JSON."""

MAX_CONTROLS: Final = 2_000
"""Maximum number of controls of one form."""

MAX_OPTIONS: Final = 200
"""Maximum number of options to select from; more choices are typed."""

MAX_DECLARED: Final = 150
"""Maximum number of controls of a map with declared keys; a larger map is written as JSON."""

AUTO, NULL, AS_ENTERED, AS_JSON = "", "null", "value", "json"
"""The states of a value: left out if it is empty, null, as entered even if it is empty, or written as JSON."""


class Control(StrEnum):
    """What shows a value in a form."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    BYTES = "bytes"
    NULL = "null"
    JSON = "json"
    SECRET = "secret"  # noqa: S105
    LIST = "list"
    TUPLE = "tuple"
    MAP = "map"
    UNION = "union"


CONTAINERS: Final = frozenset({Control.LIST, Control.TUPLE, Control.MAP})


def control_of(arg: ArgSpec, level: int = 0) -> Control:
    """Return what shows the value of a spec.

    Args:
        level: In how many other controls it is.
    """
    if arg.secret:
        return Control.SECRET
    control = _control_of(arg)
    is_nested = control in CONTAINERS or control is Control.UNION
    if is_nested and (level >= MAX_LEVELS or _controls_in(arg, MAX_DECLARED) > MAX_DECLARED):
        return Control.SECRET if arg.holds_secret else Control.JSON
    return control


def _control_of(arg: ArgSpec) -> Control:
    kind = arg.type
    if arg.any_of:
        return Control.UNION
    if arg.choices and kind not in ELEMENTS and len(arg.choices) <= MAX_OPTIONS:
        return Control.CHOICE
    if kind in NUMBER_TYPES:
        return Control.NUMBER
    if kind in ELEMENTS:
        return Control.TUPLE if arg.prefix_items else Control.LIST
    if kind in VALUES:
        return Control.MAP
    if kind in JSON_TYPES:
        return Control.JSON
    return SCALARS.get(kind, Control.TEXT)


SCALARS: Final = {ArgType.BOOL: Control.BOOLEAN, ArgType.BLOB: Control.BYTES, ArgType.NIL: Control.NULL}
JSON_TYPES: Final = frozenset({ArgType.ANY, ArgType.EMBEDDING})
"""Types whose values are written as JSON."""


def _controls_in(arg: ArgSpec, most: int) -> int:
    """Return how many controls a spec declares; counting stops above *most*."""
    count = 1
    for each in (*arg.keys, *arg.prefix_items):
        count += _controls_in(each, most - count)
        if count > most:
            break
    return count


def item_spec(arg: ArgSpec, index: int = 0) -> ArgSpec:
    """Return the spec of an item of a list."""
    if arg.prefix_items:
        return arg.prefix_items[index]
    if arg.items is not None:
        return arg.items
    fields = {name: getattr(arg, name) for name in ELEMENT_FIELDS}
    return ArgSpec("item", ELEMENTS[arg.type], **fields)


def is_open(arg: ArgSpec) -> bool:
    """Return whether a map can have keys that are not declared."""
    return not arg.keys or arg.extra_keys or arg.value_spec is not None


def key_spec(arg: ArgSpec) -> ArgSpec:
    """Return the spec of a key that is not declared."""
    kind = ArgType.ANY if arg.type is ArgType.MAP_ANY_ANY else ArgType.STRING
    return arg.key_spec or ArgSpec("key", kind)


def value_spec(arg: ArgSpec) -> ArgSpec:
    """Return the spec of the value of a key that is not declared."""
    return arg.value_spec or ArgSpec("value", ArgType.ANY if arg.keys else VALUES[arg.type])


def default_text(arg: ArgSpec, control: Control, *, is_item: bool) -> str:
    """Return the text of a control that was not submitted: the option that is selected at first.

    Args:
        is_item: Whether the value is a part of a container, so it cannot be left out.
    """
    is_present = is_item or bool(arg.required)
    if control is Control.CHOICE and is_present and len(arg.choices) == 1:
        return "0"
    if control is Control.UNION:
        return "0" if is_present else ""
    if control is Control.NULL:
        return "null" if is_present else ""
    return ""
