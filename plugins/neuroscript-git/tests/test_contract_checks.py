"""The checks that every tool of the distribution must pass: the contract checks of the test kit.

They cover every toolset that its entry points name.
The examples start from the repository of the setup, and their remote is a server of git on loopback.
"""

from __future__ import annotations

from typing import Final

import pytest

from neuroscript import Engine
from neuroscript.testing import Setup, check_toolset, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-git")


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
