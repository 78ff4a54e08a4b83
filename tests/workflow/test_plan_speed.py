"""The overhead of a plan per node in processor time; variants run alternately, and their minimums are compared."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
from tests.workflow.labs import Lab

from neuroscript import SpecError
from neuroscript.workflow import Node, Plan, plan_from_data, run

pytestmark = pytest.mark.alone


def chain(count: int) -> Plan:
    """Return nodes of which each uses the result of the previous one."""
    inputs = [{"a": f"${{n{number - 1}}}" if number else 0, "b": number} for number in range(count)]
    return Plan(nodes=tuple(Node(name=f"n{number}", tool="lab.sum", inputs=inputs[number]) for number in range(count)))


def least(rounds: int, *ways: Callable[[], object]) -> list[float]:
    """Return the minimum processor seconds of each of several functions, run alternately."""
    times = [float("inf")] * len(ways)
    for _ in range(rounds):
        for index, way in enumerate(ways):
            gc.collect()
            began = process_time()
            way()
            times[index] = min(times[index], process_time() - began)
    return times


def test_node_overhead_is_constant_and_bounded() -> None:
    """10,000 nodes take at most 12 times as long as 1,000, and 60 times as long as plain calls.

    Each plan is checked, run and traced.
    """
    engine = Lab().engine
    few, many = chain(1000), chain(10_000)
    call = engine.call

    def calls() -> None:
        for number in range(10_000):
            call("lab.sum", [number, 1])

    few_seconds, many_seconds, call_seconds = least(3, lambda: run(engine, few), lambda: run(engine, many), calls)

    assert many_seconds <= 12 * few_seconds
    assert many_seconds <= 60 * call_seconds


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

    few_seconds, many_seconds = least(3, lambda: read(few), lambda: read(many))

    assert many_seconds <= 40 * few_seconds


def test_map_overhead_per_item_is_constant() -> None:
    """20,000 items take at most 25 times as long as 2,000."""
    engine = Lab().engine
    few, many = (
        Plan(nodes=(Node(name="n", tool="lab.sum", map=[*range(count)], inputs={"a": "${item}", "b": 1}),))
        for count in (2000, 20_000)
    )

    few_seconds, many_seconds = least(2, lambda: run(engine, few), lambda: run(engine, many))

    assert many_seconds <= 25 * few_seconds
