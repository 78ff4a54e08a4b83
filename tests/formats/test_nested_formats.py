"""Nested specs as people, models and type checkers read them: signatures, prompts, pages and stubs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from tests.formats.test_stubs import USE, refused_lines, using
from tests.spec.nested_rules import RULES

from neuroscript import ArgSpec, Engine, ToolPolicy, Toolset, ToolSpec, client, tool
from neuroscript.cli import main
from neuroscript.formats.markdown import page
from neuroscript.formats.one_line import signature
from neuroscript.formats.prompt import to_prompt
from neuroscript.formats.stubs import stub
from neuroscript.runtime.interfaces import ToolInfo


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Card:
    kind: Literal["card"]
    number: Annotated[str, "The number on the card."]


@dataclass
class Cash:
    kind: Literal["cash"]
    amount: Decimal = Decimal(0)


@dataclass
class Order:
    lines: list[tuple[int, str]]
    day: date
    payment: Card | Cash
    colors: set[Color]
    notes: dict[int, list[Card | None]]


def place(orders: list[Order], more: list[list[int]] | None = None, mode: int | Literal["auto"] = "auto") -> Order:
    """Place orders.

    Args:
        orders: What to send.
        more: Numbers.
        mode: How.
    """
    return orders[0]


def each(*days: date | None) -> Iterator[Card | Cash]:
    """Yield a payment for each day.

    Args:
        days: The days.
    """
    for _ in days:
        yield Cash("cash")


def by_place(sizes: dict[str, dict[str, list[float]]]) -> dict[str, list[Card]]:
    """Return cards.

    Args:
        sizes: The sizes of each place.
    """
    return {place: [Card("card", "4")] for place in sizes}


TOOLS = [tool(function, group="shop") for function in (place, each, by_place)]
SPECS = [each.spec for each in TOOLS]


def test_signature_shows_nested_types() -> None:
    assert [
        "(orders: list of map, more: list of list of int | None = null, mode: int or 'auto' = \"auto\") -> map",
        "(*days: date | None) -> stream of map",
        "(sizes: map of map of list of float) -> map of list of map",
    ] == [signature(spec) for spec in SPECS]


def test_prompt_lists_keys_at_any_depth() -> None:
    """A model that reads a prompt knows every key, and which alternative it belongs to."""
    assert to_prompt(SPECS[0]).splitlines() == [
        "shop.place(orders: list of map, more: list of list of int | None = null, mode: int or 'auto' = \"auto\") -> map",
        "  Place orders.",
        "  Arguments:",
        "    orders: list of map, required. What to send.",
        "    orders.lines: list of list of 2 items (int, string), required.",
        "    orders.day: date, required.",
        "    orders.payment: map, required.",
        "    orders.payment (card).kind: string, one of 'card', required.",
        "    orders.payment (card).number: string, required. The number on the card.",
        "    orders.payment (cash).kind: string, one of 'cash', required.",
        '    orders.payment (cash).amount: decimal number, default "0".',
        "    orders.colors: list of unique 'red' or 'blue', required.",
        "    orders.notes: map of list of map or null by int, required.",
        "    orders.notes.*.kind: string, one of 'card', required.",
        "    orders.notes.*.number: string, required. The number on the card.",
        "    more: list of list of int, default null, may be null. Numbers.",
        "    mode: int or 'auto', default \"auto\". How.",
    ]


def test_page_lists_keys_of_arguments_and_results() -> None:
    text = page("shop", [ToolInfo(spec, ToolPolicy(), "host") for spec in SPECS])

    assert "| orders.notes.\\*.number | string | required | The number on the card. |" in text
    assert "| part of the result | type | description |" in text
    assert "| result.\\*.number | string | The number on the card. |" in text


def test_show_lists_keys_of_arguments_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["show", "shop.by_place"], make_engine=lambda *_, **__: Engine(plugins="none", toolsets=[_shop()]))

    shown = capsys.readouterr().out
    assert 0 == code
    assert "map of map of list of float, required" in shown
    assert "result.*.number" in shown


def _shop() -> Toolset:
    return Toolset("shop", tuple(TOOLS))


RIGHT = """\
card: ShopPlaceOrdersPayment1 = {"kind": "card", "number": "4"}
order: ShopPlaceOrders = {"lines": [[1, "a"]], "day": "2020-01-31", "payment": card, "colors": ["red"], "notes": {1: []}}
placed: ShopPlaceResult = tools.shop.place([order], [[1]], mode="auto")
day: str = tools.shop.place([order])["day"]
lines: list[list[int | str]] = tools.shop.place([order], mode=5)["lines"]
kinds: list[str] = [payment["kind"] for payment in tools.shop.each("2020-01-31", None)]
number: str = tools.shop.by_place({"a": {"b": [0.5]}})["a"][0]["number"]
"""

WRONG = """\
tools.shop.place([{"lines": []}])
tools.shop.place([order], [["a"]])
tools.shop.place([order], mode="off")
tools.shop.each(5)
tools.shop.by_place({"a": {"b": ["c"]}})
total: int = tools.shop.by_place({})["a"][0]["number"]
tools.shop.place([order])["night"]
"""


def nested_forms() -> Iterator[ToolSpec]:
    """Yield tools with each nested form as an argument, a further value and a result."""
    for index, rule in enumerate(RULES.values()):
        optional = ArgSpec("y", rule.type, required=False)
        yield ToolSpec(f"t{index}", "g", (rule, optional), returns=rule)
        yield ToolSpec(f"v{index}", "g", (rule,), variadic=True, returns=rule, stream=True)


@pytest.mark.full
def test_stub_has_precise_types(tmp_path: Path) -> None:
    """For arguments and results at any depth; mypy refuses each wrong line, and no other line of any nested form."""
    pytest.importorskip("mypy")
    right, wrong = RIGHT.splitlines(), WRONG.splitlines()
    names = "ShopPlaceOrders, ShopPlaceOrdersPayment1, ShopPlaceResult"
    head = USE.replace("AsyncTools, Tools", f"AsyncTools, Tools, {names}")
    program = using([f"    {line}" for line in (*right, *wrong)]).replace(USE, head)
    start = len(head.splitlines()) + 2

    found = refused_lines(tmp_path, stub([*SPECS, *nested_forms()]), program)

    assert [*range(start + len(right), start + len(right) + len(wrong))] == sorted(found), found


def test_what_the_stub_allows_runs() -> None:
    order: Any = {
        "lines": [[1, "a"]],
        "day": "2020-01-31",
        "payment": {"kind": "card", "number": "4"},
        "colors": ["red"],
        "notes": {1: []},
    }
    with Engine(plugins="none", toolsets=[_shop()]) as engine:
        tools = client(engine)

        assert order == tools.shop.place([order], [[1]], mode="auto")
        assert [{"kind": "cash", "amount": "0"}] * 2 == [*tools.shop.each("2020-01-31", None)]
        assert {"a": [{"kind": "card", "number": "4"}]} == tools.shop.by_place({"a": {"b": [0.5]}})
