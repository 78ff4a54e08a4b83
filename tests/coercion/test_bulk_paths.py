"""Lists that are read at once: the same values, problems and counts as item by item."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neuroscript import ArgSpec, ArgType, ArgumentError, ToolSpec
from neuroscript.coercion.context import ROOT, CoercionPass, CoercionSettings, Mode, SizeLimits
from neuroscript.coercion.values import CHUNK_ITEMS, coerce_ints_fast, coerce_value
from neuroscript.spec.binding import bind_arguments


class Unused:
    """A class with an adapter, which makes a pass read item by item."""


def outcome(kind: ArgType, value: Any, mode: Mode, sizes: SizeLimits, *, by_item: bool) -> Any:
    """Return everything that a pass over a value tells."""
    adapters = ((Unused, lambda each: each),) if by_item else ()
    walk = CoercionPass(CoercionSettings(mode, sizes, adapters))
    result = walk.limited(coerce_value, kind, value, ROOT)
    problems = [(where, fault.code, fault.expected, got) for where, fault, got in walk.notes]
    counts = (walk.nodes, walk.text) if not walk.noted else None
    return repr(result), walk.noted, problems, counts


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.integers(-(2**60), 2**60).map(float),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "0", "007", " 5 ", "+5", "5.0", "５", "9" * 18, "9" * 19, "0" * 64, "0" * 65, "1_0", "x"]),
    st.sampled_from([True, None, b"5", [1], 2.0**53, 2.0**53 + 2, -0.0, math.inf, math.nan]),
)
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just("\ud800"), st.binary(max_size=2)
)
KEYS = st.one_of(st.text(max_size=2), st.integers(), st.just("\udfff"), st.none())
MAPS = st.lists(
    st.one_of(
        st.dictionaries(st.text(max_size=2), LEAVES, max_size=4), st.dictionaries(KEYS, LEAVES, max_size=2), LEAVES
    ),
    max_size=6,
)
SIZES = st.builds(SizeLimits, depth=st.integers(1, 4), nodes=st.integers(1, 30), text=st.integers(0, 20))
ROOMY = SizeLimits()


@given(st.lists(NUMBERS, max_size=30), st.sampled_from(["lax", "strict", "result"]))
@example([""] * 13, "lax")
@example(["1"] * 13 + [""], "lax")
@example(["1"] * 13 + ["0" * 65], "lax")
@example(["1"] * 13 + [-(2.0**53) - 2], "lax")
def test_numbers_at_once(items: list[Any], mode: Mode) -> None:
    kind = ArgType.SLICE_INT
    assert outcome(kind, items, mode, ROOMY, by_item=False) == outcome(kind, items, mode, ROOMY, by_item=True)


@given(MAPS, st.sampled_from([ArgType.SLICE_MAP, ArgType.SLICE_ANY]), st.sampled_from(["lax", "strict"]), SIZES)
@example([{"a": 1}], ArgType.SLICE_MAP, "lax", SizeLimits(depth=1))
@example([{"a": 1}], ArgType.SLICE_MAP, "lax", SizeLimits(nodes=3))
@example([{"ab": "cd"}], ArgType.SLICE_MAP, "lax", SizeLimits(text=3))
def test_maps_at_once(items: list[Any], kind: ArgType, mode: Mode, sizes: SizeLimits) -> None:
    for each in (ROOMY, sizes):
        assert outcome(kind, items, mode, each, by_item=False) == outcome(kind, items, mode, each, by_item=True)


def test_copies_share_nothing_with_the_argument() -> None:
    items = [{"a": 1}, {"b": 2.5}]
    walk = CoercionPass(CoercionSettings())

    copies = walk.limited(coerce_value, ArgType.SLICE_MAP, items, ROOT)

    assert copies == items
    assert copies is not items
    assert all(copy is not item for copy, item in zip(copies, items, strict=True))


@pytest.mark.parametrize(
    ("items", "numbers"),
    [
        ([1, 2], [1, 2]),
        ([1, "2", 3.0], [1, 2, 3]),
        ([*range(CHUNK_ITEMS * 2), "5"], [*range(CHUNK_ITEMS * 2), 5]),
        ([1, ""], None),
        ([1, "+2"], None),
        ([1, 2.5], None),
        ([1, 2.0**54], None),
        ([1, 2**63], None),
        ([1, True], None),
    ],
    ids=["ints", "mixed", "long", "empty", "sign", "fraction", "lossy", "large", "bool"],
)
def test_ints_that_need_no_closer_check(items: list[Any], numbers: list[int] | None) -> None:
    found = coerce_ints_fast(items)

    assert found == numbers
    assert found is None or {*map(type, found)} == {int}


class Loud(int):
    """An int whose conversion runs code."""

    def __int__(self) -> int:
        raise AssertionError

    __index__ = __int__


class Meta(type):
    """A class of classes whose comparison runs code."""

    def __eq__(cls, other: object) -> bool:
        raise AssertionError

    __hash__ = type.__hash__


class Odd(str, metaclass=Meta):
    """A string whose class has a comparison of its own."""


@pytest.mark.parametrize("kind", [ArgType.SLICE_INT, ArgType.SLICE_MAP, ArgType.SLICE_ANY])
def test_no_code_of_the_items_runs(kind: ArgType) -> None:
    for item in (Loud(5), Odd("5"), {Odd("a"): 1}, {"a": Loud(5)}, {"a": Odd("x")}):
        outcome(kind, [1, item, "2"] * 8, "lax", ROOMY, by_item=False)


def test_a_limit_within_a_union_names_the_item() -> None:
    """The work of an alternative counts against the limits of the whole pass."""
    parts = (ArgSpec("x", "slice_int"), ArgSpec("x", "slice_any"), ArgSpec("y", "string"))
    spec = ToolSpec("t", "g", (ArgSpec("a", "any", any_of=parts),))
    found = set()
    for adapters in ((), ((Unused, repr),)):
        with pytest.raises(ArgumentError) as caught:
            bind_arguments(spec, CoercionSettings("strict", SizeLimits(nodes=3), adapters), [[{}]], by_name=False)
        assert (caught.value.code, caught.value.retry) == ("limit.nodes", "model")
        found.add(str(caught.value))
    assert found == {"g.t: a[0]: expected at most 3 values in one call, got more"}
