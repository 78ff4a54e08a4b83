"""Tools made of others: another name, another policy, other words; the function stays what it is.

A tool is taken as `attrs` sees it, so that this stands below the tools themselves.

Source: issue "Plugins", toolset algebra; peers.md row 1f.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import RegistryError, SpecError
from neuroscript.io.text import shown
from neuroscript.names import canonical, is_group_name
from neuroscript.policy.scopes import is_tool_pattern, tool_matcher
from neuroscript.policy.tool_policy import ToolPolicy

TEXTS: Final = ("description", "when_to_use", "return_help", "category", "error_conditions", "deprecated")
"""Fields of a spec that are words alone."""


def matching(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a canonical name matches a glob, in which ``*`` crosses dots, as policies have it.

    Raises:
        SpecError: It is no such pattern.
    """
    glob = canonical(pattern) if isinstance(pattern, str) else ""
    if not is_tool_pattern(glob):
        raise SpecError("pattern", [f"{shown(str(pattern))} matches no tool; write a name, or a pattern such as fs.*"])
    return tool_matcher(glob)


def unique(names: Iterable[tuple[str, str]], where: str) -> None:
    """Raise a `RegistryError` where two tools would have one name.

    Args:
        names: What each was called, and what it is to be called.
        where: The toolset, for the error.
    """
    taken: dict[str, str] = {}
    for old, new in names:
        other = taken.setdefault(new, old)
        if other != old:
            raise RegistryError(f"{where}: {other} and {old} would both be called {new}")


def renamed(tool: Any, name: str) -> Any:
    """Return a tool under another canonical name, or raise a `SpecError` where that is none."""
    group, _, word = name.rpartition(".")
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, group=group, name=word))


def full_name(tool: Any, new: str) -> str:
    """Return the canonical name that *new* gives to a tool: a whole one, or a word in the group that it has."""
    name = canonical(new) if isinstance(new, str) else ""
    if not is_group_name(name):
        raise SpecError(tool.name, [f"{shown(str(new))} is no name of a tool"])
    return name if "." in name else f"{tool.spec.group}.{name}"


def with_policy(tool: Any, changes: Mapping[str, Any]) -> Any:
    """Return a tool with other needs; an unknown field is a `SpecError`."""
    unknown = [name for name in changes if name not in {field.name for field in attrs.fields(ToolPolicy)}]
    if unknown:
        raise SpecError(tool.name, [f"{', '.join(map(shown, unknown))}: a ToolPolicy has no such field"])
    return attrs.evolve(tool, policy=attrs.evolve(tool.policy, **changes))


def described(tool: Any, texts: Mapping[str, str]) -> Any:
    """Return a tool with other words of description; an unknown field is a `SpecError`."""
    unknown = [name for name in texts if name not in TEXTS]
    if unknown:
        raise SpecError(tool.name, [f"{', '.join(map(shown, unknown))}: only {', '.join(TEXTS)} can be described"])
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, **texts))
