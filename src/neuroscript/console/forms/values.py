"""The fields of a form for given arguments, so that reading the form returns the same arguments.

A value that its control cannot show exactly is written as JSON. Secrets are left out: they are never sent to a browser.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.unions import alternative_of
from neuroscript.console.forms.controls import (
    AS_ENTERED,
    AS_JSON,
    MAX_CONTROLS,
    MAX_ITEMS,
    NULL,
    Control,
    control_of,
    is_open,
    item_spec,
    key_spec,
    value_spec,
)
from neuroscript.console.forms.names import ENCODING, ENTRIES, ITEM, KEY, ROOT, STATE, VALUE, VARIANT, child, part
from neuroscript.console.forms.reader import number_of
from neuroscript.console.forms.submission import Submission
from neuroscript.errors import CoercionError
from neuroscript.io.text import json_text
from neuroscript.spec.tool_spec import ArgSpec

MAX_FILLED: Final = MAX_CONTROLS // 2
"""Maximum number of controls that arguments fill; what exceeds it is written as JSON."""


class _Misfit(Exception):
    """A control cannot show a value."""


def fill_form(args: Sequence[ArgSpec], arguments: Mapping[str, Any], *, variadic: bool = False) -> Submission:
    """Return the fields for arguments as a caller would pass them by name; unknown names are left out.

    Args:
        variadic: Whether the last argument takes a list of values.
    """
    filling = _Filling()
    for arg in args:
        if arg.name in arguments:
            name, value = child(ROOT, arg.name), arguments[arg.name]
            if variadic and arg is args[-1]:
                filling.attempt(arg, name, value, filling.put_variadic)
            else:
                filling.put(arg, name, value)
    return Submission(filling.texts)


class _Filling:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._controls = 0

    def put(self, arg: ArgSpec, name: str, value: Any, level: int = 0, *, is_item: bool = False) -> None:
        """Add the fields of a value."""
        self._controls += 1
        control = control_of(arg, level)
        if control is Control.SECRET:
            return
        if value is None and control is not Control.JSON:
            if control is not Control.NULL or not is_item:
                self.texts[part(name, STATE)] = NULL
            return
        self.attempt(arg, name, value, partial(self._put, control, level, is_item))

    def attempt(self, arg: ArgSpec, name: str, value: Any, put: Callable[[ArgSpec, str, Any], None]) -> None:
        """Add the fields of a value by a function, or write the value as JSON if the function cannot."""
        before = dict(self.texts)
        try:
            put(arg, name, value)
        except _Misfit:
            self.texts = before
            if not arg.holds_secret:
                self.texts[part(name, STATE)] = AS_JSON
                self.texts[name] = _json(value)

    def put_variadic(self, arg: ArgSpec, name: str, value: Any) -> None:
        self._put_items(arg, name, value, 0)

    def _put(self, control: Control, level: int, is_item: bool, arg: ArgSpec, name: str, value: Any) -> None:
        match control:
            case Control.LIST:
                self._put_items(item_spec(arg), name, value, level)
                self._mark_present(arg, name, is_item)
            case Control.TUPLE:
                self._put_tuple(arg, name, value, level, is_item)
            case Control.MAP:
                self._put_map(arg, name, value, level)
                self._mark_present(arg, name, is_item)
            case Control.UNION:
                self._put_alternative(arg, name, value, level, is_item)
            case Control.JSON:
                self.texts[name] = _json(value)
            case _:
                self.texts[name] = self._text(control, arg, name, value)
                if self.texts[name] == "" and not is_item:
                    self.texts[part(name, STATE)] = AS_ENTERED

    def _mark_present(self, arg: ArgSpec, name: str, is_item: bool) -> None:
        if not is_item and not arg.required:
            self.texts[part(name, STATE)] = AS_ENTERED

    def _put_items(self, arg: ArgSpec, name: str, value: Any, level: int) -> None:
        if type(value) not in (list, tuple) or len(value) > MAX_ITEMS or self._controls + len(value) > MAX_FILLED:
            raise _Misfit
        for index, each in enumerate(value):
            item = child(name, index)
            self.texts[part(item, ITEM)] = "1"
            self.put(arg, item, each, level + 1, is_item=True)

    def _put_tuple(self, arg: ArgSpec, name: str, value: Any, level: int, is_item: bool) -> None:
        if type(value) not in (list, tuple) or len(value) != len(arg.prefix_items):
            raise _Misfit
        for index, (each, item) in enumerate(zip(arg.prefix_items, value, strict=True)):
            self.put(each, child(name, index), item, level + 1, is_item=True)
        self._mark_present(arg, name, is_item)

    def _put_map(self, arg: ArgSpec, name: str, value: Any, level: int) -> None:
        if type(value) is not dict or len(value) > max(MAX_ITEMS, len(arg.keys)):
            raise _Misfit
        declared = {key.name: key for key in arg.keys}
        others = [(key, each) for key, each in value.items() if key not in declared]
        if (others and not is_open(arg)) or self._controls + len(value) > MAX_FILLED:
            raise _Misfit
        for key, spec in declared.items():
            if key in value:
                self.put(spec, child(name, key), value[key], level + 1)
        keys, values = (key_spec(arg), value_spec(arg)) if others else (arg, arg)
        for index, (key, each) in enumerate(others):
            entry = child(part(name, ENTRIES), index)
            self.texts[part(entry, ITEM)] = "1"
            self.put(keys, part(entry, KEY), key, level + 1, is_item=True)
            self.put(values, part(entry, VALUE), each, level + 1, is_item=True)

    def _put_alternative(self, arg: ArgSpec, name: str, value: Any, level: int, is_item: bool) -> None:
        chosen = alternative_of(arg, value) or next((each for each in arg.any_of if _takes(each, value)), None)
        if chosen is None:
            raise _Misfit
        index = next(index for index, each in enumerate(arg.any_of) if each is chosen)
        self.texts[part(name, VARIANT)] = str(index)
        self.put(chosen, part(name, VALUE), value, level + 1, is_item=is_item)

    def _text(self, control: Control, arg: ArgSpec, name: str, value: Any) -> str:
        """Return the text of a control for one value, or raise a `_Misfit`."""
        match control:
            case Control.TEXT if type(value) is str and is_enterable(arg, value):
                return value
            case Control.NUMBER if type(value) in (int, float):
                text = repr(value)
                if (type(number_of(text, arg.type)), number_of(text, arg.type)) == (type(value), value):
                    return text
            case Control.BOOLEAN if type(value) is bool:
                return "true" if value else "false"
            case Control.CHOICE:
                same = (i for i, each in enumerate(arg.choices) if type(each) is type(value) and each == value)
                if (index := next(same, None)) is not None:
                    return str(index)
            case Control.BYTES if type(value) in (bytes, bytearray):
                self.texts[part(name, ENCODING)] = "base64"
                return b64encode(value).decode("ascii")
        raise _Misfit


def _takes(arg: ArgSpec, value: Any) -> bool:
    try:
        coerce(value, arg)
    except CoercionError:
        return False
    return True


def is_multiline(arg: ArgSpec) -> bool:
    """Return whether a string may have several lines."""
    return arg.type is ArgType.STRING and not arg.format and not arg.choices


def is_enterable(arg: ArgSpec, text: str) -> bool:
    """Return whether a browser sends a string back unchanged, and a page shows each of its characters."""
    plain = text.replace("\n", "").replace("\t", "") if is_multiline(arg) else text
    return plain.isprintable()


def _json(value: Any) -> str:
    try:
        return json_text(to_plain(value))
    except (TypeError, ValueError):  # an example may contain any object
        return ""
