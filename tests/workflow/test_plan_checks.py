"""Checks of plans before any call runs."""

from __future__ import annotations

import pytest
from tests.workflow.labs import Lab
from tests.workflow.plan_runs import run_plan

from neuroscript import ArgumentError, ExecutionPolicy, SpecError
from neuroscript.workflow import check, plan_of_toml, run


def test_plan_is_validated_before_it_runs() -> None:
    """Tools, types and policy: every problem at once, and no call was made."""
    lab = Lab(policy=ExecutionPolicy(allow=("lab.*",), deny=("lab.fail",), grants=("fs:read:*",)))
    plan = plan_of_toml(
        """
        [inputs.names]
        type = "slice_string"
        [nodes.first]
        tool = "lab.add"
        inputs.a = 1
        [nodes.gone]
        tool = "lab.ad"
        [nodes.denied]
        tool = "lab.fail"
        inputs.text = "x"
        [nodes.unfit]
        tool = "lab.add"
        inputs = { a = "x", b = "${input.names}", c = "${first}" }
        [nodes.path]
        tool = "lab.add"
        inputs = { a = "${first.x}" }
        [nodes.over]
        tool = "lab.add"
        map = "${first}"
        inputs.a = "${item}"
        [nodes.ungranted]
        tool = "lab.write"
        inputs = { path = "${input.names[0]}", text = "t" }
        [nodes.missing]
        tool = "lab.write"
        inputs = { path = "a.txt" }
        """
    )
    with pytest.raises(SpecError) as caught:
        run(lab.engine, plan, {"names": []})

    assert list(caught.value.problems) == [
        "nodes.gone.tool: unknown tool lab.ad; did you mean lab.add?",
        "nodes.denied.tool: lab.fail: is denied by the host",
        "nodes.unfit.inputs.b: expected int, but the reference returns list of string",
        "nodes.unfit.inputs.a: expected int, got str (a string must be a decimal integer, such as 42)",
        "nodes.unfit.inputs.c: expected only a, b, got an unknown name of type str",
        "nodes.path.inputs.a: first.x refers to a part that the value cannot have",
        "nodes.over.map: expected a list",
        "nodes.ungranted.tool: needs fs:write:{path}, which is not granted",
        "nodes.missing.inputs.text: expected string, got nothing",
    ]
    assert (lab.seen, check(lab.engine, plan)) == ([], caught.value.problems)


def test_impossible_references_are_found_before_run() -> None:
    """By name into a list, into the inputs as a whole, and in the output, which is computed last."""
    lab = Lab()
    plan = plan_of_toml(
        """
        output = { sum = "${many[0]}", part = "${one.x}", name = "${many.x}" }
        inputs = { count = "int" }
        [nodes.one]
        tool = "lab.add"
        inputs.a = "${input}"
        [nodes.many]
        tool = "lab.add"
        map = "${input.count}"
        inputs.a = "${trace.x}"
        inputs.b = "${index.x}"
        """
    )

    assert list(check(lab.engine, plan)) == [
        "nodes.one.inputs.a: expected int, but the reference returns map",
        "nodes.many.map: expected a list",
        "nodes.many.inputs.a: trace.x refers to a part that the value cannot have",
        "nodes.many.inputs.b: index.x refers to a part that the value cannot have",
        "output.part: one.x refers to a part that the value cannot have",
        "output.name: many.x refers to a part that the value cannot have",
    ]


def test_type_problems_are_found_before_run() -> None:
    """In conditions, items of a map, references within lists, and tools without a result."""
    lab = Lab(policy=ExecutionPolicy(allow=("lab.*",), grants=("fs:write:ok.txt",)))
    plan = plan_of_toml(
        """
        inputs = { names = "slice_string" }
        [nodes.one]
        tool = "lab.add"
        inputs.a = 1
        [nodes.none]
        tool = "lab.forget"
        inputs.values = ["${input.names}", "${one}"]
        [nodes.part]
        tool = "lab.add"
        inputs.a = "${none.x}"
        [nodes.truth]
        tool = "lab.add"
        inputs.a = 1
        when = { any = ["${one}", { value = "${one}", above = "x" }, { value = "${one}", above = 0 }] }
        [nodes.over]
        tool = "lab.echo"
        map = "${input.names}"
        inputs.value = "${index}"
        [nodes.each]
        tool = "lab.add"
        map = [1, "x", { a = 2 }]
        inputs.a = "${item}"
        [nodes.writes]
        tool = "lab.write"
        map = ["ok.txt", "no.txt"]
        inputs = { path = "${item}", text = "t" }
        [nodes.again]
        tool = "lab.echo"
        map = "${input.names}"
        when = { not = { failed = "one" } }
        inputs.value = { name = "${item.x}" }
        """
    )

    assert list(check(lab.engine, plan)) == [
        "nodes.none.inputs.values[0]: expected int, but the reference returns list of string",
        "nodes.part.inputs.a: none.x refers to a part that the value cannot have",
        "nodes.truth.when: expected true or false, got int",
        "nodes.truth.when: above compares two numbers or two strings, got int and str",
        "nodes.over.inputs.value: expected map, but the reference returns int",
        "nodes.each.map[1].inputs.a: expected int, got str (a string must be a decimal integer, such as 42)",
        "nodes.each.map[2].inputs.a: expected int, got dict",
        "nodes.writes.map[1].tool: needs fs:write:no.txt",
        "nodes.again.inputs.value.name: item.x refers to a part that the value cannot have",
    ]


def test_fixed_capabilities_are_checked_before_run() -> None:
    """As in a call without references."""
    text = """
    inputs = { text = "string" }
    [nodes.in]
    tool = "lab.write"
    inputs = { path = "in/a", text = "${input.text}" }
    [nodes.out]
    tool = "lab.write"
    inputs = { path = "out/a", text = "${input.text}" }
    [nodes.some]
    tool = "lab.write"
    inputs = { path = "${input.text}", text = "t" }
    """
    lab = Lab(policy=ExecutionPolicy(allow=("*",), grants=("fs:write:out/*",)))

    assert check(lab.engine, plan_of_toml(text)) == ("nodes.in.tool: needs fs:write:{path}, which is not granted",)


def test_plan_inputs_are_coerced_like_arguments() -> None:
    """Every problem is reported, and no call is made."""
    lab = Lab()
    text = """
    inputs = { count = "int", names = { type = "slice_string", required = false, default = ["a"] } }
    [nodes.one]
    tool = "lab.add"
    inputs = { a = "${input.count}" }
    """
    with pytest.raises(ArgumentError) as caught:
        run_plan(lab, text, inputs={"count": "x", "nam": 1})

    assert [problem.where for problem in caught.value.problems] == ["count", "nam"]
    assert lab.seen == []
    assert run_plan(lab, text, inputs={"count": "2"}).inputs == {"count": 2, "names": ["a"]}


@pytest.mark.parametrize("parallel", [0, -1])
def test_parallel_must_be_positive(parallel: int) -> None:
    """Otherwise the plan would end without having begun."""
    with pytest.raises(ValueError, match="parallel must be 1 or more"):
        run_plan(Lab(), '[nodes.one]\ntool = "lab.add"\ninputs.a = 1', parallel=parallel)
