"""Faults of the components that decide about calls or observe them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from neuroscript import (
    ArgumentError,
    CallError,
    Capability,
    PolicyError,
)
from neuroscript.approval.request import Approval

CANARY = "cаnary"  # with a Cyrillic letter, so it matches nothing else

Fault = Callable[[], Any]
"""The behavior of a broken component: it raises an error or returns an invalid answer."""


class Unspeakable(Exception):
    """An error that cannot be converted to a string."""

    def __str__(self) -> str:
        raise RuntimeError(CANARY)

    __repr__ = __str__


class Odd(BaseException):
    """A BaseException that Python itself does not define."""


def raising(error: Callable[[], BaseException]) -> Fault:
    """Return a function that raises a new error."""

    def fault() -> Any:
        raise error()

    return fault


RAISED: dict[str, Fault] = {
    "ValueError": raising(lambda: ValueError(CANARY)),
    "KeyError": raising(lambda: KeyError(CANARY)),
    "StopIteration": raising(lambda: StopIteration(CANARY)),
    "StopAsyncIteration": raising(lambda: StopAsyncIteration(CANARY)),
    "SystemExit": raising(lambda: SystemExit(CANARY)),
    "GeneratorExit": raising(lambda: GeneratorExit(CANARY)),
    "CancelledError": raising(lambda: asyncio.CancelledError(CANARY)),
    "RecursionError": raising(lambda: RecursionError(CANARY)),
    "MemoryError": raising(MemoryError),
    "TimeoutError": raising(TimeoutError),
    "an error that cannot be printed": raising(Unspeakable),
    "no Exception": raising(lambda: Odd(CANARY)),
    "a group": raising(lambda: BaseExceptionGroup(CANARY, [Odd(CANARY)])),
    "an ArgumentError": raising(lambda: ArgumentError([])),
    "a CallError": raising(lambda: CallError(CANARY)),
}
"""The errors that a component may raise."""


def returning(value: Any) -> Fault:
    """Return a function that always returns the same object."""
    return lambda: value


class Truthful:
    """An object that claims to equal everything."""

    verdict = "approve"
    allowed = True
    for_session = True
    arguments = None
    reason = ""

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Subclassed(Approval):
    """An approval of a foreign class."""


def approval(verdict: object) -> Approval:
    """Return an approval with a verdict that its constructor refuses."""
    made = Approval.approve()
    object.__setattr__(made, "verdict", verdict)
    return made


NO_APPROVAL: dict[str, Fault] = {
    "None": returning(None),
    "True": returning(True),
    "1": returning(1),
    "yes": returning("yes"),
    "approve": returning("approve"),
    "a dict": returning({"verdict": "approve"}),
    "a tuple": returning((True,)),
    "the class": returning(Approval),
    "the maker": returning(Approval.approve),
    "another class": returning(Truthful()),
    "a subclass": lambda: Subclassed("approve"),
    "an unknown verdict": lambda: approval("maybe"),
    "no verdict": lambda: approval(True),
    "an empty verdict": lambda: approval(""),
    "a verdict in capitals": lambda: approval("APPROVE"),
    "a generator": lambda: (Approval.approve() for _ in range(1)),
    "a list of one": lambda: [Approval.approve()],
}
"""Invalid answers of an approver."""

NO_REFUSAL: dict[str, Fault] = {
    "1": returning(1),
    "0": returning(0),
    "False": returning(False),
    "a dict": returning({}),
    "a list": returning([]),
    "bytes": returning(b""),
    "another class": returning(Truthful()),
    "an approval": lambda: Approval.approve(),
    "the class": returning(PolicyError),
    "a number": returning(0.0),
}
"""Invalid answers of a hook."""


class Need:
    """An object that looks like an empty need."""

    resource = "pure"
    verbs = ("use",)
    scopes = None


def half() -> Iterator[Capability]:
    """Yield a need, then fail."""
    yield Capability.parse("fs:read:data/a")
    raise ValueError(CANARY)


NO_NEEDS: dict[str, Fault] = {
    "None": returning(None),
    "5": returning(5),
    "True": returning(True),
    "a string": returning(f"fs:read:{CANARY}"),
    "a list of strings": returning([f"fs:read:{CANARY}"]),
    "a list of None": returning([None]),
    "a need of another class": returning((Need(),)),
    "a generator that fails": half,
    "the class": returning(Capability),
    "an empty text": returning(""),
    "an empty map": returning({}),
    "no bytes": returning(b""),
}
"""Invalid results of a need template."""

NO_TIME: dict[str, Fault] = {
    "NaN": returning(float("nan")),
    "infinity": returning(float("inf")),
    "minus infinity": returning(float("-inf")),
    "None": returning(None),
    "a string": returning("12:00"),
    "bytes": returning(b"0"),
    "a list": returning([1.0]),
    "a boolean": returning(True),
    "a decimal": returning(Decimal(1)),
    "a complex number": returning(1j),
    "a number without end": returning(10**400),
    "a year out of range": returning(1e300),
    "another class": returning(Truthful()),
}
"""Invalid times of a clock."""
