"""Canonical names and the tools that they mean: a snapshot that never changes under a call.

Source: contract section 2; upstream ``tools_registration.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from neuroscript.errors import PluginError, RegistryError, ToolFailed
from neuroscript.needs import ToolPolicy
from neuroscript.spec import ToolSpec
from neuroscript.tools import ToolImplementation

if TYPE_CHECKING:
    from neuroscript.nearnames import NearNames

HOST: Final = "host"
"""The origin of tools that no plugin brought."""


class Listed(Protocol):
    """A tool, or what is known of one that has not been loaded."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def policy(self) -> ToolPolicy: ...


def loaded(tool: Any) -> ToolImplementation:
    """Return a tool itself.

    Raises:
        PluginError: It can not be loaded.
    """
    found: ToolImplementation = tool if isinstance(tool, ToolImplementation) else tool.load()
    return found


def implementation(tool: Any) -> ToolImplementation:
    """Return a tool, or, where it has not been loaded, one whose function loads it when it is called.

    Raises:
        PluginError: What is known of it is no spec and no policy.
    """
    found: ToolImplementation = tool if isinstance(tool, ToolImplementation) else tool.implementation
    return found


def failure(tool: str, error: PluginError) -> ToolFailed:
    """Return the error of a call whose tool cannot be loaded; why is for the host alone, in its cause."""
    failed = ToolFailed(f"cannot be loaded ({error.code})", tool=tool, code=error.code, retry="host")
    failed.remedy = f"{tool}: cannot be loaded: {error}"
    return failed


def by_needs(tools: Iterable[Listed]) -> list[str]:
    """Return the names of tools, those first that need nothing, because most callers may call them."""
    return [tool.name for tool in sorted(tools, key=_needs)]


def _needs(tool: Listed) -> bool:
    try:
        policy = tool.policy
    except PluginError:  # it cannot be loaded
        return True
    return bool(policy.capabilities) or policy.requires_trust or policy.requires_approval


@attrs.frozen(eq=False, repr=False)
class Registry:
    """All tools of an engine at one moment.

    Attributes:
        tools: Read-only, by canonical name.
        origins: The distribution or file that brought each tool, or `HOST`.
        aliases: Old names, and the canonical name that each now means.
    """

    tools: Mapping[str, Listed] = MappingProxyType({})
    origins: Mapping[str, str] = MappingProxyType({})
    aliases: Mapping[str, str] = MappingProxyType({})

    def with_tools(
        self, added: Iterable[Listed], origin: str = HOST, aliases: Mapping[str, str] = MappingProxyType({})
    ) -> Registry:
        """Return a registry that has *added* too: all of them, or an error and none.

        Args:
            aliases: Old names of *added*, by which they are found too.

        Raises:
            RegistryError: A name is taken, by a tool or as the old name of one; it lists every one.
        """
        tools, new = dict(self.tools), tuple(added)
        taken = [tool.name for tool in new if tools.setdefault(tool.name, tool) is not tool]
        known = {**self.aliases, **aliases}
        taken.extend(old for old in known if old in tools)
        taken.extend(old for old, name in aliases.items() if self.aliases.get(old, name) != name)
        if taken:
            raise RegistryError(f"already registered: {', '.join(dict.fromkeys(taken))}")
        origins = {**self.origins, **dict.fromkeys((tool.name for tool in new), origin)}
        return Registry(MappingProxyType(tools), MappingProxyType(origins), MappingProxyType(known))

    def without(self, origin: str) -> Registry:
        """Return a registry that has none of the tools of *origin*, nor their old names."""
        tools = {name: tool for name, tool in self.tools.items() if self.origins[name] != origin}
        origins = {name: each for name, each in self.origins.items() if name in tools}
        aliases = {old: name for old, name in self.aliases.items() if name in tools}
        return Registry(MappingProxyType(tools), MappingProxyType(origins), MappingProxyType(aliases))

    def named(self, name: str) -> Listed | None:
        """Return the tool that a canonical name means, now or since it had another one."""
        return self.tools.get(name) or self.tools.get(self.aliases.get(name, ""))

    def old_names(self, name: str) -> tuple[str, ...]:
        """Return the names that a tool had before."""
        return tuple(self._old_names.get(name, ()))

    @cached_property
    def near_names(self) -> NearNames:
        """The names of all tools, to find those spelled like one that no tool has."""
        from neuroscript.nearnames import NearNames

        return NearNames(by_needs(self.tools.values()))

    @cached_property
    def _old_names(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for old, now in self.aliases.items():
            found.setdefault(now, []).append(old)
        return found
