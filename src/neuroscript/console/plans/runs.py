"""Runs of plans as activities of a browser: in this process, or durably in a database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from neuroscript.console.activities import Activity
from neuroscript.console.console import Console
from neuroscript.console.effects import runnable_session
from neuroscript.console.plans.progress import PlanRun
from neuroscript.console.visitor import Visitor
from neuroscript.engine.session import Session
from neuroscript.errors import NeuroScriptError, SpecError
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.validation import check
from neuroscript.workflow.runner import Watch, arun
from neuroscript.workflow.trace.trace import Trace

if TYPE_CHECKING:
    from neuroscript.workflow.durable.inspection import RunState

SQLITE: Final = "sqlite:///"

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
        watch, model = run.watch(activity, show), console.settings.model
        if run.run_id:
            begin = partial(_run_durably, session, console, run, inputs, watch)
        else:
            begin = partial(arun, session, run.plan, inputs, watch=watch, left=run.end, llm=model)
        await _ended(activity, run, show, console.threads.run_async(begin))

    return visitor.activities.start(KIND, run.plan.name or run.file, work, view=run)


async def _run_durably(
    session: Session, console: Console, run: PlanRun, inputs: Mapping[str, Any], watch: Watch
) -> Trace:
    from neuroscript.workflow.durable.execution import arun_durably

    await _require_sole_run(console, run)
    return await arun_durably(session, run.plan, inputs, console.settings.runs, watch=watch, run_id=run.run_id)


def start_resumed(visitor: Visitor, console: Console, run: PlanRun, show: Show) -> Activity:
    """Continue a durable run with the tools that a browser may run, or return the trace of one that has ended.

    Args:
        run: The run, with its id.
        show: Renders a template.

    Raises:
        TooManyActivities: This browser runs as much as it may.
    """
    session = runnable_session(visitor, console)

    async def work(activity: Activity) -> None:
        begin = partial(_resume, session, console, run, run.watch(activity, show))
        await _ended(activity, run, show, console.threads.run_async(begin))

    return visitor.activities.start(KIND, run.plan.name or run.run_id, work, view=run)


async def _resume(session: Session, console: Console, run: PlanRun, watch: Watch) -> Trace:
    from neuroscript.workflow.durable.execution import aresume

    await _require_sole_run(console, run)
    return await aresume(session, console.settings.runs, run.run_id, watch=watch)


def new_run_id() -> str:
    """Return an id for a durable run."""
    return os.urandom(8).hex()


async def _ended(activity: Activity, run: PlanRun, show: Show, going: Coroutine[Any, Any, Trace]) -> None:
    """Wait for the end of a run, record it, and send it to pages."""
    try:
        run.end(await going)
    except asyncio.CancelledError:
        run.problems = ("was cancelled",)
        raise
    except NeuroScriptError as error:
        run.fail(error)
    except ImportError as error:  # an extra is missing; its message says which
        run.problems = (str(error),)
    finally:
        activity.emit(show("plans/_done.html", run=run), target="plan-progress", mode="replace")
        activity.emit("", target="plan-actions", mode="replace")
        activity.emit(show("plans/_outcome.html", run=run, activity=activity), target="plan-outcome", mode="replace")


async def _require_sole_run(console: Console, run: PlanRun) -> None:
    """Refuse a durable run of a console that runs only some tools while another process drives a run.

    The worker of this process takes calls of all runs of the database, and would refuse those with effects.

    Raises:
        SpecError: Another process drives a run.
    """
    if console.settings.run_effects:
        return
    found = {each.id: each for each in await asyncio.to_thread(stored_runs, console.settings.runs)}
    own = found.pop(run.run_id, None)
    has_ended = own is not None and own.ended is not None  # only its trace is read, without a worker
    if not has_ended and any(each.status == "running" for each in found.values()):
        text = "another run of this database goes on, and this console would refuse its calls with effects"
        raise SpecError("durable", [f"{text}; wait until it has ended, or start the console with --run-effects"])


def stored_runs(url: str | None) -> list[RunState]:
    """Return the runs of a database, the newest first; none if its file does not exist yet.

    Raises:
        SpecError: The database cannot be used.
        ImportError: The extra is not installed.
    """
    from neuroscript.workflow.durable.inspection import list_runs

    if url is not None and url.startswith(SQLITE) and not Path(url.removeprefix(SQLITE)).exists():
        return []
    return list_runs(url)
