"""Unions: a written table of choices, and the work that a hostile value can cause."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.coercion.union_table import ROWS, UNIONS, spec_of
from tests.properties import REFUSED, outcome, same

from neuroscript import ArgSpec, CoercionError, SizeLimits, coerce


def nested(leaf: ArgSpec, levels: int) -> ArgSpec:
    """Return a union of four lists of unions, this many levels deep."""
    rule = leaf
    for _ in range(levels):
        rule = ArgSpec("x", "any", any_of=tuple(ArgSpec("x", "slice", items=rule, min_length=low) for low in range(4)))  # type: ignore[arg-type]
    return rule


LEAF = ArgSpec(
    "x", "any", any_of=("int", ArgSpec("x", "string", choices=("a",)), ArgSpec("x", "string", format="date"))
)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", UNIONS)
def test_table_of_choices(name: str) -> None:
    """Each value is the alternative that the table says, and refused where it says nothing."""
    rule = spec_of(UNIONS[name])

    for value, expected, why in ROWS:
        result = next((expected[names] for names in expected if name in names), REFUSED)
        actual = outcome(value, rule, "lax")
        assert actual is result or same(actual, result), f"{value!a} as {UNIONS[name]}: {why}"


def test_table_has_80_values_and_12_unions() -> None:
    """And a reason for each."""
    assert (len(ROWS), len(UNIONS), all(why for _, _, why in ROWS)) == (80, 12, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "leaf",
    [["b"] * 100_000, [1] * 75_000 + ["b"], ["{" * 4_000_000], ["é" * 4_000_000, "b"]],
    ids=["all wrong", "last wrong", "long text", "long text and wrong"],
)
def test_work_on_nested_unions_is_limited(leaf: Any) -> None:
    """The error is that of a call with too many values, within seconds."""
    start = time.process_time()

    with pytest.raises(CoercionError) as caught:
        coerce([[[leaf]]], nested(LEAF, 4))

    assert [problem.code for problem in caught.value.problems] == ["limit.nodes"]
    assert time.process_time() - start < 20


@pytest.mark.slow
def test_valid_values_of_nested_unions_are_not_limited() -> None:
    """Each item of an exact value is tried by its own alternative first."""
    value = [[[[1] * 75_000]]]

    assert coerce(value, nested(LEAF, 4)) == value


def test_tagged_objects_in_a_long_list_take_linear_time() -> None:
    """The choice is recorded only for objects with problems."""
    rule = ArgSpec("x", "slice", items=spec_of(UNIONS["K"]))  # type: ignore[arg-type]
    start = time.process_time()

    assert len(coerce([{"kind": "cash"}] * 30_000, rule)) == 30_000
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    ("other", "value", "expected"),
    [
        ("map_string_int", {"kind": "cash"}, {"kind": "cash"}),
        ("map_string_int", {"a": "1"}, {"a": 1}),
        ("entityid", {"id": "E_1"}, {"id": "E_1"}),
        ("any", {"kind": "cheque"}, {"kind": "cheque"}),
        ("any", {"kind": "Cash"}, {"kind": "Cash"}),
        ("entityid", {"kind": "Cash"}, {"kind": "cash"}),
    ],
)
def test_tagged_objects_beside_other_objects(other: Any, value: Any, expected: Any) -> None:
    """A discriminator does not hide alternatives that have none."""
    rule = spec_of(UNIONS["K"])

    assert coerce(value, ArgSpec("x", "any", any_of=(*rule.any_of, other))) == expected  # type: ignore[arg-type]


def test_format_is_read_within_another_alternative() -> None:
    """As it is on its own: a list of ``datetime | str`` reads dates in a union too."""
    rule = spec_of(list[int] | list[UNIONS["F"]])

    assert coerce(["2026-01-02 10:00"], rule) == ["2026-01-02T10:00:00"]


NULLABLE_TAG = ArgSpec(
    "x",
    "any",
    any_of=(
        ArgSpec("a", "map", keys=(ArgSpec("k", "int", choices=(1,)),)),
        ArgSpec("b", "map", keys=(ArgSpec("k", "int", choices=(2,), nullable=True),)),
    ),
)


@pytest.mark.parametrize(
    ("value", "expected"), [({"k": None}, {"k": None}), ({"k": "null"}, {"k": None}), ({"k": "2"}, {"k": 2})]
)
def test_a_discriminator_may_be_null(value: Any, expected: Any) -> None:
    """Then it selects nothing, and every alternative is tried."""
    assert coerce(value, NULLABLE_TAG) == expected


PAYMENT = spec_of(UNIONS["K"])
ONE_OF_BOTH = "['kind']: expected one of 'card', 'cash', got"


@pytest.mark.parametrize(
    ("rule", "value", "text"),
    [
        (PAYMENT, {"kind": "card"}, "['number']: expected string, got nothing"),
        (PAYMENT, '{"kind": "card"}', "['number']: expected string, got nothing"),
        (PAYMENT, {"kind": "cheque"}, f"{ONE_OF_BOTH} another str"),
        (PAYMENT, '{"kind": 1}', f"{ONE_OF_BOTH} another int"),
        (PAYMENT, {"number": "4"}, f"{ONE_OF_BOTH} nothing"),
        (PAYMENT, {"kind": None}, f"{ONE_OF_BOTH} nothing"),
        (NULLABLE_TAG, {"k": 3}, "['k']: expected one of 1, 2, got another int"),
        (NULLABLE_TAG, {"k": "3"}, "['k']: expected one of 1, 2, got another str"),
        (NULLABLE_TAG, {"k": 2, "x": 1}, "['x']: expected only k, got an unknown name of type int"),
        (NULLABLE_TAG, {"k": "2", "x": 1}, "['x']: expected only k, got an unknown name of type int"),
    ],
)
def test_problem_of_a_tagged_object_concerns_its_discriminator_or_the_selected_alternative(
    rule: ArgSpec, value: Any, text: str
) -> None:
    """The error never lists the alternatives that the value was not meant for."""
    with pytest.raises(CoercionError) as caught:
        coerce(value, rule)

    assert str(caught.value) == text


@pytest.mark.parametrize(("most", "where"), [(4, "['b'][0][0]"), (6, "['b'][0][1]")])
def test_text_beyond_the_limit_is_located_within_nested_unions(most: int, where: str) -> None:
    """The text before the outer union counts too: here, two keys and a value."""
    outer = spec_of(int | list[int | list[list[str]]])
    rule = ArgSpec("x", "map", keys=(ArgSpec("a", "string"), ArgSpec("b", "any", any_of=outer.any_of)))  # type: ignore[arg-type]

    with pytest.raises(CoercionError) as caught:
        coerce({"a": "a", "b": [[["12"], ["34"]]]}, rule, limits=SizeLimits(text=most))
    assert str(caught.value) == f"{where}: expected at most {most} bytes of text in one call, got more"


def test_text_beyond_the_limit_is_refused_by_the_first_alternative() -> None:
    """An alternative stops there, even if its next item does not fit."""
    rule = spec_of(list[str] | list[int])

    with pytest.raises(CoercionError) as caught:
        coerce(["ab", "cd", 1], rule, limits=SizeLimits(text=3))
    assert str(caught.value) == "[1]: expected at most 3 bytes of text in one call, got more"


def test_each_alternative_is_tried_once_in_strict_mode() -> None:
    """Only lax mode tries to repair the value, so a strict call needs half of the work."""
    rule, codes = spec_of(int | bool | str), []
    for most in (2, 3):
        with pytest.raises(CoercionError) as caught:
            coerce(1.5, rule, mode="strict", limits=SizeLimits(nodes=most))
        codes.append(caught.value.problems[0].code)

    assert codes == ["limit.nodes", "coercion.type"]


def test_a_value_that_contains_itself_has_problems_with_a_rule() -> None:
    """The limit of depth ends the pass after other problems of the only alternative."""
    keys = (ArgSpec("k0", "slice_int"), ArgSpec("k1", "any", required=False), ArgSpec("k2", "bool"))
    rule = ArgSpec("x", "any", any_of=(ArgSpec("a", "string", format="time"), ArgSpec("b", "map", keys=keys)))
    value: dict[str, Any] = {"k0": 1}
    value["k1"] = value

    with pytest.raises(CoercionError) as caught:
        coerce(value, rule)

    assert (caught.value.code, caught.value.retry) == ("arg.invalid", "model")
    assert all(each.expected and each.got for each in caught.value.problems)
