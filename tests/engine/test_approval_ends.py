"""Approvals whose session or enclosing call ends before the answer."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from neuroscript import Approval, ApprovalRequest, Engine, ExecutionPolicy, Runtime, ToolPolicy, Toolset


def engine_of(approver: Any, ran: list[str]) -> Engine:
    """Return an engine with a tool that needs an approval, and one that calls it in limited time."""
    tools = Toolset("t")

    @tools.tool(policy=ToolPolicy(requires_approval=True))
    def ask(rt: Runtime) -> str:
        """Note that it ran."""
        ran.append("ask")
        return "done"

    @tools.tool(policy=ToolPolicy(timeout=0.3))
    def outer(rt: Runtime) -> Any:
        """Call it."""
        return rt.call_tool("t.ask")

    return Engine(plugins="none", toolsets=[tools], policy=ExecutionPolicy(approver=approver))


def test_answer_after_the_session_was_closed_is_not_used() -> None:
    """A sync approver approves, but its session was closed meanwhile."""
    ran: list[str] = []
    closing: list[Any] = []

    def approve(request: ApprovalRequest) -> Approval:
        closing[0].close()
        return Approval.approve()

    with engine_of(approve, ran) as engine:
        closing.append(engine.session())
        error = closing[0].execute({"name": "t.ask"}).error

    assert error is not None
    text = "t.ask: was not approved before its session was closed"
    assert ("engine.closed", "never", text, []) == (error.code, error.retry, str(error), ran)


def test_answer_after_the_session_was_stopped_is_not_used() -> None:
    """Another approver has stopped the session meanwhile."""
    ran: list[str] = []
    first = threading.Event()
    stopped = threading.Event()

    def decide(request: ApprovalRequest) -> Approval:
        if not first.is_set():
            first.set()
            assert stopped.wait(60)
            return Approval.approve()
        return Approval.stop()

    with engine_of(decide, ran) as engine, engine.session() as session:
        errors: list[Any] = []
        call = threading.Thread(target=lambda: errors.append(session.execute({"name": "t.ask"}).error))
        call.start()
        assert first.wait(60)
        session.execute({"name": "t.ask"})
        stopped.set()
        call.join()

    assert [("policy.stopped", "never")] == [(error.code, error.retry) for error in errors]
    assert [] == ran


def test_async_approver_is_cancelled_when_its_session_closes() -> None:
    """The call does not wait for it."""
    ran: list[str] = []
    outcome: list[str] = []

    async def approve(request: ApprovalRequest) -> Approval:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise
        return Approval.approve()

    async def run() -> Any:
        with engine_of(approve, ran) as engine, engine.session() as session:
            call = asyncio.create_task(session.aexecute({"name": "t.ask"}))
            await asyncio.sleep(0.05)
            session.close()
            return (await call).error

    error = asyncio.run(run())
    assert ("engine.closed", "never", ["cancelled"], []) == (error.code, error.retry, outcome, ran)


def test_async_approver_is_cancelled_when_its_enclosing_call_times_out() -> None:
    """The tool that made the call no longer runs, so the answer could not be used."""
    ran: list[str] = []
    cancelled = threading.Event()

    async def approve(request: ApprovalRequest) -> Approval:
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return Approval.approve()

    with engine_of(approve, ran) as engine:
        error = engine.execute({"name": "t.outer"}).error

        assert error is not None
        assert ("call.timeout", "later") == (error.code, error.retry)
        assert cancelled.wait(60)
    assert [] == ran
