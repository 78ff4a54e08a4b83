"""Plans over tools with nested specs: references are checked to their leaves, and runs hand the values on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest

from neuroscript import ArgSpec, ArgType, Engine, Toolset
from neuroscript.workflow import check, plan_of_toml, run
from neuroscript.workflow.durable.validation import _types_in
from neuroscript.workflow.plan.type_inference import part_at


@dataclass
class Line:
    name: str
    price: Decimal
    counts: list[tuple[int, str]]


@dataclass
class Order:
    lines: list[Line]
    day: date
    notes: dict[int, list[str]]
    payment: Literal["cash"] | dict[str, int]


def shop() -> Engine:
    """Return an engine with tools that take and return orders."""
    toolset = Toolset("shop")

    @toolset.tool()
    def order(day: date) -> Order:
        return Order([Line("tea", Decimal("1.50"), [(1, "a")])], day, {1: ["x"]}, "cash")

    @toolset.tool()
    def add(a: int, b: int = 0) -> int:
        return a + b

    @toolset.tool()
    def price(amount: Decimal) -> Decimal:
        return amount * 2

    @toolset.tool()
    def send(order: Order) -> date:
        return order.day

    @toolset.tool()
    def total(*prices: Decimal) -> Decimal:
        return sum(prices, Decimal(0))

    return Engine(plugins="none", toolsets=[toolset])


def test_nested_references_are_checked_before_the_run() -> None:
    """Each path to its leaf: keys of classes, items, places of tuples, values of maps."""
    plan = plan_of_toml(
        """
        inputs = { day = "string" }
        [nodes.made]
        tool = "shop.order"
        inputs.day = "${input.day}"
        [nodes.right]
        tool = "shop.add"
        inputs = { a = "${made.lines[0].counts[0][0]}", b = 1 }
        [nodes.wrong]
        tool = "shop.add"
        inputs = { a = "${made.lines}", b = "${made.notes.1}" }
        [nodes.price]
        tool = "shop.price"
        inputs.amount = "${made.lines[0].counts[0][0]}"
        [nodes.noprice]
        tool = "shop.price"
        inputs.amount = "${made.lines}"
        [nodes.lost]
        tool = "shop.add"
        inputs = { a = "${made.line}", b = "${made.lines[0].counts[0][2]}" }
        [nodes.deep]
        tool = "shop.add"
        inputs = { a = "${made.day.year}", b = "${made.payment.euros}" }
        [nodes.inner]
        tool = "shop.send"
        inputs.order = { lines = [{ name = "${made.lines}", price = "1", counts = [["${made.notes}", "a"]] }], day = "${made.day}", notes = {}, payment = "cash" }
        """
    )

    with shop() as engine:
        assert [
            "nodes.wrong.inputs.a: expected int, but the reference returns list of map",
            "nodes.wrong.inputs.b: expected int, but the reference returns list of string",
            "nodes.noprice.inputs.amount: expected decimal number, but the reference returns list of map",
            "nodes.lost.inputs.a: made.line refers to a part that the value cannot have",
            "nodes.lost.inputs.b: made.lines[0].counts[0][2] refers to a part that the value cannot have",
            "nodes.deep.inputs.a: made.day.year refers to a part that the value cannot have",
            "nodes.inner.inputs.order.lines[0].name: expected string, but the reference returns list of map",
            "nodes.inner.inputs.order.lines[0].counts[0][0]: expected int, but the reference returns map",
        ] == list(check(engine, plan))  # fmt: skip


def test_plan_passes_nested_results_on() -> None:
    """A result is an exact plain value, from which the next tool receives instances."""
    plan = plan_of_toml(
        """
        [nodes.made]
        tool = "shop.order"
        inputs.day = "2020-01-31"
        [nodes.sent]
        tool = "shop.send"
        inputs.order = "${made}"
        [nodes.total]
        tool = "shop.total"
        inputs.prices = ["${made.lines[0].price}", "1"]
        [output]
        day = "${sent}"
        total = "${total}"
        first = "${made.lines[0].counts[0]}"
        """
    )

    with shop() as engine:
        assert () == check(engine, plan)
        assert {"day": "2020-01-31", "total": "2.50", "first": [1, "a"]} == run(engine, plan).output


UNION = ArgSpec("x", "any", any_of=(ArgSpec("a", "map", keys=(ArgSpec("n", "int"),)), "slice_string"))


@pytest.mark.parametrize(
    ("arg", "path", "expected"),
    [
        (UNION, (), ArgType.ANY),
        (UNION, ("n",), ArgType.INT),
        (UNION, (0,), ArgType.STRING),
        (UNION, ("m",), ArgType.NIL),
        (ArgSpec("x", "any", any_of=("slice_string", "slice_int")), (0,), None),
        (ArgSpec("x", "slice", items="slice_int"), (0, 1), ArgType.INT),
        (ArgSpec("x", "slice", items="slice_int"), ("a",), ArgType.NIL),
        (ArgSpec("x", "slice", prefix_items=("int", "string")), (-1,), ArgType.STRING),
        (ArgSpec("x", "map", value_spec="slice_int"), ("a", 0), ArgType.INT),
        (ArgSpec("x", "map", keys=(ArgSpec("a", "int"),)), ("b",), ArgType.NIL),
        (ArgSpec("x", "map", keys=(ArgSpec("a", "int"),), extra_keys=True), ("b", "c"), None),
        (ArgSpec("x", "map", keys=(ArgSpec("a", "int"),), value_spec="string"), ("b",), ArgType.STRING),
        (ArgSpec("x", "map_any_any", key_spec="int", value_spec="string"), (1,), ArgType.STRING),
        (ArgSpec("x", "string", format="date"), ("year",), ArgType.NIL),
        (ArgSpec("x", "slice_map", keys=(ArgSpec("a", "int"),)), (0, "a"), ArgType.INT),
    ],
)
def test_type_of_a_part(arg: ArgSpec, path: Any, expected: ArgType | None) -> None:
    assert expected is part_at(arg, path)


def test_handles_are_found_at_any_depth() -> None:
    """A durable run cannot store them."""
    arg = ArgSpec("x", "map", value_spec=ArgSpec("v", "slice", items=ArgSpec("h", "any", any_of=("int", "handle"))))

    assert ArgType.HANDLE in _types_in(arg)
