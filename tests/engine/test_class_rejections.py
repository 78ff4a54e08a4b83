"""A class that rejects the values of its fields refuses the call before it counts against a limit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from neuroscript import (
    ArgumentError,
    Engine,
    ExecutionPolicy,
    LimitError,
    Limits,
    MemoryAudit,
    Resolver,
    ToolFailed,
    ToolPolicy,
    Value,
    tool,
)


@dataclass
class Odd:
    """A class with a rule of its own."""

    number: int

    def __post_init__(self) -> None:
        if self.number % 2 == 0:
            raise ValueError(self.number)


def take(odd: list[Odd]) -> int:
    """Return the sum of odd numbers."""
    return sum(each.number for each in odd)


POLICIES = {"compiled": ToolPolicy(), "stepwise": ToolPolicy(timeout=30)}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("watched", [False, True], ids=["limits", "limits and audit"])
def test_rejected_call_costs_no_limit(policy: ToolPolicy, watched: bool) -> None:
    """The error names the place without the value, and its cause is the exception of the class."""
    audit = MemoryAudit()
    limits = ExecutionPolicy(limits=Limits(calls=1))
    with Engine(plugins="none", policy=limits, audit=[audit] if watched else ()) as engine:
        engine.register(tool(take, group="g", policy=policy))
        for _ in range(3):
            with pytest.raises(ArgumentError) as caught:
                engine.call("g.take", ([{"number": 1}, {"number": "4815162342"}],))
            assert ("coercion.class", "model") == (caught.value.code, caught.value.retry)
            assert "g.take: odd[1]: expected a value that Odd accepts, got dict" == str(caught.value)
            assert isinstance(caught.value.__cause__, ValueError)

        assert 7 == engine.call("g.take", ([{"number": 7}],))
        with pytest.raises(LimitError) as refused:
            engine.call("g.take", ([{"number": 7}],))
        assert ("limit.calls", "host") == (refused.value.code, refused.value.retry)
    if watched:
        assert [*["coercion.class"] * 3, "ok", "limit.calls"] == [record.code for record in outcomes(audit)]
        assert "4815162342" not in repr(audit.records)


def test_rejected_call_of_a_coroutine_costs_no_limit() -> None:
    """An awaited call follows the same steps."""

    async def wait(odd: Odd) -> int:
        """Return an odd number."""
        return odd.number

    with Engine(plugins="none", policy=ExecutionPolicy(limits=Limits(calls=1))) as engine:
        engine.register(tool(wait, group="g"))
        with pytest.raises(ArgumentError) as caught:
            asyncio.run(engine.acall("g.wait", ({"number": 2},)))
        assert ("coercion.class", "model") == (caught.value.code, caught.value.retry)
        assert 3 == asyncio.run(engine.acall("g.wait", ({"number": 3},)))


def outcomes(audit: MemoryAudit) -> list[Any]:
    """Return the records of calls that ended."""
    return [record for record in audit.records if record.code]


def join(odd: list[Odd], more: Odd) -> int:
    """Return the sum of odd numbers."""
    return sum(each.number for each in odd) + more.number


@pytest.mark.parametrize("is_late", [False, True], ids=["constant", "resolved"])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_rejected_call_with_injected_argument_costs_no_limit(policy: ToolPolicy, is_late: bool) -> None:
    """The class of a visible argument refuses the call as it does without injected arguments."""
    source = Resolver(lambda rt: {"number": 1}) if is_late else Value({"number": 1})
    with Engine(plugins="none", policy=ExecutionPolicy(limits=Limits(calls=1))) as engine:
        engine.register(tool(join, group="g", policy=policy).with_injected(more=source))
        for _ in range(3):
            with pytest.raises(ArgumentError) as caught:
                engine.call("g.join", ([{"number": 1}, {"number": 2}],))
            assert "g.join: odd[1]: expected a value that Odd accepts, got dict" == str(caught.value)

        assert 8 == engine.call("g.join", ([{"number": 7}],))


accepted: list[int] = []


@dataclass
class Fickle:
    """A class that accepts a limited number of values."""

    number: int

    def __post_init__(self) -> None:
        accepted.pop()


def use(fickle: Fickle) -> int:
    """Return a number."""
    return fickle.number


def test_class_that_rejects_an_injected_constant_later() -> None:
    """The error is for the host, because the model can neither see nor set the argument."""
    accepted.append(1)
    with Engine(plugins="none") as engine:
        engine.register(tool(use, group="g").with_injected(fickle=Value({"number": 1})))
        accepted.clear()
        with pytest.raises(ToolFailed) as caught:
            engine.call("g.use")

    text = "g.use: fickle: expected a value that Fickle accepts, got dict (the host supplies this argument)"
    assert (text, "inject.invalid", "host") == (str(caught.value), caught.value.code, caught.value.retry)
