"""Requirements for the tools of this distribution beyond the contract checks: grants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from neuroscript import Engine, PolicyError, ToolImplementation
from neuroscript.testing import ENTRY_POINTS, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-git")
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_tools_need_grants_but_no_trust(tool: ToolImplementation) -> None:
    """For the repository, for git, and for the host of a remote."""
    needs = tool.policy

    assert not needs.requires_trust
    assert "shell:exec:git" in needs.capabilities
    assert any(need.startswith("fs:read") for need in needs.capabilities)
    assert ("net" in needs.effects) == any(need.startswith("net:") for need in needs.capabilities)


@every_tool
@pytest.mark.parametrize("lacking", ["fs:*:*", "shell:exec:*", "net:*:*"])
def test_call_without_grants_is_refused(
    engine_with: Callable[..., Engine], tool: ToolImplementation, lacking: str
) -> None:
    """The engine refuses it before the tool runs."""
    if lacking.startswith("net") and "net" not in tool.policy.effects:
        return
    engine = engine_with(*({"fs:*:*", "shell:exec:*", "net:*:*"} - {lacking}))

    assert {"policy.capability"} == codes(engine, tool)


def codes(engine: Engine, tool: ToolImplementation) -> set[str]:
    """Return the error codes of the first example of a tool, from every entry point."""
    found = set()
    for call in ENTRY_POINTS.values():
        with pytest.raises(PolicyError) as caught:
            call(engine, tool.name, tool.spec.examples[0].args)
        assert caught.value.retry == "host"
        found.add(caught.value.code)
    return found
