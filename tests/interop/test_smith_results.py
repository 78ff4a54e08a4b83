"""Payloads of results of Smith, and references to them in later steps."""

from __future__ import annotations

from typing import Any

import pytest
from tests.interop.smith_tools import ENDLESS, doubled, nested, node, payload, plan, tools

from neuroscript import ArgumentError
from neuroscript.interop.smith import plan_problems, referred_steps, resolve

# Payloads


def test_sm_51_a_map_with_a_status_is_the_payload() -> None:
    """For any status."""
    for each in ({"status": "success", "temp": 3}, {"status": "error", "error": "x"}):
        assert each == payload(each)


def test_sm_52_another_map_is_a_result() -> None:
    """Under ``result``."""
    assert {"status": "success", "result": {"a": 1}} == payload({"a": 1})


def test_sm_53_another_value_is_a_result() -> None:
    """None too."""
    assert {"status": "success", "result": "deleted"} == payload("deleted")
    assert {"status": "success", "result": None} == payload(None)


def test_sm_54_an_error_has_its_type_and_message() -> None:
    """The original loses the type."""
    expected = "smith.weather_fetcher: ValueError: no such city"

    assert {"status": "error", "error": expected} == payload(ValueError("no such city"))


# References


def test_sm_58_a_single_reference_is_the_object_itself() -> None:
    """That under ``result`` or ``results`` of a payload."""
    thing = {"a": [1, {"b": None}]}
    steps = {0: thing, 1: {"status": "success", "result": thing}, 2: {"status": "success", "results": [thing]}}
    inputs = {"x": "{{STEPS.0}}", "y": [" {{ STEPS.1 }} ", {"z": "{{STEPS.2}}"}], "n": 5}

    assert {"x": thing, "y": [thing, {"z": [thing]}], "n": 5} == resolve(inputs, steps)
    assert resolve(inputs, steps)["x"] is thing


def test_sm_59_a_reference_in_text_becomes_a_string_or_json() -> None:
    """Parts of a result are selected by keys and indexes."""
    steps = {0: {"temp": 3, "name": "Oslo", "tags": ["a", {"b": True}], "none": None}}
    text = "{{STEPS.0.name}} {{STEPS.0.temp}} {{STEPS.0.tags}} {{STEPS.0.tags.1.b}} {{STEPS.0.none}}"

    assert {"x": 'Oslo 3 ["a", {"b": true}] true null'} == resolve({"x": text}, steps)
    assert {"x": 3} == resolve({"x": "{{STEPS.0.temp}}"}, steps)
    assert {"x": 3} == resolve({"x": "{{STEPS.0.a.temp}}"}, {0: {"status": "success", "result": {"a": {"temp": 3}}}})
    assert {"x": 3} == resolve({"x": "{{STEPS.0.result.temp}}"}, {0: {"status": "success", "result": {"temp": 3}}})


def test_sm_59_an_unresolved_reference_is_an_error() -> None:
    """All of them are reported at once, each with its path."""
    inputs = {"a": "{{STEPS.7}}", "b": ["in {{STEPS.0.nope.x}}", "{{STEPS.0.tags.5}}"], "c": "{{STEPS.one}}"}
    with pytest.raises(ArgumentError) as caught:
        resolve(inputs, {0: {"temp": 3, "tags": []}})

    assert (
        "a: expected a result of step 7, got nothing; "
        "b[0]: expected nope.x in the result of step 0, got nothing; "
        "b[1]: expected tags.5 in the result of step 0, got nothing; "
        "c: expected a reference such as {{STEPS.0}} or {{STEPS.0.price}}, got another string"
    ) == str(caught.value)
    assert ("plan.reference", "model") == (caught.value.code, caught.value.retry)


def test_sm_59_a_reference_in_a_result_is_not_resolved() -> None:
    """Third-party content in a result cannot read other steps."""
    steps = {0: "{{STEPS.1}}", 1: "secret"}

    assert {"x": "{{STEPS.1}}", "y": "a {{STEPS.1}}"} == resolve({"x": "{{STEPS.0}}", "y": "a {{STEPS.0}}"}, steps)


def test_sm_59_references_must_be_dependencies() -> None:
    """Direct or indirect; other nodes may not have ended."""
    one, two = node(id=1, depends_on=[0]), node(id=2, inputs={"city": "{{STEPS.0.a}} {{STEPS.1}}"}, depends_on=[1])
    wrong = node(id=2, inputs={"city": "{{STEPS.1}}", "days": "{{STEPS.9}}"}, depends_on=[0])

    assert () == plan_problems(plan(node(), one, two, last=2), tools())
    assert (
        "Node 2: inputs refer to step 1, which is not in 'depends_on'.",
        "Node 2: inputs refer to step 9, which is not in 'depends_on'.",
    ) == plan_problems(plan(node(), one, wrong, last=2), tools())
    assert frozenset({0, 1}) == referred_steps(two["inputs"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (ENDLESS, "nests deeper than 64 levels"),
        ([nested(5_000), "{{STEPS.0}}"], "nests deeper than 64 levels"),
        (doubled(40), "more than 50000 values or 1048576 characters"),
    ],
    ids=["endless", "deep", "doubled"],
)
def test_sm_41_recursive_or_huge_inputs_are_refused_at_once(given: Any, expected: str) -> None:
    """Their references are not searched."""
    assert (f"Node 0: 'inputs': {expected}.",) == plan_problems(plan(node(inputs={"city": given})), tools())
    assert "Node 0: 'inputs' must be an object." == plan_problems(plan(node(inputs=given)), tools())[0]


def test_sm_59_a_reference_without_a_valid_step_is_found_before_the_run() -> None:
    """At every level."""
    found = plan_problems(plan(node(inputs={"city": "{{STEPS.one}}"})), tools())

    assert ("Node 0: inputs contain a reference without a valid step.",) == found
