"""Runs of plans as activities of a browser: in this process, or durably in a database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from neuroscript.console.activities import Activity
from neuroscript.console.console import Console
from neuroscript.console.effects import runnable_session
from neuroscript.console.plans.progress import PlanRun
from neuroscript.console.visitor import Visitor
from neuroscript.errors import NeuroScriptError
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.validation import check
from neuroscript.workflow.runner import arun
from neuroscript.workflow.trace.trace import Trace

KIND: Final = "plans"
"""The kind of the activities."""

Show = Callable[..., str]
"""Renders a template."""


def check_plan(visitor: Visitor, console: Console, plan: Plan) -> tuple[str, ...]:
    """Return why a browser cannot run a plan, with the tools that it may run."""
    return check(runnable_session(visitor, console), plan, console.settings.model)


def start_run(visitor: Visitor, console: Console, run: PlanRun, inputs: Mapping[str, Any], show: Show) -> Activity:
    """Run a plan with the tools that a browser may run.

    Args:
        run: The run; with a run id it is durable.
        show: Renders a template.

    Raises:
        TooManyActivities: This browser runs as much as it may.
    """
    session = runnable_session(visitor, console)

    async def work(activity: Activity) -> None:
        watch = run.watch(activity, show)
        if not run.run_id:
            await _ended(
                activity,
                run,
                show,
                lambda: arun(session, run.plan, inputs, watch=watch, left=run.end, llm=console.settings.model),
            )
            return
        from neuroscript.workflow.durable.execution import arun_durably

        await _require_sole_run(console, run, show, activity)
        if not run.problems:
            url = console.settings.runs
            await _ended(
                activity,
                run,
                show,
                lambda: arun_durably(session, run.plan, inputs, url, watch=watch, run_id=run.run_id),
            )

    return visitor.activities.start(KIND, run.plan.name or run.file, work, view=run)


def start_resumed(visitor: Visitor, console: Console, run: PlanRun, show: Show) -> Activity:
    """Continue a durable run with the tools that a browser may run, or return the trace of one that has ended."""
    session = runnable_session(visitor, console)

    async def work(activity: Activity) -> None:
        from neuroscript.workflow.durable.execution import aresume

        watch = run.watch(activity, show)
        await _require_sole_run(console, run, show, activity)
        if not run.problems:
            await _ended(activity, run, show, lambda: aresume(session, console.settings.runs, run.run_id, watch=watch))

    return visitor.activities.start(KIND, run.plan.name or run.run_id, work, view=run)


def new_run_id() -> str:
    """Return an id for a durable run."""
    return os.urandom(8).hex()


async def _ended(activity: Activity, run: PlanRun, show: Show, drive: Callable[[], Any]) -> None:
    """Run a plan, record how it ended, and send the end to pages."""
    try:
        trace: Trace = await drive()
        run.end(trace)
    except asyncio.CancelledError:
        run.problems = run.problems or ("was cancelled",)
        raise
    except NeuroScriptError as error:
        run.fail(error)
    finally:
        _show_end(activity, run, show)


def _show_end(activity: Activity, run: PlanRun, show: Show) -> None:
    activity.emit(show("plans/_done.html", run=run), target="plan-progress", mode="replace")
    activity.emit(show("plans/_outcome.html", run=run, activity=activity), target="plan-outcome", mode="replace")


async def _require_sole_run(console: Console, run: PlanRun, show: Show, activity: Activity) -> None:
    """Refuse a durable run of a console that runs only some tools while another process drives a run.

    The worker of this process takes calls of all runs of the database, and would refuse those with effects.
    """
    if console.settings.run_effects:
        return
    from neuroscript.workflow.durable.inspection import list_runs

    others = [each for each in await asyncio.to_thread(list_runs, console.settings.runs) if each.id != run.run_id]
    if any(each.status == "running" for each in others):
        text = "another process drives a run of this database, and this console would refuse its calls with effects"
        run.problems = (f"{text}; wait until it has ended, or start the console with --run-effects",)
        _show_end(activity, run, show)


def traces_of(visitor: Visitor) -> list[tuple[Activity, Trace]]:
    """Return the runs of a browser that have a trace, the newest first."""
    found = [each for each in visitor.activities if each.kind == KIND and isinstance(each.view, PlanRun)]
    return [(each, each.view.trace) for each in found if each.view.trace is not None]
