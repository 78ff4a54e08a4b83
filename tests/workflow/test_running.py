"""Running plans: parallel where possible, each call through the call pipeline, each outcome in the trace."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.workflow.labs import Lab

from neuroscript import ArgumentError, Engine, ExecutionPolicy, Host, Limits, SpecError, Toolset
from neuroscript.workflow import Step, Trace, arun, check, plan_of_toml, run
from neuroscript.workflow.runner import YIELD_SECONDS


def ran(lab: Lab, text: str, **options: Any) -> Trace:
    """Run a plan."""
    return run(lab.engine, plan_of_toml(text), **options)


def ends(trace: Trace) -> dict[str, str]:
    """Return the status of each node, with its error code."""
    return {
        node.name: node.status if node.error is None else f"{node.status} {node.error['code']}" for node in trace.nodes
    }


def test_node_uses_results_of_previous_nodes() -> None:
    """Values are exact, and the last one is the output."""
    trace = ran(
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

    assert ran(free, text).status == ran(bound, text, parallel=3).status == "succeeded"
    assert (free.most, bound.most) == (8, 3)


def test_async_calls_start_before_blocking_calls() -> None:
    """Otherwise all blocking calls would run first."""
    lab = Lab()
    calls = "\n".join(f'[nodes.n{number}]\ntool = "lab.add"\ninputs.a = {number}' for number in range(3))
    ran(lab, f'[nodes.rest]\ntool = "lab.rest"\ninputs.seconds = 0\n{calls}')

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
    trace = ran(
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


def test_halting_failure_starts_no_further_node() -> None:
    """Running calls are awaited, and the plan fails; its trace says why."""
    lab = Lab()
    trace = ran(
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
    trace = ran(
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
    trace = ran(
        Lab(),
        f'[nodes.one]\ntool = "lab.echo"\ninputs.value = {{ y = 1, z = "secret" }}\n[nodes.two]\ntool = "lab.add"\n{lines}',
    )

    error = trace["two"].error
    assert error is not None
    assert (error["code"].partition(" ")[0], error["message"]) == (code, message)


def test_plan_is_validated_before_it_runs() -> None:
    """Tools, types and policy: every problem at once, and no call was made."""
    lab = Lab(policy=ExecutionPolicy(allow=("lab.*",), deny=("lab.fail",), grants=("fs:read:*",)))
    plan = plan_of_toml(
        """
        [inputs.names]
        type = "slice_string"
        [nodes.first]
        tool = "lab.add"
        inputs.a = 1
        [nodes.gone]
        tool = "lab.ad"
        [nodes.denied]
        tool = "lab.fail"
        inputs.text = "x"
        [nodes.unfit]
        tool = "lab.add"
        inputs = { a = "x", b = "${input.names}", c = "${first}" }
        [nodes.path]
        tool = "lab.add"
        inputs = { a = "${first.x}" }
        [nodes.over]
        tool = "lab.add"
        map = "${first}"
        inputs.a = "${item}"
        [nodes.ungranted]
        tool = "lab.write"
        inputs = { path = "${input.names[0]}", text = "t" }
        [nodes.missing]
        tool = "lab.write"
        inputs = { path = "a.txt" }
        """
    )
    with pytest.raises(SpecError) as caught:
        run(lab.engine, plan, {"names": []})

    assert list(caught.value.problems) == [
        "nodes.gone.tool: unknown tool lab.ad; did you mean lab.add?",
        "nodes.denied.tool: lab.fail: is denied by the host",
        "nodes.unfit.inputs.b: expected int, but the reference returns list of string",
        "nodes.unfit.inputs.a: expected int, got str (a string must be a decimal integer, such as 42)",
        "nodes.unfit.inputs.c: expected only a, b, got an unknown name of type str",
        "nodes.path.inputs.a: first.x refers to a part that the value cannot have",
        "nodes.over.map: expected a list",
        "nodes.ungranted.tool: needs fs:write:{path}, which is not granted",
        "nodes.missing.inputs.text: expected string, got nothing",
    ]
    assert (lab.seen, check(lab.engine, plan)) == ([], caught.value.problems)


def test_impossible_references_are_found_before_run() -> None:
    """By name into a list, into the inputs as a whole, and in the output, which is computed last."""
    lab = Lab()
    plan = plan_of_toml(
        """
        output = { sum = "${many[0]}", part = "${one.x}", name = "${many.x}" }
        inputs = { count = "int" }
        [nodes.one]
        tool = "lab.add"
        inputs.a = "${input}"
        [nodes.many]
        tool = "lab.add"
        map = "${input.count}"
        inputs.a = "${trace.x}"
        inputs.b = "${index.x}"
        """
    )

    assert list(check(lab.engine, plan)) == [
        "nodes.one.inputs.a: expected int, but the reference returns map",
        "nodes.many.map: expected a list",
        "nodes.many.inputs.a: trace.x refers to a part that the value cannot have",
        "nodes.many.inputs.b: index.x refers to a part that the value cannot have",
        "output.part: one.x refers to a part that the value cannot have",
        "output.name: many.x refers to a part that the value cannot have",
    ]


def test_type_problems_are_found_before_run() -> None:
    """In conditions, items of a map, references within lists, and tools without a result."""
    lab = Lab(policy=ExecutionPolicy(allow=("lab.*",), grants=("fs:write:ok.txt",)))
    plan = plan_of_toml(
        """
        inputs = { names = "slice_string" }
        [nodes.one]
        tool = "lab.add"
        inputs.a = 1
        [nodes.none]
        tool = "lab.forget"
        inputs.values = ["${input.names}", "${one}"]
        [nodes.part]
        tool = "lab.add"
        inputs.a = "${none.x}"
        [nodes.truth]
        tool = "lab.add"
        inputs.a = 1
        when = { any = ["${one}", { value = "${one}", above = "x" }, { value = "${one}", above = 0 }] }
        [nodes.over]
        tool = "lab.echo"
        map = "${input.names}"
        inputs.value = "${index}"
        [nodes.each]
        tool = "lab.add"
        map = [1, "x", { a = 2 }]
        inputs.a = "${item}"
        [nodes.writes]
        tool = "lab.write"
        map = ["ok.txt", "no.txt"]
        inputs = { path = "${item}", text = "t" }
        [nodes.again]
        tool = "lab.echo"
        map = "${input.names}"
        when = { not = { failed = "one" } }
        inputs.value = { name = "${item.x}" }
        """
    )

    assert list(check(lab.engine, plan)) == [
        "nodes.none.inputs.values[0]: expected int, but the reference returns list of string",
        "nodes.part.inputs.a: none.x refers to a part that the value cannot have",
        "nodes.truth.when: expected true or false, got int",
        "nodes.truth.when: above compares two numbers or two strings, got int and str",
        "nodes.over.inputs.value: expected map, but the reference returns int",
        "nodes.each.map[1].inputs.a: expected int, got str (a string must be a decimal integer, such as 42)",
        "nodes.each.map[2].inputs.a: expected int, got dict",
        "nodes.writes.map[1].tool: needs fs:write:no.txt",
        "nodes.again.inputs.value.name: item.x refers to a part that the value cannot have",
    ]


def test_fixed_capabilities_are_checked_before_run() -> None:
    """As in a call without references."""
    text = """
    inputs = { text = "string" }
    [nodes.in]
    tool = "lab.write"
    inputs = { path = "in/a", text = "${input.text}" }
    [nodes.out]
    tool = "lab.write"
    inputs = { path = "out/a", text = "${input.text}" }
    [nodes.some]
    tool = "lab.write"
    inputs = { path = "${input.text}", text = "t" }
    """
    lab = Lab(policy=ExecutionPolicy(allow=("*",), grants=("fs:write:out/*",)))

    assert check(lab.engine, plan_of_toml(text)) == ("nodes.in.tool: needs fs:write:{path}, which is not granted",)


def test_plan_inputs_are_coerced_like_arguments() -> None:
    """Every problem is reported, and no call is made."""
    lab = Lab()
    text = """
    inputs = { count = "int", names = { type = "slice_string", required = false, default = ["a"] } }
    [nodes.one]
    tool = "lab.add"
    inputs = { a = "${input.count}" }
    """
    with pytest.raises(ArgumentError) as caught:
        ran(lab, text, inputs={"count": "x", "nam": 1})

    assert [problem.where for problem in caught.value.problems] == ["count", "nam"]
    assert lab.seen == []
    assert ran(lab, text, inputs={"count": "2"}).inputs == {"count": 2, "names": ["a"]}


@pytest.mark.parametrize("parallel", [0, -1])
def test_parallel_must_be_positive(parallel: int) -> None:
    """Otherwise the plan would end without having begun."""
    with pytest.raises(ValueError, match="parallel must be 1 or more"):
        ran(Lab(), '[nodes.one]\ntool = "lab.add"\ninputs.a = 1', parallel=parallel)


def test_caller_exception_ends_run() -> None:
    """It propagates, and no other call goes on."""
    lab = Lab()

    async def broken(work: Any) -> Any:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        asyncio.run(arun(lab.engine, plan_of_toml('[nodes.one]\ntool = "lab.add"\ninputs.a = 1'), caller=broken))


def test_policy_and_limits_apply_to_every_call() -> None:
    """A plan cannot bypass them."""
    lab = Lab(policy=ExecutionPolicy(allow=("*",), limits=Limits(calls=2)))
    trace = ran(lab, "\n".join(f'[nodes.n{n}]\ntool = "lab.add"\ninputs.a = {n}' for n in range(4)))

    assert list(ends(trace).values()) == ["succeeded", "succeeded", "failed limit.calls", "unstarted"]


def test_concurrency_limit_delays_calls() -> None:
    """The others wait; the plan does not fail."""
    lab = Lab(policy=ExecutionPolicy(allow=("*",), limits=Limits(concurrency=2)))
    trace = ran(lab, "\n".join(f'[nodes.n{n}]\ntool = "lab.nap"\ninputs.seconds = 0.02' for n in range(5)))

    assert (trace.status, lab.most) == ("succeeded", 2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(rates={"*": "1/minute"}), []),
        (Limits(calls=1), ["nodes.one.tool: no more than 1 calls in total are permitted"]),
    ],
    ids=["for now", "for good"],
)
def test_temporary_limit_does_not_prevent_run(limits: Limits, expected: list[str]) -> None:
    """Its node may be retried; a permanent limit is reported before the run."""
    lab = Lab(policy=ExecutionPolicy(limits=limits))
    lab.engine.call("lab.add", [1])

    assert list(check(lab.engine, plan_of_toml('[nodes.one]\ntool = "lab.add"\ninputs.a = 1'))) == expected


def test_trace_contains_no_secrets() -> None:
    """Neither in an argument, nor in an input, nor in a result that repeats it."""
    trace = ran(
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


def test_timeout_is_retried_only_for_idempotent_tools() -> None:
    """And never while the first call still runs."""
    lab = Lab()
    trace = ran(
        lab, '[nodes.one]\ntool = "lab.nap"\ninputs.seconds = 0.4\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )

    assert ends(trace) == {"one": "failed call.timeout"}
    assert len(trace["one"].attempts) == 1

    lab = Lab()
    threading.Timer(0.4, lab.gate.set).start()
    trace = ran(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 0.2\nretry = { count = 3, backoff = 0 }'
    )

    assert (ends(trace), trace.output, lab.most) == ({"one": "succeeded"}, 7, 1)
    assert [each.code for each in trace["one"].attempts] == ["call.timeout", "ok"]


def test_endless_call_is_not_retried() -> None:
    """The retry waits as long again as the node's timeout; two attempts never run at once."""
    lab = Lab()
    trace = ran(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )
    lab.gate.set()

    assert (ends(trace), lab.seen) == ({"one": "failed call.timeout"}, [("wait", 7)])


def test_late_coroutine_is_cancelled_and_retried() -> None:
    """At once, because nothing of it still runs."""
    lab = Lab()
    trace = ran(
        lab, '[nodes.one]\ntool = "lab.rest"\ninputs.seconds = 30\ntimeout = 0.05\nretry = { count = 2, backoff = 0 }'
    )

    assert [each.code for each in trace["one"].attempts] == ["call.timeout"] * 3


def test_pause_ends_with_stopped_clock() -> None:
    """Waits take real time if the clock has no ``wait``."""
    lab = Lab(host=Host(clock=lambda: 5.0))
    plan = plan_of_toml('[nodes.one]\ntool = "lab.fail"\ninputs.text = "x"\nretry = { count = 1, backoff = 0.01 }')

    trace = asyncio.run(asyncio.wait_for(arun(lab.engine, plan), 10))

    assert [each.code for each in trace["one"].attempts] == ["tool.failed", "tool.failed"]


def test_trace_reference_contains_previous_outcomes() -> None:
    """Those of the nodes that had to end first, in the order of the plan, without arguments."""
    trace = ran(
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


def test_watch_receives_each_step() -> None:
    """Its exceptions do not end the run."""
    steps: list[Step] = []

    def watch(step: Step) -> None:
        steps.append(step)
        raise RuntimeError("the watcher's own affair")

    lab = Lab()
    trace = ran(
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


def test_failed_item_ends_map() -> None:
    """Items that have not begun do not begin, and pending retries are dropped."""
    lab = Lab()
    trace = ran(
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


def test_tool_of_plan_stays_in_sandbox(tmp_path: Path) -> None:
    """And needs a grant for the path that a reference returns."""
    lab = Lab(host=Host(sandbox_dir=tmp_path), policy=ExecutionPolicy(allow=("*",), grants=("fs:write:out/*",)))
    text = '[inputs]\npath = "string"\n[nodes.one]\ntool = "lab.write"\ninputs = { path = "${input.path}", text = "t" }'
    (tmp_path / "out").mkdir()

    assert ran(lab, text, inputs={"path": "out/a"}).status == "succeeded"
    assert ends(ran(lab, text, inputs={"path": "b"})) == {"one": "failed policy.capability"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_trace_reference_works_in_condition_map_and_output() -> None:
    """A condition and a map see the nodes that had to end first, the output all nodes."""
    trace = ran(
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


def test_halted_map_has_failed() -> None:
    """Even if the running call had not ended when its other items were dropped."""
    lab = Lab()
    trace = ran(
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
    """The trace shows how far the plan got."""
    lab, closing = Lab(), Toolset("end")

    @closing.tool()
    def close() -> int:
        lab.engine.close()
        return 1

    lab.engine.register(closing)
    trace = ran(lab, '[nodes.one]\ntool = "end.close"\n[nodes.two]\ntool = "lab.add"\ninputs.a = "${one}"')

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
    trace = ran(
        lab, '[nodes.one]\ntool = "lab.wait"\ninputs.number = 7\ntimeout = 0.1\nretry = { count = 3, backoff = 0 }'
    )
    lab.gate.set()

    assert (ends(trace), lab.most, lab.seen) == ({"one": "failed call.timeout"}, 1, [("wait", 7)])
