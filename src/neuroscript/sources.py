"""Where an argument comes from that no caller gives: a value, a function, a variable, a state, a secret.

Nothing that a source gives is kept from one call to the next.

Source: seed-systems.md rows AH-9 to AH-17, AH-69, AH-70.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs

from neuroscript.display import shown
from neuroscript.errors import SpecError

NOTHING: Final = object()
"""Stands for what is not there; no host and no tool can have it."""


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
        if not callable(self.resolve):
            raise SpecError("Resolver", ["resolve must be a function that takes the Runtime"])

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
        _hold_to_text("Variable", "name", self.name)

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
        _hold_to_text("State", "key", self.key)
        if not all(self.key.split(".")):
            raise SpecError("State", ["key must be names with dots between them, as in config.api.key"])
        if not isinstance(self.mapping, Mapping) and not callable(self.mapping):
            raise SpecError("State", ["mapping must be a mapping, or a function that returns one"])

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
        _hold_to_text("Secret", "name", self.name)

    def found(self, rt: Any) -> Any:
        """Return the secret, or raise what ``rt.secret`` raises."""
        return rt.secret(self.name)


Late = Resolver | Variable | State | Secret
"""What gives its value in a call, and not before."""

Source = Value | Late
"""What an argument can come from that no caller gives."""


def _hold_to_text(what: str, field: str, text: object) -> None:
    if type(text) is not str or not text:
        raise SpecError(what, [f"{field} must be a text"])
