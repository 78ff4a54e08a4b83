"""Run a plan so that it survives its process: begin it, and go on with it.

The scheduler stands outside DBOS: going through the plan again, it asks for each call by the same name, and gets what
that call gave before.

Source: issue "Beyond one machine"; ecosystem.md part 10.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from neuroscript.calls.drivers import Runner
from neuroscript.calls.steps import Body
from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.engine.session import Session
from neuroscript.errors import SpecError
from neuroscript.io.text import shown
from neuroscript.spec.binding import bound
from neuroscript.workflow.durable.encoding import Unkept, text_of
from neuroscript.workflow.durable.heartbeat import LEASE
from neuroscript.workflow.durable.leader import Driver
from neuroscript.workflow.durable.run_records import Run, inputs_in, plan_in
from neuroscript.workflow.durable.validation import check_durable
from neuroscript.workflow.plan.file import plan_to_data
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.plan.parameters import INPUTS, NUMBER, PLAN, SESSION
from neuroscript.workflow.runner import PARALLEL, Watch
from neuroscript.workflow.trace.trace import Trace

RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a run may be called."""


def run_durably(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    url: str | None = None,
    *,
    parallel: int = PARALLEL,
    watch: Watch | None = None,
    run_id: str = "",
    lease: float = LEASE,
    works: bool = True,
    keep_secrets: bool = False,
) -> Trace:
    """Run a plan so that it can be gone on with when this process has died, and return what it has done.

    Args:
        session: An engine, or one of its sessions: who calls, under which policy and limits.
        inputs: What the plan is given, by name.
        url: ``sqlite:///FILE`` or ``postgresql://…``; by default a file in this user's data directory.
        parallel: How many calls of the plan may be given out at once.
        watch: Called with each `Step`; what it raises is let go.
        run_id: What the run is called; by default a word that nobody guesses.
        lease: Seconds after which this process is taken for dead where it has not been heard of.
        works: Whether this process makes calls itself; else it waits for workers to make them.
        keep_secrets: Whether secret inputs and arguments may stand in the database, where they are not encrypted.

    Raises:
        SpecError: The plan can not run here or not durably, with every problem, or the database can not be used.
        ArgumentError: The inputs do not fit, with every problem.
        ValueError: *parallel* is less than 1.
        CallError: ``plan.taken``: this process was taken for dead, and another one may go on with the run.
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
            works=works,
            keep_secrets=keep_secrets,
        ),
    )


async def arun_durably(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    url: str | None = None,
    *,
    parallel: int = PARALLEL,
    watch: Watch | None = None,
    run_id: str = "",
    lease: float = LEASE,
    works: bool = True,
    keep_secrets: bool = False,
) -> Trace:
    """Return what `run_durably` returns, without holding up the loop that awaits it."""
    given_url, id = (url, optional(STRING)), (run_id, STRING)
    checked = {"session": (session, SESSION), "plan": (plan, PLAN), "inputs": (inputs, INPUTS)}
    require("run_durably", **checked, url=given_url, parallel=(parallel, NUMBER), run_id=id)
    check_durable(session, plan, keep_secrets)
    if parallel < 1:
        raise ValueError("parallel must be 1 or more")
    if run_id and not RUN.fullmatch(run_id):
        raise SpecError(f"run {shown(run_id)}", ["an id is letters, digits, _ and -, at most 64"])
    exact = bound(plan.signature, session._world.coercion, dict(inputs or {}), by_name=True)
    given = dict(plan.signature.by_name(list(exact)))
    run = _begun(run_id or os.urandom(8).hex(), plan, given, parallel)
    driver = await asyncio.to_thread(Driver, session, url, lease)
    try:
        await asyncio.to_thread(driver.runs.add, run, driver.leader, driver.lease)
        return await driver.drive(run, plan, given, watch, works)
    finally:
        await asyncio.to_thread(driver.close)


def resume(
    session: Session,
    url: str | None,
    run: str,
    *,
    watch: Watch | None = None,
    lease: float = LEASE,
    works: bool = True,
) -> Trace:
    """Go on with a run where it was, and return what it has done in all; of one that has ended, that alone.

    Nothing that has ended is run again. Where another process still seems to drive the run, its lease is waited for.

    Args:
        session: As `run_durably` takes it, as are the others.
        run: The id of the run.

    Raises:
        SpecError: There is no such run, another process drives it, the plan can not run here any more, or a row of the
            run in the database cannot be used.
    """
    require("resume", session=(session, SESSION), url=(url, optional(STRING)), run=(run, STRING))
    return _waited_for(session, lambda: _resumed(session, url, run, watch, lease, works))


async def _resumed(
    session: Session, url: str | None, run: str, watch: Watch | None, lease: float, works: bool
) -> Trace:
    driver = await asyncio.to_thread(Driver, session, url, lease)
    try:
        found = await asyncio.to_thread(driver.runs.find, run)
        plan = plan_in(found)
        inputs = inputs_in(found, plan, session._world.coercion)
        check_durable(session, plan, keep_secrets=True)
        if found.status == "running":
            await driver.take(found)
        return await driver.drive(found, plan, inputs, watch, works and found.status == "running")
    finally:
        await asyncio.to_thread(driver.close)


def _waited_for(session: Session, drive: Callable[[], Coroutine[Any, Any, Trace]]) -> Trace:
    trace: Trace = Runner(session._world).run(Body("plan", drive, (), "coroutine")).result()
    return trace


def _begun(run_id: str, plan: Plan, inputs: dict[str, Any], parallel: int) -> Run:
    try:
        given = text_of(inputs)
    except Unkept as error:
        raise SpecError("inputs", [str(error)]) from None
    return Run(
        id=run_id,
        name=plan.name,
        digest=plan.digest,
        plan=json.dumps(plan_to_data(plan)),
        inputs=given,
        parallel=parallel,
        status="running",
        error=None,
        started=0.0,
        ended=None,
        is_driven=True,
    )
