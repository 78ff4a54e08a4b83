"""Instances of standard containers: maps of other classes, and sets of anything."""

from __future__ import annotations

import datetime
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from enum import Flag
from typing import Annotated, Any, TypedDict
from uuid import UUID

import annotated_types as bounds
import pytest
from tests.spec.annotation_rows import take_of

from neuroscript import ArgSpec, ArgType, ArgumentError, Engine, SpecError, Toolset, ToolSpec


class Point(TypedDict):
    """A map with keys of its own."""

    x: int


class Permission(Flag):
    """Names in a list."""

    READ = 1


def received(annotation: Any, sent: Any) -> Any:
    """Return what a function with this annotation receives in a call."""
    seen: list[Any] = []
    with Engine(toolsets=[Toolset("table", (take_of(annotation, seen),))], plugins="none") as engine:
        engine.call("table.take", [sent])
    return seen[0]


@pytest.mark.parametrize(
    ("annotation", "missing"),
    [
        (defaultdict[str, int], 0),
        (defaultdict[str, str], ""),
        (defaultdict[str, bool], False),
        (defaultdict[int, float], 0.0),
        (defaultdict[str, bytes], b""),
        (defaultdict[str, bytearray], bytearray()),
        (defaultdict[str, list[int]], []),
        (defaultdict[str, list[datetime.date]], []),
        (defaultdict[str, set[str]], set()),
        (defaultdict[str, tuple[int, ...]], ()),
        (defaultdict[str, dict[str, Any]], {}),
        (defaultdict[str, OrderedDict[str, int]], OrderedDict()),
    ],
    ids=repr,
)
def test_default_is_empty_value(annotation: Any, missing: Any) -> None:
    """The factory makes the empty value of the declared type, and the value is stored."""
    counts = received(annotation, {})

    assert (missing, type(missing)) == (counts[1], type(counts[1]))
    assert {1: missing} == counts


def test_default_of_nested_defaultdicts() -> None:
    """Both levels have a factory, also in maps that the caller sent."""
    counts = received(defaultdict[str, defaultdict[str, int]], {"a": {"b": "2"}})
    counts["a"]["c"] += 1
    counts["d"]["e"] += 1

    assert {"a": {"b": 2, "c": 1}, "d": {"e": 1}} == counts


@pytest.mark.parametrize(
    "annotation",
    [
        defaultdict,
        defaultdict[str, Any],
        defaultdict[str, int | None],
        defaultdict[str, int | str],
        defaultdict[str, Decimal],
        defaultdict[str, Point],
        defaultdict[str, tuple[int, str]],
        defaultdict[str, Permission],
        defaultdict[str, Annotated[int, bounds.Ge(1)]],
        defaultdict[str, Annotated[list[int], bounds.MinLen(1)]],
    ],
    ids=repr,
)
def test_no_default_without_empty_value(annotation: Any) -> None:
    """A missing key is a KeyError where no value is the obvious one, or the empty value would break a rule."""
    counts = received(annotation, {})

    assert counts.default_factory is None


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (set[int], {1, 2}),
        (set[int], frozenset({1, 2})),
        (frozenset[int], {1, 2}),
        (frozenset[int], frozenset({1, 2})),
        (set[Any], frozenset({1, "2"})),
    ],
)
def test_set_of_either_class_is_accepted_as_a_set(annotation: Any, sent: Any) -> None:
    """The function receives the class of its annotation."""
    found = received(annotation, sent)

    assert (sent, getattr(annotation, "__origin__", None)) == (found, type(found))


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        (deque[int], deque([1])),
        (deque[list[int]], deque([[1]])),
        (list[int], deque([1])),
        (set[int], deque([1])),
        (list[int], {1}),
        (list[list[int]], frozenset({(1,)})),
    ],
    ids=repr,
)
def test_other_collection_is_refused_as_an_argument(annotation: Any, sent: Any) -> None:
    """Callers send lists; only a tool may return a deque."""
    with pytest.raises(ArgumentError) as caught:
        received(annotation, sent)

    assert ("coercion.type", "model") == (caught.value.code, caught.value.retry)


def test_order_of_result() -> None:
    """The result has the order of the OrderedDict, which differs from that of the dict below it."""

    def turn(values: OrderedDict[str, int]) -> OrderedDict[str, int]:
        values.move_to_end("a")
        return values

    toolset = Toolset("table")
    toolset.tool(turn)
    with Engine(toolsets=[toolset], plugins="none") as engine:
        result = engine.call("table.turn", [{"a": 1, "b": "2"}])

    assert dict is type(result)
    assert [("b", 2), ("a", 1)] == [*result.items()]


@pytest.mark.parametrize("annotation", [set, frozenset, set[Any], frozenset[object]], ids=repr)
def test_item_that_a_set_cannot_hold(annotation: Any) -> None:
    """The error names the item without its value."""
    with pytest.raises(ArgumentError) as caught:
        received(annotation, [1, {"secret": "4815162342"}])

    expected = "table.take: value[1]: expected an item that a set can hold, such as a string or a number, got dict"
    assert ("coercion.class", "model") == (caught.value.code, caught.value.retry)
    assert expected == str(caught.value)


def test_item_of_nested_set() -> None:
    """The path starts at the argument."""
    with pytest.raises(ArgumentError) as caught:
        received(dict[str, list[set[Any]]], {"a": [[], [1, [2]]]})

    expected = (
        "table.take: value['a'][1][1]: expected an item that a set can hold, such as a string or a number, got list"
    )
    assert expected == str(caught.value)


@pytest.mark.parametrize("cls", [set[bytearray], frozenset[OrderedDict[str, int]]])
def test_set_of_instances_without_hash(cls: Any) -> None:
    with pytest.raises(SpecError) as caught:
        take_of(cls, [])

    name = cls.__name__
    text = f"the items of a {name} must be hashable; use list"
    assert [f"value: {text}"] == [*caught.value.problems]


def test_declared_keys_beside_instances() -> None:
    """Only further keys become instances of the class of *key_spec*; a declared key stays a string."""
    day = ArgSpec("day", ArgType.STRING, cls=datetime.date)
    rule = ArgSpec(
        "counts",
        ArgType.MAP,
        keys=(day, ArgSpec("note", ArgType.STRING, required=False)),
        key_spec=ArgSpec("key", ArgType.STRING, cls=UUID),
        value_spec=ArgSpec("value", ArgType.INT),
    )
    seen: list[Any] = []
    toolset = Toolset("table")
    toolset.add(ToolSpec("take", "table", (rule,)), lambda rt, counts: seen.append(counts))

    with Engine(toolsets=[toolset], plugins="none") as engine:
        engine.call("table.take", [{"day": "2026-11-23", "00000000-0000-0000-0000-000000000001": "2", "note": "a"}])

    assert [{"day": datetime.date(2026, 11, 23), UUID(int=1): 2, "note": "a"}] == seen


def test_default_of_argument() -> None:
    """A default may be an instance; the spec has it as a dict."""
    spec = ArgSpec("counts", ArgType.MAP_STRING_INT, cls=OrderedDict, default=OrderedDict(a=1))

    assert ({"a": 1}, dict) == (spec.default, type(spec.default))
