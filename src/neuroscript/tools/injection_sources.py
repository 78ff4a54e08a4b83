"""Where an argument comes from that no caller gives: a value, a function, a variable, a state, a secret.

Nothing that a source gives is kept from one call to the next.

Source: seed-systems.md rows AH-9 to AH-17, AH-69, AH-70.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.parameters import BY_NAME, FUNCTION, STRING, WORD, Form, require_fields
from neuroscript.io.text import shown

NOTHING: Final = object()
"""Stands for what is not there; no host and no tool can have it."""


HELD: Final = Form(
    "a mapping with strings as keys, or a function that returns one",
    lambda each: BY_NAME.accepts(each) or callable(each),
)
KEY: Final = Form("names with dots between them, as in config.api.key", STRING.accepts, lambda key: all(key.split(".")))


class Lacking(Exception):
    """A source has nothing to give; its text says what is not there."""


@attrs.frozen
class Value:
    """The same value for every call.

    Attributes:
        value: It is coerced when the tool is made, and copied for each call.
    """

    value: Any = attrs.field(repr=False)


@attrs.frozen
class Resolver:
    """What a function gives, which is called in each call, where the tool's own function runs.

    Attributes:
        resolve: Takes the Runtime of the call. A coroutine function is for tools whose own function is one. Where it
            gives `UNSET`, the argument has its default.
    """

    resolve: Callable[[Any], Any]

    def __attrs_post_init__(self) -> None:
        require_fields("Resolver", self, resolve=FUNCTION)

    @property
    def is_coroutine(self) -> bool:
        """Whether the function is to be awaited."""
        func = self.resolve
        return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(type(func).__call__)

    def found(self, rt: Any) -> Any | Awaitable[Any]:
        """Return what the function gives."""
        return self.resolve(rt)


@attrs.frozen
class Variable:
    """A variable of the session in which the call is made, as it is then.

    Attributes:
        name: That of ``rt.get_var``.
    """

    name: str

    def __attrs_post_init__(self) -> None:
        require_fields("Variable", self, name=WORD)

    def found(self, rt: Any) -> Any:
        """Return the value of the variable, or raise `Lacking`."""
        value = rt.get_var(self.name, NOTHING)
        if value is NOTHING:
            raise Lacking(f"the session has no variable {shown(self.name)}")
        return value


@attrs.frozen
class State:
    """What stands in a mapping of the host, as it is when the call is made.

    Attributes:
        mapping: The mapping, which its host may change; or a function without parameters that returns it, so that the
            whole of it can be replaced.
        key: Where it stands: ``config.api.key`` is the ``key`` of the ``api`` of the ``config``.
    """

    mapping: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = attrs.field(repr=False)
    key: str

    def __attrs_post_init__(self) -> None:
        require_fields("State", self, mapping=HELD, key=KEY)

    def found(self, rt: Any) -> Any:
        """Return what stands there, or raise `Lacking`."""
        value: Any = self.mapping if isinstance(self.mapping, Mapping) else self.mapping()
        names = self.key.split(".")
        for count, name in enumerate(names, 1):
            if not isinstance(value, Mapping) or name not in value:
                raise Lacking(f"the state has no {shown('.'.join(names[:count]))}")
            value = value[name]
        return value


@attrs.frozen
class Secret:
    """A secret that the host lends; the tool needs ``secret:read:NAME`` then.

    Attributes:
        name: That of ``rt.secret``.
    """

    name: str

    def __attrs_post_init__(self) -> None:
        require_fields("Secret", self, name=WORD)

    def found(self, rt: Any) -> Any:
        """Return the secret, or raise what ``rt.secret`` raises."""
        return rt.secret(self.name)


Late = Resolver | Variable | State | Secret
"""What gives its value in a call, and not before."""

Source = Value | Late
"""What an argument can come from that no caller gives."""
