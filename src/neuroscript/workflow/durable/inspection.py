"""Listing, showing and cancelling durable runs; no tools are needed or run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import attrs

from neuroscript.errors import SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.workflow.durable.calls import Calls
from neuroscript.workflow.durable.database import RUNS, Database
from neuroscript.workflow.durable.encoding import Unreadable, value_of
from neuroscript.workflow.durable.outcomes import cancelled_error, failure
from neuroscript.workflow.durable.rows import fault
from neuroscript.workflow.durable.run_records import DamagedRun, Run, Runs, plan_in
from neuroscript.workflow.durable.takeover import died_error
from neuroscript.workflow.durable.tool_digests import ToolVersion, has_version
from neuroscript.workflow.durable.worker_registry import Workers
from neuroscript.workflow.plan.model import Plan

Status = Literal["running", "interrupted", "succeeded", "failed", "cancelled", "damaged"]
"""The status of a run.

An unfinished run that no process drives is ``interrupted`` and can be resumed. The row of a ``damaged`` run was changed
by another program and cannot be used; `RunState.error` says what is wrong.
"""


@attrs.frozen
class RunState:
    """The state of a run.

    Attributes:
        id: The id of the run.
        plan: The name of its plan.
        digest: SHA-256 of its plan, in hexadecimal digits.
        status: See `Status`.
        started: Seconds since 1970-01-01 UTC on the database's clock; 0 if the run is damaged.
        ended: When it ended, on the same clock, or None.
        error: Why it failed or is damaged, or ``""``.
    """

    id: str
    plan: str
    digest: str
    status: Status
    started: float
    ended: float | None
    error: str


@attrs.frozen
class CallState:
    """The state of one attempt of a run.

    Attributes:
        node: The name of its node.
        item: The index of the item if the node maps a list, else None.
        number: The number of the attempt, from 1.
        tool: The name of its tool, as the plan spells it.
        status: ``waiting``, ``running``, ``ok``, or an error code.
        has_worker: False if it waits and no living worker has its tool in the version that the run was checked with.
        worker: The worker that began it last, or ``""``.
        starts: How often it was started.
        started: When it last began, in seconds since 1970-01-01 UTC, or None.
        seconds: How long it took, or None if it has not ended.
    """

    node: str
    item: int | None
    number: int
    tool: str
    status: str
    has_worker: bool
    worker: str
    starts: int
    started: float | None
    seconds: float | None


def list_runs(url: str | None = None) -> list[RunState]:
    """Return all runs of a database, the newest first.

    Raises:
        SpecError: If the database cannot be used.
    """
    with _opened(url) as database:
        return [_state_or_damage(run) for run in Runs(database).all()]


def show_run(url: str | None, run: str) -> tuple[RunState, list[CallState]]:
    """Return the state of a run, and its calls in the order in which they began.

    Raises:
        SpecError: If the run does not exist or the database cannot be used.
    """
    with _opened(url) as database:
        found = Runs(database).find(run)
        return _state(found), list(_calls(database, run))


def cancel(url: str | None, run: str) -> RunState:
    """Cancel a run and return its state. Calls that are running end normally; no further call begins.

    Raises:
        SpecError: If the run does not exist or has ended, or the database cannot be used.
    """
    with _opened(url) as database:
        runs = Runs(database)
        status = runs.find(run).status
        if not runs.cancel(run, failure(cancelled_error("")), failure(died_error(""))):
            raise SpecError(
                f"run {quote_untrusted(run)}",
                [f"has already {status}" if status != "cancelled" else "was already cancelled"],
            )
        return _state(runs.find(run))


def plan_of(url: str | None, run: str) -> Plan:
    """Return the plan of a run.

    Raises:
        SpecError: If the run does not exist or the database cannot be used.
    """
    with _opened(url) as database:
        return plan_in(Runs(database).find(run))


@contextmanager
def _opened(url: str | None) -> Iterator[Database]:
    database = Database(url, makes=False)
    try:
        yield database
    finally:
        database.close()


def _state(run: Run) -> RunState:
    status: Status = run.status  # type: ignore[assignment]  # one of ours
    if status == "running" and not run.is_driven:
        status = "interrupted"
    error = "" if run.error is None else _message(run)
    return RunState(run.id, run.name, run.digest, status, run.started, run.ended, error)


def _state_or_damage(run: Run | DamagedRun) -> RunState:
    if isinstance(run, Run):
        try:
            return _state(run)
        except SpecError as error:
            run = DamagedRun(run.id, error)
    return RunState(run.id, "", "", "damaged", 0.0, None, str(run.fault))


def _message(run: Run) -> str:
    try:
        return str(value_of(run.error or "")["message"])
    except (Unreadable, LookupError, TypeError):
        raise fault(RUNS, run.id, ["error must be an object with a message"]) from None


def _calls(database: Database, run: str) -> Iterator[CallState]:
    lacking = Workers(database).lacking()
    for row in Calls(database).of(run):
        status = row.code or ("waiting" if row.worker is None else "running")
        version = ToolVersion(row.tool, row.digest)
        has_worker = status != "waiting" or any(has_version(each, version) for each in lacking)
        seconds = None if row.ended is None or row.begun is None else row.ended - row.begun
        yield CallState(
            node=row.node,
            item=row.item,
            number=row.number,
            tool=row.tool,
            status=status,
            has_worker=has_worker,
            worker=row.worker or "",
            starts=row.takes,
            started=row.begun,
            seconds=seconds,
        )
