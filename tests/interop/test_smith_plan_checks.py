"""The checks of a plan of Smith, and the requests to a model for one."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.interop.smith_tools import Scripted, first, node, plan, tools

from neuroscript import LLMError, SpecError
from neuroscript.interop.smith import plan_problems, plan_task, read_plan
from neuroscript.workflow import plan_from_data


def test_sm_34_a_plan_is_an_object() -> None:
    """Nothing else is checked otherwise."""
    assert ["Plan is not a JSON object."] * 3 == [*map(first, ([], None, "{}"))]


def test_sm_35_a_plan_has_nodes() -> None:
    """At least one."""
    plans: list[Any] = [{}, {"nodes": []}, {"nodes": {}}]

    assert ["Missing or empty 'nodes' list."] * 3 == [*map(first, plans)]


@pytest.mark.parametrize("number", ["0", 0.0, None, True], ids=str)
def test_sm_36_ids_are_integers(number: Any) -> None:
    """True is not an integer, and a node that is not an object has no id."""
    assert "Every node.id must be an integer." == first(plan(node(id=number)))
    assert "Every node.id must be an integer." == first(plan("node"))


def test_sm_37_ids_are_unique_and_may_have_gaps() -> None:
    """Each duplicate is reported once."""
    assert ("Duplicate node id 0.",) == plan_problems(plan(node(), node(), node()), tools())
    assert () == plan_problems(plan(node(id=3), node(id=9, depends_on=[3]), last=9), tools())


@pytest.mark.parametrize("changes", [{"tool": None}, {"function": None}, {"tool": ""}, {"tool": ["w"]}], ids=str)
def test_sm_38_a_node_has_a_tool_and_a_function(changes: dict[str, Any]) -> None:
    """Both are strings."""
    assert "Node 0: missing 'tool' or 'function'." == first(plan(node(**changes)))


def test_sm_39_a_tool_must_be_in_the_registry() -> None:
    """Under its name in Smith."""
    assert "Node 0: tool 'zz' not in registry." == first(plan(node(tool="zz")))


def test_sm_40_a_function_must_be_that_of_its_tool() -> None:
    """According to METADATA."""
    assert "Node 0: invalid function 'run' for tool 'w' (expected 'run_w')." == first(plan(node(function="run")))


def test_sm_41_inputs_are_an_object() -> None:
    """A list is refused."""
    assert "Node 0: 'inputs' must be an object." == first(plan(node(inputs=["Rome"])))


def test_sm_42_undeclared_inputs_are_refused() -> None:
    """Each input is a parameter in METADATA."""
    assert "Node 0: invalid input 'zz' for tool 'w'." == first(plan(node(inputs={"zz": 1, "city": "Rome"})))


def test_sm_43_required_inputs_are_present_and_valid() -> None:
    """Null counts as missing; other types are coerced, or refused before anything runs."""
    assert ("Node 0: missing required input 'city' for tool 'w'.",) == plan_problems(plan(node(inputs=None)), tools())
    assert ("Node 0: city: expected string, got None.",) == plan_problems(plan(node(inputs={"city": None})), tools())
    assert (
        "Node 0: city: expected string, got int.",
        "Node 0: days: expected int, got str (a string must be a decimal integer, such as 42).",
    ) == plan_problems(plan(node(inputs={"city": 5, "days": "x"})), tools())
    assert () == plan_problems(plan(node(inputs={"city": "Rome", "days": "3"})), tools())


def test_sm_44_dependencies_are_a_list_of_integers() -> None:
    """The list may be omitted."""
    assert "Node 1: 'depends_on' must be a list." == first(plan(node(id=1, depends_on=0), last=1))
    assert "Node 1: depends_on contains non-int id (str)." == first(plan(node(id=1, depends_on=["0"]), last=1))
    assert () == plan_problems(plan(node(depends_on=None)), tools())


def test_sm_45_dependencies_are_nodes_of_the_plan() -> None:
    """Unknown ids are refused."""
    assert "Node 0: depends_on references unknown id 7." == first(plan(node(depends_on=[7])))


def test_sm_46_dependencies_are_earlier_nodes() -> None:
    """So there are no cycles."""
    assert "Node 0: depends_on id 0 must be < 0." == first(plan(node(depends_on=[0])))
    assert "Node 0: depends_on id 1 must be < 0." == first(plan(node(depends_on=[1]), node(id=1)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(({"retry": each}, "Node 0: 'retry' must be a non-negative integer.") for each in (-3, "x", None, 1.5, True)),
        *(({"timeout": each}, "Node 0: 'timeout' must be a positive number.") for each in (0, -1, "x", None, True)),
        *(({"on_fail": each}, "Node 0: 'on_fail' must be 'halt' or 'continue'.") for each in ("stop", 5, None, [])),
    ],
    ids=str,
)
def test_sm_47_invalid_execution_settings_are_refused(changes: dict[str, Any], expected: str) -> None:
    """They are not repaired; a missing one is a problem too."""
    assert (expected,) == plan_problems(plan(node(**changes)), tools())


def test_sm_47_a_timeout_must_be_finite() -> None:
    """A JSON integer can be larger than any timeout."""
    expected = "Node 0: 'timeout' must be a positive number."

    assert (expected,) == plan_problems(plan(node(timeout=10**400)), tools())
    with pytest.raises(SpecError) as caught:
        plan_from_data({"nodes": {"a": {"tool": "t", "timeout": 10**400}}})

    assert ("nodes.a.timeout must be a positive, finite number of seconds",) == caught.value.problems


@pytest.mark.parametrize("last", [None, 7, "0", False], ids=str)
def test_sm_48_the_final_node_must_be_in_the_plan(last: Any) -> None:
    """By its id."""
    assert ("Invalid or missing 'final_output_node' id.",) == plan_problems(plan(node(), last=last), tools())


def test_sm_48_every_problem_is_reported_at_once() -> None:
    """Of all nodes, in order."""
    found = plan_problems(plan(node(tool="zz", retry=-1), node(id=2, inputs={}, depends_on=[5]), last=9), tools())

    assert (
        "Node 0: tool 'zz' not in registry.",
        "Node 0: 'retry' must be a non-negative integer.",
        "Node 2: missing required input 'city' for tool 'w'.",
        "Node 2: depends_on references unknown id 5.",
        "Invalid or missing 'final_output_node' id.",
    ) == found


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "error", "error": "no"}',
        '```json\n{"status": "error", "error": "no"}\n```',
        'So:\n{"status": "error", "error": "no"} !',
    ],
    ids=["bare", "fenced", "in other text"],
)
def test_sm_49_an_error_reply_is_returned(text: str) -> None:
    """Surrounding text is removed."""
    model = Scripted([text])

    assert {"status": "error", "error": "no"} == read_plan(text) == plan_task("Fly.", tools(), model)
    assert () == plan_problems(read_plan(text), tools())


def test_sm_49_invalid_json_is_returned_to_the_model_once() -> None:
    """With the position of the error; it does not count as an attempt."""
    whole = json.dumps(plan(node()))
    model = Scripted([whole.replace("[]", "[", 1), whole])

    assert {"status": "success", **plan(node())} == plan_task("Go.", tools(), model, attempts=1)
    assert re.fullmatch(r"This is not valid JSON: line 1, column \d+ is not JSON\. .*", model.requests[1][-1].content)


def test_sm_50_a_plan_fails_after_three_attempts() -> None:
    """Each time the model receives every problem."""
    bad = json.dumps(plan(node(tool="zz"), last=7))
    model = Scripted([bad, "no", "no {", bad])
    found = plan_task("Go.", tools(), model)
    problems = "Node 0: tool 'zz' not in registry. Invalid or missing 'final_output_node' id."

    reason = "Node 0: tool 'zz' not in registry."
    assert {"status": "error", "error": f"Unable to build valid plan. Reason: {reason}"} == found
    assert 4 == len(model.requests)
    assert f"The plan is not valid: {problems} Answer with the whole corrected plan." == model.requests[1][-1].content


def test_sm_50_a_model_error_is_not_retried() -> None:
    """The model itself has already retried."""
    model = Scripted([LLMError("no model is available")])

    assert {"status": "error", "error": "Unable to build valid plan. Reason: no model is available"} == plan_task(
        "Go.", tools(), model
    )
