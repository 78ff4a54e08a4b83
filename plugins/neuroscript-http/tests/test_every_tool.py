"""What holds for every tool of the installed distribution: what it says of itself, and that its examples are true.

Each example is run over the network of the fixture ``world``, in which ``api.example.com`` is a server on loopback.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import distribution
from typing import Any, Final

import pytest

from neuroscript import CallError, Engine, Example, PolicyError, ToolCall, ToolImplementation

TOOLSETS: Final = [
    entry.load() for entry in distribution("neuroscript-http").entry_points if entry.group == "neuroscript.toolsets"
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


def test_the_distribution_has_its_tools() -> None:
    """Every toolset that it names can be loaded, and nothing else came with them."""
    with Engine(plugins=["neuroscript-http"]) as engine:
        assert () == engine.plugin_errors
        assert {"http.get", "http.request", "http.download"} == set(TOOLS) == set(engine.tools)


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
    """At least two examples go well, whose results the server decides, and one fails."""
    well = [example for example in tool.spec.examples if not example.error]

    assert len(well) >= 2
    assert len(tool.spec.examples) > len(well)


@every_tool
def test_a_tool_needs_a_grant_and_no_trust(engine_with: Callable[..., Engine], tool: ToolImplementation) -> None:
    """Without one it is refused by the engine, before the tool sees anything."""
    assert not tool.policy.requires_trust
    with pytest.raises(PolicyError) as caught:
        call(engine_with(), tool.name, tool.spec.examples[0].args)
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
        came = ("result", type(door(engine, tool.name, example.args)))
    except CallError as error:
        came = ("error", error.code)

    assert (("error", example.error) if example.error else ("result", dict)) == came
