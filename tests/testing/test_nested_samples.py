"""Samples, hypothesis strategies and the checks of the kit for tools with nested specs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.coercion.nested_specs import NestedGenerator
from tests.conftest import examples
from tests.spec.nested_rules import RULES

from neuroscript import ArgSpec, Toolset, ToolSpec, coerce
from neuroscript.testing.checks.samples import valid_samples
from neuroscript.testing.fuzzing import fuzz_toolset, values

REFINED = [name for name, rule in RULES.items() if rule.is_refined]


@pytest.mark.parametrize("name", REFINED)
def test_every_nested_form_has_samples(name: str) -> None:
    """Contract checks call tools with them."""
    assert [coerce(each, RULES[name]) for each in valid_samples(RULES[name])]


def test_samples_of_generated_specs_are_valid() -> None:
    """Also those that are hard to handle."""
    random = NestedGenerator("samples")
    for _ in range(200):
        rule = random.nested_rule(3)
        for hard in (False, True):
            for _, value in zip(range(20), valid_samples(rule, hard=hard), strict=False):
                coerce(value, rule)


@pytest.mark.parametrize("name", REFINED)
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_strategies_draw_valid_values(name: str, data: Any) -> None:
    """A fuzzer that draws none would test nothing."""
    coerce(data.draw(strategy(name)), RULES[name])


@cache
def strategy(name: str) -> st.SearchStrategy[Any]:
    """Return the strategy of a rule, built once for all its examples."""
    return values(RULES[name])


@pytest.mark.slow
def test_fuzzing_covers_tools_with_nested_specs() -> None:
    """Valid values reach the function, and invalid ones are refused."""
    received: list[Any] = []
    tools = Toolset("g")
    for index, name in enumerate(REFINED):
        if not holds_any(RULES[name]):
            spec = ToolSpec(f"t{index}", "g", (RULES[name],), description="Do.", return_type="nil")  # type: ignore[arg-type]
            tools.add(spec, recorder(received))

    fuzz_toolset(tools, examples=3)

    assert len(received) >= 2 * len(tools)


def holds_any(rule: ArgSpec) -> bool:
    """Return whether a spec accepts some values that the fuzzer considers invalid, such as a list in a string."""
    return rule.type == "any" and not rule.any_of


def recorder(received: list[Any]) -> Any:
    """Return the function of a tool that records its argument."""

    def record(rt: Any, x: Any) -> None:
        received.append(x)

    return record


@pytest.mark.parametrize(
    "bounds",
    [
        {"minimum": 0},
        {"maximum": -5},
        {"exclusive_minimum": 100, "exclusive_maximum": 101},
        {"minimum": 2000, "maximum": 2001},
        {"exclusive_minimum": 0, "maximum": 1},
        {"exclusive_maximum": 0.5},
    ],
    ids=str,
)
def test_decimals_are_drawn_within_their_bounds(bounds: dict[str, float]) -> None:
    """Samples and generated values exist for every range."""
    arg = ArgSpec("price", "string", format="decimal", **bounds)
    drawn = set()

    @settings(max_examples=30, database=None)
    @given(values(arg))
    def draw(value: str) -> None:
        drawn.add(coerce(value, arg))

    draw()
    assert len(drawn) > 2
    assert [*valid_samples(arg)]
