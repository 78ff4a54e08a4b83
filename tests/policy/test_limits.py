"""Limits and what is counted against them: no number lies, what is refused costs nothing, what never began comes back."""

from __future__ import annotations

import decimal
import enum
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import CallError, Engine, ExecutionPolicy, Host, LimitError, Runtime, SpecError, ToolPolicy, Toolset
from neuroscript.calls.steps import CallFrame
from neuroscript.policy.ledger import Ledger, Reserved
from neuroscript.policy.limits import Limits, Rate, amount

# The limits themselves


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
@pytest.mark.parametrize(("value", "told"), NO_COUNTS, ids=[told for _, told in NO_COUNTS])
def test_a_count_is_a_whole_number_from_0(name: str, value: Any, told: str) -> None:
    """Nothing is rounded, and zero is a limit as any other."""
    with pytest.raises(SpecError) as caught:
        Limits(**{name: value})

    assert f"limits: {name} must be a non-negative integer, not {told}" == str(caught.value)
    assert getattr(Limits(**{name: 0}), name) == 0
    assert getattr(Limits(**{name: 10**18 - 1}), name) == 10**18 - 1


@pytest.mark.parametrize("name", ["concurrency", "max_identical_calls"])
def test_at_least_one_call_may_run_and_be_made_once(name: str) -> None:
    """Zero would be another way to say that nothing may be called."""
    with pytest.raises(SpecError) as caught:
        Limits(**{name: 0})

    assert f"limits: {name} must be a positive integer, not 0" == str(caught.value)
    assert getattr(Limits(**{name: 1}), name) == 1


@pytest.mark.parametrize("depth", [0, 65, -1, 2.0, True, None, float("nan")])
def test_a_depth_is_1_to_64(depth: Any) -> None:
    """There is always one, for each level takes some of the stack."""
    with pytest.raises(SpecError, match="limits: depth must be an integer from 1 to 64, not "):
        Limits(depth=depth)


NO_AMOUNTS: list[Any] = [-1, -0.01, float("nan"), float("inf"), float("-inf"), True, "1e3", "-1", "", " 1", "1_0", ".5",
                         Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-1"), "9" * 19, 10**18, 1e18,
                         10**5000, Decimal("1E-401"), Decimal("0E+401"), "١", 1j, [], {}, None, object(), b"1"]  # fmt: skip


@pytest.mark.parametrize("value", NO_AMOUNTS, ids=lambda value: type(value).__name__)
def test_what_counts_nothing_is_no_amount(value: Any) -> None:
    """NaN, infinities, what is below zero, truth values and other types; nothing raises, and nothing is repaired."""
    assert amount(value) is None
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
def test_an_amount_is_the_decimal_that_is_written(value: Any, text: str) -> None:
    """Whatever the context of the thread is."""
    with decimal.localcontext(decimal.Context(prec=2)):
        exact = amount(value)

    assert type(exact) is Decimal
    assert text == str(exact)


def test_an_amount_is_read_without_running_code_of_the_value() -> None:
    """As exact as any other."""
    assert amount(Loud(0.5)) == Decimal("0.5")


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
def test_bad_limits_can_not_be_made(settings: dict[str, Any], text: str) -> None:
    """With everything that is wrong with them."""
    with pytest.raises(SpecError) as caught:
        Limits(**settings)

    assert f"limits: {text}" == str(caught.value)


def test_limits_are_kept_in_their_exact_form() -> None:
    """Canonical names, of two spellings of one tool the lower limit; decimals without the error of a float."""
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
def test_limits_are_idle_where_nothing_has_to_be_counted(field: str) -> None:
    """Depth, seconds, the size of a result and items are of one call alone; every other limit needs a ledger."""
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
def test_a_rate_is_calls_in_a_period(text: str, rate: tuple[int, int]) -> None:
    """Four words for a period."""
    assert Rate(*rate) == Rate.parse(text)


# Calls


class Clock:
    """A host's clock that says what it is told to say."""

    def __init__(self, now: Any = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> Any:
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


def ledger_of(parent: Ledger | None = None, clock: Callable[[], Any] = time.time, **limits: Any) -> Ledger:
    return Ledger(Limits(**limits), clock, parent)


def said(run: Callable[[], Any]) -> tuple[str, str, str] | None:
    """Return the text, the code and who can mend it, of the LimitError that *run* raises."""
    try:
        run()
    except LimitError as error:
        return str(error), error.code, error.retry
    return None


def begun(ledger: Ledger, count: int, tool: str = "g.t", outermost: bool = True) -> list[bool]:
    return [said(lambda: ledger.begin(tool, outermost)) is None for _ in range(count)]


@pytest.mark.parametrize(
    ("limits", "count", "refusal"),
    [
        ({"calls": 3}, 3, ("g.t: no more than 3 calls in total are permitted", "limit.calls", "host")),
        ({"calls": 0}, 0, ("g.t: no more than 0 calls in total are permitted", "limit.calls", "host")),
        ({"tool_calls": {"tool.G.T": 2}}, 2, ("g.t: no more than 2 calls to this tool are permitted", "limit.tool", "host")),
        ({"tool_calls": {"g.t": 0}}, 0, ("g.t: no more than 0 calls to this tool are permitted", "limit.tool", "host")),
        ({"concurrency": 2}, 2, ("g.t: no more than 2 calls may run at once; try again when one has ended",
                                 "limit.concurrency", "later")),
        ({"rates": {"g.*": "2/minute"}}, 2, ("g.t: no more than 2 calls in 60 seconds are permitted; try again in 60 seconds",
                                             "limit.rate", "later")),
        ({"rates": {"*": "1/second"}}, 1, ("g.t: no more than 1 calls in 1 second are permitted; try again in 1 second",
                                           "limit.rate", "later")),
    ],
)  # fmt: skip
def test_a_call_beyond_a_limit_is_refused(limits: dict[str, Any], count: int, refusal: Any) -> None:
    """The text names the limit; `peek` says the same before, and nothing is counted by either."""
    ledger = ledger_of(clock=Clock(), **limits)

    assert begun(ledger, count) == [True] * count
    before = dict(ledger.spent)
    for _ in range(3):
        peeked = ledger.peek("g.t")
        assert peeked is not None
        assert refusal == (str(peeked), peeked.code, peeked.retry) == said(lambda: ledger.begin("g.t", True))
    assert before == dict(ledger.spent)


def test_other_tools_go_on_where_one_has_used_its_calls() -> None:
    """A limit on tools that a call does not concern is not asked."""
    ledger = ledger_of(tool_calls={"g.t": 1}, rates={"http.*": "1/day"})

    assert begun(ledger, 2) == [True, False]
    assert begun(ledger, 5, "g.other") == [True] * 5
    assert begun(ledger, 2, "http.get") == [True, False]
    assert begun(ledger, 1, "http.put") == [False]
    assert ledger.spent == {"calls of g.t": 1}
    assert [ledger.concerns(tool, True) for tool in ("g.t", "http.get", "g.other")] == [True, True, False]


def test_only_calls_from_outside_count_as_concurrent_and_as_repeated() -> None:
    """A nested call has its outermost one's place already; a tool may call another as often as it has to."""
    ledger = ledger_of(concurrency=1, max_identical_calls=1)

    assert begun(ledger, 3, outermost=False) == [True] * 3
    assert [said(lambda: ledger.begin("g.t", False, b"x")) for _ in range(3)] == [None] * 3
    assert begun(ledger, 2) == [True, False]
    assert ledger.concerns("g.t", True) and not ledger.concerns("g.t", False)
    ledger.end(False)
    assert begun(ledger, 1) == [False]
    ledger.end(True)
    assert begun(ledger, 1) == [True]


def test_counts_add_up_in_the_session_and_in_all_above_it() -> None:
    """A child is refused by its own limits and by those of its parent; its parent's own calls count there alone."""
    top = ledger_of(calls=5)
    first, second = ledger_of(top, calls=3), Ledger(None, time.time, top)
    inner = ledger_of(first, tool_calls={"g.t": 2})

    assert begun(inner, 3) == [True, True, False]
    assert begun(first, 3) == [True, False, False]
    assert begun(second, 3) == [True, True, False]
    assert [dict(each.spent) for each in (top, first, second, inner)] == [
        {"calls": 5},
        {"calls": 3},
        {},
        {"calls of g.t": 2},
    ]


def test_a_call_that_one_count_refuses_is_counted_by_none() -> None:
    """All or nothing, over the whole chain."""
    clock = Clock()
    top = ledger_of(clock=clock, rates={"*": "2/minute"}, calls=9)
    child = ledger_of(top, clock=clock, calls=9, tool_calls={"g.t": 9}, concurrency=9, max_identical_calls=9)

    for _ in range(2):
        child.begin("g.t", True, b"same")
    before = [dict(top.spent), dict(child.spent)]
    for _ in range(20):
        assert said(lambda: child.begin("g.t", True, b"same")) is not None
    clock.now += 60

    assert (
        before
        == [dict(top.spent), dict(child.spent)]
        == [{"calls": 2}, {"calls": 2, "calls of g.t": 2, "concurrency": 2}]
    )
    assert said(lambda: child.begin("g.t", True, b"same")) is None


@pytest.mark.parametrize(
    ("limits", "parent", "idle"),
    [
        (None, None, True),
        (Limits(depth=3, seconds=1, result_bytes=5), None, True),
        (Limits(calls=1), None, False),
        (None, Limits(), True),
        (None, Limits(max_identical_calls=3), False),
        (Limits(sleep=0), Limits(), False),
    ],
)
def test_a_ledger_is_idle_where_neither_it_nor_its_parent_counts(limits: Any, parent: Any, idle: bool) -> None:
    """Then the line need not ask it at all."""
    above = None if parent is None else Ledger(parent, time.time)
    ledger = Ledger(limits, time.time, above)

    assert ledger.is_idle is idle
    assert ledger.compares is (parent == Limits(max_identical_calls=3))


# Rates


def test_a_rate_holds_in_every_stretch_of_time() -> None:
    """Calls at the end of one minute count at the start of the next; the text says when there can be another."""
    clock = Clock(100.0)
    ledger = ledger_of(clock=clock, rates={"*": "3/minute"})
    moments = {0: True, 50: True, 59.5: True, 59.9: False, 60: True, 61: False, 109.9: False, 110: True, 119.4: False,
               119.5: True, 119.6: False, 170: True}  # fmt: skip

    for moment, permitted in moments.items():
        clock.now = 100.0 + moment
        assert begun(ledger, 1) == [permitted], moment
    refused = said(lambda: [ledger.begin("g.t", True) for _ in range(9)])
    assert refused is not None
    assert refused[0] == "g.t: no more than 3 calls in 60 seconds are permitted; try again in 10 seconds"


@given(st.lists(st.floats(0, 200), min_size=1, max_size=60), st.integers(1, 5))
def test_no_stretch_of_a_period_has_more_calls_than_its_rate(times: list[float], most: int) -> None:
    """Whenever the calls come; and none is refused that fits."""
    clock = Clock()
    ledger = ledger_of(clock=clock, rates={"*": f"{most}/minute"})
    accepted: list[float] = []
    for now in sorted(times):
        clock.now = now
        fits = sum(now - each < 60 for each in accepted) < most
        assert begun(ledger, 1) == [fits]
        if fits:
            accepted.append(now)


NO_TIMES: dict[str, Any] = {
    "it raises": RuntimeError("secret"),
    "NaN": float("nan"),
    "infinite": float("-inf"),
    "none": None,
    "a text": "12",
    "a truth value": True,
    "too large for a float": 10**400,
    "complex": 1j,
}


@pytest.mark.parametrize("fault", NO_TIMES.values(), ids=NO_TIMES)
def test_a_clock_that_tells_no_time_refuses_what_is_limited_by_it(fault: Any) -> None:
    """And nothing else; nothing is counted, and nothing of what it raised is told."""
    clock = Clock()
    ledger = ledger_of(clock=clock, rates={"g.*": "5/minute"}, calls=9)
    begun(ledger, 1)
    clock.now = fault

    text = "g.t: the host's clock returned no valid time, so the rate limit of this tool cannot be checked"
    assert (text, "limit.clock", "host") == said(lambda: ledger.begin("g.t", True))
    assert text == str(ledger.peek("g.t"))
    assert begun(ledger, 1, "other.t") == [True]
    assert ledger.spent == {"calls": 2}


def test_a_clock_that_goes_back_refuses_until_it_is_where_it_was() -> None:
    """So that nobody wins a minute by it."""
    clock = Clock(1000.0)
    ledger = ledger_of(clock=clock, rates={"*": "3/minute"})
    assert begun(ledger, 2) == [True, True]

    clock.now = 400.0
    text = "g.t: the host's clock went backwards, so the rate limit of this tool cannot be checked"
    assert (text, "limit.clock", "later") == said(lambda: ledger.begin("g.t", True))
    clock.now = 999.5
    assert begun(ledger, 2) == [True, False]
    clock.now = 1059.9
    assert begun(ledger, 1) == [False]
    clock.now = 1060.0
    assert begun(ledger, 4) == [True, True, True, False]


def test_a_clock_that_is_a_little_behind_counts_as_where_it_was() -> None:
    """Threads read it before they have the lock, so one may come with an earlier moment than the last."""
    clock = Clock(1000.0)
    ledger = ledger_of(clock=clock, rates={"*": "2/minute"})
    first = ledger.begin("g.t", True)
    clock.now = 999.5
    ledger.begin("g.t", True)
    ledger.refund("g.t", True, first)

    clock.now = 1059.6
    assert begun(ledger, 2) == [True, False]


def test_a_clock_may_use_the_ledger_that_asks_it() -> None:
    """It is the host's code, so no lock is held while it runs."""
    ledgers: list[Ledger] = []

    def clock() -> float:
        if ledgers:
            assert ledgers[0].spent is not None
        return 5.0

    ledgers.append(ledger_of(clock=clock, rates={"*": "2/minute"}))

    assert begun(ledgers[0], 3) == [True, True, False]


# The same call in a row


def test_the_same_call_in_a_row_is_noticed() -> None:
    """As often as is permitted, then refused until another comes; the text says how often."""
    ledger = ledger_of(max_identical_calls=3)
    assert ledger.compares
    for _ in range(3):
        ledger.begin("g.t", True, b"a")

    text = "g.t: the same call was made 3 times in a row; change the arguments, or do something else"
    for _ in range(2):
        assert (text, "limit.identical_calls", "model") == said(lambda: ledger.begin("g.t", True, b"a"))
    for tool, digest in [("g.t", b"b"), ("g.t", b"a"), ("g.u", b"a"), ("g.t", b"a"), ("g.t", None), ("g.t", b"a")]:
        ledger.begin(tool, True, digest)
    assert [said(lambda: ledger.begin("g.t", True, b"a")) is None for _ in range(3)] == [True, True, False]


def test_a_call_without_a_digest_is_like_no_other() -> None:
    """Where nobody can tell whether it is the same, it is not refused for that."""
    assert begun(ledger_of(max_identical_calls=1), 5) == [True] * 5


def test_a_call_that_never_began_breaks_no_row() -> None:
    """Else a model would be free to go on by asking in between for what is refused anyway."""
    ledger = ledger_of(max_identical_calls=2)
    ledger.begin("g.t", True, b"a")
    ledger.begin("g.t", True, b"a")
    token = ledger.begin("g.u", True, b"b")
    ledger.refund("g.u", True, token)

    assert said(lambda: ledger.begin("g.t", True, b"a")) is not None
    token = ledger.begin("g.u", True, b"b")
    ledger.begin("g.v", True, b"c")
    ledger.refund("g.u", True, token)
    assert said(lambda: ledger.begin("g.t", True, b"a")) is None


# What never began


def test_what_never_began_is_given_back() -> None:
    """In every count, of the session and of all above it."""
    clock = Clock()
    top = ledger_of(clock=clock, calls=1, rates={"*": "1/day"})
    ledger = ledger_of(
        top, clock=clock, tool_calls={"g.t": 1}, concurrency=1, max_identical_calls=1, rates={"g.*": "1/day"}
    )

    for _ in range(50):
        ledger.refund("g.t", True, ledger.begin("g.t", True, b"a"))
    assert set(top.spent.values()) == set(ledger.spent.values()) == {0}
    assert said(lambda: ledger.begin("g.t", True, b"a")) is None
    assert said(lambda: ledger.begin("g.t", True, b"b")) is not None


def test_a_rate_gives_back_the_very_call_that_never_began() -> None:
    """Another one's moment would let one call too many into some stretch of time."""
    clock = Clock(0.0)
    ledger = ledger_of(clock=clock, rates={"*": "2/minute"})
    first = ledger.begin("g.t", True)
    clock.now = 30.0
    ledger.begin("g.t", True)
    ledger.refund("g.t", True, first)

    clock.now = 61.0
    assert begun(ledger, 2) == [True, False]
    clock.now = 90.0
    late = ledger.begin("g.t", True)
    clock.now = 200.0
    assert begun(ledger, 2) == [True, True]
    ledger.refund("g.t", True, late)
    assert begun(ledger, 1) == [False]


def test_a_refund_that_does_not_say_which_call_gives_back_no_moment() -> None:
    """Counts come back; what is exact about a rate or a row stays as it is."""
    ledger = ledger_of(clock=Clock(), rates={"*": "1/day"}, calls=1)
    ledger.begin("g.t", True)
    ledger.refund("g.t", True)

    assert ledger.spent == {"calls": 0}
    refused = ledger.peek("g.t")
    assert refused is not None
    assert (refused.code, refused.retry) == ("limit.rate", "later")


def test_nobody_has_credit() -> None:
    """What is given back or ended without having begun makes no room."""
    ledger = ledger_of(calls=1, concurrency=1)
    ledger.refund("g.t", True)
    ledger.end(True)

    assert ledger.spent == {"calls": 0, "concurrency": 0}
    assert begun(ledger, 2) == [True, False]


def test_after_all_is_given_back_nothing_is_left(full_counts: bool) -> None:
    """100,000 random operations on three ledgers, begun and spent, some refused; at the end all that is open goes back."""
    source, clock = random.Random(17), Clock(0.0)
    top = ledger_of(clock=clock, calls=60, fs_bytes=5_000, money={"EUR": "0.7"}, rates={"*": "40/minute"})
    ledgers = [
        top,
        ledger_of(top, clock=clock, concurrency=20, sleep="3.3"),
        ledger_of(top, clock=clock, max_identical_calls=4),
    ]
    calls: list[tuple[Ledger, str, bool, Any]] = []
    spendings: list[Reserved] = []
    tallies: list[dict[str, Any]] = [{}, {}]
    refused = 0
    for _ in range(100_000):
        ledger, tool = source.choice(ledgers), source.choice(["a.a", "b.b"])
        clock.now += source.random()
        match source.randrange(4):
            case 0:
                outermost = source.random() < 0.5
                try:
                    token = ledger.begin(tool, outermost, source.choice([b"x", b"y"]))
                except LimitError:
                    refused += 1
                else:
                    calls.append((ledger, tool, outermost, token))
            case 1:
                what, most = source.choice([("fs_bytes", 900), ("EUR", 0.3), ("sleep", 1.1)])
                took = source.randrange(most) if type(most) is int else round(source.uniform(0, most), 4)
                try:
                    spendings.append(ledger.spend(what, took, tool, tallies))
                except LimitError:
                    refused += 1
            case 2 if calls:
                ledger, tool, outermost, token = calls.pop(source.randrange(len(calls)))
                ledger.refund(tool, outermost, token)
            case 3 if spendings:
                spendings.pop(source.randrange(len(spendings))).settle(0)
    for ledger, tool, outermost, token in calls:
        ledger.refund(tool, outermost, token)
    for reserved in spendings:
        reserved.settle(0)

    assert refused > 1_000
    assert {value for ledger in ledgers for value in ledger.spent.values()} == {0}
    assert {value for tally in tallies for value in tally.values()} == {0}
    assert begun(top, 41) == [True] * 40 + [False]


# What calls spend


@pytest.mark.parametrize(
    ("limits", "what", "amounts", "text"),
    [
        ({"fs_bytes": 512}, "fs_bytes", (256, 256, 1), "no more than 512 bytes of file data are permitted"),
        ({"fs_entries": 3}, "fs_entries", (2, 1, 1), "no more than 3 directory entries are permitted"),
        ({"net_bytes": 10}, "net_bytes", (0, 10, 1), "no more than 10 bytes over the network are permitted"),
        ({"net_calls": 2}, "net_calls", (1, 1, 1), "no more than 2 network requests are permitted"),
        ({"sleep": 10}, "sleep", (5, 4.99, "0.02"), "no more than 10 seconds of sleep are permitted"),
        ({"sleep": 10}, "sleep", (0, 0, 10.99), "no more than 10 seconds of sleep are permitted"),
        ({"money": {"EUR": "0.30"}}, "EUR", (0.1, "0.2", 0.01), "no more than 0.30 EUR are permitted"),
        ({"money": {"EUR": Decimal("1E+2")}}, "EUR", (99, 1, 1e-9), "no more than 100 EUR are permitted"),
        ({"money_per_call": {"EUR": "0.5"}}, "EUR", (0.25, 0.25, 0.1), "no more than 0.5 EUR are permitted in one call"),
    ],
)  # fmt: skip
def test_what_is_spent_beyond_a_limit_is_refused_and_costs_nothing(
    limits: dict[str, Any], what: str, amounts: Any, text: str
) -> None:
    """To the last byte and the last cent; the text names the limit, and nothing that was spent."""
    ledger, tally = ledger_of(**limits), {}
    first, second, third = amounts
    ledger.spend(what, first, "g.t", [tally])
    ledger.spend(what, second, "g.t", [tally])
    before = [dict(ledger.spent), dict(tally)]

    code = "limit.money" if what == "EUR" else f"limit.{what}"
    assert (f"g.t: {text}", code, "host") == said(lambda: ledger.spend(what, third, "g.t", [tally]))
    assert before == [dict(ledger.spent), dict(tally)]
    ledger.spend(what, 0, "g.t", [tally])


def test_a_thousand_times_a_tenth_of_a_cent_is_one() -> None:
    """Exactly, whatever the decimal context of the thread is."""
    ledger, tally = ledger_of(money={"EUR": "13.344"}), {}
    with decimal.localcontext(decimal.Context(prec=1)):
        for _ in range(1_000):
            ledger.spend("EUR", 12.345, "g.t", [tally]).settle(0.001)

    assert ledger.spent["EUR"] == tally["EUR"] == Decimal("1.000")
    ledger.spend("EUR", "12.344", "g.t")
    assert said(lambda: ledger.spend("EUR", 5e-324, "g.t")) is not None


def test_the_smallest_and_the_largest_are_added_without_loss() -> None:
    """A float of 324 places and a number of 18 digits."""
    ledger = ledger_of(money={"EUR": 10**18 - 1})
    ledger.spend("EUR", 10**18 - 2, "g.t")
    small = ledger.spend("EUR", 5e-324, "g.t")

    assert ledger.spent["EUR"] != 10**18 - 2
    small.settle(0)
    assert ledger.spent["EUR"] == 10**18 - 2


def test_what_was_reserved_is_settled_by_what_was_taken() -> None:
    """Less gives back; more is counted, above the limit too, and refuses what comes after, even nothing."""
    top, tallies = ledger_of(fs_bytes=100), [{}, {}]
    ledger = ledger_of(top, fs_bytes=1_000)

    ledger.spend("fs_bytes", 80, "g.t", tallies).settle(30)
    assert (top.spent["fs_bytes"], ledger.spent["fs_bytes"], tallies) == (30, 30, [{"fs_bytes": 30}] * 2)
    more = ledger.spend("fs_bytes", 50, "g.t", tallies)
    more.settle(500)
    assert (top.spent["fs_bytes"], ledger.spent["fs_bytes"], tallies) == (530, 530, [{"fs_bytes": 530}] * 2)
    for count in (1, 0):
        refused = said(lambda: ledger.spend("fs_bytes", count, "g.t"))
        assert refused == ("g.t: no more than 100 bytes of file data are permitted", "limit.fs_bytes", "host")


def test_what_was_taken_is_said_once() -> None:
    """A second settlement is refused and changes nothing; one that was no number leaves the first to be made."""
    ledger = ledger_of(sleep=10)
    reserved = ledger.spend("sleep", 5, "g.t")

    assert said(lambda: reserved.settle(float("nan"))) == (
        "g.t: spend: expected a number of seconds of sleep, 0 or more, got float",
        "limit.amount",
        "never",
    )
    reserved.settle("1.5")
    for taken in (0, "1.5"):
        assert said(lambda: reserved.settle(taken)) == (
            "g.t: spend: settle() can be called only once",
            "limit.amount",
            "never",
        )
    assert ledger.spent == {"sleep": Decimal("1.5")}


WORDS = "fs_bytes, fs_entries, net_bytes, net_calls, sleep"


@pytest.mark.parametrize(
    ("what", "amount", "text"),
    [
        ("fs_bytes", 1.0, "a whole number of bytes of file data, 0 or more, got float"),
        ("fs_bytes", -1, "a whole number of bytes of file data, 0 or more, got int"),
        ("fs_bytes", True, "a whole number of bytes of file data, 0 or more, got bool"),
        ("net_calls", "1", "a whole number of network requests, 0 or more, got str"),
        ("net_bytes", 10**18, "a whole number of bytes over the network, 0 or more, got int"),
        ("fs_entries", Decimal(1), "a whole number of directory entries, 0 or more, got Decimal"),
        ("sleep", float("nan"), "a number of seconds of sleep, 0 or more, got float"),
        ("EUR", -100, "a number of EUR, 0 or more, got int"),
        ("EUR", "1e3", "a number of EUR, 0 or more, got str"),
        ("EUR", None, "a number of EUR, 0 or more, got None"),
        ("eur", 1, f"one of {WORDS}, or a currency such as EUR, got another string"),
        ("calls", 1, f"one of {WORDS}, or a currency such as EUR, got another string"),
        ("calls of g.t", 1, f"one of {WORDS}, or a currency such as EUR, got another string"),
        (None, 1, f"one of {WORDS}, or a currency such as EUR, got another string"),
    ],
)
def test_what_is_no_amount_is_refused(what: Any, amount: Any, text: str) -> None:
    """A negative one would be credit; also where nothing is limited."""
    for ledger in (ledger_of(fs_bytes=9, money={"EUR": 9}, calls=9), Ledger(None, time.time)):
        before, tally = dict(ledger.spent), {}
        expected = (f"g.t: spend: expected {text}", "limit.amount", "never")

        assert expected == said(lambda: ledger.spend(what, amount, "g.t", [tally]))
        assert (dict(ledger.spent), tally) == (before, {})


def test_the_money_of_a_call_is_that_of_its_outermost_call() -> None:
    """With everything within; each call has its own, and the lowest limit of the chain counts."""
    top = ledger_of(money_per_call={"EUR": 5, "USD": 1})
    ledger = ledger_of(top, money_per_call={"EUR": 9})
    inner, outer, next_one = {}, {}, {}

    ledger.spend("EUR", 3, "g.inner", [inner, outer])
    ledger.spend("EUR", 2, "g.outer", [outer])
    assert said(lambda: ledger.spend("EUR", "0.01", "g.inner", [{}, outer])) is not None
    assert said(lambda: ledger.spend("USD", 2, "g.inner", [])) is not None
    ledger.spend("EUR", 5, "g.outer", [next_one])

    assert (inner, outer, next_one) == ({"EUR": 3}, {"EUR": 5}, {"EUR": 5})


def test_a_snapshot_of_what_was_spent_can_not_be_changed() -> None:
    """And does not change."""
    ledger = ledger_of(calls=3, tool_calls={"math.add": 2}, fs_bytes=9, money={"EUR": 1}, concurrency=2)
    before = ledger.spent
    ledger.begin("math.add", True)
    ledger.spend("EUR", "0.5", "math.add")
    ledger.spend("fs_bytes", 7, "math.add")

    with pytest.raises(TypeError):
        before["calls"] = 0  # type: ignore[index]
    assert set(before.values()) == {0}
    assert ledger.spent == {"calls": 1, "calls of math.add": 1, "fs_bytes": 7, "EUR": Decimal("0.5"), "concurrency": 1}
    assert {type(value) for value in ledger.spent.values()} == {int, Decimal}


# Laws

limits_of = st.fixed_dictionaries(
    {},
    optional={
        "calls": st.integers(0, 12),
        "tool_calls": st.dictionaries(st.sampled_from(["a.a", "b.b"]), st.integers(0, 6)),
        "rates": st.dictionaries(st.sampled_from(["a.*", "*"]), st.integers(1, 6).map("{}/minute".format)),
        "concurrency": st.integers(1, 4),
        "max_identical_calls": st.integers(1, 4),
        "fs_bytes": st.integers(0, 60),
        "net_calls": st.integers(0, 5),
        "sleep": st.decimals(0, 3, places=2),
        "money": st.fixed_dictionaries({"EUR": st.decimals(0, 3, places=2)}),
        "money_per_call": st.fixed_dictionaries({"EUR": st.decimals(0, 1, places=2)}),
    },
)

steps_of = st.lists(
    st.tuples(
        st.just("begin"), st.sampled_from(["a.a", "b.b", "c.c"]), st.booleans(), st.sampled_from([b"x", b"y", None])
    )
    | st.tuples(st.just("end"), st.booleans())
    | st.tuples(st.just("wait"), st.integers(0, 50))
    | st.tuples(st.just("spend"), st.just("fs_bytes") | st.just("net_calls"), st.integers(0, 20))
    | st.tuples(st.just("spend"), st.just("EUR") | st.just("sleep"), st.decimals(0, 1, places=3)),
    max_size=60,
)


def lowered(settings: Mapping[str, Any], draw: Callable[[Any], Any]) -> dict[str, Any]:
    """Return limits that are at most as high, with some more."""
    lower = {**draw(limits_of), **settings}
    for name, high in settings.items():
        match high:
            case dict():
                lower[name] = {key: _lower(value, draw) for key, value in high.items()}
            case _:
                lower[name] = max(_lower(high, draw), int(name in ("concurrency", "max_identical_calls")))
    return lower


def _lower(high: Any, draw: Callable[[Any], Any]) -> Any:
    match high:
        case str():
            return f"{draw(st.integers(1, int(high.partition('/')[0])))}/minute"
        case Decimal():
            return draw(st.decimals(0, high, places=2))
        case _:
            return draw(st.integers(0, high))


def done(ledger: Ledger, clock: Clock, tally: dict[str, Any], step: tuple[Any, ...]) -> bool:
    """Take a step, and tell whether it was accepted."""
    match step:
        case "begin", tool, outermost, digest:
            return said(lambda: ledger.begin(tool, outermost, digest)) is None
        case "end", outermost:
            ledger.end(outermost)
        case "wait", seconds:
            clock.now += seconds
        case "spend", what, amount:
            return said(lambda: ledger.spend(what, amount, "g.t", [tally])) is None
    return True


@given(limits_of, steps_of, st.data())
def test_a_lower_limit_never_accepts_more(settings: dict[str, Any], steps: list[Any], data: Any) -> None:
    """Whatever has been accepted so far, what a lower limit accepts next the higher one accepts too."""
    clocks, tallies = (Clock(0.0), Clock(0.0)), ({}, {})
    high = ledger_of(clock=clocks[0], **settings)
    low = ledger_of(clock=clocks[1], **lowered(settings, data.draw))
    for step in steps:
        if done(low, clocks[1], tallies[1], step):
            assert done(high, clocks[0], tallies[0], step), step


@given(limits_of, limits_of, steps_of)
def test_a_child_accepts_what_it_and_its_parent_accept(
    own: dict[str, Any], above: dict[str, Any], steps: list[Any]
) -> None:
    """No more and no less than the two of them alone, given the same calls."""
    clock, tallies = Clock(0.0), ({}, {}, {})
    parent = ledger_of(clock=clock, **above)
    child = ledger_of(parent, clock=clock, **own)
    still = Clock(0.0)
    alone = [ledger_of(clock=still, **own), ledger_of(clock=still, **above)]
    for step in steps:
        if step[0] == "wait":
            still.now += step[1]
        peeked = [accepts(ledger, tallies[index], step) for index, ledger in enumerate(alone)]
        assert done(child, clock, tallies[2], step) is all(peeked)
        if all(peeked):
            for index, ledger in enumerate(alone):
                done(ledger, Clock(), tallies[index], step)


def accepts(ledger: Ledger, tally: dict[str, Any], step: tuple[Any, ...]) -> bool:
    """Tell whether a step would be accepted; what it takes is given back."""
    match step:
        case "begin", tool, outermost, digest:
            try:
                token = ledger.begin(tool, outermost, digest)
            except LimitError:
                return False
            ledger.refund(tool, outermost, token)
        case "spend", what, amount:
            try:
                ledger.spend(what, amount, "g.t", [tally]).settle(0)
            except LimitError:
                return False
    return True


@given(
    limits_of,
    st.lists(st.tuples(st.sampled_from(["fs_bytes", "net_calls"]), st.integers(0, 20), st.none() | st.integers(0, 30))),
)
def test_counters_are_the_sum_of_what_was_accepted_and_settled(settings: dict[str, Any], spent: list[Any]) -> None:
    """In the session, above it and in the tallies alike; and the limit is passed by what was settled higher alone."""
    top = ledger_of(**settings)
    ledger, tally = ledger_of(top, fs_bytes=10**6, net_calls=10**6), {}
    sums, over = {"fs_bytes": 0, "net_calls": 0}, False
    for what, count, taken in spent:
        try:
            reserved = ledger.spend(what, count, "g.t", [tally])
        except LimitError:
            continue
        sums[what] += count
        if taken is not None:
            reserved.settle(taken)
            sums[what] += taken - count
            over = over or taken > count

    assert sums == dict(ledger.spent) == {"fs_bytes": 0, "net_calls": 0, **tally}
    for what, count in sums.items():
        assert top.spent.get(what, count) == count
        assert over or count <= settings.get(what, count)


# Through an engine

meter = Toolset("meter")


@meter.tool()
def spend(rt: Runtime, what: str, amount: float, taken: float = -1) -> None:
    """Spend something, and settle it."""
    reserved = rt.spend(what, int(amount) if "_" in what else amount)
    if taken >= 0:
        reserved.settle(taken)


@meter.tool()
def nested(rt: Runtime, what: str, amount: float) -> None:
    """Spend something, and have another tool spend as much."""
    rt.spend(what, amount)
    rt.call_tool("meter.spend", [what, amount])


@meter.tool(policy=ToolPolicy(capabilities=("fs:read:**", "fs:write:**"), effects=("reads", "writes")))
def files(rt: Runtime, how: str) -> int:
    """Use files in one of many ways, and tell how much came of it."""
    match how:
        case "read":
            return len(rt.fs.read_bytes("f"))
        case "open":
            with rt.fs.open("f") as file:
                return len(file.read(10))
        case "write":
            rt.fs.write_text("g", "x" * 100)
            return 100
        case "list":
            return len(rt.fs.list("d"))
        case _:
            return len(rt.fs.walk())


kept: list[Runtime] = []


@meter.tool()
def keep(rt: Runtime) -> None:
    """Keep what is not for keeping."""
    kept.append(rt)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "d").mkdir()
    for each in range(4):
        (tmp_path / "d" / str(each)).write_text("")
    (tmp_path / "f").write_text("x" * 100)
    policy = ExecutionPolicy(grants=["fs:read:**", "fs:write:**"])
    with Engine(toolsets=[meter], plugins="none", policy=policy, host=Host(sandbox_dir=tmp_path)) as engine:
        yield engine


def test_a_tool_spends_through_its_runtime(engine: Engine) -> None:
    """The limits of its session hold, and the refusal leaves the line as it is."""
    engine.ledger = ledger_of(money={"EUR": "0.5"})
    engine.call("meter.spend", ["EUR", 0.4, 0.1])
    engine.call("meter.spend", ["EUR", 0.4])

    assert engine.ledger.spent == {"EUR": Decimal("0.5")}
    assert said(lambda: engine.call("meter.spend", ["EUR", 0.1])) == (
        "meter.spend: no more than 0.5 EUR are permitted",
        "limit.money",
        "host",
    )


def test_what_a_call_within_spends_is_spent_by_those_around_it(engine: Engine) -> None:
    """Frames that keep a tally are told, and the outermost of them has it all; those without one are left out."""
    session = engine.session()
    session.ledger = ledger_of(sleep=10)
    outer = CallFrame(session, "g.outer", spent={})
    middle = CallFrame(session, "g.middle", 2, outer)
    inner = CallFrame(session, "g.inner", 3, middle, spent={}).started(5.0)

    session._spend(outer, "sleep", 1)
    session._spend(middle, "sleep", 2)
    session._spend(inner, "sleep", "0.5")

    assert (outer.spent, middle.spent, inner.spent) == ({"sleep": Decimal("3.5")}, None, {"sleep": Decimal("0.5")})
    assert session.ledger.spent == {"sleep": Decimal("3.5")}


def test_a_refusal_of_a_call_within_passes_the_one_around_it(engine: Engine) -> None:
    """And names the tool that was refused."""
    engine.ledger = ledger_of(money={"EUR": 3})

    assert said(lambda: engine.call("meter.nested", ["EUR", 2])) == (
        "meter.spend: no more than 3 EUR are permitted",
        "limit.money",
        "host",
    )
    assert engine.ledger.spent == {"EUR": 2}


@pytest.mark.parametrize(
    ("how", "spent"),
    [
        ("read", {"fs_bytes": 100, "fs_entries": 0}),
        ("open", {"fs_bytes": 100, "fs_entries": 0}),
        ("write", {"fs_bytes": 100, "fs_entries": 0}),
        ("list", {"fs_bytes": 0, "fs_entries": 4}),
        ("walk", {"fs_bytes": 0, "fs_entries": 6}),
    ],
)
def test_what_goes_through_the_files_is_counted(engine: Engine, how: str, spent: dict[str, int]) -> None:
    """To the last byte and name that was looked at; one fewer is refused, and nothing is left of a write."""
    engine.ledger = ledger_of(fs_bytes=10**9, fs_entries=10**9)
    engine.call("meter.files", [how])
    assert spent == engine.ledger.spent

    engine.ledger = ledger_of(**spent)
    engine.call("meter.files", [how])
    engine.ledger = ledger_of(**{name: max(0, count - 1) for name, count in spent.items()})
    what = max(spent, key=lambda name: spent[name])
    refused = said(lambda: engine.call("meter.files", [how]))
    assert refused is not None
    assert refused[1] == f"limit.{what}"
    assert refused[0].startswith("meter.files: no more than ")


def test_where_nothing_is_limited_amounts_are_checked_all_the_same(engine: Engine) -> None:
    """A mistake of a tool's author is not left to be found by the first host that has limits."""
    assert engine.ledger is None
    engine.call("meter.spend", ["EUR", 0.4, 0.1])
    assert engine.call("meter.files", ["read"]) == 100

    assert said(lambda: engine.call("meter.spend", ["eur", 1])) is not None
    assert said(lambda: engine.call("meter.spend", ["EUR", -1])) == (
        "meter.spend: spend: expected a number of EUR, 0 or more, got float",
        "limit.amount",
        "never",
    )


def test_nothing_is_spent_after_the_call(engine: Engine) -> None:
    """Its Runtime has ended with it."""
    engine.ledger = ledger_of(sleep=1)
    engine.call("meter.keep")

    with pytest.raises(CallError) as caught:
        kept[-1].spend("sleep", 1)
    assert (caught.value.code, caught.value.retry) == ("runtime.closed", "never")
    assert engine.ledger.spent == {"sleep": 0}


@pytest.fixture
def standard() -> Iterator[Engine]:
    with Engine(plugins=["neuroscript-std"]) as engine:
        yield engine


@pytest.mark.alone
def test_a_sleep_is_spent_before_it_begins(standard: Engine) -> None:
    """One that is too long does not begin; upstream lets 10.99 pass a limit of 10."""
    standard.ledger = ledger_of(sleep=10)
    started = time.monotonic()

    assert said(lambda: standard.call("time.sleep", [10.99])) == (
        "time.sleep: no more than 10 seconds of sleep are permitted",
        "limit.sleep",
        "host",
    )
    assert time.monotonic() - started < 1
    assert standard.ledger.spent == {"sleep": 0}


def test_sleeps_fill_their_limit_to_the_end(standard: Engine) -> None:
    """By how much the system overslept is not counted."""
    standard.ledger = ledger_of(sleep="0.03")
    for _ in range(3):
        standard.call("time.sleep", [0.01])

    assert standard.ledger.spent == {"sleep": Decimal("0.03")}
    assert said(lambda: standard.call("time.sleep", ["0.01"])) is not None


def test_a_sleep_that_ends_early_costs_what_it_slept(standard: Engine) -> None:
    """What was reserved of the hour comes back."""
    session = standard.session()
    session.ledger = ledger_of(sleep=4_000)
    failures: list[tuple[str, str]] = []

    def sleep() -> None:
        try:
            session.call("time.sleep", [3_600])
        except CallError as error:
            failures.append((error.code, error.retry))

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    while session.ledger.spent["sleep"] != 3_600:
        time.sleep(0.001)
    session.close()
    sleeper.join()

    assert failures == [("time.cancelled", "later")]
    assert 0 < session.ledger.spent["sleep"] < 60


def test_nothing_loads_the_ledger_where_nothing_is_limited(tmp_path: Path) -> None:
    """A call, and files too, do without it and without decimals."""
    code = """
import sys
from neuroscript import ArgSpec, Engine, ExecutionPolicy, Host, ToolPolicy, ToolSpec, Toolset
tools = Toolset("g")
policy = ToolPolicy(capabilities=("fs:read:**", "fs:write:**"))
tools.add(ToolSpec("t", "g"), lambda rt: rt.fs.write_text("f", "x") or rt.fs.read_text("f") and rt.fs.list() and None, policy)
host = Host(sandbox_dir=sys.argv[1])
engine = Engine(plugins="none", toolsets=[tools], host=host, policy=ExecutionPolicy(grants=["fs:read:**", "fs:write:**"]))
engine.call("g.t")
print(*sorted({"neuroscript.policy.ledger", "neuroscript.policy.counters", "neuroscript.policy.limits", "decimal"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"
    assert (tmp_path / "f").read_text() == "x"
