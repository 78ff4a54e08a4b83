"""What holds for every tool of the distribution, whoever wrote it: the laws of the kit, and drawn values.

The toolsets are those that the hook of its entry point gives on this machine, so a new one is held to all of this too.
"""

from __future__ import annotations

import os
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest

from neuroscript import Engine, Host, Toolset
from neuroscript.testing import Setup, check_toolset, fuzz_toolset
from neuroscript_shell import plugin

TOOLSETS: Final[list[Toolset]] = [
    toolset
    for entry in distribution("neuroscript-shell").entry_points
    if entry.group == "neuroscript.plugins"
    for toolset in entry.load().neuroscript_toolsets()
]


def test_the_distribution_has_its_tools(engine: Engine) -> None:
    """Every toolset that it names can be loaded, and nothing else came with them."""
    names = {tool.name for toolset in TOOLSETS for tool in toolset}

    assert () == engine.plugin_errors
    assert names
    assert names == set(engine.tools)


def test_every_tool_keeps_every_law(setup: Setup) -> None:
    """Of each that it breaks the error says which, and how."""
    report = check_toolset(TOOLSETS, setup)

    assert report.ok


def test_every_tool_stands_drawn_values(setup: Setup) -> None:
    """What fits ends in a result or in a failure on purpose, what does not is refused before the tool is reached."""
    fuzz_toolset(TOOLSETS, setup, examples=20)


def test_a_machine_without_process_groups_has_no_tool_that_runs_programs(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    """It would be shown to a model, and could do nothing."""
    monkeypatch.delattr(os, "killpg")

    with Engine(plugins="none", hooks=[plugin], host=Host(sandbox_dir=root)) as engine:
        assert {"os.getenv", "os.hostname", "os.now", "os.sleep"} == set(engine.tools)
