"""Limits that many threads reach at once, with yields between the lines of the ledger.

Without these yields the GIL hides a missing lock, and a ledger without locks seems correct. So each race also runs
against such a ledger, which must exceed the limit.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import pytest
from tests import races

import neuroscript.policy.counters
import neuroscript.policy.ledger
from neuroscript import LimitError
from neuroscript.policy.ledger import Ledger
from neuroscript.policy.limits import Limits

OURS = {neuroscript.policy.ledger.__file__, neuroscript.policy.counters.__file__}
raced = partial(races.raced, files=OURS, yielded=0.3)
"""Others are let in between the lines of the ledger."""

ATTEMPTS = (4_000, 80_000)
SPENDINGS = (300, 2_000)
"""How often it is tried for every change, and when all is tried."""

MOST = 1_000

TRIES = 20
"""How many races a ledger without a lock may win by luck; one is mostly enough to see it lose."""


class Unlocked(Ledger):
    """A ledger without a working lock."""

    def __init__(self, limits: Limits | None, clock: Callable[[], float], parent: Ledger | None = None) -> None:
        super().__init__(limits, clock, parent)
        self._lock = nullcontext()


def count_permitted(ledgers: list[Ledger], attempts: int) -> int:
    """Return how many of the attempts in 16 threads were permitted."""
    let_in = [0] * 16

    def work(number: int) -> None:
        ledger = ledgers[number % len(ledgers)]
        for _ in range(attempts // 16):
            try:
                ledger.begin("g.t", True)
            except LimitError:
                continue
            let_in[number] += 1

    raced(16, work)
    return sum(let_in)


LIMITS = {
    "calls in total": {"calls": MOST},
    "calls of a tool": {"tool_calls": {"g.t": MOST}},
    "a rate": {"rates": {"g.*": f"{MOST}/minute"}},
    "at once": {"concurrency": MOST},
}


@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_the_permitted_number_of_calls_runs(limits: dict[str, Any], full_counts: bool) -> None:
    """16 threads request far more calls than that; in the full run 80,000."""
    ledger = Ledger(Limits(**limits), lambda: 5.0)

    assert count_permitted([ledger], ATTEMPTS[full_counts]) == MOST
    assert set(ledger.spent.values()) <= {MOST}


def test_the_permitted_number_of_calls_runs_below_one_parent(full_counts: bool) -> None:
    """Sessions of one engine share its limits; each also has its own counts."""
    top = Ledger(Limits(calls=MOST), time.time)
    children = [Ledger(Limits(calls=10**6), time.time, top) for _ in range(4)]

    assert count_permitted(children, ATTEMPTS[full_counts]) == MOST
    assert sum(child.spent["calls"] for child in children) == top.spent["calls"] == MOST


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_a_ledger_without_a_lock_exceeds_its_limit(limits: dict[str, Any]) -> None:
    """In the same race, so the tests above can fail."""
    races = (count_permitted([Unlocked(Limits(**limits), lambda: 5.0)], ATTEMPTS[0]) for _ in range(TRIES))

    assert any(count > MOST for count in races)


def spend_concurrently(ledgers: list[Ledger], top: Ledger, most: int, each: int) -> tuple[int, int]:
    """Spend in 8 threads; return the amounts, and the maximum seen in the topmost ledger."""
    kept, seen = [0] * 8, [0] * 8

    def work(number: int) -> None:
        source, ledger, tally = random.Random(number), ledgers[number % len(ledgers)], {}
        for _ in range(each):
            count = source.randrange(most // 20)
            try:
                reserved = ledger.spend("fs_bytes", count, "g.t", [tally])
            except LimitError:
                continue
            finally:
                seen[number] = max(seen[number], top.spent["fs_bytes"])
            taken = source.choice([0, count // 2, count, count // 10])
            reserved.settle(taken)
            kept[number] += taken
        assert tally.get("fs_bytes", 0) == kept[number]

    raced(8, work)
    return sum(kept), max(seen)


def test_shared_bytes_never_exceed_their_limit(full_counts: bool) -> None:
    """8 threads spend up to 2,000 times each; counts equal the sum of the settled amounts."""
    most = 100_000 if full_counts else 20_000
    top = Ledger(Limits(fs_bytes=most), time.time)
    children = [top, *(Ledger(Limits(fs_bytes=10**9), time.time, top) for _ in range(3))]
    kept, seen = spend_concurrently(children, top, most, SPENDINGS[full_counts])

    assert seen <= most
    assert kept == top.spent["fs_bytes"] <= most
    assert kept > most - most // 20
    assert sum(child.spent["fs_bytes"] for child in children[1:]) <= kept


def test_a_ledger_without_a_lock_counts_bytes_wrongly() -> None:
    """In the same race."""
    most = 20_000
    top = Unlocked(Limits(fs_bytes=most), time.time)
    kept, seen = spend_concurrently([top], top, most, SPENDINGS[0])

    assert seen > most or kept != top.spent["fs_bytes"]


def test_ended_and_refunded_calls_leave_no_concurrency(full_counts: bool) -> None:
    """Never more than 3 at once, and none at the end."""
    ledger = Ledger(Limits(concurrency=3, calls=10**6, rates={"*": "999999/hour"}), time.time)
    running, most, guard, ended = 0, 0, threading.Lock(), [0] * 8

    def work(number: int) -> None:
        nonlocal running, most
        source = random.Random(number)
        for _ in range(SPENDINGS[full_counts]):
            try:
                begun = ledger.begin("g.t", True)
            except LimitError:
                continue
            with guard:
                running += 1
                most = max(most, running)
            time.sleep(source.choice([0, 0.002]))
            with guard:
                running -= 1
            if source.random() < 0.5:
                ledger.refund("g.t", True, begun)
            else:
                ledger.end(True)
                ended[number] += 1

    raced(8, work)

    assert 2 <= most <= 3
    assert ledger.spent == {"concurrency": 0, "calls": sum(ended)}
