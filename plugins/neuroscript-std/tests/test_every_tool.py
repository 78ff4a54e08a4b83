"""What holds for every tool of the installed distribution, whoever wrote it.

The toolsets are those that its entry points name, so a new one is held to all of this as soon as it is listed there.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.metadata import distribution
from typing import Any, Final

import pytest

from neuroscript import UNSET, ArgType, CallError, Engine, Example, PolicyError, ToolCall, ToolImplementation

DISTRIBUTION: Final = "neuroscript-std"
TOOLSETS: Final = [
    entry.load() for entry in distribution(DISTRIBUTION).entry_points if entry.group == "neuroscript.toolsets"
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
    """In one sentence, with a word for each argument, and what the result means if there is one."""
    spec = tool.spec

    assert re.fullmatch(r"[A-Z].*[.]", spec.description)
    assert [] == [arg.name for arg in spec.args if not arg.description]
    assert [] == [key.name for arg in spec.args for key in arg.keys if not key.description]
    assert spec.return_help or spec.return_type is ArgType.NIL


@every_tool
def test_a_tool_says_when_another_one_is_better(tool: ToolImplementation) -> None:
    """Its when_to_use names at least one other tool of the distribution, and none that a group of it does not have."""
    groups = {each.spec.group for each in TOOLS.values()}
    named = set(NAME.findall(tool.spec.when_to_use)) - {tool.name}

    others = [name for name in sorted(named) if name in TOOLS]
    strangers = [name for name in sorted(named) if name.rpartition(".")[0] in groups and name not in TOOLS]
    assert others != []
    assert [] == strangers


@pytest.mark.parametrize("what", ["description", "when_to_use"])
def test_no_two_tools_say_the_same(what: str) -> None:
    """A model that chooses between two tools has to find a difference."""
    counted = Counter(getattr(tool.spec, what) for tool in TOOLS.values())

    assert [] == [text for text, count in counted.items() if count > 1]


@every_tool
def test_a_tool_shows_how_it_is_called(tool: ToolImplementation) -> None:
    """At least two examples go well and one fails; a result is left open only where it may differ.

    A tool that runs only for a host that trusts or approves it can only show how it is refused.
    """
    examples = tool.spec.examples
    well = [example for example in examples if not example.error]

    if is_refused(tool):
        assert len(examples) >= 2
        assert {"policy"} == {example.error.partition(".")[0] for example in examples}
        return
    assert len(well) >= 2
    assert len(examples) > len(well)
    assert "pure" not in tool.policy.effects or UNSET not in [example.result for example in well]


def is_refused(tool: ToolImplementation) -> bool:
    return tool.policy.requires_trust or tool.policy.requires_approval


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.policy.capabilities])
def test_without_a_grant_a_tool_with_a_need_is_refused(name: str) -> None:
    """By the engine, before the tool sees anything."""
    (example, *_) = TOOLS[name].spec.examples

    with Engine(plugins=["neuroscript-std"]) as engine, pytest.raises(PolicyError) as caught:
        call(engine, name, example.args)

    assert caught.value.code == ("policy.trust" if is_refused(TOOLS[name]) else "policy.capability")


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
    engine: Engine, real: Callable[[Any], Any], door: Callable[..., Any], tool: ToolImplementation, example: Example
) -> None:
    """By every door the same result of exactly that type at every level, or an error of that code."""
    args = real(example.args)

    try:
        came = exact(door(engine, tool.name, args))
    except CallError as error:
        came = error.code

    if example.result is UNSET and not example.error:
        assert not isinstance(came, str)
        return
    assert (example.error or exact(example.result)) == came


def exact(value: Any) -> Any:
    """Return a value in a form that is equal only to that of an equal value of the same types; a text is an error's."""
    match value:
        case list():
            return (list, [exact(each) for each in value])
        case dict():
            return (dict, {key: exact(each) for key, each in value.items()})
        case _:
            return (type(value), repr(value))
