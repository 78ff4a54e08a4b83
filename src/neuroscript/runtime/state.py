"""What the tools of one caller remember from one call to the next: variables, and handles of things that stay here.

Source: contract section 4; upstream's handle registry, which frees nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.context import RESULT, ROOT, Walk
from neuroscript.coercion.scalars import Handle, lax_handle
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import copied, exact
from neuroscript.errors import ToolFailed
from neuroscript.io.text import shown

if TYPE_CHECKING:
    from neuroscript.runtime.engine_secrets import CallerSecrets

ID_BYTES: Final = 16
"""How much chance there is in a handle's id, so that nobody guesses one."""


class Variables:
    """Plain values by name, copied in and out.

    Args:
        initial: What they are at first.
        constants: What a host lends to be read alone; they stand before variables of the same name.

    Raises:
        CoercionError: One of them is no plain value.
    """

    def __init__(self, initial: Mapping[str, Any] | None = None, constants: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._constants = {name: plain_copy(value) for name, value in (constants or {}).items()}
        self._values: dict[str, Any] = {name: plain_copy(value) for name, value in (initial or {}).items()}
        self._values.update(self._constants)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._values.copy()))

    def get(self, name: str, default: Any) -> Any:
        """Return a copy of what is called *name*, or *default*."""
        value = self._values.get(name, default)
        return default if value is default else copied(value)

    def set(self, name: str, value: object) -> None:
        """Call a copy of *value* by *name*.

        Raises:
            CoercionError: It is no plain value.
            ToolFailed: The name is that of a constant.
        """
        self._refuse_constant(name)
        copy = plain_copy(value)
        with self._lock:
            self._values[name] = copy

    def drop(self, name: str) -> None:
        """Let nothing be called *name* any more; a constant stays."""
        with self._lock:
            if name not in self._constants:
                self._values.pop(name, None)

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set *name* to what *change* makes of it. It is called again where somebody else was quicker."""
        self._refuse_constant(name)
        while True:
            old = self._values.get(name)
            new = plain_copy(change(copied(old)))
            with self._lock:
                if self._values.get(name) is old:
                    self._values[name] = new
                    return copied(new)

    def _refuse_constant(self, name: str) -> None:
        if name in self._constants:
            raise ToolFailed(f"{shown(name)} is a constant", code="var.constant", retry="model")


def plain_copy(value: object) -> Any:
    """Return a copy of a plain value that shares no container with it, or raise a `CoercionError`."""
    walk = Walk(RESULT)
    plain = walk.limited(exact, ArgType.ANY, value, ROOT)
    if walk.noted:
        from neuroscript.coercion.problems import value_error

        raise value_error(walk)
    return plain


@attrs.frozen(eq=False, repr=False)
class Kept:
    """A thing behind a handle."""

    thing: Any
    kind: str
    release: Callable[[], object] | None


class Handles:
    """Things by the ids of their handles; each lives until it is released, or its caller's session ends."""

    def __init__(self) -> None:
        self._kept: dict[str, Kept] = {}

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Keep *thing* and return its handle.

        Args:
            kind: ASCII letters, digits and ``. _ -``.
            release: Called once, when the thing is given up; what it raises is let go.

        Raises:
            ValueError: *kind* is no such word.
        """
        handle = Handle(f"{kind}-{os.urandom(ID_BYTES).hex()}", kind)
        if not kind or ":" in kind or lax_handle(handle) is not handle.id:
            raise ValueError("a kind is made of ASCII letters, digits and . _ -, at most 95 of them")
        self._kept[handle.id] = Kept(thing, kind, release)
        return handle

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the thing that *handle* names.

        Raises:
            ToolFailed: ``handle.unknown``, or ``handle.kind`` where it is of another kind.
        """
        kept = self._kept.get(_id(handle))
        if kept is None:
            raise ToolFailed("nothing is kept under this handle", code="handle.unknown", retry="model")
        if kept.kind != kind:
            text = f"expected a handle of kind {kind}, got one of kind {kept.kind}"
            raise ToolFailed(text, code="handle.kind", retry="model")
        return kept.thing

    def kind(self, handle: Handle | str) -> str | None:
        """Return of what kind the thing is that *handle* names, or None if none is kept."""
        kept = self._kept.get(_id(handle))
        return None if kept is None else kept.kind

    def release(self, handle: Handle | str) -> bool:
        """Give a thing up, and tell whether it was kept."""
        kept = self._kept.pop(_id(handle), None)
        if kept is not None and kept.release is not None:
            with suppress(Exception):
                kept.release()
        return kept is not None

    def close(self) -> None:
        """Give everything up, the newest first."""
        while self._kept:
            with suppress(IndexError):
                self.release(list(self._kept)[-1])

    def __len__(self) -> int:
        return len(self._kept)


def _id(handle: Handle | str) -> str:
    return handle.id if type(handle) is Handle else str(handle)


class Memory:
    """The variables, the handles and the secrets of one caller.

    Attributes:
        secrets: The secrets that it has received or sent, a `CallerSecrets`, or None as long as there are none.
    """

    def __init__(self, initial: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self.variables = Variables(initial, constants)
        self.handles = Handles()
        self.secrets: CallerSecrets | None = None
