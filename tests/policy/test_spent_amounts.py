"""Amounts that calls spend, and refunds for calls that never began."""

from __future__ import annotations

import decimal
import random
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.ledgers import Clock, ledger_of, refusal_of, try_calls

from neuroscript import LimitError
from neuroscript.policy.ledger import Ledger, Reservation

# Calls that did not begin


def test_a_call_that_did_not_begin_is_refunded() -> None:
    """In every count of the session and its parents."""
    clock = Clock()
    top = ledger_of(clock=clock, calls=1, rates={"*": "1/day"})
    ledger = ledger_of(
        top, clock=clock, tool_calls={"g.t": 1}, concurrency=1, max_identical_calls=1, rates={"g.*": "1/day"}
    )

    for _ in range(50):
        ledger.refund("g.t", True, ledger.begin("g.t", True, b"a"))
    assert set(top.spent.values()) == set(ledger.spent.values()) == {0}
    assert refusal_of(lambda: ledger.begin("g.t", True, b"a")) is None
    assert refusal_of(lambda: ledger.begin("g.t", True, b"b")) is not None


def test_a_rate_refunds_the_exact_call() -> None:
    """Refunding another time would permit one call too many in some interval."""
    clock = Clock(0.0)
    ledger = ledger_of(clock=clock, rates={"*": "2/minute"})
    first = ledger.begin("g.t", True)
    clock.now = 30.0
    ledger.begin("g.t", True)
    ledger.refund("g.t", True, first)

    clock.now = 61.0
    assert try_calls(ledger, 2) == [True, False]
    clock.now = 90.0
    late = ledger.begin("g.t", True)
    clock.now = 200.0
    assert try_calls(ledger, 2) == [True, True]
    ledger.refund("g.t", True, late)
    assert try_calls(ledger, 1) == [False]


def test_a_refund_without_a_token_refunds_no_time() -> None:
    """Counts are refunded; rates and repetitions are unchanged."""
    ledger = ledger_of(clock=Clock(), rates={"*": "1/day"}, calls=1)
    ledger.begin("g.t", True)
    ledger.refund("g.t", True)

    assert ledger.spent == {"calls": 0}
    refused = ledger.peek("g.t")
    assert refused is not None
    assert (refused.code, refused.retry) == ("limit.rate", "later")


def test_an_unmatched_refund_frees_no_slot() -> None:
    """Neither does an end without a begin."""
    ledger = ledger_of(calls=1, concurrency=1)
    ledger.refund("g.t", True)
    ledger.end(True)

    assert ledger.spent == {"calls": 0, "concurrency": 0}
    assert try_calls(ledger, 2) == [True, False]


def test_counts_are_zero_after_all_refunds(full_counts: bool) -> None:
    """After 100,000 random operations on three ledgers, some of them refused."""
    source, clock = random.Random(17), Clock(0.0)
    top = ledger_of(clock=clock, calls=60, fs_bytes=5_000, money={"EUR": "0.7"}, rates={"*": "40/minute"})
    ledgers = [
        top,
        ledger_of(top, clock=clock, concurrency=20, sleep="3.3"),
        ledger_of(top, clock=clock, max_identical_calls=4),
    ]
    calls: list[tuple[Ledger, str, bool, Any]] = []
    spendings: list[Reservation] = []
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
    assert try_calls(top, 41) == [True] * 40 + [False]


# Amounts


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
def test_an_amount_beyond_its_limit_is_refused_and_costs_nothing(
    limits: dict[str, Any], what: str, amounts: Any, text: str
) -> None:
    """Exactly, to the last byte and cent; the message names the limit and not the amount."""
    ledger, tally = ledger_of(**limits), {}
    first, second, third = amounts
    ledger.spend(what, first, "g.t", [tally])
    ledger.spend(what, second, "g.t", [tally])
    before = [dict(ledger.spent), dict(tally)]

    code = "limit.money" if what == "EUR" else f"limit.{what}"
    assert (f"g.t: {text}", code, "host") == refusal_of(lambda: ledger.spend(what, third, "g.t", [tally]))
    assert before == [dict(ledger.spent), dict(tally)]
    ledger.spend(what, 0, "g.t", [tally])


def test_a_thousand_tenths_of_a_cent_are_one() -> None:
    """Exactly, for any decimal context of the thread."""
    ledger, tally = ledger_of(money={"EUR": "13.344"}), {}
    with decimal.localcontext(decimal.Context(prec=1)):
        for _ in range(1_000):
            ledger.spend("EUR", 12.345, "g.t", [tally]).settle(0.001)

    assert ledger.spent["EUR"] == tally["EUR"] == Decimal("1.000")
    ledger.spend("EUR", "12.344", "g.t")
    assert refusal_of(lambda: ledger.spend("EUR", 5e-324, "g.t")) is not None


def test_the_smallest_and_the_largest_amounts_are_added_exactly() -> None:
    """A float with 324 decimal places and a number with 18 digits."""
    ledger = ledger_of(money={"EUR": 10**18 - 1})
    ledger.spend("EUR", 10**18 - 2, "g.t")
    small = ledger.spend("EUR", 5e-324, "g.t")

    assert ledger.spent["EUR"] != 10**18 - 2
    small.settle(0)
    assert ledger.spent["EUR"] == 10**18 - 2


def test_a_reservation_is_settled_by_the_real_amount() -> None:
    """A lower amount is refunded; a higher one counts even above the limit, and refuses later amounts."""
    top, tallies = ledger_of(fs_bytes=100), [{}, {}]
    ledger = ledger_of(top, fs_bytes=1_000)

    ledger.spend("fs_bytes", 80, "g.t", tallies).settle(30)
    assert (top.spent["fs_bytes"], ledger.spent["fs_bytes"], tallies) == (30, 30, [{"fs_bytes": 30}] * 2)
    more = ledger.spend("fs_bytes", 50, "g.t", tallies)
    more.settle(500)
    assert (top.spent["fs_bytes"], ledger.spent["fs_bytes"], tallies) == (530, 530, [{"fs_bytes": 530}] * 2)
    for count in (1, 0):
        refused = refusal_of(lambda: ledger.spend("fs_bytes", count, "g.t"))
        assert refused == ("g.t: no more than 100 bytes of file data are permitted", "limit.fs_bytes", "host")


def test_an_amount_is_settled_once() -> None:
    """A second settlement is refused; an invalid one can be repeated."""
    ledger = ledger_of(sleep=10)
    reserved = ledger.spend("sleep", 5, "g.t")

    assert refusal_of(lambda: reserved.settle(float("nan"))) == (
        "g.t: spend: expected a number of seconds of sleep, 0 or more, got float",
        "limit.amount",
        "never",
    )
    reserved.settle("1.5")
    for taken in (0, "1.5"):
        assert refusal_of(lambda: reserved.settle(taken)) == (
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
def test_an_invalid_amount_is_refused(what: Any, amount: Any, text: str) -> None:
    """A negative one would add credit; also without limits."""
    for ledger in (ledger_of(fs_bytes=9, money={"EUR": 9}, calls=9), Ledger(None, time.time)):
        before, tally = dict(ledger.spent), {}
        expected = (f"g.t: spend: expected {text}", "limit.amount", "never")

        assert expected == refusal_of(lambda: ledger.spend(what, amount, "g.t", [tally]))
        assert (dict(ledger.spent), tally) == (before, {})


def test_money_is_limited_per_outermost_call() -> None:
    """Including its nested calls; the lowest limit of the chain applies."""
    top = ledger_of(money_per_call={"EUR": 5, "USD": 1})
    ledger = ledger_of(top, money_per_call={"EUR": 9})
    inner, outer, next_one = {}, {}, {}

    ledger.spend("EUR", 3, "g.inner", [inner, outer])
    ledger.spend("EUR", 2, "g.outer", [outer])
    assert refusal_of(lambda: ledger.spend("EUR", "0.01", "g.inner", [{}, outer])) is not None
    assert refusal_of(lambda: ledger.spend("USD", 2, "g.inner", [])) is not None
    ledger.spend("EUR", 5, "g.outer", [next_one])

    assert (inner, outer, next_one) == ({"EUR": 3}, {"EUR": 5}, {"EUR": 5})


def test_a_snapshot_of_amounts_is_immutable() -> None:
    """Later calls do not change it."""
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


# Properties

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
    """Return limits that are at most as high, possibly with additional ones."""
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


def apply_step(ledger: Ledger, clock: Clock, tally: dict[str, Any], step: tuple[Any, ...]) -> bool:
    """Apply a step, and return whether it was accepted."""
    match step:
        case "begin", tool, outermost, digest:
            return refusal_of(lambda: ledger.begin(tool, outermost, digest)) is None
        case "end", outermost:
            ledger.end(outermost)
        case "wait", seconds:
            clock.now += seconds
        case "spend", what, amount:
            return refusal_of(lambda: ledger.spend(what, amount, "g.t", [tally])) is None
    return True


@given(limits_of, steps_of, st.data())
def test_a_lower_limit_never_accepts_more(settings: dict[str, Any], steps: list[Any], data: Any) -> None:
    """After any accepted steps, the higher limit accepts whatever the lower one accepts."""
    clocks, tallies = (Clock(0.0), Clock(0.0)), ({}, {})
    high = ledger_of(clock=clocks[0], **settings)
    low = ledger_of(clock=clocks[1], **lowered(settings, data.draw))
    for step in steps:
        if apply_step(low, clocks[1], tallies[1], step):
            assert apply_step(high, clocks[0], tallies[0], step), step


@given(limits_of, limits_of, steps_of)
def test_a_child_accepts_steps_that_it_and_its_parent_accept(
    own: dict[str, Any], above: dict[str, Any], steps: list[Any]
) -> None:
    """Exactly those that separate ledgers with the same steps accept."""
    clock, tallies = Clock(0.0), ({}, {}, {})
    parent = ledger_of(clock=clock, **above)
    child = ledger_of(parent, clock=clock, **own)
    still = Clock(0.0)
    alone = [ledger_of(clock=still, **own), ledger_of(clock=still, **above)]
    for step in steps:
        if step[0] == "wait":
            still.now += step[1]
        peeked = [accepts(ledger, tallies[index], step) for index, ledger in enumerate(alone)]
        assert apply_step(child, clock, tallies[2], step) is all(peeked)
        if all(peeked):
            for index, ledger in enumerate(alone):
                apply_step(ledger, Clock(), tallies[index], step)


def accepts(ledger: Ledger, tally: dict[str, Any], step: tuple[Any, ...]) -> bool:
    """Return whether a step would be accepted, and refund it."""
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
def test_counts_are_the_sum_of_settled_amounts(settings: dict[str, Any], spent: list[Any]) -> None:
    """In the session, its parents and the tallies; only a higher settlement can exceed a limit."""
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


# The usage of limits


def test_usage_lists_each_limit_of_a_session_and_its_parents() -> None:
    """Sums, calls of tools, and the calls of a rate that still count."""
    clock = Clock(0.0)
    top = ledger_of(clock=clock, calls=9, money={"EUR": "1.5"})
    ledger = ledger_of(top, clock=clock, tool_calls={"g.t": 3}, rates={"g.*": "2/minute"})
    ledger.begin("g.t", True)
    ledger.spend("EUR", "0.25", "g.t")

    assert [(each.name, each.used, each.most, each.layer) for each in ledger.usage] == [
        ("calls of g.t", 1, 3, 0),
        ("2/minute for g.*", 1, 2, 0),
        ("calls", 1, 9, 1),
        ("EUR", Decimal("0.25"), Decimal("1.5"), 1),
    ]
    clock.now = 60.0
    assert [each.used for each in ledger.usage if each.name.startswith("2/minute")] == [0]


def test_usage_omits_a_rate_without_a_clock() -> None:
    """A clock that returns no time breaks calls, but not a page that shows limits."""
    ledger = ledger_of(clock=lambda: float("nan"), calls=2, rates={"g.*": "2/minute"})

    assert [each.name for each in ledger.usage] == ["calls"]
