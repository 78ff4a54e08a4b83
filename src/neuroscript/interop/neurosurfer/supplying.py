"""What a tool of neurosurfer gets besides its inputs: what its host gives, and variables of the session.

Source: seed-systems.md rows NSF-29, NSF-35, NSF-41; part 3, runtime context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from neuroscript.display import shown
from neuroscript.errors import UNSET, CallError, LentError, ToolFailed
from neuroscript.interop.neurosurfer.handing import OWN, handed_on
from neuroscript.interop.neurosurfer.reading import Wanted
from neuroscript.needs import ToolPolicy
from neuroscript.runtime import Runtime
from neuroscript.scopes import literal
from neuroscript.sources import Lacking, Late, Resolver, Secret, Value
from neuroscript.walk import type_name


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
