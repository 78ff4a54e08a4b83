"""Tools, hosts and other calls that get in the way of tracking: no label is lost, and no rule is skipped."""

from __future__ import annotations

import threading
from typing import Any

from neuroscript import (
    Approval,
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    FlowRule,
    Runtime,
    ToolCall,
    Toolset,
    hookimpl,
)

from .mail_tools import ADDRESS, GRANTS, NEUTRAL, REFUSE, SENDS, code, run, toolset

others = Toolset("x")


@others.tool(policy=SENDS)
def push(rt: Runtime) -> str:
    """Send something that needs no argument."""
    return "pushed"


@others.tool(policy=NEUTRAL)
def read_and_push(rt: Runtime) -> str:
    """Send something after reading a page."""
    rt.call_tool("t.page")
    return str(rt.call_tool("x.push"))


def engine_of(*rules: FlowRule, **options: Any) -> Engine:
    """Return an engine with both toolsets; the options are parameters of the engine and fields of the policy."""
    of_engine = {name: options.pop(name) for name in ("hooks", "host", "spill", "audit") if name in options}
    policy = ExecutionPolicy(flow=rules, **{"grants": GRANTS, **options})
    return Engine(policy=policy, toolsets=[toolset, others], plugins="none", **of_engine)


# Approvals


def test_approval_of_one_label_does_not_cover_another_one_that_is_read_later() -> None:
    asked: list[tuple[str, ...]] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(request.flows)
        return Approval.approve()

    with engine_of(FlowRule(["untrusted", "private"], ["outside"]), approver=approver) as engine:
        run(engine, "keep", "letter", "t.mail")
        run(engine, "mail")
        run(engine, "page")
        assert code(engine, "send_var", ADDRESS, "letter") == "policy.flow"
    assert asked == [("sends untrusted data from t.page (call 4) to outside",)]


# Calls at the same time


class Meanwhile:
    """A hook that makes another call of the same tool wait while the nested one is decided about."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self._waits, self._ends = threading.Event(), threading.Event()
        self._other = threading.Thread(target=self._call)

    def _call(self) -> None:
        assert self.engine is not None
        self.engine.execute(ToolCall("x.push"))

    @hookimpl
    def neuroscript_decide(self, call: Any) -> None:
        """Begin the other call when the nested one comes, and let it wait until the latter has ended."""
        if call.tool != "x.push":
            return
        if call.depth == 1:
            self._waits.set()
            self._ends.wait(10)
        else:
            self._other.start()
            assert self._waits.wait(10)

    def end(self) -> None:
        """Let the other call go on."""
        self._ends.set()
        self._other.join()


def test_calls_without_arguments_do_not_share_labels() -> None:
    hook = Meanwhile()
    with engine_of(REFUSE, hooks=[hook]) as engine:
        hook.engine = engine
        result = engine.execute(ToolCall("x.read_and_push"))
        hook.end()
    assert result.error is not None
    assert result.error.code == "policy.flow"
