"""The checks that every tool of the distribution must pass: the contract checks of the test kit.

They cover every toolset that its entry points name.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from neuroscript import Engine
from neuroscript.testing import Setup, check_toolset, fuzz_toolset, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-std")

EXAMPLES: Final = 100 if os.environ.get("NEUROSCRIPT_TEST_ALL") == "1" else 4
"""How many valid and how many invalid calls are generated for each tool."""


def test_distribution_has_its_tools(engine: Engine) -> None:
    """All of its toolsets can be loaded, and no others were loaded with them."""
    names = {tool.name for toolset in TOOLSETS for tool in toolset}

    assert () == engine.plugin_errors
    assert names
    assert names == set(engine.tools)


@pytest.mark.full  # .ci/run makes all contract checks on the installed wheels
def test_every_tool_passes_every_contract_check(setup: Setup) -> None:
    """The error names the failed check and the reason."""
    report = check_toolset(TOOLSETS, setup)

    assert report.ok


@pytest.mark.slow
def test_every_tool_handles_generated_arguments(setup: Setup) -> None:
    """Valid arguments give a result or a deliberate failure; others are rejected before the tool is called."""
    fuzz_toolset(TOOLSETS, setup, examples=EXAMPLES)
