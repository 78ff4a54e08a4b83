"""What this distribution promises of its tools beyond the laws of the kit: their needs, their examples, their README."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest

from neuroscript import UNSET, Engine, PolicyError, ToolImplementation
from neuroscript.testing import DOORS

TOOLSETS: Final = [
    toolset
    for entry in distribution("neuroscript-shell").entry_points
    if entry.group == "neuroscript.plugins"
    for toolset in entry.load().neuroscript_toolsets()
]
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}
UNFORESEEN: Final = {"os.hostname", "os.now", "shell.execute"}
"""Tools whose results are never the same twice, or on two machines."""

README: Final = Path(__file__).parent.parent / "README.md"
NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_a_tool_says_when_another_one_is_better(tool: ToolImplementation) -> None:
    """Its when_to_use names at least one other tool of the distribution, and none that the distribution does not have."""
    named = set(NAME.findall(tool.spec.when_to_use)) - {tool.name}

    assert named
    assert named <= set(TOOLS)


@every_tool
def test_a_tool_shows_how_it_is_called(tool: ToolImplementation) -> None:
    """At least two examples go well, with their results unless the machine decides those, and one fails."""
    well = [example for example in tool.spec.examples if not example.error]

    assert len(well) >= 2
    assert len(tool.spec.examples) > len(well)
    assert tool.name in UNFORESEEN or UNSET not in [example.result for example in well]


def test_what_the_tools_need() -> None:
    """A program does what its user may do, so running one takes trust and a grant; a variable takes a grant."""
    needs = {name: (tool.policy.requires_trust, tool.policy.capabilities) for name, tool in TOOLS.items()}

    assert needs == {
        "os.getenv": (False, ("env:read:{name}",)),
        "os.hostname": (False, ()),
        "os.now": (False, ()),
        "os.sleep": (False, ()),
        "shell.execute": (True, ("shell:exec:{command}", "fs:read:{directory}", "env:read:{env_names}")),
    }


@every_tool
def test_without_a_grant_a_tool_that_needs_one_is_refused(
    engine_with: Callable[..., Engine], tool: ToolImplementation
) -> None:
    """By the engine, before the tool sees anything."""
    engine = engine_with()

    if not tool.policy.capabilities:
        DOORS["call"](engine, tool.name, tool.spec.examples[0].args)
        return
    assert {"policy.capability"} == codes(engine, tool)


def codes(engine: Engine, tool: ToolImplementation) -> set[str]:
    """Return the codes with which the first example of a tool is refused, by every door."""
    found = set()
    for door in DOORS.values():
        with pytest.raises(PolicyError) as caught:
            door(engine, tool.name, tool.spec.examples[0].args)
        assert caught.value.retry == "host"
        found.add(caught.value.code)
    return found


def test_the_readme_lists_every_tool_and_its_needs() -> None:
    """The first table of it says what the policies say."""
    rows = re.findall(r"^\| `(\w+\.\w+)` \|[^|]*\| (.*) \|$", README.read_text(), re.MULTILINE)

    told = {name: ("trust" in needs, tuple(re.findall(r"`([^`]+)`", needs))) for name, needs in rows}
    assert told == {name: (tool.policy.requires_trust, tool.policy.capabilities) for name, tool in TOOLS.items()}
