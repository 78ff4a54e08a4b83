"""How much a host permits: counts, rates, bytes, money and time; numbers that can not lie, and no state.

Whole numbers stay whole and decimals stay decimal, so that a thousand times a tenth of a cent is what it says.

Source: contract section 5; upstream ``pkg/capability/limits.go``, whose counters truncate, race and take NaN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, cast

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import BY_NAME, STRING, require
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.names import canonical
from neuroscript.policy.scopes import is_exact_tool, is_tool_pattern, tool_matcher

CURRENCY: Final = re.compile(r"[A-Z]{3}")
"""A currency as ISO 4217 writes it."""

NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(second|minute|hour|day)", re.ASCII)
PERIODS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}

LARGEST: Final = 10**18 - 1
"""The largest number that counts anything."""

PLACES: Final = 400
"""How many decimal places a number may have; a float has fewer."""

DEEPEST: Final = 64
"""How deep calls may stand in each other at most; each takes some of the stack."""

_COUNTS: Final = (
    *("calls", "fs_bytes", "fs_entries", "net_bytes", "net_calls", "concurrency"),
    *("result_bytes", "items", "repeats"),
)
_AT_LEAST_ONE: Final = frozenset({"concurrency", "repeats"})
Amount = Decimal | int | float | str
"""A number that counts something: ``0.10`` as a string is exact, too."""

_MONEY: Final = ("money", "money_per_call")


@attrs.frozen
class Rate:
    """So many calls in any stretch of time of so many seconds.

    >>> Rate.parse("60/minute")
    Rate(calls=60, seconds=60)
    """

    calls: int
    seconds: int

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Return the rate that a text such as ``60/minute`` names, or raise a ValueError."""
        found = RATE.fullmatch(text)
        if found is None:
            raise ValueError("write calls/period, such as 60/minute; a period is second, minute, hour or day")
        return cls(int(found[1]), PERIODS[found[2]])


def _amount(given: Amount | None) -> Decimal | None:
    """Show type checkers what a field takes; it is converted with the other fields, so that all faults are listed."""
    return cast(Decimal | None, given)


def _amounts(given: Mapping[str, Amount]) -> Mapping[str, Decimal]:
    """The same for amounts by currency."""
    return cast(Mapping[str, Decimal], given)


@attrs.frozen(kw_only=True)
class Limits:
    """How much may be done; None, or a name that is missing, is no limit.

    Counts, bytes and money are of one session and of all below it; *seconds*, *depth*, *money_per_call*,
    *result_bytes* and *items* are of one call.

    Attributes:
        calls: Calls in all, nested ones too.
        tool_calls: Calls of one tool by its name; zero is never.
        rates: ``"60/minute"`` by pattern of tools; all tools that match share it.
        depth: How many calls may stand in each other, 1 to `DEEPEST`.
        seconds: Wall seconds of one outermost call, with everything within.
        fs_bytes: Bytes read from and written to files.
        fs_entries: Entries of directories that are listed.
        net_bytes: Bytes sent and received.
        net_calls: Requests to other machines.
        money: What all calls may cost, by currency (``EUR``): whole numbers, decimals, or such a text.
        money_per_call: What one outermost call may cost, with everything within, by currency.
        sleep: Seconds that tools may sleep.
        concurrency: Outermost calls that may run at once.
        result_bytes: Size of one result, or of all items of a stream: its bytes of text, and 8 for each value.
        items: How many items one stream may give.
        repeats: How often the same outermost call with the same arguments may be made in a row.

    Raises:
        SpecError: With everything that is wrong with it.

    >>> Limits(tool_calls={"tool.HTTP.get": 3}, money={"EUR": "0.10"}).money["EUR"]
    Decimal('0.10')
    """

    calls: int | None = None
    tool_calls: Mapping[str, int] = attrs.field(factory=dict)
    rates: Mapping[str, str] = attrs.field(factory=dict)
    depth: int = 16
    seconds: float | None = None
    fs_bytes: int | None = None
    fs_entries: int | None = None
    net_bytes: int | None = None
    net_calls: int | None = None
    money: Mapping[str, Decimal] = attrs.field(factory=dict, converter=_amounts)
    money_per_call: Mapping[str, Decimal] = attrs.field(factory=dict, converter=_amounts)
    sleep: Decimal | None = attrs.field(default=None, converter=_amount)
    concurrency: int | None = None
    result_bytes: int | None = None
    items: int | None = None
    repeats: int | None = None

    def __attrs_post_init__(self) -> None:
        faults = [*_count_faults(self), *_tool_faults(self), *_rate_faults(self), *_amount_faults(self)]
        if faults:
            raise SpecError("limits", faults)

    @property
    def is_idle(self) -> bool:
        """Whether nothing has to be counted; depth, seconds and the size of a result are of one call alone."""
        return attrs.evolve(self, depth=16, seconds=None, result_bytes=None, items=None) == Limits()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The tools and patterns of tools that are named here."""
        return (*self.tool_calls, *self.rates)

    def rates_of(self, tool: str) -> Iterator[str]:
        """Yield the patterns of *rates* that match a canonical name."""
        if type(tool) is not str:
            require("limits", tool=(tool, STRING))
        return (pattern for pattern in self.rates if tool_matcher(pattern)(tool))


def amount(value: object) -> Decimal | None:
    """Return a number that counts something, exactly, or None where *value* is no such number.

    A float is the decimal that Python writes for it. NaN, infinities, truth values, what is below zero and what has
    more than 18 digits before the point are none.

    >>> amount(0.1), amount("2.50"), amount(3), amount(-1), amount(float("nan"))
    (Decimal('0.1'), Decimal('2.50'), Decimal('3'), None, None)
    """
    match value:
        case bool():
            return None
        case int():
            found = Decimal(int.__int__(value))
        case float():
            found = Decimal(float.__repr__(value))
        case str():
            found = Decimal(value if NUMBER.fullmatch(value) else "NaN")
        case Decimal():
            found = Decimal(value)
        case _:
            return None
    return found.copy_abs() if _counts(found) else None


def _counts(number: Decimal) -> bool:
    """Tell whether a sum of such numbers can be exact."""
    if not number.is_finite() or not 0 <= number <= LARGEST:
        return False
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and -PLACES <= exponent <= PLACES


def _count_faults(limits: Limits) -> Iterator[str]:
    for name in _COUNTS:
        value, least = getattr(limits, name), int(name in _AT_LEAST_ONE)
        if value is not None and (type(value) is not int or not least <= value <= LARGEST):
            yield f"{name} must be a {'positive' if least else 'non-negative'} integer, not {_told(value)}"
    if type(limits.depth) is not int or not 1 <= limits.depth <= DEEPEST:
        yield f"depth must be an integer from 1 to {DEEPEST}, not {_told(limits.depth)}"


def _tool_faults(limits: Limits) -> Iterator[str]:
    calls: dict[str, int] = {}
    yield from BY_NAME.problems("tool_calls", limits.tool_calls)
    for name, most in _items(limits.tool_calls):
        if not is_exact_tool(canonical(name)):
            yield f"tool_calls: {shown(name)} is not the name of a tool; a pattern goes to rates"
        elif type(most) is not int or not 0 <= most <= LARGEST:
            yield f"tool_calls[{shown(name)!r}] must be a non-negative integer, not {_told(most)}"
        else:
            calls[canonical(name)] = min(most, calls.get(canonical(name), most))
    object.__setattr__(limits, "tool_calls", calls)


def _rate_faults(limits: Limits) -> Iterator[str]:
    rates: dict[str, str] = {}
    yield from BY_NAME.problems("rates", limits.rates)
    for pattern, rate in _items(limits.rates):
        if not is_tool_pattern(canonical(pattern)):
            yield f"rates: {shown(pattern)} is not a valid pattern; use a name, or a pattern such as http.*"
            continue
        try:
            Rate.parse(rate if isinstance(rate, str) else "")
        except ValueError as error:
            yield f"rates[{shown(pattern)!r}]: {error}"
        if canonical(pattern) in rates:
            yield f"rates[{shown(pattern)!r}] stands there twice, in another spelling"
        rates[canonical(pattern)] = rate
    object.__setattr__(limits, "rates", rates)


def _amount_faults(limits: Limits) -> Iterator[str]:
    for name in _MONEY:
        sums: dict[str, Decimal] = {}
        yield from BY_NAME.problems(name, getattr(limits, name))
        for currency, given in _items(getattr(limits, name)):
            if CURRENCY.fullmatch(currency) is None:
                yield f"{name}: {shown(currency)} is no currency; write three capitals, such as EUR"
            elif (most := amount(given)) is None:
                yield f"{name}[{currency!r}] must be a number, 0 or more, not {_told(given)}"
            else:
                sums[currency] = most
        object.__setattr__(limits, name, sums)
    for name, made in (("seconds", float), ("sleep", Decimal)):
        given = getattr(limits, name)
        if given is None:
            continue
        most = amount(given)
        if most is None or (name == "seconds" and not most):
            yield f"{name} must be a number {'above 0' if name == 'seconds' else 'of 0 or more'}, not {_told(given)}"
        else:
            object.__setattr__(limits, name, made(most))


def _items(given: Any) -> list[tuple[Any, Any]]:
    """Return the items of a mapping by strings; of anything else, which has been refused, none."""
    return list(given.items()) if BY_NAME.accepts(given) else []


def _told(value: object) -> str:
    """Return a number as it is written and of anything else the type: a limit is no value of a call."""
    if isinstance(value, int) and abs(value) > LARGEST:  # Python may refuse to write all its digits
        return "one of more than 18 digits"
    return shown(str(value)) if isinstance(value, (int, float, str, Decimal)) else type_name(value)
