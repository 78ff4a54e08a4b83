"""Alternative spellings of a value: no rule is bypassed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.conftest import ALL
from tests.properties import same, shares
from tests.system.spellings import ROWS, WAYS, Forbidden, Probe, by_hook, label
from tests.system.test_vectors import HOSTILE, NAMESPACE

from neuroscript import (
    ArgType,
    ExecutionPolicy,
)
from neuroscript.approval.request import Approval, ApprovalRequest
from neuroscript.runtime.records import PendingCall
from neuroscript.tools.hookspecs import hookimpl


def test_every_type_of_argument_has_a_row() -> None:
    """The exception is `void`, which is not an argument type."""
    assert {row.type for row in ROWS} == {*ArgType} - {ArgType.VOID}


# Rules

Rule = Callable[[Any, list[Any]], dict[str, Any]]
"""Takes the forbidden value and a list for the values that the rule sees; returns the options of a `Probe`."""


def by_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Reject one value, and approve all others."""

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(request.arguments["x"])
        return Approval.reject("forbidden") if same(request.arguments["x"], forbidden) else Approval.approve()

    return {"asks": True, "policy": ExecutionPolicy(approver=approver)}


def by_async_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Do the same with an async approver."""

    async def approver(request: ApprovalRequest) -> Approval:
        await asyncio.sleep(0)
        seen.append(request.arguments["x"])
        return Approval.reject("forbidden") if same(request.arguments["x"], forbidden) else Approval.approve()

    return {"asks": True, "policy": ExecutionPolicy(approver=approver)}


def by_second_approver(forbidden: Any, seen: list[Any]) -> dict[str, Any]:
    """Let the host reject what a narrower policy approves with changed arguments."""
    host = by_approver(forbidden, seen)["policy"]

    def approver(request: ApprovalRequest) -> Approval:
        return Approval.modify(request.arguments)

    return {"asks": True, "policy": host.narrowed(approver=approver)}


RULES: dict[str, Rule] = {
    "approver": by_approver,
    "async approver": by_async_approver,
    "approver of the host": by_second_approver,
    "hook": by_hook,
}
CODES = {"approver": "policy.rejected", "async approver": "policy.rejected", "approver of the host": "policy.rejected",
         "hook": "policy.hook"}  # fmt: skip


# Ways to call


def ruled(row: Forbidden, kind: str, forbidden: Any) -> tuple[Probe, list[Any]]:
    """Return a probe with a rule that forbids one value, and the list of values that the rule sees."""
    seen: list[Any] = []
    return Probe(row, **RULES[kind](forbidden, seen)), seen


@pytest.mark.full
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("row", ROWS, ids=label)
def test_forbidden_value_never_reaches_the_function(row: Forbidden, kind: str) -> None:
    """Every spelling is refused; a similar value is refused or differs, as the rule sees it."""
    probe, _ = ruled(row, kind, row.value)
    for way in WAYS:
        probe.received.clear()
        for value in row.spellings:
            assert CODES[kind] == probe.end(way, value), f"{value!r} of {type(value)}, {way}"
            assert probe.received == []
        for value in row.alike:
            assert probe.end(way, value) in ("", "arg"), f"{value!r} of {type(value)}, {way}"
            assert not any(same(each, row.value) for each in probe.received), f"{value!r} of {type(value)}, {way}"


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("row", ROWS, ids=label)
def test_rule_sees_exactly_what_the_function_receives(row: Forbidden, kind: str) -> None:
    """Values and types are equal at every level, and the rule has its own copy."""
    probe, seen = ruled(row, kind, object())

    for way in WAYS:
        for value in (*row.spellings, row.other):
            assert probe.end(way, value) == "", f"{value!r} of {type(value)}, {way}"
            received = probe.received[-1]
            assert same(seen[-1], received), way
            assert not shares(seen[-1], received), way
            assert same(received, row.value) or value is row.other


@pytest.mark.parametrize("kind", ["approver", "hook"])
def test_rule_that_changes_its_copy_changes_nothing(kind: str) -> None:
    """Neither the function nor the next rule sees the change."""

    def spoil(value: Any) -> None:
        value["k"].append(5)
        value.clear()

    class Gate:
        @hookimpl
        def neuroscript_decide(self, call: PendingCall) -> None:
            spoil(call.arguments["x"])

    def approver(request: ApprovalRequest) -> Approval:
        spoil(request.arguments["x"])
        return Approval.approve()

    seen: list[Any] = []
    host = by_approver(None, seen)["policy"]
    options = {
        "hook": {"hooks": [Gate(), *by_hook(None, seen)["hooks"]]},
        "approver": {"policy": host.narrowed(approver=approver), "asks": True},
    }[kind]
    probe = Probe(Forbidden(ArgType.MAP, None, (), (), None), **options)

    probe.engine.call("g.t", ({"k": [1]},))

    assert probe.received == seen == [{"k": [1]}]


VECTORS = [case for case in HOSTILE["cases"] if case["target"] != "void"]


@pytest.mark.full
@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_rule_sees_a_hostile_value_as_the_function_receives_it(case: Mapping[str, Any]) -> None:
    """Accepted values of the corpus are refused if the listed value is forbidden; no rule sees the others.

    Each case is tried with two kinds of rules, and in a full run with all of them.
    """
    for kind in RULES if ALL else [*RULES][VECTORS.index(case) % 2 :: 2]:
        value = eval(case["expr"], NAMESPACE)
        row = Forbidden(ArgType(case["target"]), None, (), (), None)
        free, seen = ruled(row, kind, object())
        code = free.end("in order", value)

        assert code in ("", "arg"), kind
        assert len(seen) == len(free.received) == int(code == ""), kind
        if code == "":
            assert same(seen[0], free.received[0]), kind
            bound, _ = ruled(row, kind, free.received[0])
            assert CODES[kind] == bound.end("in order", eval(case["expr"], NAMESPACE))
            assert bound.received == []
