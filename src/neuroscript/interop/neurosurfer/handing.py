"""What tools of neurosurfer hand on to the calls that follow: variables of the session.

A variable holds plain values. An object that is none is kept by the session, and the variable holds its handle; the
next tool of neurosurfer gets the object itself.

Source: seed-systems.md row NSF-35; contract section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuroscript.display import sendable, shown
from neuroscript.errors import CoercionError, ToolFailed
from neuroscript.memory import plain_copy
from neuroscript.runtime import Handles, Runtime
from neuroscript.scalars import Handle
from neuroscript.walk import type_name

OWN: Final = "neurosurfer."
"""How the names of variables begin that are no tool's."""

ANSWER: Final = f"{OWN}answer"
"""The variable that tells of the last call: ``final_answer``, the names of its ``extras``, if it is a ``stream``."""

KIND: Final = f"{OWN}extra"
"""The kind of the handles."""


def kept(rt: Runtime, extras: Any) -> list[str]:
    """Make variables of extras and return their names, in order; all of them, or none.

    Raises:
        ToolFailed: ``neurosurfer.extras``, with all that can have no name; or one has the name of a constant.
    """
    if not extras:
        return []
    if not isinstance(extras, Mapping):
        raise _nameless([f"expected a mapping, got {type_name(extras)}"])
    faults = [fault for name in extras if (fault := _fault(name))]
    if faults:
        raise _nameless(faults)
    there = {*rt.variables}
    for name in extras:
        if name in there:
            rt.update_var(name, _same)  # refused, if it is a constant
    for name, value in extras.items():
        _keep(rt, name, value)
    return list(extras)


def _same(value: Any) -> Any:
    return value


def _keep(rt: Runtime, name: str, value: Any) -> None:
    before = rt.get_var(name)
    try:
        rt.set_var(name, plain_copy(value))
    except CoercionError:
        rt.set_var(name, rt.handles.new(value, KIND))
    release(rt.handles, before)


def _fault(name: Any) -> str:
    """Return why something can be no name of an extra, or ``""``."""
    if not isinstance(name, str):
        return f"expected names that are texts, got {type_name(name)}"
    if sendable(name) != name:
        return "expected names of valid Unicode, got lone surrogates"
    return f"no name may begin with {OWN}, as {shown(name)} does" if name.startswith(OWN) else ""


def _nameless(faults: list[str]) -> ToolFailed:
    return ToolFailed(f"extras: {'; '.join(faults)}", code="neurosurfer.extras", retry="host")


def handed_on(handles: Handles, value: Any) -> Any:
    """Return what a tool handed on, of what its variable holds."""
    return handles.get(value, KIND) if _is_ours(handles, value) else value


def release(handles: Handles, value: Any) -> None:
    """Give up what a variable held."""
    if _is_ours(handles, value):
        handles.release(value)


def _is_ours(handles: Handles, value: Any) -> bool:
    return type(value) is Handle and handles.kind(value) == KIND
