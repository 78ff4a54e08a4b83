"""Requirements for the tools of our distributions beyond the contract checks: examples and cross-references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest

from neuroscript import ToolImplementation
from neuroscript.discovery.catalog import FIRST_PARTY
from neuroscript.testing import installed_toolsets

TOOLS: Final[Mapping[str, ToolImplementation]] = {
    tool.name: tool for name in sorted(FIRST_PARTY) for toolset in installed_toolsets(name) for tool in toolset
}
NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")
REFUSED: Final = {"crypto.signjwt"}
"""Tools whose examples only show refusals, because they require trust or approval."""

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_when_to_use_names_other_tools(tool: ToolImplementation) -> None:
    """It names at least one other tool, and no unknown tool."""
    named = set(NAME.findall(tool.spec.when_to_use)) - {tool.name}

    assert named
    assert named <= set(TOOLS)


@every_tool
def test_examples_show_successes_and_failures(tool: ToolImplementation) -> None:
    """There are at least two successful calls and one that fails."""
    successes = [example for example in tool.spec.examples if not example.error]

    assert len(successes) >= 2 or tool.name in REFUSED
    assert len(tool.spec.examples) > len(successes)
