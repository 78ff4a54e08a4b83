"""Canonical names and the tools that they mean: a snapshot that never changes under a call.

Source: contract section 2; upstream ``tools_registration.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from neuroscript.errors import RegistryError
from neuroscript.tools import ToolImplementation


@attrs.frozen
class Registry:
    """All tools of an engine at one moment.

    Attributes:
        tools: Read-only, by canonical name.
    """

    tools: Mapping[str, ToolImplementation] = MappingProxyType({})

    def with_tools(self, added: Iterable[ToolImplementation]) -> Registry:
        """Return a registry that has *added* too: all of them, or an error and none.

        Raises:
            RegistryError: A name is taken; it lists every one.
        """
        tools = dict(self.tools)
        taken = [tool.name for tool in added if tools.setdefault(tool.name, tool) is not tool]
        if taken:
            raise RegistryError(f"already registered: {', '.join(taken)}")
        return Registry(MappingProxyType(tools))
