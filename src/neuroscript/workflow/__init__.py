"""Plans: a graph of calls as data, with retry, timeout and what a failure halts; run by an engine, and their traces.

Every public name is here; the room that holds it is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript.lazily import lazy

if TYPE_CHECKING:
    from neuroscript.workflow.checking import check
    from neuroscript.workflow.picture import trace_svg
    from neuroscript.workflow.plan import Node, Plan, Retry
    from neuroscript.workflow.planning import aplanned, planned
    from neuroscript.workflow.reading import load_plan, plan_from_data, plan_of_json, plan_of_toml, plan_to_data
    from neuroscript.workflow.running import Step, arun, run
    from neuroscript.workflow.trace import Attempt, NodeTrace, Trace
    from neuroscript.workflow.tracediff import TraceDifference, trace_diff
    from neuroscript.workflow.tracefiles import load_trace, save_trace, trace_from_data, trace_of_json, trace_to_data
    from neuroscript.workflow.tracetext import trace_text

__all__ = [
    "Attempt",
    "Node",
    "NodeTrace",
    "Plan",
    "Retry",
    "Step",
    "Trace",
    "TraceDifference",
    "aplanned",
    "arun",
    "check",
    "load_plan",
    "load_trace",
    "plan_from_data",
    "plan_of_json",
    "plan_of_toml",
    "plan_to_data",
    "planned",
    "run",
    "save_trace",
    "trace_diff",
    "trace_from_data",
    "trace_of_json",
    "trace_svg",
    "trace_text",
    "trace_to_data",
]

__getattr__ = lazy(
    __name__,
    {
        "checking": "check",
        "picture": "trace_svg",
        "plan": "Node Plan Retry",
        "planning": "aplanned planned",
        "reading": "load_plan plan_from_data plan_of_json plan_of_toml plan_to_data",
        "running": "Step arun run",
        "trace": "Attempt NodeTrace Trace",
        "tracediff": "TraceDifference trace_diff",
        "tracefiles": "load_trace save_trace trace_from_data trace_of_json trace_to_data",
        "tracetext": "trace_text",
    },
)
