"""Smith's plans as plain data of our own plans."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest
from tests.interop.smith_tools import metadata, node, plan, write_tool

from neuroscript import SpecError
from neuroscript.interop.smith import ToolsRegistry, load_folder, plan_data
from neuroscript.workflow.plan.references import parts_of


@pytest.fixture
def registry(tmp_path: Path) -> ToolsRegistry:
    """A registry with the tool of the plans."""
    schema = {"type": "object", "properties": {"city": {}, "days": {}}, "required": ["city"]}
    for each in schema["properties"].values():  # type: ignore[attr-defined]
        each["type"] = ["string", "array", "object"]
    write_tool(
        tmp_path, "w.py", metadata(name="W-Tool", function="run_w", parameters=schema), "def run_w(**x): return x\n"
    )
    return load_folder(tmp_path)


def step(**changes: Any) -> dict[str, Any]:
    """Return a node of that tool."""
    return node(tool="W-Tool", **changes)


def test_each_part_of_a_plan_is_converted(registry: ToolsRegistry) -> None:
    """Names, order, attempts, timeouts, the effect of a failure, and descriptions."""
    second = step(id=3, depends_on=[0, 0], retry=2, timeout=0.5, on_fail="continue", metadata={"purpose": "Compare."})
    usual = {"retry": {"count": 0, "backoff": 1.0, "factor": 1.0}, "timeout": 60, "on_fail": "halt"}

    assert {
        "nodes": {
            "step_0": {"tool": "smith.w_tool", "inputs": {"city": "Rome"}, "depends_on": [], **usual},
            "step_3": {
                "tool": "smith.w_tool",
                "inputs": {"city": "Rome"},
                "depends_on": ["step_0"],
                "retry": {"count": 2, "backoff": 1.0, "factor": 1.0},
                "timeout": 0.5,
                "on_fail": "continue",
                "description": "Compare.",
            },
        },
        "output": "${step_3}",
    } == plan_data(plan(step(), second, last=3), registry)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{STEPS.0}}", "${step_0}"),
        (" {{ STEPS.0 }} ", "${step_0}"),
        ("{{STEPS.0.a.1.b-c}}", "${step_0.a.1.b-c}"),
        ("{{STEPS.0.größe}}", '${step_0["gr\\u00f6\\u00dfe"]}'),
        ("in {{STEPS.0.a}}, {{STEPS.0}}", "in ${step_0.a}, ${step_0}"),
        (["x", {"y": "{{STEPS.0}}"}, "z"], ["x", {"y": "${step_0}"}, "z"]),
        ("${home} and $${x}", "$${home} and $$$${x}"),
        ("for ${{STEPS.0.price}}", "for $$${step_0.price}"),
        ("$5 or $", "$5 or $"),
        ("  plain  ", "  plain  "),
    ],
    ids=str,
)
def test_references_are_converted_and_other_values_are_unchanged(
    registry: ToolsRegistry, text: Any, expected: Any
) -> None:
    """A string that looks like one of our references stays a string."""
    data = plan_data(plan(step(), step(id=1, inputs={"city": text}, depends_on=[0]), last=1), registry)

    assert {"city": expected} == data["nodes"]["step_1"]["inputs"]


@pytest.mark.parametrize("ending", ["", "!", "{"])
def test_a_string_with_many_dollars_is_converted_in_linear_time(registry: ToolsRegistry, ending: str) -> None:
    """It survives a round trip, and its time is not quadratic."""
    text = "$" * 100_000 + ending
    began = process_time()
    written = plan_data(plan(step(inputs={"city": text})), registry)["nodes"]["step_0"]["inputs"]["city"]
    read = [*parts_of(written)]

    assert [text] == read
    assert process_time() - began < 2


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], "plan: Plan is not a JSON object."),
        ({"status": "error", "error": "no"}, "plan: has the status error, so there is nothing to convert"),
        (
            plan(step(retry=-1), step(id=1, timeout=0), last=1),
            "plan: Node 0: 'retry' must be a non-negative integer.; Node 1: 'timeout' must be a positive number.",
        ),
    ],
    ids=["none", "an error", "problems"],
)
def test_an_invalid_plan_is_refused_with_every_problem(registry: ToolsRegistry, data: Any, expected: str) -> None:
    """With the messages of the check."""
    with pytest.raises(SpecError) as caught:
        plan_data(data, registry)

    assert expected == str(caught.value)
