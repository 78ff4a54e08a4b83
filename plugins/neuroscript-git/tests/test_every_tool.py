"""What holds for every tool of the installed distribution: what it says of itself, and that its examples are true.

Each example starts from the same repository, that of the fixture ``root``.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import distribution
from typing import Any, Final

import pytest

from neuroscript import UNSET, CallError, Engine, Example, PolicyError, ToolCall, ToolImplementation

TOOLSETS: Final = [
    entry.load() for entry in distribution("neuroscript-git").entry_points if entry.group == "neuroscript.toolsets"
]
TOOLS: Final[Mapping[str, ToolImplementation]] = {tool.name: tool for toolset in TOOLSETS for tool in toolset}
EXAMPLES: Final = [(tool, example) for tool in TOOLS.values() for example in tool.spec.examples]
NAME: Final = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+\b")

every_tool: Final = pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
every_example: Final = pytest.mark.parametrize(
    ("tool", "example"),
    EXAMPLES,
    ids=[f"{tool.name}-{tool.spec.examples.index(example) + 1}" for tool, example in EXAMPLES],
)


def test_the_distribution_has_its_tools(engine: Engine) -> None:
    """Every toolset that it names can be loaded, and nothing else came with them."""
    assert () == engine.plugin_errors
    assert TOOLS
    assert set(TOOLS) == set(engine.tools)


@every_tool
def test_a_tool_says_what_it_does(tool: ToolImplementation) -> None:
    """In one sentence, with a word for each argument, and what the result means."""
    spec = tool.spec

    assert re.fullmatch(r"[A-Z].*[.]", spec.description)
    assert [] == [arg.name for arg in spec.args if not arg.description]
    assert spec.return_help


@every_tool
def test_a_tool_says_when_another_one_is_better(tool: ToolImplementation) -> None:
    """Its when_to_use names at least one other tool of the distribution, and none that the distribution does not have."""
    named = set(NAME.findall(tool.spec.when_to_use)) - {tool.name}

    assert named
    assert named <= set(TOOLS)


@pytest.mark.parametrize("what", ["description", "when_to_use"])
def test_no_two_tools_say_the_same(what: str) -> None:
    """A model that chooses between two tools has to find a difference."""
    counted = Counter(getattr(tool.spec, what) for tool in TOOLS.values())

    assert [] == [text for text, count in counted.items() if count > 1]


@every_tool
def test_a_tool_shows_how_it_is_called(tool: ToolImplementation) -> None:
    """Three examples at least; where no network is needed two of them go well, and one fails in any case."""
    well = [example for example in tool.spec.examples if not example.error]

    assert len(tool.spec.examples) >= 3
    assert len(tool.spec.examples) > len(well)
    assert len(well) >= 2 or "net" in tool.policy.effects


@every_tool
def test_a_tool_needs_grants_and_no_trust(tool: ToolImplementation) -> None:
    """For the repository, for git, and for the host where there is one."""
    needs = tool.policy

    assert not needs.requires_trust
    assert "shell:exec:git" in needs.capabilities
    assert any(need.startswith("fs:read") for need in needs.capabilities)
    assert ("net" in needs.effects) == any(need.startswith("net:") for need in needs.capabilities)


@every_tool
@pytest.mark.parametrize("lacking", ["fs:*:*", "shell:exec:*", "net:*:*"])
def test_without_a_grant_a_tool_is_refused(
    engine_with: Callable[..., Engine], tool: ToolImplementation, lacking: str
) -> None:
    """By the engine, before the tool sees anything."""
    if lacking.startswith("net") and "net" not in tool.policy.effects:
        return
    (example, *_) = tool.spec.examples
    engine = engine_with(*({"fs:*:*", "shell:exec:*", "net:*:*"} - {lacking}))

    with pytest.raises(PolicyError) as caught:
        call(engine, tool.name, example.args)
    assert "policy.capability" == caught.value.code


def call(engine: Engine, name: str, args: Any) -> Any:
    return engine.call_named(name, args) if isinstance(args, Mapping) else engine.call(name, args)


def acall(engine: Engine, name: str, args: Any) -> Any:
    awaited = engine.acall_named if isinstance(args, Mapping) else engine.acall
    return asyncio.run(awaited(name, args))


def execute(engine: Engine, name: str, args: Any) -> Any:
    result = engine.execute(ToolCall(engine.tools[name].spec.wire_name, args))
    if result.error is not None:
        raise result.error
    return result.value


@every_example
@pytest.mark.parametrize("door", [call, acall, execute])
def test_an_example_goes_as_its_author_says(
    engine: Engine, door: Callable[..., Any], tool: ToolImplementation, example: Example
) -> None:
    """By every door the same result, or an error of that code."""
    try:
        came = ("result", repr(door(engine, tool.name, example.args)))
    except CallError as error:
        came = ("error", error.code)

    if example.result is UNSET and not example.error:
        assert "result" == came[0]
        return
    assert (("error", example.error) if example.error else ("result", repr(example.result))) == came
