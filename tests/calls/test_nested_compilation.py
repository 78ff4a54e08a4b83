"""Nested specs and formats in compiled pipelines: as exact, as limited and as adaptable as in the general path."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, Literal

import attrs
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


INNER: Final[list[tuple[ArgSpec, tuple[Any, ...]]]] = [
    (ArgSpec("x", kind, **fields), values)
    for kind, fields, values in (
        ("string", {}, ("a", "é", 5, "\ud800")),
        ("string", {"nullable": True}, ("a", "null")),
        ("string", {"choices": ("a", "B")}, ("a", "b", "c")),
        ("string", {"min_length": 2, "max_length": 3}, ("ab", "a", "abcd")),
        ("int", {}, (5, "5", 5.0, 2**63)),
        ("int", {"nullable": True}, (5, "", "null")),
        ("int", {"minimum": 1, "exclusive_maximum": 5}, (1, "4", 0, 5)),
        ("float", {}, (1.5, 1, "1.5", float("nan"))),
        ("bool", {}, (True, "true", 1)),
        ("blob", {}, (b"x", "x", bytearray(b"x"))),
        ("any", {}, (5, [1], object)),
        ("map", {}, ({"a": 1}, {1: 1}, [])),
        ("slice_int", {}, ([1], ["1"], "[1]")),
        ("slice_string", {}, (["a"], ["\ud800"], [1])),
        ("string", {"format": "date"}, ("2026-01-02", "20260102", 5)),
        ("string", {"format": "date", "nullable": True}, ("2026-01-02", "null")),
        ("string", {"format": "decimal"}, ("1.50", 2, "x")),
        ("string", {"format": "path"}, ("x", "x/../y", "..")),
    )
]
"""Specs within others, with values for them."""


class Equal:
    """A key that equals ``x``, but is not a string."""

    def __eq__(self, other: object) -> bool:
        return other == "x"

    def __hash__(self) -> int:
        return hash("x")


ITEM: Final = (lambda value: [value], lambda value: (value,), lambda value: [None, value, value], lambda value: value)
LISTS: Final = (lambda value: [[value]], lambda value: [[value], [], (value, value)], lambda value: [{"x": value}])
OBJECT: Final = (
    *(lambda value: {"x": value}, lambda value: {"x": value, "y": 1}, lambda value: {1: value}),
    *(lambda value: {Equal(): value}, lambda value: [{"x": value}], lambda value: {}),
)
OBJECTS: Final = (
    *(lambda value: [{"x": value}], lambda value: [{"x": value}, {"x": value}], lambda value: [{"x": value}, None]),
    *(lambda value: [{"x": value}, {"y": value}], lambda value: {"x": value}, lambda value: ({"x": value},)),
    lambda value: [{"x": value}, {Equal(): value}],
)
AROUND: Final[dict[str, tuple[Callable[[ArgSpec], dict[str, Any]], tuple[Callable[[Any], Any], ...]]]] = {
    "a list": (lambda inner: {"items": inner}, ITEM),
    "a short list": (lambda inner: {"items": inner, "max_length": 1}, ITEM),
    "a list without repetitions": (lambda inner: {"items": inner, "unique_items": True}, ITEM),
    "lists": (lambda inner: {"items": ArgSpec("item", "slice", items=inner)}, LISTS),
    "short lists": (lambda inner: {"items": ArgSpec("item", "slice", items=inner, max_length=1)}, LISTS),
    "a tuple": (lambda inner: {"prefix_items": (inner,)}, ITEM),
    "an object": (lambda inner: {"type": "map", "keys": (inner,)}, OBJECT),
    "an open object": (lambda inner: {"type": "map", "keys": (inner,), "extra_keys": True}, OBJECT),
    "an object of two keys": (
        lambda inner: {"type": "map", "keys": (inner,), "extra_keys": True, "min_length": 2},
        OBJECT,
    ),
    "an optional key": (lambda inner: {"type": "map", "keys": (attrs.evolve(inner, required=False),)}, OBJECT),
    "objects": (lambda inner: {"type": "slice_map", "keys": (inner,)}, OBJECTS),
    "open objects": (lambda inner: {"type": "slice_map", "keys": (inner,), "extra_keys": True}, OBJECTS),
    "an object in a list": (lambda inner: {"type": "slice_map", "keys": (inner,), "max_length": 1}, OBJECTS),
    "nullable objects": (lambda inner: {"items": ArgSpec("item", "map", keys=(inner,), nullable=True)}, OBJECTS),
}
"""The fields of a slice, or of another spec, with a spec in it, and the shapes of values for them."""


@pytest.mark.parametrize("mode", ["lax", "strict"])
@pytest.mark.parametrize("around", AROUND)
def test_nested_values_are_bound_as_in_the_general_path(around: str, mode: Literal["lax", "strict"]) -> None:
    """Both return the same value or raise the same error, for valid values, wrong ones and values of another shape."""
    settings = CoercionSettings(mode)
    fields, shapes = AROUND[around]
    bound = 0
    for inner, values in INNER:
        spec = ToolSpec("t", "g", (ArgSpec("a0", **{"type": "slice", **fields(inner)}),))
        binder = compile_binder(spec, settings)
        for value in (shape(each) for shape in shapes for each in (*values, None)):
            sent = {"a0": value}
            expected = outcome(lambda sent=sent, spec=spec: bind_arguments(spec, settings, sent, by_name=True))
            assert outcome(lambda sent=sent, binder=binder: binder(sent)) == expected, (inner, value)
            bound += expected.startswith("(")
    assert bound > len(INNER)


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
