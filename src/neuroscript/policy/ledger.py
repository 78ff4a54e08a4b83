"""Usage of limits by sessions: reserved before an action, settled after it, under one lock.

A call reserves one unit in each counter that applies to it, in its session and every parent session, or in none.
Resources used during the call (bytes, seconds, money) are reserved before use and settled with the actual amount.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from time import time
from types import MappingProxyType
from typing import Any, Final

from neuroscript.coercion.context import type_name
from neuroscript.errors import LimitError
from neuroscript.policy.counters import Amount, Counter, RepeatCounter, Usage, Window, format_amount
from neuroscript.policy.limits import CURRENCY, MAX_COUNT, Limits, Rate, parse_amount

DECIMAL_DIGITS: Final = 2_000
"""Significant digits of decimal sums: more than any sum can have, so none is ever rounded."""

Begun = tuple[tuple[float, ...], bytes | None]
"""Identifies one call: its start time by the clock of each rate, and its digest."""

Plan = tuple[tuple[Counter, ...], tuple[Window, ...], tuple[RepeatCounter, ...]]
"""Everything that calls of one tool are counted against, in a whole chain of ledgers."""

_NOUNS: Final = {
    "calls": ("calls in total", "limit.calls"),
    "fs_bytes": ("bytes of file data", "limit.fs_bytes"),
    "fs_entries": ("directory entries", "limit.fs_entries"),
    "net_bytes": ("bytes over the network", "limit.net_bytes"),
    "net_calls": ("network requests", "limit.net_calls"),
    "sleep": ("seconds of sleep", "limit.sleep"),
}

WHOLE_NUMBER_COUNTS: Final = ("fs_bytes", "fs_entries", "net_bytes", "net_calls")
"""Resources counted in integers; sleep and money are decimals."""

RESOURCES: Final = (*WHOLE_NUMBER_COUNTS, "sleep")
"""Resources that a tool can spend, besides money."""


class Ledger:
    """The usage and the limits of one session; usage also counts in its parents.

    Args:
        limits: The limits of this session, or None.
        clock: The host's clock in seconds, for rates.
        parent: The ledger that also counts this usage. A chain of ledgers shares one lock.
    """

    def __init__(self, limits: Limits | None, clock: Callable[[], float], parent: Ledger | None = None) -> None:
        own = Limits() if limits is None else limits
        self._limits = own
        self._chain: tuple[Ledger, ...] = (self,) if parent is None else (self, *parent._chain)
        self._lock: Any = threading.Lock() if parent is None else parent._lock
        self._exact: Context = Context(prec=DECIMAL_DIGITS) if parent is None else parent._exact
        self._counters = dict(_counters(own))
        self._windows = {pattern: Window(Rate.parse(rate), clock) for pattern, rate in own.rates.items()}
        self._row = None if own.max_identical_calls is None else RepeatCounter(own.max_identical_calls)
        self._per_call: Mapping[str, Decimal] = _least(own.money_per_call, {} if parent is None else parent._per_call)
        self._sums: Mapping[str, tuple[Counter, ...]] = _joined(self._counters, {} if parent is None else parent._sums)
        self._slots = self._sums.get("concurrency", ())
        self._plans: tuple[dict[str, Plan], dict[str, Plan]] = ({}, {})

    @property
    def is_idle(self) -> bool:
        """Whether neither this ledger nor a parent has anything to count."""
        return all(ledger._limits.is_idle for ledger in self._chain)

    @property
    def compares(self) -> bool:
        """Whether `begin` needs the digest of an outermost call."""
        return any(ledger._row is not None for ledger in self._chain)

    @property
    def spent(self) -> Mapping[str, Amount]:
        """The current usage of each limit of this session, by name.

        Names are ``calls``, ``calls of math.add``, ``fs_bytes``, ``EUR`` and so on; ``concurrency`` is the number of
        running calls.
        """
        with self._lock:
            _release(self._counters.values())
            return MappingProxyType({name: counter.used for name, counter in self._counters.items()})

    @property
    def usage(self) -> tuple[Usage, ...]:
        """The current usage of each limit of this session and of its parents, in this order.

        Limits of single calls and of repeated calls are not included, because they count nothing across calls.
        """
        moments = {id(window): _moment(window) for ledger in self._chain for window in ledger._windows.values()}
        found: list[Usage] = []
        with self._lock:
            for layer, ledger in enumerate(self._chain):
                _release(ledger._counters.values())
                found.extend(Usage(name, each.used, each.most, layer) for name, each in ledger._counters.items())
                for pattern, window in ledger._windows.items():
                    now, rate = moments[id(window)], ledger._limits.rates[pattern]
                    if now is not None:
                        most = Rate.parse(rate).calls
                        found.append(Usage(f"{rate} for {pattern}", window.count(now), most, layer))
        return tuple(found)

    # Calls

    def begin(self, tool: str, outermost: bool, digest: bytes | None = None) -> Begun | None:
        """Reserve a call in each counter that applies to it, or in none.

        Args:
            tool: The canonical name.
            outermost: Whether the call comes from outside; only such calls count as concurrent and as repeated.
            digest: The digest of its arguments. Without one, the call never counts as repeated.

        Returns:
            The value that `refund` needs to return exactly this call, or None if calls of the tool are
            interchangeable.

        Raises:
            LimitError: ``limit.calls``, ``.tool``, ``.concurrency``, ``.rate``, ``.clock`` or ``.identical_calls``.
        """
        counters, windows, rows = self._plans[outermost].get(tool) or self._plan(tool, outermost)
        if windows or rows:
            return self._begin(tool, (counters, windows, rows), digest)
        if counters:
            self._count(tool, counters)
        return None

    def compiled(self, tool: str) -> tuple[Callable[..., object], Callable[..., None] | None, Sequence[bool]]:
        """Return `begin` and `end` for one tool, for its compiled call pipeline.

        Returns:
            A function that reserves a call, given its frame and its digest; a function that takes the frame when the
            call has ended, or None if nothing is to be done then; and the calls that `begin` has counted in advance.
            A call that removes one of these does not need `begin`, which takes 200 ns for its lock.
        """
        counters, windows, rows = self._plan(tool, True)

        def begin(frame: Any, digest: bytes) -> object:
            return self.begin(tool, frame.depth == 1, digest)

        def count(frame: Any, digest: bytes) -> None:
            self._count(tool, counters)

        def count_some(frame: Any, digest: bytes) -> None:
            self._count(tool, counters, in_advance=True)

        if windows or rows or self._slots:
            return begin, (lambda frame: self.end(frame.depth == 1)) if self._slots else None, ()
        if len(counters) == 1:
            return count_some, None, counters[0].reserved
        return count, None, ()

    def _count(self, tool: str, counters: Sequence[Counter], *, in_advance: bool = False) -> None:
        """Reserve a call in each counter, or in none."""
        with self._lock:
            _release(counters)
            for counter in counters:
                if counter.used >= counter.most:
                    raise counter.refusal(tool)
            for counter in counters:
                counter.used += 1
                if in_advance:
                    counter.reserve()

    def _begin(self, tool: str, plan: Plan, digest: bytes | None) -> Begun:
        counters, windows, rows = plan
        now = [window.moment(tool) for window in windows]
        with self._lock:
            _release(counters)
            refusal = _refusal(tool, plan, now, digest)
            if refusal is not None:
                raise refusal
            for counter in counters:
                counter.used += 1
            for row in rows:
                row.take(tool, digest)
            return tuple(map(Window.take, windows, now)), digest

    def refund(self, tool: str, outermost: bool, begun: Begun | None = None) -> None:
        """Return the reservation of a call that never began. Do not call `end` for it.

        Args:
            begun: The value returned by `begin`. Without it, rates and repetitions keep counting the call.
        """
        counters, windows, rows = self._plan(tool, outermost)
        moments, digest = begun or ((), None)
        with self._lock:
            _release(counters)
            for counter in counters:
                counter.used = max(0, counter.used - 1)
            for window, moment in zip(windows, moments, strict=False):
                window.give_back(moment)
            for row in rows if begun else ():
                row.give_back(tool, digest)

    def end(self, outermost: bool) -> None:
        """Record that a call has ended, so that another one may run."""
        if outermost and self._slots:
            with self._lock:
                for slot in self._slots:
                    slot.used = max(0, slot.used - 1)

    def peek(self, tool: str) -> LimitError | None:
        """Return the error that `begin` would raise now for a new call from outside; change nothing."""
        plan = self._plan(tool, True)
        try:
            now = [window.moment(tool) for window in plan[1]]
        except LimitError as error:
            return error
        with self._lock:
            _release(plan[0])
            return _refusal(tool, plan, now, None)

    def _plan(self, tool: str, outermost: bool) -> Plan:
        plan = self._plans[outermost].get(tool)
        if plan is None:
            slots = self._slots if outermost else ()
            counters = (*self._sums.get("calls", ()), *self._sums.get(f"calls of {tool}", ()), *slots)
            windows = (each._windows[pattern] for each in self._chain for pattern in each._limits.rates_of(tool))
            rows = (each._row for each in self._chain if outermost and each._row is not None)
            plan = self._plans[outermost][tool] = (counters, tuple(windows), tuple(rows))
        return plan

    # Resources used during a call

    def spend(self, what: str, amount: object, tool: str, tallies: Sequence[dict[str, Any]] = ()) -> Reservation:
        """Reserve an amount of a resource in every sum, or in none. Call it just before or just after the use.

        Args:
            what: ``fs_bytes``, ``fs_entries``, ``net_bytes``, ``net_calls``, ``sleep`` (seconds) or a currency.
            amount: An integer; for sleep and money also a decimal, a float or a string of digits.
            tool: The canonical name of the tool.
            tallies: Usage by name of the call and each call that encloses it, innermost first; the amount is added to
                each. Limits per call apply to the last, the outermost.

        Raises:
            LimitError: With the code of the exceeded limit, such as ``limit.money``, or with ``limit.amount`` if the
                amount is invalid.
        """
        exact = validate_amount(what, amount, tool)
        counters = self._sums.get(what, ())
        with self._lock:
            for counter in counters:
                if self._sum(counter.used, exact) > counter.most:
                    raise counter.refusal(tool)
            self._require_per_call(what, exact, tool, tallies)
            self._add(what, exact, counters, tallies)
        return Reservation(self, what, exact, tool, counters, tallies)

    def _require_per_call(self, what: str, exact: Amount, tool: str, tallies: Sequence[dict[str, Any]]) -> None:
        most = self._per_call.get(what)
        if most is None:
            return
        before = tallies[-1].get(what, 0) if tallies else 0
        if self._sum(before, exact) > most:
            text = f"no more than {format_amount(most)} {what} are permitted in one call"
            raise LimitError(text, tool=tool, code="limit.money")

    def _add(self, what: str, change: Amount, counters: Sequence[Counter], tallies: Sequence[dict[str, Any]]) -> None:
        if not change:
            return
        for counter in counters:
            counter.used = self._sum(counter.used, change)
        for tally in tallies:
            tally[what] = self._sum(tally.get(what, 0), change)

    def _sum(self, first: Amount, second: Amount) -> Amount:
        """Return an exact sum, independent of the thread's decimal context."""
        return first + second if isinstance(second, int) else self._exact.add(first, second)

    def _difference(self, first: Amount, second: Amount) -> Amount:
        return first - second if isinstance(second, int) else self._exact.subtract(first, second)


class Reservation:
    """An amount that a tool has reserved, until the actual amount is known; returned by `Ledger.spend`."""

    __slots__ = ("_amount", "_counters", "_ledger", "_settled", "_tallies", "_tool", "_what")

    def __init__(
        self,
        ledger: Ledger,
        what: str,
        amount: Amount,
        tool: str,
        counters: tuple[Counter, ...],
        tallies: Sequence[dict[str, Any]],
    ) -> None:
        self._ledger = ledger
        self._what = what
        self._amount = amount
        self._tool = tool
        self._counters = counters
        self._tallies = tuple(tallies)
        self._settled = False

    def settle(self, amount: object) -> None:
        """Replace the reserved amount by the actual one. Can be called once.

        The unused part is returned. A larger amount is counted even beyond the limit, because it has been used, and
        later calls are refused.

        Raises:
            LimitError: With the code ``limit.amount``, if the amount is invalid or already settled.
        """
        exact = validate_amount(self._what, amount, self._tool)
        ledger = self._ledger
        with ledger._lock:
            if self._settled:
                text = "spend: settle() can be called only once"
                raise LimitError(text, tool=self._tool, code="limit.amount", retry="never")
            self._settled = True
            ledger._add(self._what, ledger._difference(exact, self._amount), self._counters, self._tallies)


def check_amount(what: str, amount: object, tool: str) -> Reservation:
    """Validate an amount where no limit applies, because an invalid amount is an error in the tool there too.

    Raises:
        LimitError: With the code ``limit.amount``, if the amount is invalid.
    """
    return Ledger(None, time).spend(what, amount, tool)


def validate_amount(what: object, given: object, tool: str) -> Amount:
    """Return an amount as an exact number.

    Raises:
        LimitError: With the code ``limit.amount``, if the amount is invalid or *what* is unknown.
    """
    if type(what) is not str or (what not in RESOURCES and CURRENCY.fullmatch(what) is None):
        raise _misspent(f"one of {', '.join(RESOURCES)}, or a currency such as EUR, got another string", tool)
    if what in WHOLE_NUMBER_COUNTS:
        if type(given) is int and 0 <= given <= MAX_COUNT:
            return given
        raise _misspent(f"a whole number of {_NOUNS[what][0]}, 0 or more, got {type_name(given)}", tool)
    exact = parse_amount(given)
    if exact is None:
        noun = what if what not in _NOUNS else _NOUNS[what][0]
        raise _misspent(f"a number of {noun}, 0 or more, got {type_name(given)}", tool)
    return exact


def _misspent(expected: str, tool: str) -> LimitError:
    return LimitError(f"spend: expected {expected}", tool=tool, code="limit.amount", retry="never")


def _counters(limits: Limits) -> Iterator[tuple[str, Counter]]:
    for name, (noun, code) in _NOUNS.items():
        most = getattr(limits, name)
        if most is not None:
            yield name, Counter(most, f"{noun} are permitted", code)
    for tool, most in limits.tool_calls.items():
        yield f"calls of {tool}", Counter(most, "calls to this tool are permitted", "limit.tool_calls")
    for currency, most in limits.money.items():
        yield currency, Counter(most, f"{currency} are permitted", "limit.money")
    if limits.concurrency is not None:
        noun = "calls may run at once; try again when one has ended"
        yield "concurrency", Counter(limits.concurrency, noun, "limit.concurrency", "later")


def _joined(own: Mapping[str, Counter], above: Mapping[str, tuple[Counter, ...]]) -> dict[str, tuple[Counter, ...]]:
    """Return the counters of a whole chain of ledgers by name."""
    return {**above, **{name: (counter, *above.get(name, ())) for name, counter in own.items()}}


def _least(first: Mapping[str, Decimal], second: Mapping[str, Decimal]) -> Mapping[str, Decimal]:
    return {name: min(each[name] for each in (first, second) if name in each) for name in {**first, **second}}


def _moment(window: Window) -> float | None:
    """Return the time of a window's clock, or None if the clock returns no valid time."""
    try:
        return window.moment("")
    except LimitError:
        return None


def _release(counters: Iterable[Counter]) -> None:
    """Make counters exact, until the lock is released."""
    for counter in counters:
        if counter.reserved:
            counter.release()


def _refusal(tool: str, plan: Plan, now: Sequence[float], digest: bytes | None) -> LimitError | None:
    """Return the error of the first counter that forbids a call, or None."""
    counters, windows, rows = plan
    for counter in counters:
        if counter.used >= counter.most:
            return counter.refusal(tool)
    refusals = (window.refusal(tool, moment) for window, moment in zip(windows, now, strict=True))
    return next((each for each in (*refusals, *(row.refusal(tool, digest) for row in rows)) if each is not None), None)
