"""The checks that every tool of the distribution must pass: the contract checks of the test kit.

The toolsets are those that its entry points name, so a new one is held to all of this as soon as it is listed there.
"""

from __future__ import annotations

from importlib.metadata import distribution
from typing import Final

from neuroscript import Engine, Toolset
from neuroscript.testing import Setup, check_toolset, fuzz_toolset

TOOLSETS: Final[list[Toolset]] = [
    entry.load() for entry in distribution("neuroscript-std").entry_points if entry.group == "neuroscript.toolsets"
]


def test_distribution_has_its_tools(engine: Engine) -> None:
    """All of its toolsets can be loaded, and no others were loaded with them."""
    names = {tool.name for toolset in TOOLSETS for tool in toolset}

    assert () == engine.plugin_errors
    assert names
    assert names == set(engine.tools)


def test_every_tool_passes_every_contract_check(setup: Setup) -> None:
    """The error names the failed check and the reason."""
    report = check_toolset(TOOLSETS, setup)

    assert report.ok


def test_every_tool_handles_generated_arguments(setup: Setup) -> None:
    """Valid arguments give a result or a deliberate failure; others are rejected before the tool is called."""
    fuzz_toolset(TOOLSETS, setup, examples=20)
