"""What tools of neurosurfer hand on to the calls that follow: variables of the session.

A variable holds plain values. An object that is none is kept by the session, and the variable holds its handle; the
next tool of neurosurfer gets the object itself.

Source: seed-systems.md row NSF-35; contract section 4.

What a tool of neurosurfer gets besides its inputs: what its host gives, and variables of the session.

Source: seed-systems.md rows NSF-29, NSF-35, NSF-41; part 3, runtime context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import UNSET, CallError, CoercionError, LentError, ToolFailed
from neuroscript.interop.neurosurfer.spec_text import Wanted
from neuroscript.io.text import sendable, shown
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Handles, Runtime
from neuroscript.runtime.state import plain_copy
from neuroscript.tools.injection_sources import Lacking, Late, Resolver, Secret, Value

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


def settled(context: Mapping[str, Any] | None, faults: list[str]) -> Mapping[str, Any]:
    """Return what a host gives, as it is now; what can not be used is noted."""
    if context is not None and not isinstance(context, Mapping):
        faults.append(f"context: expected a mapping, got {type_name(context)}")
        return {}
    found = dict(context or {})
    faults.extend(f"context: a name is a text, not {type_name(each)}" for each in found if not isinstance(each, str))
    awaited = [name for name, each in found.items() if isinstance(each, Resolver) and each.is_coroutine]
    faults.extend(f"context: {shown(str(name))}: a resolver that is awaited can not be used here" for name in awaited)
    return found


def needed(policy: ToolPolicy, context: Mapping[str, Any]) -> ToolPolicy:
    """Return what a tool needs, with the secrets that its host gives it."""
    secrets = [f"secret:read:{literal(each.name)}" for each in context.values() if isinstance(each, Secret)]
    return attrs.evolve(policy, capabilities=(*policy.capabilities, *secrets)) if secrets else policy


def besides(rt: Runtime, wanted: Wanted, context: Mapping[str, Any], declared: set[str]) -> dict[str, Any]:
    """Return what a tool gets besides its inputs: variables of the session, and before them what its host gives."""

    def is_taken(name: str) -> bool:
        return name not in declared and wanted.takes(name)

    names = [name for name in rt.variables if is_taken(name) and not name.startswith(OWN)]
    found = {name: handed_on(rt.handles, rt.get_var(name)) for name in names if name not in context}
    for name, source in context.items():
        value = _given(name, source, rt) if is_taken(name) else UNSET
        if value is not UNSET:
            found[name] = value
    return found


def _given(name: str, source: Any, rt: Runtime) -> Any:
    """Return what a host gives under a name; `UNSET` where nothing is there, which a tool has to be ready for."""
    if isinstance(source, Value):
        return source.value
    if not isinstance(source, Late):
        return source
    try:
        return source.found(rt)
    except Lacking:
        return UNSET
    except (CallError, LentError):
        raise
    except Exception as error:
        text = f"{shown(name)}: its source failed ({type_name(error)})"
        raise ToolFailed(text, code="inject.failed", retry="host") from error
