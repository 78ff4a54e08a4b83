"""Limits that a host sets: calls, rates, bytes, money and time.

Limits are immutable data. Integers stay integers and amounts are decimals, so sums never lose precision.
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
from neuroscript.io.text import quote_untrusted
from neuroscript.names import canonical
from neuroscript.policy.scopes import is_exact_tool, is_tool_pattern, tool_matcher

CURRENCY: Final = re.compile(r"[A-Z]{3}")
"""An ISO 4217 currency code."""

NUMBER: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(second|minute|hour|day)", re.ASCII)
PERIODS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}

MAX_COUNT: Final = 10**18 - 1
"""The largest amount that can be counted."""

MAX_DECIMAL_PLACES: Final = 400
"""Maximum number of decimal places, more than any float has."""

MAX_DEPTH: Final = 64
"""Maximum depth of nested calls; each level uses some of the stack."""

_COUNTS: Final = (
    *("calls", "fs_bytes", "fs_entries", "net_bytes", "net_calls", "concurrency"),
    *("result_bytes", "items", "max_identical_calls"),
)
_AT_LEAST_ONE: Final = frozenset({"concurrency", "max_identical_calls"})
Amount = Decimal | int | float | str
"""An amount; the string ``"0.10"`` is exact too."""

_MONEY: Final = ("money", "money_per_call")


@attrs.frozen
class Rate:
    """A number of calls per number of seconds, in any window of that length.

    >>> Rate.parse("60/minute")
    Rate(calls=60, seconds=60)
    """

    calls: int
    seconds: int

    @classmethod
    def parse(cls, text: str) -> Rate:
        """Parse a rate such as ``60/minute``, or raise a ValueError."""
        found = RATE.fullmatch(text)
        if found is None:
            raise ValueError("write calls/period, such as 60/minute; a period is second, minute, hour or day")
        return cls(int(found[1]), PERIODS[found[2]])


def _amount(given: Amount | None) -> Decimal | None:
    """Declare the accepted types to type checkers; conversion happens with the other fields, to report all problems."""
    return cast(Decimal | None, given)


def _amounts(given: Mapping[str, Amount]) -> Mapping[str, Decimal]:
    """Declare the accepted types for amounts by currency."""
    return cast(Mapping[str, Decimal], given)


@attrs.frozen(kw_only=True)
class Limits:
    """Limits on what calls may use. None, or a missing name, means no limit.

    Counts, bytes and money apply to a session and all sessions below it. *seconds*, *depth*, *money_per_call*,
    *result_bytes* and *items* apply to each call.

    Attributes:
        calls: Total number of calls, including nested ones.
        tool_calls: Number of calls by tool name; zero forbids the tool.
        rates: Rates such as ``"60/minute"`` by tool pattern; all matching tools share one rate.
        depth: Maximum depth of nested calls, 1 to `MAX_DEPTH`.
        seconds: Wall-clock seconds of one outermost call, including nested calls.
        fs_bytes: Bytes read from and written to files.
        fs_entries: Directory entries listed.
        net_bytes: Bytes sent and received.
        net_calls: Network requests.
        money: Cost of all calls by currency (``EUR``): integers, decimals or strings of digits.
        money_per_call: Cost of one outermost call by currency, including nested calls.
        sleep: Seconds that tools may sleep.
        concurrency: Outermost calls that may run at the same time.
        result_bytes: Size of one result, or of all items of a stream: its string bytes, plus 8 for each value.
        items: Number of items in one stream.
        max_identical_calls: How often the same outermost call with the same arguments may be made in a row.

    Raises:
        SpecError: If a limit is invalid. The error lists every problem.

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
    max_identical_calls: int | None = None

    def __attrs_post_init__(self) -> None:
        faults = [*_count_faults(self), *_tool_faults(self), *_rate_faults(self), *_amount_faults(self)]
        if faults:
            raise SpecError("limits", faults)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is counted across calls; depth, seconds and result size apply to single calls."""
        return attrs.evolve(self, depth=16, seconds=None, result_bytes=None, items=None) == Limits()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The tool names and tool patterns that these limits mention."""
        return (*self.tool_calls, *self.rates)

    def rates_of(self, tool: str) -> Iterator[str]:
        """Yield the patterns in *rates* that match a canonical tool name."""
        if type(tool) is not str:
            require("limits", tool=(tool, STRING))
        return (pattern for pattern in self.rates if tool_matcher(pattern)(tool))


def parse_amount(value: object) -> Decimal | None:
    """Return an amount as an exact decimal, or None if *value* is not a valid amount.

    A float becomes the decimal that Python prints for it. NaN, infinities, booleans, negative numbers and numbers with
    more than 18 digits before the decimal point are invalid.

    >>> parse_amount(0.1), parse_amount("2.50"), parse_amount(3), parse_amount(-1), parse_amount(float("nan"))
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
    """Return whether sums of such numbers are exact."""
    if not number.is_finite() or not 0 <= number <= MAX_COUNT:
        return False
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and -MAX_DECIMAL_PLACES <= exponent <= MAX_DECIMAL_PLACES


def _count_faults(limits: Limits) -> Iterator[str]:
    for name in _COUNTS:
        value, least = getattr(limits, name), int(name in _AT_LEAST_ONE)
        if value is not None and (type(value) is not int or not least <= value <= MAX_COUNT):
            yield f"{name} must be a {'positive' if least else 'non-negative'} integer, not {_told(value)}"
    if type(limits.depth) is not int or not 1 <= limits.depth <= MAX_DEPTH:
        yield f"depth must be an integer from 1 to {MAX_DEPTH}, not {_told(limits.depth)}"


def _tool_faults(limits: Limits) -> Iterator[str]:
    calls: dict[str, int] = {}
    yield from BY_NAME.problems("tool_calls", limits.tool_calls)
    for name, most in _items(limits.tool_calls):
        if not is_exact_tool(canonical(name)):
            yield f"tool_calls: {quote_untrusted(name)} is not the name of a tool; use rates for patterns"
        elif type(most) is not int or not 0 <= most <= MAX_COUNT:
            yield f"tool_calls[{quote_untrusted(name)!r}] must be a non-negative integer, not {_told(most)}"
        else:
            calls[canonical(name)] = min(most, calls.get(canonical(name), most))
    object.__setattr__(limits, "tool_calls", calls)


def _rate_faults(limits: Limits) -> Iterator[str]:
    rates: dict[str, str] = {}
    yield from BY_NAME.problems("rates", limits.rates)
    for pattern, rate in _items(limits.rates):
        if not is_tool_pattern(canonical(pattern)):
            yield f"rates: {quote_untrusted(pattern)} is not a valid pattern; use a name, or a pattern such as http.*"
            continue
        try:
            Rate.parse(rate if isinstance(rate, str) else "")
        except ValueError as error:
            yield f"rates[{quote_untrusted(pattern)!r}]: {error}"
        if canonical(pattern) in rates:
            yield f"rates[{quote_untrusted(pattern)!r}] appears twice, in different spellings"
        rates[canonical(pattern)] = rate
    object.__setattr__(limits, "rates", rates)


def _amount_faults(limits: Limits) -> Iterator[str]:
    for name in _MONEY:
        sums: dict[str, Decimal] = {}
        yield from BY_NAME.problems(name, getattr(limits, name))
        for currency, given in _items(getattr(limits, name)):
            if CURRENCY.fullmatch(currency) is None:
                yield f"{name}: {quote_untrusted(currency)} is not a currency; write three capital letters, such as EUR"
            elif (most := parse_amount(given)) is None:
                yield f"{name}[{currency!r}] must be a number, 0 or more, not {_told(given)}"
            else:
                sums[currency] = most
        object.__setattr__(limits, name, sums)
    for name, made in (("seconds", float), ("sleep", Decimal)):
        given = getattr(limits, name)
        if given is None:
            continue
        most = parse_amount(given)
        if most is None or (name == "seconds" and not most):
            yield f"{name} must be a number {'above 0' if name == 'seconds' else 'of 0 or more'}, not {_told(given)}"
        else:
            object.__setattr__(limits, name, made(most))


def _items(given: Any) -> list[tuple[Any, Any]]:
    """Return the items of a mapping with string keys, or nothing for any other value, which is already reported."""
    return list(given.items()) if BY_NAME.accepts(given) else []


def _told(value: object) -> str:
    """Return a number as written, or the type of any other value. A limit is not an argument, so it may be shown."""
    if isinstance(value, int) and abs(value) > MAX_COUNT:  # Python may refuse to print all its digits
        return "one of more than 18 digits"
    return quote_untrusted(str(value)) if isinstance(value, (int, float, str, Decimal)) else type_name(value)
