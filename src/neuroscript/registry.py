"""Canonical names and the tools that they mean: a snapshot that never changes under a call.

Source: contract section 2; upstream ``tools_registration.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from neuroscript.errors import RegistryError
from neuroscript.tools import ToolImplementation

HOST: Final = "host"
"""The origin of tools that no plugin brought."""


@attrs.frozen(eq=False, repr=False)
class Registry:
    """All tools of an engine at one moment.

    Attributes:
        tools: Read-only, by canonical name.
        origins: The distribution or file that brought each tool, or `HOST`.
    """

    tools: Mapping[str, ToolImplementation] = MappingProxyType({})
    origins: Mapping[str, str] = MappingProxyType({})

    def with_tools(self, added: Iterable[ToolImplementation], origin: str = HOST) -> Registry:
        """Return a registry that has *added* too: all of them, or an error and none.

        Raises:
            RegistryError: A name is taken; it lists every one.
        """
        tools, new = dict(self.tools), tuple(added)
        taken = [tool.name for tool in new if tools.setdefault(tool.name, tool) is not tool]
        if taken:
            raise RegistryError(f"already registered: {', '.join(taken)}")
        origins = {**self.origins, **dict.fromkeys((tool.name for tool in new), origin)}
        return Registry(MappingProxyType(tools), MappingProxyType(origins))
