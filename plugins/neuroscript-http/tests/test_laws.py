"""The checks that every tool of the distribution must pass: the contract checks of the test kit.

The toolsets are those that its entry points name, so a new one is held to all of this as soon as it is listed there.
The network is the real one; in the examples ``api.example.com`` is a server on loopback.
"""

from __future__ import annotations

from importlib.metadata import distribution
from typing import Final

from neuroscript import Engine, Toolset
from neuroscript.testing import Setup, check_toolset

TOOLSETS: Final[list[Toolset]] = [
    entry.load() for entry in distribution("neuroscript-http").entry_points if entry.group == "neuroscript.toolsets"
]


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
