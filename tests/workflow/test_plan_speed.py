"""The overhead of a plan per node, in function calls, which repeat exactly, and the seconds of what calls cannot show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.work import calls_in, seconds_in
from tests.workflow.labs import Lab

from neuroscript import SpecError
from neuroscript.workflow import Node, Plan, plan_from_data, run


def chain(count: int) -> Plan:
    """Return nodes of which each uses the result of the previous one."""
    inputs = [{"a": f"${{n{number - 1}}}" if number else 0, "b": number} for number in range(count)]
    return Plan(nodes=tuple(Node(name=f"n{number}", tool="lab.sum", inputs=inputs[number]) for number in range(count)))


def test_node_overhead_is_constant_and_bounded() -> None:
    """5,000 nodes take five times as many function calls as 1,000, and at most 100 times as many as plain calls.

    Each plan is checked, run and traced.
    """
    engine = Lab().engine
    few, many = chain(1000), chain(5000)

    def call() -> None:
        for number in range(1000):
            engine.call("lab.sum", [number, 1])

    run(engine, few)  # what the first run prepares
    few_calls, many_calls, plain_calls = (
        calls_in(lambda: run(engine, few)),
        calls_in(lambda: run(engine, many)),
        calls_in(call),
    )

    assert many_calls <= 5.05 * few_calls
    assert few_calls <= 100 * plain_calls


@pytest.mark.alone
def test_time_of_nodes_is_not_quadratic() -> None:
    """10,000 nodes take much less than a hundred times as long as 1,000, also in loops without function calls."""
    engine = Lab().engine
    few, many = chain(1000), chain(10_000)

    assert seconds_in(lambda: run(engine, many)) <= 40 * seconds_in(lambda: run(engine, few))


@pytest.mark.alone
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda n: [{"name": "a", "tool": "t", "inputs": {"x": "$" * n + "x${a.b"}}], id="dollars"),
        pytest.param(
            lambda n: [{"name": f"n{i}", "tool": "t", "depends_on": [f"n{i ^ 1}"]} for i in range(n // 10)], id="pairs"
        ),
        pytest.param(
            lambda n: (
                [{"name": f"n{i}", "tool": "t", "depends_on": [f"n{i + 1}", f"n{i}"]} for i in range(n // 10)]
                + [{"name": f"n{n // 10}", "tool": "t"}]
            ),
            id="chain",
        ),
    ],
)
def test_reading_a_plan_takes_linear_time(made: Callable[[int], list[dict[str, Any]]]) -> None:
    """In every notation: a plan ten times as long takes much less than a hundred times as long."""
    few, many = made(2000), made(20_000)

    def read(nodes: list[dict[str, Any]]) -> None:
        with pytest.raises(SpecError):
            plan_from_data({"nodes": nodes})

    assert seconds_in(lambda: read(many)) <= 40 * seconds_in(lambda: read(few))


def test_map_overhead_per_item_is_constant() -> None:
    """5,000 items take five times as many function calls as 1,000."""
    engine = Lab().engine
    few, many = (
        Plan(nodes=(Node(name="n", tool="lab.sum", map=[*range(count)], inputs={"a": "${item}", "b": 1}),))
        for count in (1000, 5000)
    )

    run(engine, few)  # what the first run prepares

    assert calls_in(lambda: run(engine, many)) <= 5.05 * calls_in(lambda: run(engine, few))
