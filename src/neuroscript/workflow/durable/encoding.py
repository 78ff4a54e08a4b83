"""Encoding of arguments and outcomes as text for the database, without loss.

A value that JSON lacks is written as a map with one key that begins with ``$``. A map with such a key of its own is
written as pairs, so that the two cannot be confused. Nothing is unpickled, and text that another program wrote is
either read completely or rejected with `Unreadable`.
"""

from __future__ import annotations

import datetime
import json
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import NUMBER, STRING, Form, one_of, optional, sequence
from neuroscript.coercion.plain_data import content_of
from neuroscript.coercion.scalars import AnyContent
from neuroscript.errors import (
    RETRIES,
    ArgumentError,
    CallError,
    CallTimeout,
    CoercionError,
    LimitError,
    PolicyError,
    Problem,
    ReturnError,
    ToolFailed,
    ToolNotFound,
)

KINDS: Final[Mapping[str, type[CallError]]] = {
    kind.__name__: kind
    for kind in (
        *(CallError, ToolNotFound, ArgumentError, CoercionError, PolicyError),
        *(LimitError, CallTimeout, ToolFailed, ReturnError),
    )
}
"""The error types that can be stored; an error of a subtype is stored as the nearest of these."""


class NotStorable(TypeError):
    """A value that exists only in its own process; the message names its type."""


class Unreadable(ValueError):
    """Text in the database that `text_of` did not write; the message says what is wrong."""


FAULTS: Final = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""Exceptions that reading foreign text may raise."""


def text_of(value: Any) -> str:
    """Return an exact value as text.

    Raises:
        Unkept: If it contains a value that cannot be stored, such as a handle.

    >>> text_of({"n": 1, "raw": b"a"})
    '{"n": 1, "raw": {"$bytes": "YQ=="}}'
    """
    return json.dumps(_encode(value))


def value_of(text: str) -> Any:
    """Return the value that `text_of` wrote.

    Raises:
        Unreadable: If `text_of` did not write this text.

    >>> value_of('{"raw": {"$bytes": "YQ=="}}')
    {'raw': b'a'}
    """
    return value_in(json_of(text))


def value_in(data: Any) -> Any:
    """Return the value in parsed JSON, or raise `Unreadable`."""
    try:
        return _decode(data)
    except RecursionError:
        raise Unreadable("nests too deeply") from None
    except FAULTS:
        raise Unreadable("holds a value in an unknown form") from None


def json_of(text: str) -> Any:
    """Return the value of JSON text, or raise `Unreadable`."""
    try:
        return json.loads(text)
    except RecursionError:
        raise Unreadable("nests too deeply") from None
    except FAULTS:
        raise Unreadable("is not JSON") from None


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return [_encode(each) for each in value]
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: _encode(each) for key, each in value.items()}
        return {"$pairs": [[_encode(key), _encode(each)] for key, each in value.items()]}
    if kind is bytes:
        return {"$bytes": b64encode(value).decode("ascii")}
    if kind is tuple:
        return {"$tuple": [_encode(each) for each in value]}
    if kind is array:
        return {"$array": [value.typecode, value.tolist()]}
    if kind is datetime.datetime:
        return {"$time": value.isoformat()}
    if isinstance(value, AnyContent):
        return {"$content": _encode(value.data)}
    raise NotStorable(f"{type_name(value)} cannot be stored in a database, because it exists only in its own process")


def _decode(value: Any) -> Any:
    if type(value) is list:
        return [_decode(each) for each in value]
    if type(value) is not dict:
        return value
    if len(value) == 1:
        ((key, each),) = value.items()
        if key in READ:
            return READ[key](each)
    if any(key.startswith("$") for key in value):
        raise Unreadable
    return {key: _decode(each) for key, each in value.items()}


READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "$pairs": lambda pairs: {_decode(key): _decode(each) for key, each in pairs},
    "$bytes": lambda text: b64decode(text, validate=True),
    "$tuple": lambda items: tuple(_decode(each) for each in items),
    "$array": lambda parts: array(parts[0], parts[1]),
    "$time": datetime.datetime.fromisoformat,
    "$content": lambda data: content_of(_decode(data)),
}


def encode_error(error: CallError) -> dict[str, Any]:
    """Return an error as data for `text_of`, without its cause and without attributes that cannot be stored."""
    kind = next(each.__name__ for each in type(error).__mro__ if each.__name__ in KINDS)
    state = {}
    for name, value in error.__reduce__()[1][1].items():
        try:
            _encode(value)
        except NotStorable:
            continue
        state[name] = value
    if isinstance(error, ArgumentError):
        state["_problems"] = [tuple(problem) for problem in error.problems]
    return {"kind": kind, "state": state}


def decode_error(data: Any) -> CallError:
    """Return the error that `encode_error` wrote.

    Raises:
        Unreadable: If `encode_error` did not write this data.
    """
    try:
        return _error(KINDS[data["kind"]], data["state"])
    except FAULTS:
        raise Unreadable("holds an error in an unknown form") from None


def _error(kind: type[CallError], state: dict[str, Any]) -> CallError:
    further = next((FURTHER[each] for each in kind.__mro__ if each in FURTHER), {})
    needed = {**({} if issubclass(kind, ArgumentError) else ATTRIBUTES), **further}
    for name in {*state, *needed}:
        form = needed.get(name) or OPTIONAL.get(name)
        if form is not None and not form.holds(state[name]):
            raise Unreadable
    error = kind.__new__(kind)
    error.__dict__.update({name: each for name, each in state.items() if name.isidentifier()})
    if isinstance(error, ArgumentError):
        error._problems = tuple(Problem(*each) for each in state["_problems"])
    return error


STRINGS: Final = sequence(STRING, "strings")
WHOLE: Final = Form("an integer", lambda value: type(value) is int)

ATTRIBUTES: Final[Mapping[str, Form]] = {"text": STRING, "tool": STRING, "_code": STRING, "_retry": one_of(*RETRIES)}
"""The attributes of every error except `ArgumentError`."""

FURTHER: Final[Mapping[type, Mapping[str, Form]]] = {
    ToolNotFound: {"near": STRINGS},
    ArgumentError: {"tool": STRING, "_found": WHOLE, "_problems": sequence(STRINGS, "problems")},
    PolicyError: {"need": STRING, "rule": STRING},
    CallTimeout: {"state": one_of("stopped", "abandoned", "killed"), "seconds": optional(NUMBER)},
}

OPTIONAL: Final[Mapping[str, Form]] = {
    "items": optional(WHOLE),
    "remedy": STRING,
    "is_logged": Form("True or False", lambda value: type(value) is bool),
    "needs": STRINGS,
    "grants": STRINGS,
    "_has_ended": Form("None", lambda value: value is None),
}
