"""What a node of a plan costs beyond its call; what is compared runs by turns, and the least of each counts."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter

import pytest
from tests.workflow.labs import Lab

from neuroscript.workflow import Node, Plan, run

pytestmark = pytest.mark.alone


def chain(count: int) -> Plan:
    """Return nodes of which each takes what the one before it gave."""
    inputs = [{"a": f"${{n{number - 1}}}" if number else 0, "b": number} for number in range(count)]
    return Plan(nodes=tuple(Node(name=f"n{number}", tool="lab.sum", inputs=inputs[number]) for number in range(count)))


def least(rounds: int, *ways: Callable[[], object]) -> list[float]:
    """Return the least seconds of each of several ways, taken by turns."""
    times = [float("inf")] * len(ways)
    for _ in range(rounds):
        for index, way in enumerate(ways):
            gc.collect()
            began = perf_counter()
            way()
            times[index] = min(times[index], perf_counter() - began)
    return times


def test_a_node_costs_at_most_sixty_calls_and_no_more_where_there_are_many() -> None:
    """10,000 nodes take at most 12 times what 1,000 take, and 60 times the plain calls; checked, run and traced."""
    engine = Lab().engine
    few, many = chain(1000), chain(10_000)
    call = engine.call

    def calls() -> None:
        for number in range(10_000):
            call("lab.sum", [number, 1])

    few_seconds, many_seconds, call_seconds = least(5, lambda: run(engine, few), lambda: run(engine, many), calls)

    assert many_seconds <= 12 * few_seconds
    assert many_seconds <= 60 * call_seconds
