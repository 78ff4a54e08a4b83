"""Additional arguments of neurosurfer tools: values from the host, and session variables from earlier calls.

A variable contains plain data. Any other object is stored by the session, and the variable contains its handle; the
next neurosurfer tool receives the object itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import UNSET, CallError, CoercionError, HostError, ToolFailed
from neuroscript.interop.neurosurfer.spec_text import Parameters
from neuroscript.io.text import quote_untrusted, sendable
from neuroscript.policy.scopes import literal
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.runtime.interfaces import Handles, Runtime
from neuroscript.runtime.state import plain_copy
from neuroscript.tools.injection_sources import Late, MissingValue, Resolver, Secret, Value

PREFIX: Final = "neurosurfer."
"""Prefix of variables that do not belong to a tool."""


ANSWER: Final = f"{PREFIX}answer"
"""The variable with data about the last call: ``final_answer``, the names of its ``extras``, and ``stream``."""


KIND: Final = f"{PREFIX}extra"
"""The kind of the handles."""


def store_extras(rt: Runtime, extras: Any) -> list[str]:
    """Store extras as variables and return their names in order; store all of them or none.

    Raises:
        ToolFailed: ``neurosurfer.extras``, with every invalid name; or a name is that of a constant.
    """
    if not extras:
        return []
    if not isinstance(extras, Mapping):
        raise _extras_error([f"expected a mapping, got {type_name(extras)}"])
    faults = [fault for name in extras if (fault := _fault(name))]
    if faults:
        raise _extras_error(faults)
    there = {*rt.variables}
    for name in extras:
        if name in there:
            rt.update_var(name, _identity)  # raises an error if it is a constant
    for name, value in extras.items():
        _store(rt, name, value)
    return list(extras)


def _identity(value: Any) -> Any:
    return value


def _store(rt: Runtime, name: str, value: Any) -> None:
    before = rt.get_var(name)
    try:
        rt.set_var(name, plain_copy(value))
    except CoercionError:
        rt.set_var(name, rt.handles.new(value, KIND))
    release(rt.handles, before)


def _fault(name: Any) -> str:
    """Return why a name is not valid for an extra, or ``""``."""
    if not isinstance(name, str):
        return f"expected names of type str, got {type_name(name)}"
    if sendable(name) != name:
        return "expected names of valid Unicode, got lone surrogates"
    return f"{quote_untrusted(name)}: names must not begin with {PREFIX}" if name.startswith(PREFIX) else ""


def _extras_error(faults: list[str]) -> ToolFailed:
    return ToolFailed(f"extras: {'; '.join(faults)}", code="neurosurfer.extras", retry="host")


def extra_value(handles: Handles, value: Any) -> Any:
    """Return the object that a tool passed on, from the value of its variable."""
    return handles.get(value, KIND) if _is_ours(handles, value) else value


def release(handles: Handles, value: Any) -> None:
    """Release the handle in a variable, if it contains one that this module created."""
    if _is_ours(handles, value):
        handles.release(value)


def _is_ours(handles: Handles, value: Any) -> bool:
    return type(value) is Handle and handles.kind(value) == KIND


def copy_context(context: Mapping[str, Any] | None, faults: list[str]) -> Mapping[str, Any]:
    """Return a copy of the host's additional arguments; record the ones that cannot be used."""
    if context is not None and not isinstance(context, Mapping):
        faults.append(f"context: expected a mapping, got {type_name(context)}")
        return {}
    found = dict(context or {})
    faults.extend(f"context: expected str names, got {type_name(each)}" for each in found if not isinstance(each, str))
    awaited = [name for name, each in found.items() if isinstance(each, Resolver) and each.is_coroutine]
    faults.extend(f"context: {quote_untrusted(str(name))}: async resolvers are not supported here" for name in awaited)
    return found


def policy_with_secrets(policy: ToolPolicy, context: Mapping[str, Any]) -> ToolPolicy:
    """Return the policy of a tool, with the secrets that its host passes to it."""
    secrets = [f"secret:read:{literal(each.name)}" for each in context.values() if isinstance(each, Secret)]
    return attrs.evolve(policy, capabilities=(*policy.capabilities, *secrets)) if secrets else policy


def additional_arguments(
    rt: Runtime, parameters: Parameters, context: Mapping[str, Any], declared: set[str]
) -> dict[str, Any]:
    """Return the additional arguments of a tool: session variables, overridden by values from the host."""

    def is_taken(name: str) -> bool:
        return name not in declared and parameters.takes(name)

    names = [name for name in rt.variables if is_taken(name) and not name.startswith(PREFIX)]
    found = {name: extra_value(rt.handles, rt.get_var(name)) for name in names if name not in context}
    for name, source in context.items():
        value = _host_value(name, source, rt) if is_taken(name) else UNSET
        if value is not UNSET:
            found[name] = value
    return found


def _host_value(name: str, source: Any, rt: Runtime) -> Any:
    """Return the host's value for a name, or `UNSET` if the host has no value; the tool must handle that."""
    if isinstance(source, Value):
        return source.value
    if not isinstance(source, Late):
        return source
    try:
        return source.found(rt)
    except MissingValue:
        return UNSET
    except (CallError, HostError):
        raise
    except Exception as error:
        text = f"{quote_untrusted(name)}: its source failed ({type_name(error)})"
        raise ToolFailed(text, code="inject.failed", retry="host") from error
