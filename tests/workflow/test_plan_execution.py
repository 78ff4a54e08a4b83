"""Execution of plans: order, concurrency, policy and the trace."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.workflow.labs import Lab
from tests.workflow.plan_runs import ends, run_plan

from neuroscript import Engine, ExecutionPolicy, Host, Limits, Toolset
from neuroscript.workflow import Step, Trace, arun, check, plan_of_toml, run
from neuroscript.workflow.runner import YIELD_SECONDS


def test_node_uses_results_of_previous_nodes() -> None:
    """Values are exact, and the last one is the output."""
    trace = run_plan(
        Lab(),
        """
        name = "sums"
        [inputs.first]
        type = "int"
        [nodes.c]
        tool = "lab.add"
        inputs = { a = "${b}", b = "${input.first}" }
        [nodes.b]
        tool = "tool.Lab.Add"
        inputs = { a = "2", b = "${input.first}" }
        """,
        inputs={"first": "40"},
    )

    assert (trace.status, trace.output, trace.inputs) == ("succeeded", 82, {"first": 40})
    assert [(node.name, node.tool, node.needs, node.arguments, node.result) for node in trace.nodes] == [
        ("c", "lab.add", ("b",), {"a": 42, "b": 40}, 82),
        ("b", "lab.add", (), {"a": 2, "b": 40}, 42),
    ]
    assert [each.code for node in trace.nodes for each in node.attempts] == ["ok", "ok"]
    assert trace["c"].started is not None
    assert trace["b"].started is not None
    assert trace["b"].started <= trace["c"].started


def test_independent_nodes_run_in_parallel() -> None:
    """Up to the limit."""
    text = "\n".join(f'[nodes.n{n}]\ntool = "lab.nap"\ninputs.seconds = 0.2' for n in range(8))
    free, bound = Lab(), Lab()

    assert run_plan(free, text).status == run_plan(bound, text, parallel=3).status == "succeeded"
    assert (free.most, bound.most) == (8, 3)


def test_async_calls_start_before_blocking_calls() -> None:
    """Otherwise all blocking calls would run first."""
    lab = Lab()
    calls = "\n".join(f'[nodes.n{number}]\ntool = "lab.add"\ninputs.a = {number}' for number in range(3))
    run_plan(lab, f'[nodes.rest]\ntool = "lab.rest"\ninputs.seconds = 0\n{calls}')

    assert lab.seen == [("rest", 0.0), ("add", 0, 1), ("add", 1, 1), ("add", 2, 1)]


def test_event_loop_runs_between_blocking_calls() -> None:
    """Each of them runs directly on the loop."""
    slow, seen = Toolset("slow"), list[str]()

    @slow.tool()
    def count() -> None:
        """Count for a while."""
        seen.append("call")
        time.sleep(2 * YIELD_SECONDS)

    async def others() -> None:
        with Engine(toolsets=[slow], plugins="none") as engine:
            nodes = "\n".join(f'[nodes.n{number}]\ntool = "slow.count"' for number in range(3))
            task = asyncio.create_task(arun(engine, plan_of_toml(nodes)))
            while not task.done():
                await asyncio.sleep(0)
                seen.append("other")

    asyncio.run(others())

    assert "".join("." if each == "call" else " " for each in seen).split() == [".", ".", "."]


def test_map_runs_node_for_each_item() -> None:
    """Its result is the list of results in order; an empty list gives an empty list."""
    trace = run_plan(
        Lab(),
        """
        output = { sums = "${sums}", none = "${none}", last = "${sums[-1]}", text = "${total} of ${sums}" }
        [nodes.numbers]
        tool = "lab.items"
        inputs.count = 4
        [nodes.sums]
        tool = "lab.add"
        map = "${numbers}"
        inputs = { a = "${item}", b = "${index}" }
        [nodes.none]
        tool = "lab.add"
        map = []
        inputs = { a = "${item}" }
        [nodes.total]
        tool = "lab.add"
        inputs = { a = "${sums[1]}", b = "${sums[3]}" }
        """,
    )

    assert {"sums": [0, 2, 4, 6], "none": [], "last": 6, "text": "8 of [0, 2, 4, 6]"} == trace.output
    assert trace["sums"].arguments == [{"a": n, "b": n} for n in range(4)]
    assert [each.item for each in trace["sums"].attempts] == [0, 1, 2, 3]


def test_policy_and_limits_apply_to_every_call() -> None:
    """A plan cannot bypass them."""
    lab = Lab(policy=ExecutionPolicy(allow=("*",), limits=Limits(calls=2)))
    trace = run_plan(lab, "\n".join(f'[nodes.n{n}]\ntool = "lab.add"\ninputs.a = {n}' for n in range(4)))

    assert list(ends(trace).values()) == ["succeeded", "succeeded", "failed limit.calls", "unstarted"]


def test_concurrency_limit_delays_calls() -> None:
    """The others wait; the plan does not fail."""
    lab = Lab(policy=ExecutionPolicy(allow=("*",), limits=Limits(concurrency=2)))
    trace = run_plan(lab, "\n".join(f'[nodes.n{n}]\ntool = "lab.nap"\ninputs.seconds = 0.02' for n in range(5)))

    assert (trace.status, lab.most) == ("succeeded", 2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(rates={"*": "1/minute"}), []),
        (Limits(calls=1), ["nodes.one.tool: no more than 1 calls in total are permitted"]),
    ],
    ids=["temporary", "permanent"],
)
def test_temporary_limit_does_not_prevent_run(limits: Limits, expected: list[str]) -> None:
    """Its node may be retried; a permanent limit is reported before the run."""
    lab = Lab(policy=ExecutionPolicy(limits=limits))
    lab.engine.call("lab.add", [1])

    assert list(check(lab.engine, plan_of_toml('[nodes.one]\ntool = "lab.add"\ninputs.a = 1'))) == expected


def test_trace_contains_no_secrets() -> None:
    """Neither in an argument, nor in an input, nor in a result that repeats it."""
    trace = run_plan(
        Lab(),
        """
        inputs = { key = { type = "string", secret = true } }
        [nodes.one]
        tool = "lab.unlock"
        inputs.key = "${input.key}"
        """,
        inputs={"key": "canary-4711"},
    )

    assert (trace.inputs, trace["one"].arguments) == ({"key": "[secret]"}, {"key": "[secret]"})
    assert "canary-4711" not in repr(trace)


def test_pause_ends_with_stopped_clock() -> None:
    """Waits take real time if the clock has no ``wait``."""
    lab = Lab(host=Host(clock=lambda: 5.0))
    plan = plan_of_toml('[nodes.one]\ntool = "lab.fail"\ninputs.text = "x"\nretry = { count = 1, backoff = 0.01 }')

    trace = asyncio.run(asyncio.wait_for(arun(lab.engine, plan), 10))

    assert [each.code for each in trace["one"].attempts] == ["tool.failed", "tool.failed"]


def test_trace_reference_contains_previous_outcomes() -> None:
    """Those of the nodes that had to end first, in the order of the plan, without arguments."""
    trace = run_plan(
        Lab(),
        """
        [nodes.bad]
        tool = "lab.fail"
        inputs.text = "no"
        on_fail = "continue"
        [nodes.aside]
        tool = "lab.add"
        inputs.a = 9
        [nodes.one]
        tool = "lab.add"
        inputs.a = 1
        depends_on = ["bad"]
        [nodes.report]
        tool = "lab.echo"
        inputs.value = { all = "${trace}", first = "${trace[0].status}" }
        depends_on = ["one"]
        """,
    )

    assert trace["report"].result == {
        "first": "failed",
        "all": [
            {
                "node": "bad",
                "tool": "lab.fail",
                "status": "failed",
                "error": {"code": "tool.failed", "message": "lab.fail: no"},
            },
            {"node": "one", "tool": "lab.add", "status": "succeeded", "result": 2},
        ],
    }


def test_event_loop_is_not_blocked() -> None:
    """Also from sync code while a loop runs in the same thread."""
    text = "\n".join(f'[nodes.n{n}]\ntool = "lab.{"nap" if n else "rest"}"\ninputs.seconds = 0.1' for n in range(3))

    async def both() -> tuple[int, Trace, Trace]:
        lab, ticks = Lab(), 0
        task = asyncio.ensure_future(arun(lab.engine, plan_of_toml(text)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.01)
        return ticks, task.result(), run(lab.engine, plan_of_toml(text))

    ticks, awaited, plain = asyncio.run(both())

    assert (awaited.status, plain.status, ticks > 3) == ("succeeded", "succeeded", True)


def test_watch_receives_each_step() -> None:
    """Its exceptions do not end the run."""
    steps: list[Step] = []

    def watch(step: Step) -> None:
        steps.append(step)
        raise RuntimeError("the watcher's own affair")

    lab = Lab()
    trace = run_plan(
        lab,
        '[nodes.one]\ntool = "lab.fail"\ninputs.text = "x"\non_fail = "continue"\nretry = { count = 1, backoff = 0 }\n'
        '[nodes.two]\ntool = "lab.add"\nmap = [1]\ninputs.a = "${item}"\ndepends_on = ["one"]\n'
        '[nodes.not]\ntool = "lab.add"\ninputs.a = 1\nwhen = { failed = "two" }\n'
        '[nodes.lost]\ntool = "lab.add"\ninputs.a = "${one}"\non_fail = "continue"\ndepends_on = ["two"]',
        watch=watch,
    )

    assert trace.status == "succeeded"
    assert [(each.kind, each.node, each.item, each.number, each.code, each.done) for each in steps] == [
        ("started", "one", None, 1, "", 0),
        ("ended", "one", None, 1, "tool.failed", 0),
        ("started", "one", None, 2, "", 0),
        ("ended", "one", None, 2, "tool.failed", 1),
        ("finished", "one", None, 2, "failed", 1),
        ("started", "two", 0, 1, "", 1),
        ("ended", "two", 0, 1, "ok", 2),
        ("finished", "two", 0, 1, "succeeded", 2),
        ("finished", "not", None, 0, "skipped", 3),
        ("finished", "lost", None, 0, "failed", 4),
    ]


def test_tool_of_plan_stays_in_sandbox(tmp_path: Path) -> None:
    """And needs a grant for the path that a reference returns."""
    lab = Lab(host=Host(sandbox_dir=tmp_path), policy=ExecutionPolicy(allow=("*",), grants=("fs:write:out/*",)))
    text = '[inputs]\npath = "string"\n[nodes.one]\ntool = "lab.write"\ninputs = { path = "${input.path}", text = "t" }'
    (tmp_path / "out").mkdir()

    assert run_plan(lab, text, inputs={"path": "out/a"}).status == "succeeded"
    assert ends(run_plan(lab, text, inputs={"path": "b"})) == {"one": "failed policy.capability"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_trace_reference_works_in_condition_map_and_output() -> None:
    """A condition and a map see the nodes that had to end first, the output all nodes."""
    trace = run_plan(
        Lab(),
        """
        output = "${trace}"
        [nodes.one]
        tool = "lab.add"
        inputs.a = 1
        [nodes.two]
        tool = "lab.echo"
        map = "${trace}"
        inputs.value = { status = "${item.status}", all = "${trace[0].result}" }
        when = { value = "${trace[0].result}", equals = 2 }
        depends_on = ["one"]
        """,
    )

    assert trace["two"].result == [{"status": "succeeded", "all": 2}]
    assert [(each["node"], each["result"]) for each in trace.output] == [("one", 2), ("two", trace["two"].result)]
