"""Requirements for the tools of this distribution beyond the contract checks: grants and results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from neuroscript import UNSET, Engine, PolicyError, ToolImplementation
from neuroscript.testing import ENTRY_POINTS, installed_toolsets

TOOLSETS: Final = installed_toolsets("neuroscript-shell")
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}
UNFORESEEN: Final = {"os.hostname", "os.now", "shell.execute"}
"""Tools whose results are never the same twice, or on two machines."""

README: Final = Path(__file__).parent.parent / "README.md"

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)


@every_tool
def test_examples_declare_results(tool: ToolImplementation) -> None:
    """Every successful example declares its result if it can be known."""
    successes = [example for example in tool.spec.examples if not example.error]

    assert tool.name in UNFORESEEN or UNSET not in [example.result for example in successes]


def test_required_trust_and_grants() -> None:
    """Running a program needs trust and a grant, because it can do whatever its user can; a variable needs a grant."""
    needs = {name: (tool.policy.requires_trust, tool.policy.capabilities) for name, tool in TOOLS.items()}

    assert needs == {
        "os.getenv": (False, ("env:read:{name}",)),
        "os.hostname": (False, ()),
        "os.now": (False, ()),
        "os.sleep": (False, ()),
        "shell.execute": (True, ("shell:exec:{command}", "fs:read:{directory}", "env:read:{env_names}")),
    }


@every_tool
def test_call_without_grants_is_refused(engine_with: Callable[..., Engine], tool: ToolImplementation) -> None:
    """The engine refuses it before the tool runs."""
    engine = engine_with()

    if not tool.policy.capabilities:
        ENTRY_POINTS["call"](engine, tool.name, tool.spec.examples[0].args)
        return
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


def test_readme_lists_every_tool_with_its_requirements() -> None:
    """The first table of the README matches the policies."""
    rows = re.findall(r"^\| `(\w+\.\w+)` \|[^|]*\| (.*) \|$", README.read_text(), re.MULTILINE)

    reported = {name: ("trust" in needs, tuple(re.findall(r"`([^`]+)`", needs))) for name, needs in rows}
    assert reported == {name: (tool.policy.requires_trust, tool.policy.capabilities) for name, tool in TOOLS.items()}
