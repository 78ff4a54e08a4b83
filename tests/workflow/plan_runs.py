"""Runs of plans, and the outcomes of their nodes."""

from __future__ import annotations

from typing import Any

from tests.workflow.labs import Lab

from neuroscript.workflow import Trace, plan_of_toml, run


def run_plan(lab: Lab, text: str, **options: Any) -> Trace:
    """Run a plan."""
    return run(lab.engine, plan_of_toml(text), **options)


def ends(trace: Trace) -> dict[str, str]:
    """Return the status of each node, with its error code."""
    return {
        node.name: node.status if node.error is None else f"{node.status} {node.error['code']}" for node in trace.nodes
    }
