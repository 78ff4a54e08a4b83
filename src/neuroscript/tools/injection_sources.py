"""Sources of injected arguments: constants, functions, session variables, host state and secrets.

Values from a source are never reused by another call.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import BY_NAME, FUNCTION, STRING, WORD, Form, require_fields
from neuroscript.io.text import quote_untrusted

ABSENT: Final = object()
"""Marks a missing value; hosts and tools have no access to it."""


STATE_FORM: Final = Form(
    "a mapping with string keys, or a function that returns one",
    lambda each: BY_NAME.accepts(each) or callable(each),
)
KEY: Final = Form("names separated by dots, such as config.api.key", STRING.accepts, lambda key: all(key.split(".")))


class MissingValue(Exception):
    """A source has no value; the message says what is missing."""


@attrs.frozen
class Value:
    """A constant value.

    Attributes:
        value: The value. It is coerced when the tool is created and copied for each call.
    """

    value: Any = attrs.field(repr=False)


@attrs.frozen
class Resolver:
    """The result of a function that runs in each call, on the same thread or event loop as the tool's function.

    Attributes:
        resolve: A function of the Runtime of the call. A coroutine function requires a tool with a coroutine function.
            If it returns `UNSET`, the argument has its default.
    """

    resolve: Callable[[Any], Any]

    def __attrs_post_init__(self) -> None:
        require_fields("Resolver", self, resolve=FUNCTION)

    @property
    def is_coroutine(self) -> bool:
        """Whether the function must be awaited."""
        func = self.resolve
        return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)

    def found(self, rt: Any) -> Any | Awaitable[Any]:
        """Return the result of the function."""
        return self.resolve(rt)


@attrs.frozen
class Variable:
    """The current value of a variable of the session.

    Attributes:
        name: The name for ``rt.get_var``.
    """

    name: str

    def __attrs_post_init__(self) -> None:
        require_fields("Variable", self, name=WORD)

    def found(self, rt: Any) -> Any:
        """Return the value of the variable, or raise `MissingValue`."""
        value = rt.get_var(self.name, ABSENT)
        if value is ABSENT:
            raise MissingValue(f"the session has no variable {quote_untrusted(self.name)}")
        return value


@attrs.frozen
class State:
    """The current value of a key in a mapping of the host.

    Attributes:
        mapping: The mapping, which the host may change, or a function without parameters that returns it, so that the
            whole mapping can be replaced.
        key: The path: ``config.api.key`` is the ``key`` of the ``api`` of the ``config``.
    """

    mapping: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = attrs.field(repr=False)
    key: str

    def __attrs_post_init__(self) -> None:
        require_fields("State", self, mapping=STATE_FORM, key=KEY)

    def found(self, rt: Any) -> Any:
        """Return the value of the key, or raise `MissingValue`."""
        value: Any = self.mapping if isinstance(self.mapping, Mapping) else self.mapping()
        names = self.key.split(".")
        for count, name in enumerate(names, 1):
            if not isinstance(value, Mapping) or name not in value:
                raise MissingValue(f"the state has no {quote_untrusted('.'.join(names[:count]))}")
            value = value[name]
        return value


@attrs.frozen
class Secret:
    """A secret that the host provides. The tool then needs ``secret:read:NAME``.

    Attributes:
        name: The name for ``rt.secret``.
    """

    name: str

    def __attrs_post_init__(self) -> None:
        require_fields("Secret", self, name=WORD)

    def found(self, rt: Any) -> Any:
        """Return the secret, or raise the same error as ``rt.secret``."""
        return rt.secret(self.name)


Late = Resolver | Variable | State | Secret
"""Sources whose value is known only during a call."""

Source = Value | Late
"""All sources of injected arguments."""
