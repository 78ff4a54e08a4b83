"""The checks that every tool of the distribution must pass: the contract checks of the test kit.

They cover every toolset that its entry points name.
The network is the real one; in the examples ``api.example.com`` is a server on loopback.
"""

from __future__ import annotations

from typing import Final

from neuroscript import Engine
from neuroscript.testing import Setup, check_toolset, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-http")


def test_distribution_has_its_tools() -> None:
    """All of its toolsets can be loaded, and no others were loaded with them."""
    names = {tool.name for toolset in TOOLSETS for tool in toolset}

    with Engine(plugins=["neuroscript-http"]) as engine:
        assert () == engine.plugin_errors
        assert names == {"http.get", "http.request", "http.download"}
        assert names == set(engine.tools)


def test_every_tool_passes_every_contract_check(setup: Setup) -> None:
    """The error names the failed check and the reason."""
    report = check_toolset(TOOLSETS, setup)

    assert report.ok
