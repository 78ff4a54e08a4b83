"""Limits of engines and sessions at every entry point, and calls that cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs
import pytest
from tests.engine.error_codes import code
from tests.engine.limited_tools import ENTRY_POINTS, INT, ONE, STRING, Failing, engine_of, entry_point, tools

from neuroscript import (
    ArgSpec,
    Engine,
    ExecutionPolicy,
    Host,
    LimitError,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
    hookimpl,
)
from neuroscript.approval.request import Approval
from neuroscript.policy.limits import Limits

# Each limit, through each entry point


@attrs.frozen
class Case:
    """A limit, and consecutive calls with their outcomes.

    Attributes:
        steps: The tool, its arguments and the code; or the seconds by which the clock advances.
        spent: The counts of the ledger at the end.
    """

    limits: dict[str, Any]
    steps: Sequence[Any]
    spent: dict[str, Any] = attrs.field(factory=dict)


def step(tool: str, *args: Any, code: str = "ok") -> tuple[str, tuple[Any, ...], str]:
    """Return a call of a case."""
    return f"g.{tool}", args or (1,), code


CASES: dict[str, Case] = {
    "calls in total": Case(
        {"calls": 3},
        [step("add"), step("fail", code="tool.failed"), step("awaited"), step("add", code="limit.calls")],
        {"calls": 3},
    ),
    "calls within are calls": Case(
        {"calls": 3},
        [step("outer"), step("outer", code="limit.calls"), step("add", code="limit.calls")],
        {"calls": 3},
    ),
    "calls of a tool": Case(
        {"tool_calls": {"tool.G.Add": 2, "g.deep": 0}},
        [step("add"), step("outer"), step("outer", code="limit.tool_calls"), step("awaited"), step("deep", code="limit.tool_calls")],
        {"calls of g.add": 2, "calls of g.deep": 0},
    ),
    "a rate": Case(
        {"rates": {"g.*": "2/minute"}},
        [step("add"), 30.0, step("stream"), step("add", code="limit.rate"), 29.5, step("awaited", code="limit.rate"),
         1.0, step("add"), step("add", code="limit.rate")],
    ),
    "a rate of one tool": Case(
        {"rates": {"g.add": "1/second"}},
        [step("add"), step("awaited"), step("outer", code="limit.rate"), 1.0, step("outer")],
    ),
    "calls in total of tools with and without a rate": Case(
        {"calls": 3, "rates": {"g.awaited": "9/minute"}},
        [step("add"), step("awaited"), step("add"), step("awaited", code="limit.calls")],
        {"calls": 3},
    ),
    "the same call in a row": Case(
        {"max_identical_calls": 2},
        [step("add", 5), step("add", 5), step("add", 5, code="limit.identical_calls"), step("add", 6), step("add", 5),
         step("add", 5), step("awaited", 5), step("add", 5)],
    ),
    "the same call in another spelling": Case(
        {"max_identical_calls": 2}, [step("add", 5), step("add", "5"), step("add", 5.0, code="limit.identical_calls")],
    ),
    "the same call within others": Case(
        {"max_identical_calls": 1}, [step("outer", 5), step("outer", 5, code="limit.identical_calls"), step("outer", 6), step("add", 6)],
    ),
    "a depth": Case(
        {"depth": 3}, [step("deep", 2), step("deep", 3, code="limit.depth"), step("deep", 2)],
    ),
    "money of the run": Case(
        {"money": {"EUR": "1.00"}},
        [step("pays", "EUR", "0.3"), step("pays_twice", "EUR", "0.3"), step("pays", "EUR", "0.11", code="limit.money"),
         step("pays", "EUR", "0.1"), step("pays", "EUR", "0.001", code="limit.money"), step("pays", "USD", "99")],
        {"EUR": Decimal("1.0")},
    ),
    "money of one call": Case(
        {"money_per_call": {"EUR": "0.5"}},
        [step("pays", "EUR", "0.5"), step("pays", "EUR", "0.51", code="limit.money"),
         step("pays_twice", "EUR", "0.25"), step("pays_twice", "EUR", "0.26", code="limit.money"),
         step("pays", "EUR", "0.5")],
    ),
    "money that comes back": Case(
        {"money": {"EUR": 1}},
        [step("settles", "EUR", "1", "0.25"), step("settles", "EUR", "0.75", "0.9"), step("pays", "EUR", "0.01", code="limit.money")],
        {"EUR": Decimal("1.15")},
    ),
    "seconds of sleep": Case(
        {"sleep": "1"},
        [step("pays", "sleep", "0.6"), step("pays_twice", "sleep", "0.3", code="limit.sleep"), step("pays", "sleep", "0.1")],
        {"sleep": Decimal("1.0")},
    ),
    "an amount of the wrong type": Case(
        {"money": {"EUR": 1}},
        [step("pays", "EUR", "-1", code="limit.amount"), step("pays", "EUR", "NaN", code="limit.amount"),
         step("pays", "eur", "1", code="limit.amount"), step("settles", "EUR", "1", "x", code="limit.amount")],
        {"EUR": 1},
    ),
    "none at all": Case({"calls": 0}, [step("add", code="limit.calls")], {"calls": 0}),
}  # fmt: skip


@entry_point
@pytest.mark.parametrize("name", CASES)
def test_a_limit_applies_to_every_entry_point(name: str, entry_point: str) -> None:
    """With and without compilation; the ledger counts the permitted calls only."""
    case, now = CASES[name], [1_000.0]
    engine = engine_of(Limits(**case.limits), clock=lambda: now[0])

    for each in case.steps:
        if isinstance(each, float):
            now[0] += each
        else:
            tool, args, expected = each
            assert code(lambda tool=tool, args=args: ENTRY_POINTS[entry_point](engine, tool, args)) == expected, (
                tool,
                args,
            )

    assert ({} if engine.ledger is None else dict(engine.ledger.spent)) == case.spent


@entry_point
def test_seconds_limit_an_outermost_call_with_its_nested_calls(entry_point: str) -> None:
    """Each nested call has the remaining time."""
    engine = engine_of(Limits(seconds=0.2))

    assert code(lambda: ENTRY_POINTS[entry_point](engine, "g.sleeps", (0.0,))) == "ok"
    assert code(lambda: ENTRY_POINTS[entry_point](engine, "g.sleeps_within", (0.1,))) == "call.timeout"
    assert code(lambda: ENTRY_POINTS[entry_point](engine, "g.sleeps", (0.0,))) == "ok"


@entry_point
def test_a_refused_repetition_says_what_to_do(entry_point: str) -> None:
    """The model that repeats itself receives the message; it contains no value."""
    engine = engine_of(Limits(max_identical_calls=3))
    for _ in range(3):
        ENTRY_POINTS[entry_point](engine, "g.add", (987_654,))

    with pytest.raises(LimitError) as caught:
        ENTRY_POINTS[entry_point](engine, "g.add", (987_654,))

    text = "the same call was made 3 times in a row; change the arguments, or do something else"
    assert (str(caught.value), caught.value.retry) == (f"g.add: {text}", "model")


# Calls that did not begin


class Deciding:
    """A hook that refuses one argument."""

    @hookimpl
    def neuroscript_decide(self, call: Any) -> str | None:
        return "not 13" if call.arguments.get("a") == 13 else None


def counting(timeout: float | None) -> tuple[Engine, Failing]:
    """Return an engine that counts everything, tools that are refused in each way, and the sink that can be full."""
    sink, made = Failing(), Toolset("n")
    specs: dict[str, dict[str, Any]] = {
        "plain": {},
        "needs": {"capabilities": ("fs:read:other/{path}",)},
        "asks": {"requires_approval": True},
        "denied": {},
    }
    for name, policy in specs.items():
        args = (*ONE, ArgSpec("path", STRING, default="a"))
        made.add(
            ToolSpec(name, "n", args, return_type=INT), lambda rt, a, path: a, ToolPolicy(timeout=timeout, **policy)
        )
    limits = Limits(
        calls=100, tool_calls={"n.plain": 50}, rates={"n.*": "90/hour"}, concurrency=5, max_identical_calls=2
    )
    policy = ExecutionPolicy(
        grants=["fs:read:data/**"], deny=["n.denied"], limits=limits,
        approver=lambda request: Approval.reject("no") if request.arguments["a"] != 7 else Approval.modify({"a": "x"}),
    )  # fmt: skip
    engine = Engine(
        toolsets=[made], plugins="none", policy=policy, audit=sink, audit_required="all", hooks=[Deciding()],
        host=Host(clock=lambda: 5.0),
    )  # fmt: skip
    return engine, sink


REFUSED = {
    "arguments that do not fit": ("n.plain", ("x",), "coercion.format"),
    "a capability": ("n.needs", (1,), "policy.capability"),
    "an approval that is rejected": ("n.asks", (1,), "policy.rejected"),
    "an approval with arguments that do not fit": ("n.asks", (7,), "coercion.format"),
    "a hook": ("n.plain", (13,), "policy.hook"),
    "a tool that is denied": ("n.denied", (1,), "policy.denied"),
    "no such tool": ("n.nothing", (1,), "tool.not_found"),
    "an audit that fails": ("n.plain", (1,), "audit.unavailable"),
}


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
@pytest.mark.parametrize("entry_point", ["call", "acall", "execute", "stream"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_call_that_did_not_begin_costs_nothing(case: str, entry_point: str, timeout: float | None) -> None:
    """Neither a count, nor a rate, nor a repetition, nor a slot."""
    engine, sink = counting(timeout)
    name, args, expected = REFUSED[case]
    for _ in range(2):
        engine.call("n.plain", (5,))
    before = dict(engine.ledger.spent)
    moments = list(engine.ledger._windows["n.*"]._moments)
    sink.is_full = case == "an audit that fails"

    for _ in range(3):
        assert code(lambda: ENTRY_POINTS[entry_point](engine, name, args)) == expected
        assert dict(engine.ledger.spent) == before
        assert list(engine.ledger._windows["n.*"]._moments) == moments

    sink.is_full = False
    assert before == {"calls": 2, "calls of n.plain": 2, "concurrency": 0}
    assert code(lambda: engine.call("n.plain", (5,))) == "limit.identical_calls"
    assert code(lambda: engine.call("n.plain", (6,))) == "ok"


@pytest.mark.parametrize("timeout", [None, 60.0], ids=["compiled", "steps"])
def test_a_nested_call_that_did_not_begin_costs_only_the_outer_call(timeout: float | None) -> None:
    """The outer call has run."""
    engine, _ = counting(timeout)
    engine.register(tools(tries=lambda rt, a: code(lambda: rt.call_tool("n.needs", (a,)))))

    assert engine.call("g.tries", (1,)) == "policy.capability"
    assert engine.ledger.spent == {"calls": 1, "calls of n.plain": 0, "concurrency": 0}


def test_a_refusal_by_one_limit_refunds_the_others() -> None:
    """Of the session and of the engine."""
    engine = engine_of(Limits(calls=10, tool_calls={"g.add": 1}))
    session = engine.session(policy=ExecutionPolicy(limits=Limits(calls=5)))
    session.call("g.add", (1,))

    assert [code(lambda: session.call("g.add", (1,))) for _ in range(3)] == ["limit.tool_calls"] * 3
    assert engine.ledger.spent == {"calls": 1, "calls of g.add": 1}
    assert session.ledger.spent == {"calls": 1}


def test_check_refuses_a_call_only_after_the_last_permitted_one() -> None:
    """Calls that the ledger counts in advance are still permitted."""
    engine = engine_of(Limits(calls=3))
    seen = []
    for _ in range(3):
        engine.call("g.add", (1,))
        seen += [(each.allowed, each.code) for each in engine.check([ToolCall("g.add", [1])])]

    assert seen == [(True, ""), (True, ""), (False, "limit.calls")]
    assert engine.ledger.spent == {"calls": 3}


# Sessions


@entry_point
def test_sessions_count_in_their_own_ledger_and_the_engines(entry_point: str) -> None:
    """Nested calls, bytes and money count in both; a session without limits uses the engine's ledger."""
    engine = engine_of(Limits(calls=9, money={"EUR": 1}))
    small = engine.session(policy=ExecutionPolicy(limits=Limits(calls=3, money={"EUR": "0.3"})))
    plain = engine.session()
    run = ENTRY_POINTS[entry_point]

    assert code(lambda: run(small, "g.pays_twice", ("EUR", "0.1"))) == "ok"
    assert code(lambda: run(small, "g.pays_twice", ("EUR", "0.2"))) == "limit.money"
    assert code(lambda: run(small, "g.pays", ("EUR", "0.1"))) == "limit.calls"
    assert code(lambda: run(plain, "g.pays_twice", ("EUR", "0.45"))) == "limit.money"
    assert code(lambda: run(plain, "g.pays", ("EUR", "0.1"))) == "ok"

    assert small.ledger.spent == {"calls": 3, "EUR": Decimal("0.2")}
    assert engine.ledger.spent == {"calls": 3 + 2 + 1, "EUR": Decimal("0.2") + Decimal("0.45") + Decimal("0.1")}
    assert [code(lambda: run(engine, "g.add", (1,))) for _ in range(4)] == ["ok"] * 3 + ["limit.calls"]
    assert code(lambda: run(plain, "g.add", (1,))) == "limit.calls"


def test_a_new_session_starts_at_zero_below_the_engines_counts() -> None:
    """For hosts with one session per caller."""
    engine = engine_of(Limits(calls=5))
    for _ in range(2):
        session = engine.session(policy=ExecutionPolicy(limits=Limits(calls=2)))
        assert [code(lambda: session.call("g.add", (1,))) for _ in range(3)] == ["ok", "ok", "limit.calls"]
        session.close()

    assert engine.ledger.spent == {"calls": 4}
