"""Limits on calls: totals, concurrency, rates and repeated calls."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.ledgers import Clock, ledger_of, refusal_of, try_calls

from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits

# Calls


@pytest.mark.parametrize(
    ("limits", "count", "refusal"),
    [
        ({"calls": 3}, 3, ("g.t: no more than 3 calls in total are permitted", "limit.calls", "host")),
        ({"calls": 0}, 0, ("g.t: no more than 0 calls in total are permitted", "limit.calls", "host")),
        ({"tool_calls": {"tool.G.T": 2}}, 2, ("g.t: no more than 2 calls to this tool are permitted", "limit.tool_calls", "host")),
        ({"tool_calls": {"g.t": 0}}, 0, ("g.t: no more than 0 calls to this tool are permitted", "limit.tool_calls", "host")),
        ({"concurrency": 2}, 2, ("g.t: no more than 2 calls may run at once; try again when one has ended",
                                 "limit.concurrency", "later")),
        ({"rates": {"g.*": "2/minute"}}, 2, ("g.t: no more than 2 calls in 60 seconds are permitted; try again in 60 seconds",
                                             "limit.rate", "later")),
        ({"rates": {"*": "1/second"}}, 1, ("g.t: no more than 1 calls in 1 second are permitted; try again in 1 second",
                                           "limit.rate", "later")),
    ],
)  # fmt: skip
def test_a_call_beyond_a_limit_is_refused(limits: dict[str, Any], count: int, refusal: Any) -> None:
    """The message names the limit; `peek` returns the same refusal before, and neither of them counts anything."""
    ledger = ledger_of(clock=Clock(), **limits)

    assert try_calls(ledger, count) == [True] * count
    before = dict(ledger.spent)
    for _ in range(3):
        peeked = ledger.peek("g.t")
        assert peeked is not None
        assert refusal == (str(peeked), peeked.code, peeked.retry) == refusal_of(lambda: ledger.begin("g.t", True))
    assert before == dict(ledger.spent)


def test_a_limit_of_one_tool_does_not_affect_others() -> None:
    """A limit applies only to the tools that its pattern matches."""
    ledger = ledger_of(tool_calls={"g.t": 1}, rates={"http.*": "1/day"})

    assert try_calls(ledger, 2) == [True, False]
    assert try_calls(ledger, 5, "g.other") == [True] * 5
    assert try_calls(ledger, 2, "http.get") == [True, False]
    assert try_calls(ledger, 1, "http.put") == [False]
    assert ledger.spent == {"calls of g.t": 1}


def test_only_outermost_calls_count_as_concurrent_and_as_repeated() -> None:
    """A nested call shares the slot of its outermost call, and a tool may repeat nested calls."""
    ledger = ledger_of(concurrency=1, max_identical_calls=1)

    assert try_calls(ledger, 3, outermost=False) == [True] * 3
    assert [refusal_of(lambda: ledger.begin("g.t", False, b"x")) for _ in range(3)] == [None] * 3
    assert try_calls(ledger, 2) == [True, False]
    ledger.end(False)
    assert try_calls(ledger, 1) == [False]
    ledger.end(True)
    assert try_calls(ledger, 1) == [True]


def test_calls_count_in_the_session_and_in_its_parents() -> None:
    """A child is refused by its own limits and by its parent's; calls of the parent count only there."""
    top = ledger_of(calls=5)
    first, second = ledger_of(top, calls=3), Ledger(None, time.time, top)
    inner = ledger_of(first, tool_calls={"g.t": 2})

    assert try_calls(inner, 3) == [True, True, False]
    assert try_calls(first, 3) == [True, False, False]
    assert try_calls(second, 3) == [True, True, False]
    assert [dict(each.spent) for each in (top, first, second, inner)] == [
        {"calls": 5},
        {"calls": 3},
        {},
        {"calls of g.t": 2},
    ]


def test_a_refused_call_is_not_counted_anywhere() -> None:
    """All limits of the whole chain count it, or none does."""
    clock = Clock()
    top = ledger_of(clock=clock, rates={"*": "2/minute"}, calls=9)
    child = ledger_of(top, clock=clock, calls=9, tool_calls={"g.t": 9}, concurrency=9, max_identical_calls=9)

    for _ in range(2):
        child.begin("g.t", True, b"same")
    before = [dict(top.spent), dict(child.spent)]
    for _ in range(20):
        assert refusal_of(lambda: child.begin("g.t", True, b"same")) is not None
    clock.now += 60

    assert (
        before
        == [dict(top.spent), dict(child.spent)]
        == [{"calls": 2}, {"calls": 2, "calls of g.t": 2, "concurrency": 2}]
    )
    assert refusal_of(lambda: child.begin("g.t", True, b"same")) is None


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
def test_a_ledger_without_counting_limits_is_idle(limits: Any, parent: Any, idle: bool) -> None:
    """The call pipeline then skips it."""
    above = None if parent is None else Ledger(parent, time.time)
    ledger = Ledger(limits, time.time, above)

    assert ledger.is_idle is idle
    assert ledger.compares is (parent == Limits(max_identical_calls=3))


# Rates


def test_a_rate_applies_to_every_interval() -> None:
    """Calls at the end of one minute count at the start of the next; the message says when to try again."""
    clock = Clock(100.0)
    ledger = ledger_of(clock=clock, rates={"*": "3/minute"})
    moments = {0: True, 50: True, 59.5: True, 59.9: False, 60: True, 61: False, 109.9: False, 110: True, 119.4: False,
               119.5: True, 119.6: False, 170: True}  # fmt: skip

    for moment, permitted in moments.items():
        clock.now = 100.0 + moment
        assert try_calls(ledger, 1) == [permitted], moment
    refused = refusal_of(lambda: [ledger.begin("g.t", True) for _ in range(9)])
    assert refused is not None
    assert refused[0] == "g.t: no more than 3 calls in 60 seconds are permitted; try again in 10 seconds"


@given(st.lists(st.floats(0, 200), min_size=1, max_size=60), st.integers(1, 5))
def test_no_interval_has_more_calls_than_its_rate(times: list[float], most: int) -> None:
    """At any times; and no call within the rate is refused."""
    clock = Clock()
    ledger = ledger_of(clock=clock, rates={"*": f"{most}/minute"})
    accepted: list[float] = []
    for now in sorted(times):
        clock.now = now
        fits = sum(now - each < 60 for each in accepted) < most
        assert try_calls(ledger, 1) == [fits]
        if fits:
            accepted.append(now)


NO_TIMES: dict[str, Any] = {
    "it raises": RuntimeError("secret"),
    "NaN": float("nan"),
    "infinite": float("-inf"),
    "none": None,
    "a string": "12",
    "a boolean": True,
    "too large for a float": 10**400,
    "complex": 1j,
}


@pytest.mark.parametrize("fault", NO_TIMES.values(), ids=NO_TIMES)
def test_an_invalid_clock_time_refuses_rate_limited_calls(fault: Any) -> None:
    """Nothing is counted, and the clock's exception is not shown."""
    clock = Clock()
    ledger = ledger_of(clock=clock, rates={"g.*": "5/minute"}, calls=9)
    try_calls(ledger, 1)
    clock.now = fault

    text = "g.t: the host's clock returned no valid time, so the rate limit of this tool cannot be checked"
    assert (text, "limit.clock", "host") == refusal_of(lambda: ledger.begin("g.t", True))
    assert text == str(ledger.peek("g.t"))
    assert try_calls(ledger, 1, "other.t") == [True]
    assert ledger.spent == {"calls": 2}


def test_a_clock_that_goes_back_refuses_calls_until_it_catches_up() -> None:
    """So no call gains time from it."""
    clock = Clock(1000.0)
    ledger = ledger_of(clock=clock, rates={"*": "3/minute"})
    assert try_calls(ledger, 2) == [True, True]

    clock.now = 400.0
    text = "g.t: the host's clock went backwards, so the rate limit of this tool cannot be checked"
    assert (text, "limit.clock", "later") == refusal_of(lambda: ledger.begin("g.t", True))
    clock.now = 999.5
    assert try_calls(ledger, 2) == [True, False]
    clock.now = 1059.9
    assert try_calls(ledger, 1) == [False]
    clock.now = 1060.0
    assert try_calls(ledger, 4) == [True, True, True, False]


def test_a_clock_slightly_behind_counts_as_the_last_time() -> None:
    """Threads read the clock before they hold the lock, so times can arrive out of order."""
    clock = Clock(1000.0)
    ledger = ledger_of(clock=clock, rates={"*": "2/minute"})
    first = ledger.begin("g.t", True)
    clock.now = 999.5
    ledger.begin("g.t", True)
    ledger.refund("g.t", True, first)

    clock.now = 1059.6
    assert try_calls(ledger, 2) == [True, False]


def test_a_clock_may_use_its_ledger() -> None:
    """It is code of the host, so no lock is held while it runs."""
    ledgers: list[Ledger] = []

    def clock() -> float:
        if ledgers:
            assert ledgers[0].spent is not None
        return 5.0

    ledgers.append(ledger_of(clock=clock, rates={"*": "2/minute"}))

    assert try_calls(ledgers[0], 3) == [True, True, False]


# Repeated calls


def test_repeated_identical_calls_are_refused() -> None:
    """After the permitted number, until a different call is made; the message states the number."""
    ledger = ledger_of(max_identical_calls=3)
    assert ledger.compares
    for _ in range(3):
        ledger.begin("g.t", True, b"a")

    text = "g.t: the same call was made 3 times in a row; change the arguments, or do something else"
    for _ in range(2):
        assert (text, "limit.identical_calls", "model") == refusal_of(lambda: ledger.begin("g.t", True, b"a"))
    for tool, digest in [("g.t", b"b"), ("g.t", b"a"), ("g.u", b"a"), ("g.t", b"a"), ("g.t", None), ("g.t", b"a")]:
        ledger.begin(tool, True, digest)
    assert [refusal_of(lambda: ledger.begin("g.t", True, b"a")) is None for _ in range(3)] == [True, True, False]


def test_a_call_without_a_digest_is_not_a_repetition() -> None:
    """It cannot be compared, so it is not refused."""
    assert try_calls(ledger_of(max_identical_calls=1), 5) == [True] * 5


def test_a_call_that_did_not_begin_does_not_end_a_repetition() -> None:
    """Otherwise a model could continue by interleaving refused calls."""
    ledger = ledger_of(max_identical_calls=2)
    ledger.begin("g.t", True, b"a")
    ledger.begin("g.t", True, b"a")
    token = ledger.begin("g.u", True, b"b")
    ledger.refund("g.u", True, token)

    assert refusal_of(lambda: ledger.begin("g.t", True, b"a")) is not None
    token = ledger.begin("g.u", True, b"b")
    ledger.begin("g.v", True, b"c")
    ledger.refund("g.u", True, token)
    assert refusal_of(lambda: ledger.begin("g.t", True, b"a")) is None
