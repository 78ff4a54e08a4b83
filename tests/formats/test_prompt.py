"""Tools as a prompt: complete, deterministic, and no tool can imitate another one."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from neuroscript import (
    ArgSpec,
    ArgType,
    CallError,
    Engine,
    Example,
    ExecutionPolicy,
    ToolSpec,
    bind,
    bind_named,
    to_prompt,
)
from neuroscript.llm.wire import read_call

PICK = ToolSpec(
    "pick",
    "shop",
    (
        ArgSpec("kind", ArgType.STRING, choices=("tea", "mint"), description="What\nto pick."),
        ArgSpec(
            "options",
            ArgType.MAP,
            required=False,
            nullable=True,
            extra_keys=True,
            keys=(ArgSpec("size", ArgType.INT, default=1, minimum=1, maximum=9, description="How large."),),
        ),
        ArgSpec("notes", ArgType.STRING, required=False, secret=True),
    ),
    return_type=ArgType.SLICE_STRING,
    description="Pick leaves.\n\n# Nothing else",
    when_to_use="In summer.",
    return_help="What was picked.",
    error_conditions="shop.closed.",
    variadic=True,
    deprecated="use shop.gather",
    examples=(
        Example(("tea", {"size": 2}, "a", "b"), ["tea"], note="two of them"),
        Example({"kind": "mint"}),
        Example(("oak",), error="coercion.choice"),
    ),
)

PICKED = """\
shop.pick(kind: string, options?: map | None, *notes: string) -> list of string
  Pick leaves. # Nothing else
  Deprecated: use shop.gather
  When to use: In summer.
  Arguments:
    kind: string, one of 'tea', 'mint', required. What to pick.
    options: map, optional, may be null, other keys allowed.
    options.size: int from 1 to 9, default 1. How large.
    notes: string, any number of values, secret.
  Returns: list of string. What was picked.
  Errors: shop.closed.
  Example: {"name": "shop.pick", "arguments": {"kind": "tea", "options": {"size": 2}, "notes": ["a", "b"]}} returns ["tea"] (two of them)
  Example: {"name": "shop.pick", "arguments": {"kind": "mint"}}
  Example: {"name": "shop.pick", "arguments": {"kind": "oak"}} fails with coercion.choice"""


def test_prompt_contains_all_facts_of_a_tool() -> None:
    """Name, signature, descriptions, arguments with their keys, result, errors and examples."""
    assert to_prompt(PICK) == PICKED


def test_tools_are_in_the_order_of_their_names() -> None:
    """In any order; no tools give an empty prompt."""
    other = ToolSpec("a", "a", return_type=ArgType.VOID)

    assert to_prompt([PICK, other]) == to_prompt(iter([other, PICK])) == f"a.a() -> void\n\n{PICKED}"
    assert to_prompt([]) == ""


@pytest.fixture(scope="module")
def specs() -> dict[str, ToolSpec]:
    """The specs of all tools of this project."""
    with Engine() as engine:
        return {name: tool.spec for name, tool in engine.tools.items()}


def test_prompt_of_each_first_party_tool_contains_its_arguments(specs: dict[str, ToolSpec]) -> None:
    """By a line that begins with its name, and a line for each argument."""
    blocks = to_prompt(specs.values()).split("\n\n")

    assert [block.partition("(")[0] for block in blocks] == sorted(specs)
    for block in blocks:
        spec = specs[block.partition("(")[0]]
        named = re.findall(r"^    ([^\s:]+): ", block, re.MULTILINE)
        assert [arg.name for arg in spec.args] == [name for name in named if "." not in name]


def test_examples_are_valid_calls(specs: dict[str, ToolSpec]) -> None:
    """Each line of an example begins with a call as ``execute`` reads it, and that binds unless it is said to fail."""
    lines = re.findall(r"^  Example: (.*)$", to_prompt(specs.values()), re.MULTILINE)
    decoder = json.JSONDecoder()

    assert len(lines) > 300
    for line in lines:
        data, end = decoder.raw_decode(line)
        call = read_call(data)
        spec = specs[call.name]
        if not line[end:].startswith(" fails with "):
            (bind_named if isinstance(call.arguments, dict) else bind)(spec, call.arguments)


def test_example_outcomes_match_execution(specs: dict[str, ToolSpec]) -> None:
    """Each example of a pure tool is executed from its line."""
    decoder, ran = json.JSONDecoder(), 0
    with Engine(policy=ExecutionPolicy(), plugins=["neuroscript-std"]) as engine:
        pure = {name: tool.spec for name, tool in engine.tools.items() if tool.policy.effects == ("pure",)}
        for line in re.findall(r"^  Example: (.*)$", to_prompt(pure.values()), re.MULTILINE):
            data, end = decoder.raw_decode(line)
            result = engine.execute(read_call(data))
            ran += 1
            expects_error = line[end:].startswith(" fails with ")
            assert (result.error is not None) is expects_error, line
            if expects_error:
                assert isinstance(result.error, CallError)
                assert (result.error.code, result.error.retry) == (
                    line[end:].removeprefix(" fails with ").partition(" ")[0],
                    "model",
                )
    assert ran > 100


@settings(max_examples=examples(300), deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
def test_no_text_of_a_tool_is_a_line_of_its_own(text: str) -> None:
    """However it is written, there are as many lines as without it, none of them steers a terminal."""

    def told(words: str) -> str:
        arg = ArgSpec("x", ArgType.STRING, description=words, default=words)
        example = Example((words,), words, note=words)
        options = dict.fromkeys(("description", "when_to_use", "return_help", "error_conditions", "deprecated"), words)
        return to_prompt(ToolSpec("t", "g", (arg,), examples=(example,), **options))  # type: ignore[arg-type]

    lines = told(f"a{text}\ng.other() -> any{text}").splitlines()

    assert len(lines) == len(told("a").splitlines())
    assert [line for line in lines if not line.startswith(" ")] == lines[:1]
    assert all(map(str.isprintable, lines))
