"""Requirements for the tools of this distribution beyond the contract checks: grants, examples, cross-references."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from neuroscript import Engine, PolicyError, ToolImplementation
from neuroscript.testing import ENTRY_POINTS, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-http")
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}
NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_when_to_use_names_other_tools(tool: ToolImplementation) -> None:
    """It names at least one other tool of the distribution, and no unknown tool."""
    named = set(NAME.findall(tool.spec.when_to_use)) - {tool.name}

    assert named
    assert named <= set(TOOLS)


@every_tool
def test_examples_show_successes_and_failures(tool: ToolImplementation) -> None:
    """There are at least two successful calls and one that fails."""
    well = [example for example in tool.spec.examples if not example.error]

    assert len(well) >= 2
    assert len(tool.spec.examples) > len(well)


@every_tool
def test_tools_need_grants_but_no_trust(engine_with: Callable[..., Engine], tool: ToolImplementation) -> None:
    """Without a grant, the engine refuses the call before the tool runs."""
    assert not tool.policy.requires_trust
    assert {"policy.capability"} == codes(engine_with(), tool)


def codes(engine: Engine, tool: ToolImplementation) -> set[str]:
    """Return the error codes of the first example of a tool, from every entry point."""
    found = set()
    for door in ENTRY_POINTS.values():
        with pytest.raises(PolicyError) as caught:
            door(engine, tool.name, tool.spec.examples[0].args)
        assert caught.value.retry == "host"
        found.add(caught.value.code)
    return found
