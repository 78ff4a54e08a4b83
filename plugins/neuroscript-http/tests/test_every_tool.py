"""Requirements for the tools of this distribution beyond the contract checks: grants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from neuroscript import Engine, PolicyError, ToolImplementation
from neuroscript.testing import ENTRY_POINTS, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-http")
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_tools_need_grants_but_no_trust(engine_with: Callable[..., Engine], tool: ToolImplementation) -> None:
    """Without a grant, the engine refuses the call before the tool runs."""
    assert not tool.policy.requires_trust
    assert {"policy.capability"} == codes(engine_with(), tool)


def codes(engine: Engine, tool: ToolImplementation) -> set[str]:
    """Return the error codes of the first example of a tool, from every entry point."""
    found = set()
    for call in ENTRY_POINTS.values():
        with pytest.raises(PolicyError) as caught:
            call(engine, tool.name, tool.spec.examples[0].args)
        assert caught.value.retry == "host"
        found.add(caught.value.code)
    return found
