"""Invalid arguments of the functions for Smith's plans are refused with an error that says what to pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neuroscript.errors import SpecError
from neuroscript.interop.smith import plan_data, plan_problems, plan_task, read_plan, resolve

HINT = "pass METADATA of tools, as ToolsRegistry.get_tools_registry() returns it"
TOOL = {"name": "w", "function": "run_w", "parameters": {"properties": {"a": {"type": "string"}}, "required": ["a"]}}
NODE = {"id": 0, "tool": "w", "function": "run_w", "inputs": {"a": "b"}, "retry": 0, "timeout": 1, "on_fail": "halt"}
PLAN = {"nodes": [NODE], "final_output_node": 0}

SHAPES: list[tuple[Any, str]] = [
    (None, f"tools must be a collection of mappings, not None; {HINT}"),
    ("w", f"tools must be a collection of mappings, not str; {HINT}"),
    (5, f"tools must be a collection of mappings, not int; {HINT}"),
    (TOOL, f"tools must be a collection of mappings, not dict; {HINT}"),
    ([1], f"tools[0] must be a mapping with string keys, not int; {HINT}"),
    (
        [{}],
        "tools[0] must have the key 'name', which is a non-empty string; tools[0] must have the key"
        " 'function', which is a non-empty string; tools[0] must have the key 'parameters', which is a mapping"
        " with string keys",
    ),
    ([{**TOOL, "name": 1}], "tools[0]['name'] must be a non-empty string, not int"),
    ([{**TOOL, "function": None}], "tools[0]['function'] must be a non-empty string, not None"),
    ([{**TOOL, "parameters": []}], "tools[0]['parameters'] must be a mapping with string keys, not list"),
    (
        [{**TOOL, "parameters": {"properties": []}}],
        "tools[0]['parameters']['properties'] must be a mapping of strings to schemas, not list",
    ),
    (
        [{**TOOL, "parameters": {"required": "a"}}],
        "tools[0]['parameters']['required'] must be a list or tuple of strings, not str",
    ),
    ([{**TOOL, "parameters": {"required": [1]}}], "tools[0]['parameters']['required'][0] must be a string, not int"),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["name", "function", "parameters", "properties", "required", "type"])
TOOLS = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON | st.dictionaries(st.just("a"), JSON)))


@pytest.mark.parametrize(("tools", "why"), SHAPES, ids=[str(index) for index in range(len(SHAPES))])
def test_invalid_tools_are_refused(tools: Any, why: str) -> None:
    """With every problem, and what to pass."""
    with pytest.raises(SpecError) as caught:
        plan_problems(PLAN, tools)

    assert str(caught.value) == f"plan_problems: {why}"


@given(JSON | st.lists(TOOLS, max_size=2), JSON | st.just(PLAN))
@example([{**TOOL, "parameters": {"properties": {"a": {"type": 5}}}}], PLAN)
@example([{**TOOL, "parameters": {"properties": {"a": {"$ref": []}}}}], PLAN)
def test_an_invalid_argument_raises_no_other_error(tools: Any, plan: Any) -> None:
    """For any value in place of the tools and of the plan."""
    try:
        problems = plan_problems(plan, tools)
    except SpecError:
        return

    assert all(isinstance(each, str) for each in problems)


class Silent:
    """A model that is not called."""

    def ask(self, turns: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: read_plan(None), "read_plan: text must be a string, not None"),  # type: ignore[arg-type]
        (
            lambda: plan_data(PLAN, [TOOL]),  # type: ignore[arg-type]
            "plan_data: registry must be a ToolsRegistry, not list; load_folder and load_registry return one",
        ),
        (
            lambda: plan_task("it", None, Silent()),  # type: ignore[arg-type]
            f"plan_task: tools must be a collection of mappings, not None; {HINT}",
        ),
        (
            lambda: plan_task(1, [TOOL], None, attempts="2"),  # type: ignore[arg-type]
            "plan_task: request must be a string, not int; llm must be a model (an object with ask), not None;"
            " attempts must be a non-negative integer, not str",
        ),
        (
            lambda: resolve([], None),  # type: ignore[arg-type]
            "resolved: inputs must be a mapping with string keys, not list;"
            " steps must be a mapping of ids to results, not None",
        ),
    ],
    ids=["read_plan", "plan_data", "plan_task tools", "plan_task", "resolved"],
)
def test_parameters_of_a_wrong_type_are_refused(call: Callable[[], Any], why: str) -> None:
    """At once, before a model is called."""
    with pytest.raises(SpecError) as caught:
        call()

    assert str(caught.value) == why
