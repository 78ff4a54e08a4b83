"""State of one caller between calls: variables, and objects behind handles."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.coercion.context import RESULT, ROOT, CoercionPass
from neuroscript.coercion.scalars import Handle, lax_handle
from neuroscript.coercion.types import ArgType
from neuroscript.coercion.values import coerce_value, copy_exact
from neuroscript.errors import ToolFailed
from neuroscript.io.text import quote_untrusted

if TYPE_CHECKING:
    from neuroscript.flow.state import SessionFlow
    from neuroscript.runtime.engine_secrets import CallerSecrets

ID_BYTES: Final = 16
"""Random bytes in a handle's id, so that it cannot be guessed."""


class Variables:
    """Plain values by name. They are copied when stored and when read.

    Args:
        initial: The initial variables.
        constants: Read-only values of the host; they take precedence over variables of the same name.

    Raises:
        CoercionError: If a value is not plain data.
    """

    def __init__(self, initial: Mapping[str, Any] | None = None, constants: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._constants = {name: plain_copy(value) for name, value in (constants or {}).items()}
        self._values: dict[str, Any] = {name: plain_copy(value) for name, value in (initial or {}).items()}
        self._values.update(self._constants)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._values.copy()))

    def get(self, name: str, default: Any) -> Any:
        """Return a copy of the value of *name*, or *default*."""
        value = self._values.get(name, default)
        return default if value is default else copy_exact(value)

    def set(self, name: str, value: object) -> None:
        """Set *name* to a copy of *value*.

        Raises:
            CoercionError: If the value is not plain data.
            ToolFailed: If *name* is a constant.
        """
        self._refuse_constant(name)
        copy = plain_copy(value)
        with self._lock:
            self._values[name] = copy

    def drop(self, name: str) -> None:
        """Delete the variable *name*; a constant stays."""
        with self._lock:
            if name not in self._constants:
                self._values.pop(name, None)

    def update(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set *name* to the result of *change*, which is called again if another thread changed it meanwhile."""
        self._refuse_constant(name)
        while True:
            old = self._values.get(name)
            new = plain_copy(change(copy_exact(old)))
            with self._lock:
                if self._values.get(name) is old:
                    self._values[name] = new
                    return copy_exact(new)

    def _refuse_constant(self, name: str) -> None:
        if name in self._constants:
            raise ToolFailed(f"{quote_untrusted(name)} is a constant", code="var.constant", retry="model")


def plain_copy(value: object) -> Any:
    """Return a copy of a plain value that shares no container with it, or raise a `CoercionError`."""
    walk = CoercionPass(RESULT)
    plain = walk.limited(coerce_value, ArgType.ANY, value, ROOT)
    if walk.noted:
        from neuroscript.coercion.problems import value_error

        raise value_error(walk)
    return plain


@attrs.frozen(eq=False, repr=False)
class StoredObject:
    """An object behind a handle."""

    thing: Any
    kind: str
    release: Callable[[], object] | None


class Handles:
    """Objects by the ids of their handles; each lives until it is released or its caller's session ends."""

    def __init__(self) -> None:
        self._kept: dict[str, StoredObject] = {}

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Store *thing* and return its handle.

        Args:
            kind: ASCII letters, digits and ``. _ -``.
            release: Called once, when the object is released. Exceptions that it raises are ignored.

        Raises:
            ValueError: If *kind* is invalid.
        """
        handle = Handle(f"{kind}-{os.urandom(ID_BYTES).hex()}", kind)
        if not kind or ":" in kind or lax_handle(handle) is not handle.id:
            raise ValueError("a kind consists of 1 to 95 ASCII letters, digits and . _ -")
        self._kept[handle.id] = StoredObject(thing, kind, release)
        return handle

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the object that *handle* refers to.

        Raises:
            ToolFailed: With the code ``handle.unknown``, or ``handle.kind`` if the object is of another kind.
        """
        kept = self._kept.get(handle_id(handle))
        if kept is None:
            raise ToolFailed("this handle is unknown or was released", code="handle.unknown", retry="model")
        if kept.kind != kind:
            text = f"expected a handle of kind {kind}, got one of kind {kept.kind}"
            raise ToolFailed(text, code="handle.kind", retry="model")
        return kept.thing

    def peek(self, id: str) -> Any:
        """Return the object with this id whatever its kind is, or None."""
        kept = self._kept.get(id)
        return None if kept is None else kept.thing

    def kind(self, handle: Handle | str) -> str | None:
        """Return the kind of the object that *handle* refers to, or None if it is not stored."""
        kept = self._kept.get(handle_id(handle))
        return None if kept is None else kept.kind

    def release(self, handle: Handle | str) -> bool:
        """Release an object, and return whether it was stored."""
        kept = self._kept.pop(handle_id(handle), None)
        if kept is not None and kept.release is not None:
            with suppress(Exception):
                kept.release()
        return kept is not None

    def close(self) -> None:
        """Release all objects, newest first."""
        while self._kept:
            with suppress(IndexError):
                self.release(list(self._kept)[-1])

    def __len__(self) -> int:
        return len(self._kept)


def handle_id(handle: Handle | str) -> str:
    """Return the id of a handle, which callers may also write as a string."""
    return handle.id if type(handle) is Handle else str(handle)


class Memory:
    """The variables, the handles and the secrets of one caller.

    Attributes:
        secrets: The secrets that it has received or sent, a `CallerSecrets`, or None if there are none.
        flow: The labels of what it has read, a `SessionFlow`, or None without rules about information flow.
    """

    def __init__(self, initial: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self.variables = Variables(initial, constants)
        self.handles = Handles()
        self.secrets: CallerSecrets | None = None
        self.flow: SessionFlow | None = None
