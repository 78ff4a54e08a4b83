"""Labels in plans: each argument carries those of what it refers to, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.flow.mail_tools import ADDRESS, ASK, MAIL, PAGE, READS, REFUSE, engine_with, toolset

from neuroscript import (
    ApprovalRequest,
    Engine,
    ExecutionPolicy,
    FlowRule,
    Host,
    SpecError,
    ToolFailed,
    ToolPolicy,
    Toolset,
)
from neuroscript.workflow import (
    Plan,
    Step,
    Trace,
    arun,
    check,
    load_trace,
    plan_from_data,
    run,
    save_trace,
    trace_diff,
    trace_from_data,
    trace_svg,
    trace_text,
    trace_to_data,
)

BY_SESSION = FlowRule(["untrusted"], ["outside"], "refuse", "session")
NOTHING = FlowRule(["host:none"], ["outside"], "refuse")
"""A rule that matches no label of these tools; the session tracks labels because of it."""

PAGE_NODE: dict[str, Any] = {"tool": "t.relay", "inputs": {"tool": "t.page", "args": []}}
"""A node that declares no labels, so that only the run can tell what its result carries."""

MAIL_NODE: dict[str, Any] = {"tool": "t.relay", "inputs": {"tool": "t.mail", "args": []}}


def plan_of(nodes: dict[str, Any], **more: Any) -> Plan:
    """Return a plan whose failures do not halt it."""
    return plan_from_data({"nodes": {name: {"on_fail": "continue", **node} for name, node in nodes.items()}, **more})


def labels(trace: Trace) -> dict[str, tuple[str, ...]]:
    """Return the labels of each node that has some."""
    return {node.name: node.labels for node in trace.nodes if node.labels}


def code(trace: Trace, node: str) -> str:
    """Return the error code of a node, or ``ok``."""
    error = trace[node].error
    return "ok" if error is None else str(error["code"])


def upper(text: str, **more: Any) -> dict[str, Any]:
    """Return a node that converts a string."""
    return {"tool": "t.upper", "inputs": {"text": text}, **more}


# Propagation


def test_node_carries_the_labels_of_its_references_and_no_others() -> None:
    plan = plan_of(
        {
            "page": PAGE_NODE,
            "mail": MAIL_NODE,
            "of_page": upper("${page}"),
            "of_both": upper("${of_page} ${mail}"),
            "of_neither": upper("plain", depends_on=["of_both"]),
            "of_item": upper("${item}", map=["${mail}", "plain"]),
            "of_index": upper("Number ${index}", map=["${page}"]),
            "beside_items": upper("plain", map=["${page}"]),
            "of_trace": upper("${trace[0].status}", depends_on=["of_page"]),
            "chosen": upper("plain", when={"value": "${page}", "ne": ""}),
            "checked": {"tool": "t.summary", "inputs": {"text": "${of_both}"}},
        }
    )
    with engine_with(NOTHING, trusted=True) as engine:
        trace = run(engine, plan)

    assert trace.status == "succeeded"
    assert labels(trace) == {
        "page": ("untrusted",),
        "mail": ("private:mail",),
        "of_page": ("untrusted",),
        "of_both": ("private:mail", "untrusted"),
        "of_item": ("private:mail",),
        "of_index": ("untrusted",),
        "of_trace": ("untrusted",),
        "checked": ("private:mail",),
    }


def test_inputs_are_trusted_unless_they_are_labelled() -> None:
    plan = plan_of(
        {"a": upper("${input.page}"), "b": upper("${input.note}"), "all": upper("All: ${input}")},
        inputs={"page": "string", "note": "string"},
    )
    inputs = {"page": PAGE, "note": "hello"}
    with engine_with(NOTHING) as engine:
        trusted = run(engine, plan, inputs)
        labelled = run(engine, plan, inputs, labels={"page": ["untrusted"]})
    with engine_with(NOTHING) as engine:
        in_loop = asyncio.run(arun(engine, plan, inputs, labels={"note": ("private:notes", "untrusted")}))

    assert labels(trusted) == {}
    assert labels(labelled) == {"a": ("untrusted",), "all": ("untrusted",)}
    assert labels(in_loop) == {"b": ("private:notes", "untrusted"), "all": ("private:notes", "untrusted")}


def test_trusted_inputs_are_words_of_the_user() -> None:
    """They may be sent although a web page contains them too."""
    plan = plan_of({"send": {"tool": "t.send", "inputs": {"to": "${input.to}"}}}, inputs={"to": "string"})
    with engine_with(REFUSE) as engine:
        engine.call("t.page")
        trace = run(engine, plan, {"to": ADDRESS})

    assert code(trace, "send") == "ok"


def test_text_of_the_plan_that_occurs_in_a_read_page_is_refused() -> None:
    plan = plan_of({"send": {"tool": "t.send", "inputs": {"to": ADDRESS}}})
    with engine_with(REFUSE) as engine:
        engine.call("t.page")
        with pytest.raises(SpecError) as caught:
            run(engine, plan)

    assert caught.value.problems == (
        "nodes.send.tool: would send untrusted data from t.page (call 1) to outside, which the host does not allow",
    )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"pag": ["untrusted"]}, "labels.pag: the plan has no input pag"),
        (
            {"page": ["secret"]},
            "labels.page: 'secret' is not one of untrusted, private; a label of your own has a colon, such as "
            "private:mail",
        ),
        ({"page": "untrusted"}, "labels.page must be a collection of strings, not str"),
    ],
    ids=["input", "label", "type"],
)
def test_invalid_labels_are_problems(wrong: Any, problem: str) -> None:
    plan = plan_of({"a": upper("${input.page}")}, inputs={"page": "string"})
    with engine_with() as engine:
        for function in (
            lambda: run(engine, plan, {"page": "x"}, labels=wrong),
            lambda: check(engine, plan, labels=wrong),
        ):
            with pytest.raises(SpecError) as caught:
                function()
            assert caught.value.problems == (problem,)


# The session


def test_session_reads_the_results_at_the_end_of_the_run() -> None:
    """Calls of the plan are not affected by results that they do not use."""
    seen: list[tuple[str, ...]] = []
    plan = plan_of(
        {
            "page": PAGE_NODE,
            "send": {"tool": "t.send", "inputs": {"to": "ada@home.example", "body": PAGE}, "depends_on": ["page"]},
        }
    )
    with engine_with(REFUSE, BY_SESSION) as engine:

        def watch(step: Step) -> None:
            seen.append(engine.labels)

        trace = run(engine, plan, watch=watch)
        after = run(engine, plan_of({"send": {"tool": "t.send", "inputs": {"to": "${input.to}"}}}, **TO), {"to": "ada"})

        assert code(trace, "send") == "ok"
        assert set(seen[:-1]) == {()}
        assert engine.labels == ("untrusted",)
        assert code(after, "send") == "policy.flow"


TO = {"inputs": {"to": "string"}}


def test_session_reads_errors_labelled_inputs_and_the_output() -> None:
    plan = plan_of(
        {"broken": {"tool": "t.relay", "inputs": {"tool": "t.broken", "args": []}}, "page": PAGE_NODE},
        inputs={"memo": "string"},
        output="<<${input.memo}>>",
    )
    with engine_with(REFUSE) as engine:
        trace = run(engine, plan, {"memo": "m-31"}, labels={"memo": ["untrusted"]})

        assert labels(trace) == {"broken": ("untrusted",), "page": ("untrusted",)}
        for text in (PAGE, "m-31", "<<m-31>>"):
            assert engine.check([{"name": "t.send", "arguments": {"to": text}}])[0].code == "policy.flow", text
        assert engine.check([{"name": "t.send", "arguments": {"to": "ada@home.example"}}])[0].allowed


def test_failed_and_cancelled_runs_are_read_too() -> None:
    halted = plan_from_data(
        {"nodes": {"page": PAGE_NODE, "broken": {"tool": "t.broken", "inputs": {}, "depends_on": ["page"]}}}
    )
    with engine_with(REFUSE) as engine:
        assert run(engine, halted).status == "failed"
        assert engine.labels == ("untrusted",)

    left: list[Trace] = []
    plan = plan_of({"page": PAGE_NODE, "wait": {"tool": "w.wait", "depends_on": ["page"]}})
    with engine_with(REFUSE) as engine:
        engine.register(waiting())
        asyncio.run(cancelled(engine, plan, left))
        assert engine.labels == ("untrusted",)
    assert labels(left[0]) == {"page": ("untrusted",)}


def waiting() -> Toolset:
    """Return a tool that waits until it is cancelled."""
    tools = Toolset("w")

    @tools.tool(policy=ToolPolicy(sources=(), sinks=()))
    async def wait() -> None:
        """Wait."""
        await asyncio.sleep(60)

    return tools


async def cancelled(engine: Engine, plan: Plan, left: list[Trace]) -> None:
    """Run a plan and cancel it when its second node has begun."""
    begun = asyncio.Event()

    def watch(step: Step) -> None:
        if (step.kind, step.node) == ("started", "wait"):
            begun.set()

    task = asyncio.ensure_future(arun(engine, plan, watch=watch, left=left.append))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_without_flow_rules_labels_have_no_effect() -> None:
    plan = plan_of({"page": PAGE_NODE, "a": upper("${input.x}")}, inputs={"x": "string"})
    with engine_with() as engine:
        trace = run(engine, plan, {"x": "1"}, labels={"x": ["untrusted"]})

        assert (trace.status, labels(trace), engine.labels) == ("succeeded", {}, ())
        assert "labels" not in trace_to_data(trace)["nodes"][0]


# Decisions


def test_approver_is_asked_about_a_call_of_a_plan() -> None:
    plan = plan_of({"page": PAGE_NODE, "send": {"tool": "t.send", "inputs": {"to": "ada", "body": "${page}"}}})
    answers: list[ApprovalRequest] = []
    with engine_with(ASK, answers=answers) as engine:
        trace = run(engine, plan)

    assert trace.status == "succeeded"
    assert [request.flows for request in answers] == [("sends untrusted data from t.page (call 2) to outside",)]


def test_labels_of_all_attempts_and_items_count() -> None:
    tools, count = Toolset("u"), iter(range(9))

    @tools.tool(policy=READS)
    def unstable() -> str:
        """Fail once."""
        if next(count) == 0:
            raise ToolFailed("no", retry="later")
        return "fine"

    node = {"tool": "u.unstable", "map": [1, 2], "retry": {"count": 1, "backoff": 0}}
    with engine_with(NOTHING) as engine:
        engine.register(tools)
        trace = run(engine, plan_of({"a": node, "b": upper("${a[0]}")}))

    assert [len(node.attempts) for node in trace.nodes] == [3, 1]
    assert labels(trace) == {"a": ("untrusted",), "b": ("untrusted",)}


def test_clock_of_the_host_measures_timeouts_of_labelled_calls() -> None:
    class Clock:
        def __call__(self) -> float:
            return 5.0

        async def wait(self, seconds: float) -> None:
            await asyncio.sleep(0.01)

    plan = plan_of({"a": {"tool": "w.wait", "timeout": 1.0}, "b": {**PAGE_NODE, "timeout": 1.0}})
    with engine_with(NOTHING, host=Host(clock=Clock())) as engine:
        engine.register(waiting())
        trace = run(engine, plan)

    assert (code(trace, "a"), code(trace, "b")) == ("call.timeout", "ok")
    assert labels(trace) == {"b": ("untrusted",)}


# The static check


def test_check_reports_what_rules_always_refuse() -> None:
    nodes = {
        "page": {"tool": "t.page"},
        "checked": {"tool": "t.summary", "inputs": {"text": "${page}"}},
        "send": {"tool": "t.send", "inputs": {"to": "ada", "body": "${page}"}},
        "send_checked": {"tool": "t.send", "inputs": {"to": "ada", "body": "${checked}"}},
        "send_input": {"tool": "t.send", "inputs": {"to": "ada", "body": "${input.x}"}},
    }
    plan = plan_of(nodes, inputs={"x": "string"})
    refused = "nodes.send.tool: would send untrusted data from t.page to outside, which the host does not allow"
    of_input = (
        "nodes.send_input.tool: would send untrusted data from input.x to outside, which needs an approval, but there "
        "is no approver"
    )
    with engine_with(REFUSE, trusted=True) as engine:
        assert check(engine, plan) == (refused,)
        with pytest.raises(SpecError) as caught:
            run(engine, plan, {"x": "1"})
        assert caught.value.problems == (refused,)
    with engine_with(ASK, answers=[], trusted=True) as engine:
        assert check(engine, plan, labels={"x": ["untrusted"]}) == ()
    with engine_with(ASK, trusted=True) as engine:
        found = check(engine, plan, labels={"x": ["untrusted"]})
        assert [len(found), found[1]] == [2, of_input]
    with engine_with() as engine:
        assert check(engine, plan_of({name: nodes[name] for name in ("page", "send")})) == ()


# Traces and names


def test_labels_are_in_traces(tmp_path: Path) -> None:
    plan = plan_of({"page": PAGE_NODE, "mail": upper("${page}")})
    with engine_with(NOTHING) as engine:
        trace = run(engine, plan)
    with engine_with() as engine:
        plain = run(engine, plan)
    save_trace(trace, tmp_path / "trace.json")

    assert load_trace(tmp_path / "trace.json") == trace
    assert trace_to_data(trace)["nodes"][0]["labels"] == ["untrusted"]
    heading, row = trace_text(trace).splitlines()[2:4]
    assert row[heading.index("labels") :].startswith("untrusted  ")
    assert "labels" not in trace_text(plain)
    assert ">1 attempt, untrusted<" in trace_svg(trace)
    assert [str(each) for each in trace_diff(plain, trace) if not each.is_time] == [
        'nodes.page.labels[0]: "untrusted", was missing',
        'nodes.mail.labels[0]: "untrusted", was missing',
    ]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("untrusted", "nodes[0].labels: must be a list, got str"),
        ([1], "nodes[0].labels: must be a list of strings"),
        (["Not One"], "nodes[0].labels[0]: must be a label, such as untrusted or private:mail"),
    ],
    ids=["type", "item", "label"],
)
def test_invalid_labels_in_a_trace_are_rejected(wrong: Any, problem: str) -> None:
    with engine_with(NOTHING) as engine:
        data = trace_to_data(run(engine, plan_of({"page": PAGE_NODE})))
    data["nodes"][0]["labels"] = wrong
    with pytest.raises(SpecError) as caught:
        trace_from_data(data)

    assert caught.value.problems == (problem,)


def test_tools_of_a_plan_are_an_allow_list() -> None:
    plan = plan_of({"a": upper("x"), "b": upper("${a}"), "c": {"tool": "tool.T.Page"}})

    assert plan.tools == ("t.upper", "t.page")
    with Engine(policy=ExecutionPolicy(), toolsets=toolset, plugins="none") as engine:
        narrowed = engine.narrowed(allow=plan.tools)
        assert run(narrowed, plan).status == "succeeded"
        assert narrowed.check([{"name": "t.mail"}])[0].code == "policy.not_allowed"


def test_values_are_in_no_message() -> None:
    plan = plan_of({"page": MAIL_NODE, "send": {"tool": "t.send", "inputs": {"to": "ada", "body": "${page}"}}})
    with engine_with(FlowRule(["private"], ["outside"], "refuse")) as engine:
        trace = run(engine, plan)

    assert code(trace, "send") == "policy.flow"
    assert MAIL not in str(trace["send"].error)
