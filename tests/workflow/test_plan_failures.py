"""Failures of plans: halted runs, retries, timeouts and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.workflow.labs import Lab
from tests.workflow.plan_runs import ends, run_plan

from neuroscript import Host, Toolset
from neuroscript.workflow import arun, plan_of_toml


def test_halting_failure_starts_no_further_node() -> None:
    """Running calls are awaited, and the plan fails; its trace says why."""
    lab = Lab()
    trace = run_plan(
        lab,
        """
        [nodes.slow]
        tool = "lab.nap"
        inputs.seconds = 0.2
        [nodes.bad]
        tool = "lab.fail"
        inputs.text = "no"
        [nodes.after]
        tool = "lab.add"
        inputs.a = "${slow}"
        [nodes.aside]
        tool = "lab.add"
        inputs.a = 1
        """,
    )

    assert ends(trace) == {
        "slow": "succeeded",
        "bad": "failed tool.failed",
        "after": "unstarted",
        "aside": "unstarted",
    }
    assert (trace.status, trace.output, trace.error) == (
        "failed",
        None,
        {"code": "plan.failed", "number": 6, "retry": "never", "message": "bad failed"},
    )
    assert lab.seen == [("fail", "no")]


def test_other_nodes_continue_after_failure() -> None:
    """Nodes that refer to it fail, nodes that only come after it run, and conditions can test it."""
    trace = run_plan(
        Lab(),
        """
        [nodes.bad]
        tool = "lab.fail"
        inputs.text = "no"
        on_fail = "continue"
        [nodes.refers]
        tool = "lab.add"
        inputs.a = "${bad}"
        on_fail = "continue"
        [nodes.comes_after]
        tool = "lab.add"
        inputs.a = 1
        depends_on = ["bad"]
        [nodes.instead]
        tool = "lab.add"
        inputs.a = 2
        when = { failed = "bad" }
        [nodes.not_so]
        tool = "lab.add"
        inputs.a = 3
        when = { succeeded = "bad" }
        [nodes.of_not_so]
        tool = "lab.add"
        inputs.a = "${not_so}"
        """,
    )

    assert trace.status == "succeeded"
    assert ends(trace) == {
        "bad": "failed tool.failed",
        "refers": "failed plan.reference",
        "comes_after": "succeeded",
        "instead": "succeeded",
        "not_so": "skipped",
        "of_not_so": "skipped",
    }
    assert trace["refers"].error is not None
    assert trace["refers"].error["message"] == "lab.add: bad failed and has no result"
    assert [trace[name].reason for name in ("not_so", "of_not_so")] == [
        "its condition does not hold",
        "not_so was skipped",
    ]
    assert trace.output == {"comes_after": 2, "instead": 3}


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        ('inputs.a = "${one.x[0]}"', "plan.reference", "lab.add: one has no x"),
        ('inputs.a = 1\nwhen = "${one.y}"', "plan.condition", "lab.add: when: expected true or false, got int"),
        ('inputs.a = "${item}"\nmap = "${one.y}"', "plan.reference", "lab.add: map: expected a list"),
        (
            'inputs.a = "${one.z}"',
            "coercion.format",
            "lab.add: a: expected int, got str (a string must be a decimal integer, such as 42)",
        ),
    ],
    ids=["a path", "a condition", "a map", "a type"],
)
def test_problems_at_run_time_fail_their_node(lines: str, code: str, message: str) -> None:
    """With the place, and no value."""
    trace = run_plan(
        Lab(),
        f'[nodes.one]\ntool = "lab.echo"\ninputs.value = {{ y = 1, z = "secret" }}\n[nodes.two]\ntool = "lab.add"\n{lines}',
    )

    error = trace["two"].error
    assert error is not None
    assert (error["code"].partition(" ")[0], error["message"]) == (code, message)


def test_caller_exception_ends_run() -> None:
    """It propagates, and no other call goes on."""
    lab = Lab()

    async def broken(work: Any) -> Any:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        asyncio.run(arun(lab.engine, plan_of_toml('[nodes.one]\ntool = "lab.add"\ninputs.a = 1'), caller=broken))


def test_timeout_is_retried_only_for_idempotent_tools() -> None:
    """And never while the first call still runs."""
    lab = Lab()
    trace = run_plan(
        lab, '[nodes.one]\ntool = "lab.nap"\ninputs.seconds = 0.4\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )

    assert ends(trace) == {"one": "failed call.timeout"}
    assert len(trace["one"].attempts) == 1

    lab = Lab()
    threading.Timer(1.4, lab.gate.set).start()  # between the timeout and the end of the wait for the late call
    trace = run_plan(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 1\nretry = { count = 3, backoff = 0 }'
    )

    assert (ends(trace), trace.output, lab.most) == ({"one": "succeeded"}, 7, 1)
    assert [each.code for each in trace["one"].attempts] == ["call.timeout", "ok"]


def test_endless_call_is_not_retried() -> None:
    """The retry waits as long again as the node's timeout; two attempts never run at once."""
    lab = Lab()
    trace = run_plan(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )
    lab.gate.set()

    assert (ends(trace), lab.seen) == ({"one": "failed call.timeout"}, [("wait", 7)])


def test_late_coroutine_is_cancelled_and_retried() -> None:
    """At once, because nothing of it still runs."""
    lab = Lab()
    trace = run_plan(
        lab, '[nodes.one]\ntool = "lab.rest"\ninputs.seconds = 30\ntimeout = 0.05\nretry = { count = 2, backoff = 0 }'
    )

    assert [each.code for each in trace["one"].attempts] == ["call.timeout"] * 3


def test_cancelled_plan_stops_running_tools() -> None:
    """No tool continues or begins."""
    lab = Lab()
    text = '[nodes.one]\ntool = "lab.rest"\ninputs.seconds = 30\n[nodes.two]\ntool = "lab.add"\ninputs.a = "${one}"'

    async def cancelled() -> set[Any]:
        task = asyncio.ensure_future(arun(lab.engine, plan_of_toml(text)))
        while not lab.seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert (asyncio.run(cancelled()), lab.seen, lab.engine._running) == (set(), [("rest", 30.0)], set())


def test_failed_item_ends_map() -> None:
    """Items that have not begun do not begin, and pending retries are dropped."""
    lab = Lab()
    trace = run_plan(
        lab,
        """
        inputs = { items = "slice" }
        [nodes.one]
        tool = "lab.add"
        map = "${input.items}"
        inputs.a = "${item}"
        on_fail = "continue"
        """,
        inputs={"items": [1, "x", 3]},
    )

    assert (ends(trace), lab.seen) == ({"one": "failed coercion.format"}, [("add", 1, 1)])
    assert [each.code for each in trace["one"].attempts] == ["ok", "coercion.format"]


def test_halted_map_has_failed() -> None:
    """Even if the running call had not ended when its other items were dropped."""
    lab = Lab()
    trace = run_plan(
        lab,
        """
        [nodes.bad]
        tool = "lab.rest"
        inputs.seconds = 30
        timeout = 0.05
        [nodes.many]
        tool = "lab.nap"
        map = [0.3, 0.3]
        inputs.seconds = "${item}"
        """,
        parallel=2,
    )

    assert ends(trace) == {"bad": "failed call.timeout", "many": "failed plan.halted"}
    assert [each.code for each in trace["many"].attempts] == ["ok"]


def test_closing_engine_fails_remaining_calls() -> None:
    """The trace shows how far the plan got. It runs on a loop of the caller, which the engine does not stop."""
    lab, closing = Lab(), Toolset("end")

    @closing.tool()
    def close() -> int:
        lab.engine.close()
        return 1

    lab.engine.register(closing)
    plan = plan_of_toml('[nodes.one]\ntool = "end.close"\n[nodes.two]\ntool = "lab.add"\ninputs.a = "${one}"')
    trace = asyncio.run(arun(lab.engine, plan))

    assert ends(trace) == {"one": "succeeded", "two": "failed engine.closed"}


class Waits:
    """A host clock with ``wait``."""

    def __call__(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    async def wait(self, seconds: float) -> None:
        """Wait for some seconds."""
        await asyncio.sleep(seconds)


def test_host_clock_timeout_runs_no_second_copy() -> None:
    """A cancelled call continues in its thread."""
    lab = Lab(host=Host(clock=Waits()))
    trace = run_plan(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )
    lab.gate.set()

    assert (ends(trace), lab.most, lab.seen) == ({"one": "failed call.timeout"}, 1, [("wait", 7)])
