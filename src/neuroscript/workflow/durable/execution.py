"""Starting and resuming durable runs.

When a run is resumed, the scheduler goes through the plan again and asks for each call under the same id, which returns
the stored outcome.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from neuroscript.calls.drivers import Runner
from neuroscript.calls.steps import Invocation
from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.binding import bind_arguments
from neuroscript.state.heartbeat import DEFAULT_LEASE_SECONDS
from neuroscript.workflow.durable.encoding import NotStorable
from neuroscript.workflow.durable.labels import labelled_inputs_text
from neuroscript.workflow.durable.leader import Driver
from neuroscript.workflow.durable.run_records import Run, inputs_in, plan_in
from neuroscript.workflow.durable.tool_digests import changed_tools
from neuroscript.workflow.durable.validation import check_durable
from neuroscript.workflow.labels import with_session_labels
from neuroscript.workflow.plan.file import plan_to_data
from neuroscript.workflow.plan.flows import InputLabels, PlanLabels, input_labels
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.parameters import INPUTS, NUMBER, PLAN, SESSION
from neuroscript.workflow.runner import DEFAULT_PARALLEL_CALLS, Watch
from neuroscript.workflow.trace.trace import Trace

RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The pattern of valid run ids."""


def run_durably(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    url: str | None = None,
    *,
    parallel: int = DEFAULT_PARALLEL_CALLS,
    watch: Watch | None = None,
    run_id: str = "",
    lease: float = DEFAULT_LEASE_SECONDS,
    local_calls: bool = True,
    keep_secrets: bool = False,
    labels: InputLabels | None = None,
    connections: int | None = None,
) -> Trace:
    """Run a plan so that it can be resumed if this process dies, and return its trace.

    Args:
        session: An engine, or one of its sessions, whose policy and limits apply.
        inputs: The inputs of the plan, by name.
        url: ``sqlite:///FILE`` or ``postgresql://…``; by default a file in the user's data directory.
        parallel: Maximum number of calls of the plan that are queued at once.
        watch: Receives each `Step`. Its exceptions do not end the run.
        run_id: The id of the run; by default a random one.
        lease: Seconds without a heartbeat after which this process is considered dead.
        local_calls: Whether this process also makes calls; otherwise it waits for workers.
        keep_secrets: Whether secret inputs and arguments may be stored in the database, which does not encrypt them.
        labels: What inputs carry, by name, as for `run`. Workers need flow rules too if this session has some.
        connections: The maximum number of connections that this process has to the database, by default 10. All
            workers and runs of a process share them.

    Raises:
        SpecError: If the plan cannot run here or not durably, with every problem, or the database cannot be used.
        ArgumentError: If the inputs are invalid, with every problem.
        ValueError: If *parallel* is less than 1.
        CallError: ``plan.lease_lost``, if this process lost its lease, so that another one may continue the run.
    """
    require("run_durably", session=(session, SESSION), plan=(plan, PLAN))
    return _waited_for(
        session,
        lambda: arun_durably(
            session,
            plan,
            inputs,
            url,
            parallel=parallel,
            watch=watch,
            run_id=run_id,
            lease=lease,
            local_calls=local_calls,
            keep_secrets=keep_secrets,
            labels=labels,
            connections=connections,
        ),
    )


async def arun_durably(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    url: str | None = None,
    *,
    parallel: int = DEFAULT_PARALLEL_CALLS,
    watch: Watch | None = None,
    run_id: str = "",
    lease: float = DEFAULT_LEASE_SECONDS,
    local_calls: bool = True,
    keep_secrets: bool = False,
    labels: InputLabels | None = None,
    connections: int | None = None,
) -> Trace:
    """Return what `run_durably` returns, without blocking the event loop."""
    given_url, id = (url, optional(STRING)), (run_id, STRING)
    checked = {"session": (session, SESSION), "plan": (plan, PLAN), "inputs": (inputs, INPUTS)}
    require("run_durably", **checked, url=given_url, parallel=(parallel, NUMBER), run_id=id)
    check_durable(session, plan, keep_secrets, labels)
    if parallel < 1:
        raise ValueError("parallel must be 1 or more")
    if run_id and not RUN.fullmatch(run_id):
        raise SpecError(f"run {quote_untrusted(run_id)}", ["an id must be at most 64 letters, digits, _ and -"])
    exact = bind_arguments(plan.signature, session._shared.coercion, dict(inputs or {}), by_name=True)
    arguments = dict(plan.signature.by_name(list(exact)))
    start = None
    if session._entries.tracks_flow:
        start = with_session_labels(session, plan, input_labels(plan, labels))
    driver = await asyncio.to_thread(Driver, session, url, lease, connections)
    try:
        run = _new_run(run_id or os.urandom(8).hex(), plan, arguments, start, parallel, driver.digests(plan))
        await asyncio.to_thread(driver.runs.add, run, driver.leader, driver.lease)
        return await driver.drive(run, plan, arguments, start, watch, local_calls)
    finally:
        await asyncio.to_thread(driver.close)


def resume(
    session: Session,
    url: str | None,
    run: str,
    *,
    watch: Watch | None = None,
    lease: float = DEFAULT_LEASE_SECONDS,
    local_calls: bool = True,
    exact: bool = False,
    connections: int | None = None,
) -> Trace:
    """Continue a run and return its trace. For a run that has ended, only return the trace.

    Calls that have ended do not run again. If another process still seems to drive the run, wait for its lease to
    expire. If a tool has changed since the run was checked with it, a warning goes to the host's logger, and later
    calls are made with the new version.

    Args:
        session: As for `run_durably`, like the other parameters.
        run: The id of the run.
        exact: Whether to refuse the run if one of its tools has changed.

    Raises:
        SpecError: If the run does not exist, a tool has changed and *exact* is true, another process drives it, the
            plan can no longer run here, or a row of the run in the database is invalid.
    """
    require("resume", session=(session, SESSION), url=(url, optional(STRING)), run=(run, STRING))
    return _waited_for(
        session,
        lambda: aresume(
            session,
            url,
            run,
            watch=watch,
            lease=lease,
            local_calls=local_calls,
            exact=exact,
            connections=connections,
        ),
    )


async def aresume(
    session: Session,
    url: str | None,
    run: str,
    *,
    watch: Watch | None = None,
    lease: float = DEFAULT_LEASE_SECONDS,
    local_calls: bool = True,
    exact: bool = False,
    connections: int | None = None,
) -> Trace:
    """Return what `resume` returns, without blocking the event loop."""
    driver = await asyncio.to_thread(Driver, session, url, lease, connections)
    try:
        found = await asyncio.to_thread(driver.runs.find, run)
        plan = plan_in(found)
        inputs, labels = inputs_in(found, plan, session._shared.coercion)
        check_durable(session, plan, keep_secrets=True)
        if found.status == "running":
            digests = driver.digests(plan)
            _compare_tools(session, found, digests, exact)
            await driver.take(found)
            await asyncio.to_thread(driver.use_tools, run, digests)
        return await driver.drive(found, plan, inputs, labels, watch, local_calls and found.status == "running")
    finally:
        await asyncio.to_thread(driver.close)


def _compare_tools(session: Session, run: Run, digests: Mapping[str, str | None], exact: bool) -> None:
    """Log a warning for each tool that has changed since a run was checked with it; with *exact*, refuse the run."""
    changed = [quote_untrusted(tool) for tool in changed_tools(run.tools, digests)]
    if exact and changed:
        problems = [f"{tool} has changed since the run was checked with it" for tool in changed]
        raise SpecError(f"run {quote_untrusted(run.id)}", problems)
    for tool in changed:
        text = f"{tool} has changed since run {quote_untrusted(run.id)} was checked with it; the new version is used"
        session.host.logger_of(tool).warning("%s", text)


def _waited_for(session: Session, drive: Callable[[], Coroutine[Any, Any, Trace]]) -> Trace:
    trace: Trace = Runner(session._shared).run(Invocation("plan", drive, (), "coroutine")).result()
    return trace


def _new_run(
    run_id: str,
    plan: Plan,
    inputs: dict[str, Any],
    labels: PlanLabels | None,
    parallel: int,
    digests: Mapping[str, str | None],
) -> Run:
    try:
        inputs_text = labelled_inputs_text(inputs, labels)
    except NotStorable as error:
        raise SpecError("inputs", [str(error)]) from None
    return Run(
        id=run_id,
        name=plan.name,
        digest=plan.digest,
        plan=json.dumps(plan_to_data(plan)),
        inputs=inputs_text,
        parallel=parallel,
        status="running",
        error=None,
        started=0.0,
        ended=None,
        tools=json.dumps(digests),
        is_driven=True,
    )
