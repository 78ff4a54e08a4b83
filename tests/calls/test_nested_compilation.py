"""Nested specs and formats in compiled pipelines: as exact, as limited and as adaptable as in the general path."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from neuroscript import ArgSpec, ArgumentError, Engine, ToolPolicy, ToolSpec, bind_named, tool
from neuroscript.calls import codegen
from neuroscript.calls.compiler import compile_binder
from neuroscript.coercion.context import LAX, CoercionSettings, SizeLimits
from neuroscript.coercion.string_formats import FORMATS
from neuroscript.spec.binding import bind_arguments

LINE = (ArgSpec("sku", "string"), ArgSpec("price", "string", format="decimal"))
ORDERS = ToolSpec(
    "place",
    "shop",
    (
        ArgSpec(
            "orders",
            "slice_map",
            keys=(ArgSpec("day", "string", format="date"), ArgSpec("lines", "slice_map", keys=LINE)),
        ),
    ),
)
SENT = {"orders": [{"day": "2026-11-23", "lines": [{"sku": "a", "price": "1.50"}, {"price": 2, "sku": "b"}]}]}


def outcome(run: Callable[[], Any]) -> str:
    """Return a result with its types and the order of its keys, or the message of the error."""
    try:
        return repr(run())
    except ArgumentError as error:
        return str(error)


def test_nested_arguments_are_compiled() -> None:
    """The binder does not leave the call to the general path."""
    bind = compile_binder(ORDERS, LAX)

    assert bind.__code__.co_filename == "<neuroscript call>"
    assert outcome(lambda: bind(SENT)) == outcome(lambda: bind_named(ORDERS, SENT))


def test_nothing_is_shared_with_the_caller() -> None:
    (orders,) = compile_binder(ORDERS, LAX)(SENT)

    orders[0]["lines"][0]["sku"] = "changed"
    orders[0]["lines"].clear()
    assert SENT["orders"][0]["lines"][0] == {"sku": "a", "price": "1.50"}


@pytest.mark.parametrize("text", [*range(0, 60, 3), 100, 1_000])
@pytest.mark.parametrize("nodes", [3, 8, 9, 10, 100])
def test_limits_are_those_of_the_general_path(text: int, nodes: int) -> None:
    """Arguments by name, whose names count as text."""
    for depth in (2, 3, 4, 5):
        settings = CoercionSettings("lax", SizeLimits(depth, nodes, text))
        binder = compile_binder(ORDERS, settings)
        expected = outcome(lambda settings=settings: bind_arguments(ORDERS, settings, SENT, by_name=True))
        assert outcome(lambda binder=binder: binder(SENT)) == expected


@pytest.mark.parametrize(
    ("arg", "value", "text"),
    [
        (ArgSpec("n" * 60, "string", format="path"), "x" * 9, 40),
        (ArgSpec("a0", "int"), 1, 0),
        (ArgSpec("é", "string"), "é", 3),
    ],
    ids=["path", "number", "characters of two bytes"],
)
def test_names_of_arguments_count_as_text(arg: ArgSpec, value: Any, text: int) -> None:
    binder = compile_binder(ToolSpec("t", "g", (arg,)), CoercionSettings("lax", SizeLimits(text=text)))

    with pytest.raises(ArgumentError) as caught:
        binder({arg.name: value})
    assert (caught.value.code, caught.value.retry) == ("limit.text", "model")


@pytest.mark.parametrize(
    "adapters", [{float: lambda value: "9.99"}, {list: lambda value: []}, {str: lambda value: "2026-01-01"}]
)
def test_adapters_of_builtins_apply_in_both_pipelines(adapters: dict[type, Callable[[Any], Any]]) -> None:
    def show(price: Decimal, days: list[datetime.date]) -> str:
        """Show."""
        return repr((price, days))

    found = set()
    for policy in (ToolPolicy(), ToolPolicy(timeout=30)):  # compiled and stepwise
        with Engine(plugins="none", adapters=adapters) as engine:
            engine.register(tool(show, group="g", policy=policy))
            found.add(outcome(lambda engine=engine: engine.call("g.show", (1.5, ["2026-01-03"]))))
    assert len(found) == 1


def test_large_specs_take_the_general_path() -> None:
    """Compiling them would take longer than many calls save."""
    keys = tuple(ArgSpec(f"k{index}", "int") for index in range(20))
    for _ in range(2):
        keys = tuple(ArgSpec(f"m{index}", "map", keys=keys) for index in range(4))
    spec = ToolSpec("t", "g", (ArgSpec("value", "map", keys=keys),))
    source = codegen.CodeWriter()

    assert not codegen.write_named_binding(spec, LAX, source, "pass")
    assert source.lines == []


@pytest.mark.parametrize("offset", ["+00:00", "-00:00:00.000001", "+00:00:00.500000", "+01:30:15.000001", "-23:59"])
def test_instances_of_canonical_times_keep_their_offset(offset: str) -> None:
    for name, text in (("date-time", f"2026-01-02T12:00:00{offset}"), ("time", f"00:00:00.500000{offset}")):
        canonical = FORMATS[name].read_text(text)
        assert isinstance(canonical, str)
        cls = datetime.datetime if name == "date-time" else datetime.time
        assert FORMATS[name].maker(cls)(canonical).isoformat() == canonical
