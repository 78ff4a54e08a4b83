"""Plans: graphs of tool calls as data, run by an engine, with retries, timeouts and traces.

Every public name is exported here; the module that defines it is loaded on first access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroscript._imports import lazy_getattr

if TYPE_CHECKING:
    from neuroscript.workflow.plan.file import load_plan, plan_from_data, plan_of_json, plan_of_toml, plan_to_data
    from neuroscript.workflow.plan.model import Node, Plan, Retry
    from neuroscript.workflow.plan.planner import amake_plan, make_plan
    from neuroscript.workflow.plan.validation import check
    from neuroscript.workflow.runner import Step, arun, run
    from neuroscript.workflow.trace.diff import TraceDifference, trace_diff
    from neuroscript.workflow.trace.file import load_trace, save_trace, trace_from_data, trace_of_json, trace_to_data
    from neuroscript.workflow.trace.svg import trace_svg
    from neuroscript.workflow.trace.text import trace_text
    from neuroscript.workflow.trace.trace import Attempt, NodeTrace, Trace

__all__ = [
    "Attempt",
    "Node",
    "NodeTrace",
    "Plan",
    "Retry",
    "Step",
    "Trace",
    "TraceDifference",
    "amake_plan",
    "arun",
    "check",
    "load_plan",
    "load_trace",
    "make_plan",
    "plan_from_data",
    "plan_of_json",
    "plan_of_toml",
    "plan_to_data",
    "run",
    "save_trace",
    "trace_diff",
    "trace_from_data",
    "trace_of_json",
    "trace_svg",
    "trace_text",
    "trace_to_data",
]

__getattr__ = lazy_getattr(
    __name__,
    {
        "plan.file": "load_plan plan_from_data plan_of_json plan_of_toml plan_to_data",
        "plan.model": "Node Plan Retry",
        "plan.planner": "amake_plan make_plan",
        "plan.validation": "check",
        "runner": "Step arun run",
        "trace.diff": "TraceDifference trace_diff",
        "trace.file": "load_trace save_trace trace_from_data trace_of_json trace_to_data",
        "trace.svg": "trace_svg",
        "trace.text": "trace_text",
        "trace.trace": "Attempt NodeTrace Trace",
    },
)
