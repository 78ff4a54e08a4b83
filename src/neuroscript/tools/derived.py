"""Changes to existing tools: another name, policy or description for the same function.

Tools are handled as generic attrs classes, so that this module does not depend on the tool class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from neuroscript.errors import RegistryError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical, is_group_name
from neuroscript.policy.scopes import is_tool_pattern, tool_matcher
from neuroscript.policy.tool_policy import ToolPolicy

DOC_FIELDS: Final = ("description", "when_to_use", "return_help", "category", "error_conditions", "deprecated")
"""The descriptive fields of a spec."""


def name_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks canonical names against a glob pattern. As in policies, ``*`` also matches dots.

    Raises:
        SpecError: The pattern is invalid.
    """
    glob = canonical(pattern) if isinstance(pattern, str) else ""
    if not is_tool_pattern(glob):
        raise SpecError(
            "pattern",
            [f"{quote_untrusted(str(pattern))} is not a valid pattern; use a name, or a pattern such as fs.*"],
        )
    return tool_matcher(glob)


def unique(names: Iterable[tuple[str, str]], where: str) -> None:
    """Raise a `RegistryError` if two tools would have the same name.

    Args:
        names: Pairs of the old and the new name of each tool.
        where: The toolset, for the error.
    """
    taken: dict[str, str] = {}
    for old, new in names:
        other = taken.setdefault(new, old)
        if other != old:
            raise RegistryError(f"{where}: {other} and {old} would both be named {new}")


def rename_tools(tool: Any, name: str) -> Any:
    """Return the tool under another canonical name, or raise a `SpecError` if the name is invalid."""
    group, _, word = name.rpartition(".")
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, group=group, name=word))


def full_name(tool: Any, new: str) -> str:
    """Return the canonical name for *new*: a full name, or a word within the tool's current group."""
    name = canonical(new) if isinstance(new, str) else ""
    if not is_group_name(name):
        raise SpecError(tool.name, [f"{quote_untrusted(str(new))} is not a valid tool name"])
    return name if "." in name else f"{tool.spec.group}.{name}"


def with_policy(tool: Any, changes: Mapping[str, Any]) -> Any:
    """Return the tool with a changed policy. An unknown field raises a `SpecError`."""
    unknown = [name for name in changes if name not in {field.name for field in attrs.fields(ToolPolicy)}]
    if unknown:
        raise SpecError(tool.name, [f"{', '.join(map(quote_untrusted, unknown))}: not a field of ToolPolicy"])
    return attrs.evolve(tool, policy=attrs.evolve(tool.policy, **changes))


def with_docs(tool: Any, docs: Mapping[str, str]) -> Any:
    """Return the tool with changed descriptions. An unknown field raises a `SpecError`."""
    unknown = [name for name in docs if name not in DOC_FIELDS]
    if unknown:
        raise SpecError(
            tool.name, [f"{', '.join(map(quote_untrusted, unknown))}: only {', '.join(DOC_FIELDS)} can be described"]
        )
    return attrs.evolve(tool, spec=attrs.evolve(tool.spec, **docs))
