"""The documented behaviour of a run in Smith, row by row, with its test cases, on the plans of this project."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.interop.smith_tools import Scripted

from neuroscript import Engine, ToolCall
from neuroscript.interop.smith import ToolsRegistry, load_folder, payload_of, plan_data
from neuroscript.workflow import Step, Trace, plan_from_data, run

TOOL = """
METADATA = {{
    "name": "{name}",
    "function": "run_{name}",
    "parameters": {{"type": "object", "properties": {{"city": {{"type": "string"}}}}, "required": ["city"]}},
}}

def run_{name}(city):
    {body}
"""

BODIES = {
    "weather": 'return {"city": city, "temp": 3}',
    "broken": 'raise ValueError("no weather there")',
    "flaky": "TRIES.append(city)\n    if len(TRIES) < 3:\n        raise ValueError('not yet')\n    return len(TRIES)\n\nTRIES = []",
    "soft": 'TRIES.append(city)\n    return {"status": "error", "tries": len(TRIES)}\n\nTRIES = []',
    "slow": "import time\n    time.sleep(float(city))\n    return city",
}


@pytest.fixture
def smith(tmp_path: Path) -> tuple[Engine, ToolsRegistry]:
    """Return an engine with Smith's tools, and their registry."""
    for name, body in BODIES.items():
        (tmp_path / f"{name.upper()}.py").write_text(TOOL.format(name=name, body=body))
    registry = load_folder(tmp_path)
    return Engine(toolsets=[registry.toolset], plugins="none"), registry


def node(id: int, tool: str, city: str = "Oslo", **changes: Any) -> dict[str, Any]:
    """Return a node of a Smith plan."""
    usual = {"function": f"run_{tool}", "depends_on": [], "retry": 0, "timeout": 60, "on_fail": "halt"}
    return {"id": id, "tool": tool, "inputs": {"city": city}, **usual, **changes}


def run_nodes(smith: tuple[Engine, ToolsRegistry], *nodes: dict[str, Any], **options: Any) -> Trace:
    """Run a Smith plan whose last node returns its answer."""
    engine, registry = smith
    data = plan_data({"nodes": [*nodes], "final_output_node": nodes[-1]["id"]}, registry)
    return run(engine, plan_from_data(data), **options)


def ends(trace: Trace) -> list[tuple[str, int]]:
    """Return the status of each node, and how often it was called."""
    return [(each.status, len(each.attempts)) for each in trace.nodes]


def test_sm_18_node_is_retried(smith: Any) -> None:
    """With a second between two attempts, as in the original."""
    trace = run_nodes(smith, node(0, "flaky", retry=2))
    first, second, third = trace["step_0"].attempts

    assert (trace.status, trace.output) == ("succeeded", 3)
    assert all(1.0 <= later.started - before.started < 3.0 for before, later in ((first, second), (second, third)))


def test_sm_19_node_has_timeout(smith: Any) -> None:
    """For each attempt; an abandoned tool does not run a second time at once."""
    trace = run_nodes(smith, node(0, "slow", "1.5", timeout=0.3, retry=2))

    assert ends(trace) == [("failed", 1)]
    assert trace["step_0"].error is not None
    assert trace["step_0"].error["code"] == "call.timeout"


def test_sm_20_failure_halts_or_not(smith: Any) -> None:
    """As the node says."""
    halted = run_nodes(smith, node(0, "broken"), node(1, "weather", depends_on=[0]))
    goes_on = run_nodes(smith, node(0, "broken", on_fail="continue"), node(1, "weather", depends_on=[0]))

    assert (halted.status, ends(halted)) == ("failed", [("failed", 1), ("unstarted", 0)])
    assert (goes_on.status, ends(goes_on)) == ("succeeded", [("failed", 1), ("succeeded", 1)])


def test_sm_30_each_result_is_in_the_trace(smith: Any) -> None:
    """By the number of its node."""
    trace = run_nodes(smith, node(0, "weather"), node(4, "weather", "Rome", depends_on=[0]))

    assert {"step_0": {"city": "Oslo", "temp": 3}, "step_4": {"city": "Rome", "temp": 3}} == {
        each.name: each.result for each in trace.nodes
    }


def test_sm_31_later_nodes_use_earlier_results(smith: Any) -> None:
    """Whole or by path, alone or within text, also directly after a dollar sign."""
    trace = run_nodes(
        smith,
        node(0, "weather"),
        node(1, "weather", "{{STEPS.0.city}} by night for $${{STEPS.0.temp}} and ${x}", depends_on=[0]),
    )

    assert trace["step_1"].arguments == {"city": "Oslo by night for $$3 and ${x}"}


def test_sm_31_synthesis_receives_all_results(smith: Any) -> None:
    """The model at the end receives the results."""
    engine, registry = smith
    data = plan_data({"nodes": [node(0, "weather"), node(1, "weather", "Rome")], "final_output_node": 1}, registry)
    model = Scripted(["Both are cold."])
    trace = run(engine, plan_from_data({**data, "synthesis": "How is it?"}), llm=model)
    lines = model.requests[0][-1].content.splitlines()

    assert ("How is it?", "Both are cold.") == (lines[0], trace.answer)
    assert [{"city": "Oslo", "temp": 3}, {"city": "Rome", "temp": 3}] == [
        each["result"] for each in json.loads(lines[3])["nodes"]
    ]


def test_sm_55_attempts_are_retries_plus_one(smith: Any) -> None:
    """The first success is the last attempt; a result counts as success whatever its status field says."""
    soft = run_nodes(smith, node(0, "soft", retry=5))

    assert ("succeeded", {"status": "error", "tries": 1}) == (soft.status, soft.output)
    assert ends(run_nodes(smith, node(0, "broken", retry=1))) == [("failed", 2)]
    assert ends(run_nodes(smith, node(0, "flaky", retry=5))) == [("succeeded", 3)]


def test_sm_56_run_reports_failures_without_raising(smith: Any) -> None:
    """In its steps and in its trace."""
    steps: list[Step] = []
    trace = run_nodes(smith, node(0, "broken"), watch=steps.append)

    assert [(step.kind, step.code) for step in steps] == [
        ("started", ""),
        ("ended", "tool.failed"),
        ("finished", "failed"),
    ]
    assert trace.status == "failed"


def test_sm_61_independent_nodes_run_in_parallel(smith: Any) -> None:
    """Two that sleep take as long as one."""
    trace = run_nodes(smith, node(0, "slow", "0.4"), node(1, "slow", "0.4"), node(2, "weather", depends_on=[0, 1]))
    one, other = trace["step_0"], trace["step_1"]

    assert one.started is not None
    assert other.started is not None
    assert max(one.started, other.started) < min(one.started + one.seconds, other.started + other.seconds)


def test_sm_62_trace_has_inputs_results_status_and_times(smith: Any) -> None:
    """For each node."""
    before = time.time()
    trace = run_nodes(smith, node(0, "weather"), node(1, "broken", depends_on=[0]))
    good, bad = trace.nodes

    assert (good.arguments, good.result, good.status) == ({"city": "Oslo"}, {"city": "Oslo", "temp": 3}, "succeeded")
    assert (bad.arguments, bad.result, bad.status) == ({"city": "Oslo"}, None, "failed")
    assert bad.error is not None
    assert bad.error["message"] == "smith.broken: ValueError: no weather there"
    assert good.started is not None
    assert before <= good.started <= good.started + good.seconds <= time.time()


def test_sm_63_halt_ends_the_run_as_failed(smith: Any) -> None:
    """No further node begins, whether it depends on the failed node or not."""
    trace = run_nodes(smith, node(0, "broken"), node(1, "weather"), parallel=1)

    assert (trace.status, trace.output, ends(trace)) == ("failed", None, [("failed", 1), ("unstarted", 0)])


def times_out(smith: Any) -> bool:
    """Return whether the payload of a late call says so."""
    result = smith[0].execute(ToolCall("smith.slow", {"city": "1.5"}), timeout=0.3)
    return payload_of(result) == {"status": "error", "error": "Execution timed out (0.3s)"}


def halts(smith: Any) -> bool:
    """Return whether an independent node does not start after a halt, and the run fails."""
    trace = run_nodes(smith, node(0, "broken"), node(1, "weather"), parallel=1)
    return (trace.status, trace["step_1"].status) == ("failed", "unstarted")


def goes_on(smith: Any) -> bool:
    """Return whether a node runs after a dependency that failed without halting."""
    return (
        run_nodes(smith, node(0, "broken", on_fail="continue"), node(1, "weather", depends_on=[0]))["step_1"].status
        == "succeeded"
    )


def records(smith: Any) -> bool:
    """Return whether a record has step, tool, inputs, status, result, attempts and duration."""
    record = run_nodes(smith, node(0, "weather"))["step_0"]
    reported = (record.name, record.tool, record.arguments, record.status, record.result, len(record.attempts))
    return reported == ("step_0", "smith.weather", {"city": "Oslo"}, "succeeded", {"city": "Oslo", "temp": 3}, 1) and (
        record.seconds > 0
    )


CASES: dict[str, Callable[[Any], bool]] = {
    "smith-037": times_out,
    "smith-039": halts,
    "smith-040": goes_on,
    "smith-046": records,
}
"""The cases of ``vectors/seed_systems.json`` about runs."""


@pytest.mark.parametrize("case", CASES)
def test_seed_case_of_a_run(smith: Any, case: str) -> None:
    """As the case expects."""
    assert CASES[case](smith)
