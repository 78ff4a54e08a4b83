"""The values of limits, rates and amounts: which are accepted, and how they are stored."""

from __future__ import annotations

import decimal
import enum
from decimal import Decimal
from typing import Any

import attrs
import pytest

from neuroscript import ExecutionPolicy, SpecError, ToolPolicy
from neuroscript.policy.limits import Limits, Rate, parse_amount


class Dice(enum.IntEnum):
    SIX = 6


class Loud(float):
    def __repr__(self) -> str:
        raise AssertionError("code of the value ran")


COUNTS = ("calls", "fs_bytes", "fs_entries", "net_bytes", "net_calls", "result_bytes", "items")
NO_COUNTS: list[tuple[Any, str]] = [
    (-1, "-1"),
    (1.0, "1.0"),
    (float("nan"), "nan"),
    (True, "True"),
    ("5", "5"),
    (Decimal(5), "5"),
    ([], "list"),
    (10**18, "one of more than 18 digits"),
    (10**5000, "one of more than 18 digits"),
]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(("value", "message"), NO_COUNTS, ids=[message for _, message in NO_COUNTS])
def test_a_count_is_an_integer_from_0(name: str, value: Any, message: str) -> None:
    """Nothing is rounded, and zero is a valid limit."""
    with pytest.raises(SpecError) as caught:
        Limits(**{name: value})

    assert f"limits: {name} must be a non-negative integer, not {message}" == str(caught.value)
    assert getattr(Limits(**{name: 0}), name) == 0
    assert getattr(Limits(**{name: 10**18 - 1}), name) == 10**18 - 1


@pytest.mark.parametrize("name", ["concurrency", "max_identical_calls"])
def test_concurrency_and_repetitions_are_at_least_1(name: str) -> None:
    """Zero would permit no call at all."""
    with pytest.raises(SpecError) as caught:
        Limits(**{name: 0})

    assert f"limits: {name} must be a positive integer, not 0" == str(caught.value)
    assert getattr(Limits(**{name: 1}), name) == 1


@pytest.mark.parametrize("depth", [0, 65, -1, 2.0, True, None, float("nan")])
def test_a_depth_is_1_to_64(depth: Any) -> None:
    """There is always a limit, because each level uses some of the stack."""
    with pytest.raises(SpecError, match="limits: depth must be an integer from 1 to 64, not "):
        Limits(depth=depth)


NO_AMOUNTS: list[Any] = [-1, -0.01, float("nan"), float("inf"), float("-inf"), True, "1e3", "-1", "", " 1", "1_0", ".5",
                         Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-1"), "9" * 19, 10**18, 1e18,
                         10**5000, Decimal("1E-401"), Decimal("0E+401"), "١", 1j, [], {}, None, object(), b"1"]  # fmt: skip


@pytest.mark.parametrize("value", NO_AMOUNTS, ids=lambda value: type(value).__name__)
def test_an_invalid_amount_is_refused(value: Any) -> None:
    """NaN, infinities, negative numbers, booleans and other types; nothing is repaired."""
    assert parse_amount(value) is None
    with pytest.raises(SpecError, match=r"limits: money\['EUR'\] must be a number, 0 or more, not "):
        Limits(money={"EUR": value})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1, "0.1"),
        (1e-7, "1E-7"),
        (5e-324, "5E-324"),
        (-0.0, "0.0"),
        ("2.50", "2.50"),
        (Decimal("0.10"), "0.10"),
        (Dice.SIX, "6"),
        (10**18 - 1, "9" * 18),
        ("0.000000000000000001", "1E-18"),
    ],
)
def test_an_amount_is_an_exact_decimal(value: Any, text: str) -> None:
    """Independent of the decimal context of the thread."""
    with decimal.localcontext(decimal.Context(prec=2)):
        exact = parse_amount(value)

    assert type(exact) is Decimal
    assert text == str(exact)


def test_an_amount_is_read_without_running_code_of_the_value() -> None:
    """The result is exact."""
    assert parse_amount(Loud(0.5)) == Decimal("0.5")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tool_calls": {"http.*": 1}}, "tool_calls: http.* is not the name of a tool; use rates for patterns"),
        ({"tool_calls": {"": 1}}, "tool_calls:  is not the name of a tool; use rates for patterns"),
        ({"tool_calls": {5: 1}}, "tool_calls must be a mapping with string keys, not dict"),
        ({"tool_calls": {"a.b": -1}}, "tool_calls['a.b'] must be a non-negative integer, not -1"),
        ({"tool_calls": {"a.b": float("nan")}}, "tool_calls['a.b'] must be a non-negative integer, not nan"),
        ({"tool_calls": {"a.b": 10**18}}, "tool_calls['a.b'] must be a non-negative integer, not one of more than 18 "
         "digits"),
        ({"tool_calls": 3}, "tool_calls must be a mapping with string keys, not int"),
        ({"rates": {"a/b": "1/minute"}}, "rates: a/b is not a valid pattern; use a name, or a pattern such as http.*"),
        ({"rates": {"a.b": "1/week"}}, "rates['a.b']: write calls/period, such as 60/minute; a period is second, minute, "
         "hour or day"),
        ({"rates": {"a.b": "0/minute"}}, "rates['a.b']: write calls/period, such as 60/minute; a period is second, "
         "minute, hour or day"),
        ({"rates": {"a.b": 5}}, "rates['a.b']: write calls/period, such as 60/minute; a period is second, minute, hour or "
         "day"),
        ({"rates": {"a.b": "1/minute", "Tool.A.B": "9/minute"}}, "rates['Tool.A.B'] appears twice, in different spellings"),
        ({"money": {"eur": 1}}, "money: eur is not a currency; write three capital letters, such as EUR"),
        ({"money_per_call": {"EUR": -1}}, "money_per_call['EUR'] must be a number, 0 or more, not -1"),
        ({"money": None}, "money must be a mapping with string keys, not None"),
        ({"seconds": 0}, "seconds must be a number above 0, not 0"),
        ({"seconds": float("nan")}, "seconds must be a number above 0, not nan"),
        ({"seconds": 10**400}, "seconds must be a number above 0, not one of more than 18 digits"),
        ({"sleep": -0.5}, "sleep must be a number of 0 or more, not -0.5"),
        ({"calls": -1, "depth": 0, "sleep": "x"}, "calls must be a non-negative integer, not -1; depth must be an integer "
         "from 1 to 64, not 0; sleep must be a number of 0 or more, not x"),
    ],
)  # fmt: skip
def test_invalid_limits_are_refused(settings: dict[str, Any], text: str) -> None:
    """With every problem."""
    with pytest.raises(SpecError) as caught:
        Limits(**settings)

    assert f"limits: {text}" == str(caught.value)


@pytest.mark.parametrize(
    "make",
    [lambda: Limits(5), lambda: ExecutionPolicy(("*",)), lambda: ToolPolicy(True)],
    ids=["Limits", "ExecutionPolicy", "ToolPolicy"],
)
def test_fields_are_passed_by_name(make: Any) -> None:
    """A position would not show what a number or a list permits."""
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        make()


def test_limits_are_stored_in_their_exact_form() -> None:
    """Canonical names, the lower of two limits for one tool, and decimals without float errors."""
    limits = Limits(
        tool_calls={"tool.HTTP.get": 3, "http.get": 2, "Http.GET": 5},
        rates={"Tool.HTTP.*": "60/minute"},
        money={"EUR": 0.1},
        money_per_call={"EUR": "0.10"},
        seconds=2,
        sleep=10.99,
    )

    assert limits.tool_calls == {"http.get": 2}
    assert limits.rates == {"http.*": "60/minute"}
    assert repr(limits.money["EUR"]) == "Decimal('0.1')"
    assert repr(limits.money_per_call["EUR"]) == "Decimal('0.10')"
    assert (repr(limits.seconds), repr(limits.sleep)) == ("2.0", "Decimal('10.99')")
    assert limits.patterns == ("http.get", "http.*")
    assert [*limits.rates_of("http.get")] == ["http.*"]
    assert [*limits.rates_of("httpx.get")] == []


@pytest.mark.parametrize("field", [each.name for each in attrs.fields(Limits)])
def test_limits_without_counts_are_idle(field: str) -> None:
    """Depth, seconds, result size and items apply to one call; every other limit needs a ledger."""
    some: dict[str, Any] = {
        "tool_calls": {"a.b": 1},
        "rates": {"a.b": "1/day"},
        "money": {"EUR": 1},
        "money_per_call": {"EUR": 1},
    }
    limits = Limits(**{field: some.get(field, 5)})

    assert Limits().is_idle
    assert limits.is_idle is (field in ("depth", "seconds", "result_bytes", "items"))


@pytest.mark.parametrize(("text", "rate"), [("1/second", (1, 1)), ("60/minute", (60, 60)), ("5/hour", (5, 3600)), ("999999999/day", (999999999, 86400))])  # fmt: skip
def test_a_rate_is_calls_per_period(text: str, rate: tuple[int, int]) -> None:
    """A period has four names."""
    assert Rate(*rate) == Rate.parse(text)
