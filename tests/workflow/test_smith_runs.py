"""What Smith's documents promise of a plan that runs, row by row, and the cases of it: on the plans of the house."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.interop.test_smith_rows import Scripted

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
    """Return an engine with tools of Smith's, and their registry."""
    for name, body in BODIES.items():
        (tmp_path / f"{name.upper()}.py").write_text(TOOL.format(name=name, body=body))
    registry = load_folder(tmp_path)
    return Engine(toolsets=[registry.toolset], plugins="none"), registry


def node(id: int, tool: str, city: str = "Oslo", **changes: Any) -> dict[str, Any]:
    """Return a node of a plan of Smith's."""
    usual = {"function": f"run_{tool}", "depends_on": [], "retry": 0, "timeout": 60, "on_fail": "halt"}
    return {"id": id, "tool": tool, "inputs": {"city": city}, **usual, **changes}


def ran(smith: tuple[Engine, ToolsRegistry], *nodes: dict[str, Any], **options: Any) -> Trace:
    """Run a plan of Smith's, whose last node gives its answer."""
    engine, registry = smith
    data = plan_data({"nodes": [*nodes], "final_output_node": nodes[-1]["id"]}, registry)
    return run(engine, plan_from_data(data), **options)


def ends(trace: Trace) -> list[tuple[str, int]]:
    """Return how each node has ended, and how often it was called."""
    return [(each.status, len(each.attempts)) for each in trace.nodes]


def test_sm_18_a_node_is_tried_again_as_often_as_it_says(smith: Any) -> None:
    """With a second between two attempts, as the original has it."""
    trace = ran(smith, node(0, "flaky", retry=2))
    first, second, third = trace["step_0"].attempts

    assert (trace.status, trace.output) == ("succeeded", 3)
    assert all(1.0 <= later.started - before.started < 3.0 for before, later in ((first, second), (second, third)))


def test_sm_19_a_node_has_a_timeout(smith: Any) -> None:
    """Of each attempt; a tool that is left behind is not run a second time beside itself."""
    trace = ran(smith, node(0, "slow", "1.5", timeout=0.3, retry=2))

    assert ends(trace) == [("failed", 1)]
    assert trace["step_0"].error is not None
    assert trace["step_0"].error["code"] == "call.timeout"


def test_sm_20_a_failure_halts_or_not(smith: Any) -> None:
    """As the node says."""
    halted = ran(smith, node(0, "broken"), node(1, "weather", depends_on=[0]))
    goes_on = ran(smith, node(0, "broken", on_fail="continue"), node(1, "weather", depends_on=[0]))

    assert (halted.status, ends(halted)) == ("failed", [("failed", 1), ("unstarted", 0)])
    assert (goes_on.status, ends(goes_on)) == ("succeeded", [("failed", 1), ("succeeded", 1)])


def test_sm_30_each_result_is_in_the_trace(smith: Any) -> None:
    """By the number of its node."""
    trace = ran(smith, node(0, "weather"), node(4, "weather", "Rome", depends_on=[0]))

    assert {"step_0": {"city": "Oslo", "temp": 3}, "step_4": {"city": "Rome", "temp": 3}} == {
        each.name: each.result for each in trace.nodes
    }


def test_sm_31_later_nodes_take_what_earlier_ones_gave(smith: Any) -> None:
    """Whole or by path, alone or within text, also right after a dollar."""
    trace = ran(
        smith,
        node(0, "weather"),
        node(1, "weather", "{{STEPS.0.city}} by night for $${{STEPS.0.temp}} and ${x}", depends_on=[0]),
    )

    assert trace["step_1"].arguments == {"city": "Oslo by night for $$3 and ${x}"}


def test_sm_31_the_synthesis_takes_what_all_nodes_gave(smith: Any) -> None:
    """A model that is asked at the end is told the results."""
    engine, registry = smith
    data = plan_data({"nodes": [node(0, "weather"), node(1, "weather", "Rome")], "final_output_node": 1}, registry)
    model = Scripted(["Both are cold."])
    trace = run(engine, plan_from_data({**data, "synthesis": "How is it?"}), llm=model)
    asked = model.asked[0][-1].content.splitlines()

    assert ("How is it?", "Both are cold.") == (asked[0], trace.answer)
    assert [{"city": "Oslo", "temp": 3}, {"city": "Rome", "temp": 3}] == [
        each["result"] for each in json.loads(asked[3])["nodes"]
    ]


def test_sm_55_there_are_as_many_attempts_as_retries_and_one(smith: Any) -> None:
    """And the first success is the last attempt; a result is one, whatever its status says."""
    soft = ran(smith, node(0, "soft", retry=5))

    assert ("succeeded", {"status": "error", "tries": 1}) == (soft.status, soft.output)
    assert ends(ran(smith, node(0, "broken", retry=1))) == [("failed", 2)]
    assert ends(ran(smith, node(0, "flaky", retry=5))) == [("succeeded", 3)]


def test_sm_56_a_run_tells_what_happens_and_raises_nothing(smith: Any) -> None:
    """That a node fails is told in its steps and in its trace."""
    steps: list[Step] = []
    trace = ran(smith, node(0, "broken"), watch=steps.append)

    assert [(step.kind, step.code) for step in steps] == [
        ("started", ""),
        ("ended", "tool.failed"),
        ("finished", "failed"),
    ]
    assert trace.status == "failed"


def test_sm_61_independent_nodes_run_side_by_side(smith: Any) -> None:
    """Two that sleep take as long as one."""
    trace = ran(smith, node(0, "slow", "0.4"), node(1, "slow", "0.4"), node(2, "weather", depends_on=[0, 1]))
    one, other = trace["step_0"], trace["step_1"]

    assert one.started is not None
    assert other.started is not None
    assert max(one.started, other.started) < min(one.started + one.seconds, other.started + other.seconds)


def test_sm_62_a_trace_holds_inputs_results_status_and_times(smith: Any) -> None:
    """Of each node."""
    before = time.time()
    trace = ran(smith, node(0, "weather"), node(1, "broken", depends_on=[0]))
    good, bad = trace.nodes

    assert (good.arguments, good.result, good.status) == ({"city": "Oslo"}, {"city": "Oslo", "temp": 3}, "succeeded")
    assert (bad.arguments, bad.result, bad.status) == ({"city": "Oslo"}, None, "failed")
    assert bad.error is not None
    assert bad.error["message"] == "smith.broken: ValueError: no weather there"
    assert good.started is not None
    assert before <= good.started <= good.started + good.seconds <= time.time()


def test_sm_63_halt_ends_the_run_as_failed(smith: Any) -> None:
    """Nothing further begins, whether it depends on the failed node or not."""
    trace = ran(smith, node(0, "broken"), node(1, "weather"), parallel=1)

    assert (trace.status, trace.output, ends(trace)) == ("failed", None, [("failed", 1), ("unstarted", 0)])


def times_out(smith: Any) -> bool:
    """Tell whether the payload of a call that is late says so."""
    result = smith[0].execute(ToolCall("smith.slow", {"city": "1.5"}), timeout=0.3)
    return payload_of(result) == {"status": "error", "error": "Execution timed out (0.3s)"}


def halts(smith: Any) -> bool:
    """Tell whether an independent node is not started after a halt, and the run has failed."""
    trace = ran(smith, node(0, "broken"), node(1, "weather"), parallel=1)
    return (trace.status, trace["step_1"].status) == ("failed", "unstarted")


def goes_on(smith: Any) -> bool:
    """Tell whether a node runs after one that it depends on has failed and does not halt."""
    return (
        ran(smith, node(0, "broken", on_fail="continue"), node(1, "weather", depends_on=[0]))["step_1"].status
        == "succeeded"
    )


def records(smith: Any) -> bool:
    """Tell whether a record has step, tool, inputs, status, result, attempts and duration."""
    record = ran(smith, node(0, "weather"))["step_0"]
    told = (record.name, record.tool, record.arguments, record.status, record.result, len(record.attempts))
    return told == ("step_0", "smith.weather", {"city": "Oslo"}, "succeeded", {"city": "Oslo", "temp": 3}, 1) and (
        record.seconds > 0
    )


CASES: dict[str, Callable[[Any], bool]] = {
    "smith-037": times_out,
    "smith-039": halts,
    "smith-040": goes_on,
    "smith-046": records,
}
"""Those of ``vectors/seed_systems.json`` that are about a run."""


@pytest.mark.parametrize("case", CASES)
def test_the_case_of_a_run_holds(smith: Any, case: str) -> None:
    """As it expects."""
    assert CASES[case](smith)
