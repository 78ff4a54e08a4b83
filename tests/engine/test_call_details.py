"""Details of calls that only a test of the detail notices: closed results, refunded calls, keys, and approvals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neuroscript import (
    Approval,
    ApprovalRequest,
    ArgSpec,
    ArgType,
    CallError,
    CallRecord,
    Engine,
    ExecutionPolicy,
    Limits,
    PolicyError,
    ReturnError,
    Runtime,
    ToolCall,
    ToolPolicy,
    Toolset,
    ToolSpec,
)


def engine_of(spec: ToolSpec, func: Callable[..., Any], needs: ToolPolicy | None = None, **options: Any) -> Engine:
    """Return an engine with one tool."""
    tools = Toolset("g")
    tools.add(spec, func, needs or ToolPolicy())
    return Engine(toolsets=[tools], plugins="none", **options)


@pytest.mark.parametrize("timeout", [None, 60], ids=["compiled", "steps"])
def test_a_result_of_the_wrong_type_is_closed(timeout: float | None) -> None:
    """A tool that returns a generator by mistake leaves none open."""
    made: list[Any] = []
    closed: list[bool] = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append(True)

    def wrong(rt: Runtime) -> Any:
        made.append(numbers())
        next(made[-1])
        return made[-1]

    with engine_of(ToolSpec("t", "g", return_type=ArgType.INT), wrong) as engine, pytest.raises(ReturnError) as caught:
        engine.call("g.t", timeout=timeout)

    assert (caught.value.code, caught.value.retry) == ("return.type", "never")
    assert closed == [True]


def failing_cleanup() -> Iterator[int]:
    try:
        yield 1
    finally:
        raise ValueError("secret")


class Sender:
    def send(self, value: object) -> None:
        """Do nothing; it has no ``close``."""


class Unreadable:
    @property
    def send(self) -> None:
        raise ValueError("secret")

    close = send


@pytest.mark.parametrize("timeout", [None, 60], ids=["compiled", "steps"])
@pytest.mark.parametrize(
    ("make", "stream"),
    [(failing_cleanup, False), (Sender, False), (Sender, True), (Unreadable, False), (Unreadable, True)],
)
def test_a_result_of_the_wrong_type_that_cannot_be_closed_is_reported(
    make: Callable[[], Any], stream: bool, timeout: float | None
) -> None:
    """What its own code raises does not reach the caller."""

    def wrong(rt: Runtime) -> Any:
        made = make()
        if isinstance(made, Iterator):
            next(made)
        return made

    spec = ToolSpec("t", "g", return_type=ArgType.INT, stream=stream)
    with engine_of(spec, wrong) as engine, pytest.raises(ReturnError) as caught:
        engine.call("g.t", timeout=timeout)

    assert (caught.value.code, caught.value.retry) == ("return.type", "never")


class Sink:
    """An audit log that refuses the first start of a call."""

    intents = True
    refusals = 1

    def write(self, record: CallRecord) -> None:
        if record.kind == "intent" and self.refusals:
            self.refusals -= 1
            raise OSError

    def close(self) -> None:
        """Do nothing."""


def test_a_call_that_never_began_is_no_repetition() -> None:
    """The audit log refuses the first call, so the second one is the first that counts."""
    policy = ExecutionPolicy(limits=Limits(max_identical_calls=1, calls=1))
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.INT),), return_type=ArgType.INT)
    with engine_of(spec, lambda rt, a: a, ToolPolicy(effects=("writes",)), policy=policy, audit=Sink()) as engine:
        with pytest.raises(PolicyError) as refused:
            engine.call("g.t", (5,))
        assert (refused.value.code, refused.value.retry) == ("audit.unavailable", "host")

        assert engine.call("g.t", (5,)) == 5


class Number(int):
    """A subclass of int."""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({1: "a", 2.5: "b", None: "c", b"k": "d", "e": "e", False: "f"}, None),
        ({Number(7): "a"}, {7: "a"}),
        ({"x": [1, {2: 3}]}, "coercion.key"),
        ({(1, 2): 3}, "coercion.key"),
        ({2**70: 1}, "coercion.range"),
        ({float("nan"): 1}, "coercion.nonfinite"),
        ({"\ud800": 1}, "coercion.encoding"),
    ],
    ids=["plain keys", "subclass", "inner keys", "tuple", "large", "nan", "surrogate"],
)
def test_keys_of_any_map(given: Any, expected: Any) -> None:
    """Plain keys of every type stay exact; keys of inner maps are strings."""
    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.MAP_ANY_ANY),), return_type=ArgType.STRING)
    with engine_of(spec, lambda rt, a: repr([(type(key).__name__, key, each) for key, each in a.items()])) as engine:
        try:
            found = engine.call("g.t", (given,))
        except CallError as error:
            assert (error.code, error.retry) == (expected, "model")
            assert [each.code for each in error.problems] == [expected]
            return

    wanted = given if expected is None else expected
    assert found == repr([(type(key).__name__, key, each) for key, each in wanted.items()])


@pytest.mark.parametrize("entry_point", ["call", "call_named", "execute"])
def test_every_entry_point_asks_the_approver_each_time(entry_point: str) -> None:
    """A tool with approvers is never called directly, however often it was called before."""
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Approval:
        asked.append(request.tool)
        return Approval.approve() if len(asked) < 3 else Approval.reject("no")

    spec = ToolSpec("t", "g", (ArgSpec("a", ArgType.INT),), return_type=ArgType.INT)
    needs, policy = ToolPolicy(requires_approval=True), ExecutionPolicy(approver=approve)
    with engine_of(spec, lambda rt, a: a, needs, policy=policy) as engine:
        calls = {
            "call": lambda: engine.call("g.t", (5,)),
            "call_named": lambda: engine.call_named("g.t", {"a": 5}),
            "execute": lambda: engine.execute(ToolCall("g__t", {"a": 5})).value,
        }
        assert [calls[entry_point]() for _ in range(2)] == [5, 5]
        assert not engine._entry("g.t").pipeline.is_direct
        error = engine.execute(ToolCall("g__t", {"a": 5})).error

    assert error is not None
    assert (error.code, error.retry) == ("policy.rejected", "never")
    assert asked == ["g.t"] * 3


@pytest.mark.parametrize("name", ["inner", "middle", "outer"])
def test_an_approval_request_contains_the_calls_around_it(name: str) -> None:
    """The innermost comes first."""
    asked: list[tuple[Any, ...]] = []

    def approve(request: ApprovalRequest) -> Approval:
        asked.append((request.tool, request.depth, request.above))
        return Approval.approve()

    tools = Toolset("g")
    tools.add(ToolSpec("inner", "g"), lambda rt: None, ToolPolicy(requires_approval=True))
    tools.add(ToolSpec("middle", "g"), lambda rt: rt.call_tool("g.inner"))
    tools.add(ToolSpec("outer", "g"), lambda rt: rt.call_tool("g.middle"))
    with Engine(toolsets=[tools], plugins="none", policy=ExecutionPolicy(approver=approve)) as engine:
        engine.call(f"g.{name}")

    above = {"inner": (), "middle": ("g.middle",), "outer": ("g.middle", "g.outer")}[name]
    assert asked == [("g.inner", len(above) + 1, above)]
