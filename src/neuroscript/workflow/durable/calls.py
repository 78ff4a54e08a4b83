"""The calls of durable runs: each is queued once, begun by one worker, and ended by that worker.

The beginning of a call is recorded before its tool runs, and its outcome afterwards. If a worker dies in between, it is
unknown whether the tool ran, so the call runs again only if that is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import CallError
from neuroscript.flow.labels import Labels
from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database, once, sa
from neuroscript.workflow.durable.labels import labelled_text
from neuroscript.workflow.durable.outcomes import (
    Outcome,
    Place,
    arguments_in,
    cancelled_error,
    damaged_row_error,
    failure,
    outcome_in,
)
from neuroscript.workflow.durable.rows import CALL_COLUMNS, check_call, place_id
from neuroscript.workflow.runner import CallNotMade, RunCancelled
from neuroscript.workflow.scheduler import ABANDONED_WAIT_SECONDS, ScheduledCall

MAX_ATTEMPTS: Final = 5
"""Maximum number of times that a call may start. A call that kills its worker must not kill all workers."""

DAMAGED: Final = "is missing, has ended, or was not written by this version of neuroscript"


class WorkerFenced(Exception):
    """Raised when a worker was declared dead; it begins no more calls."""


@attrs.frozen
class StartedCall:
    """A call to make now.

    Attributes:
        labels: What its arguments carry; None if the process that drives the run has no flow rules.
        patience: Seconds to wait for a call that was abandoned at its timeout, before the timeout is recorded.
        token: The random id of this beginning. Only its holder can end the call.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    labels: Labels | None
    timeout: float | None
    patience: float
    token: str


def call_id(run: str, work: ScheduledCall) -> str:
    """Return the database id of an attempt."""
    return place_id(run, work.node.name, work.item, work.number)


class Calls:
    """The calls of all runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # For the driver of a run

    def put(
        self,
        run: str,
        leader: str,
        work: ScheduledCall,
        labels: Labels | None,
        may_rerun: bool,
        enqueue: Callable[[sa.Connection, str], None],
        is_over: Callable[[], bool],
    ) -> None:
        """Queue a call, unless it was queued before.

        Args:
            labels: What its arguments carry; None without flow rules.
            enqueue: Puts the call into the queue, in the same transaction.
            is_over: Called while the database is unreachable; returns whether to give up.

        Raises:
            CallNotMade: If the run has ended.
            RunCancelled: If the run was cancelled before the call began.
            CallError: If the run was cancelled after the call began, or another process drives it.
            Unkept: If an argument cannot be stored.
        """
        row = {
            "id": call_id(run, work),
            "run": run,
            "node": work.node.name,
            "item": work.item,
            "number": work.number,
            "tool": work.node.tool,
            "arguments": labelled_text(work.arguments, labels),
            "timeout": work.node.timeout,
            "patience": _seconds_to_wait(work) if may_rerun else 0.0,
            "rerun": may_rerun,
            "takes": 0,
        }
        own_run = sa.and_(RUNS.c.id == run, RUNS.c.leader == leader, RUNS.c.status == "running")
        beat = sa.update(RUNS).where(own_run).values(seen=self._database.now)

        def given_out(connection: sa.Connection) -> str | None:
            is_mine = connection.execute(beat).rowcount
            there = connection.execute(sa.select(CALLS.c.begun).where(CALLS.c.id == row["id"])).first()
            if not is_mine:
                status = connection.execute(sa.select(RUNS.c.status).where(RUNS.c.id == run)).scalar()
                return f"{status}, begun" if there is not None and there.begun is not None else str(status)
            if there is None:
                connection.execute(sa.insert(CALLS).values(row))
                enqueue(connection, str(row["id"]))
            return None

        status = self._database.transaction(given_out, is_over)
        if status == "cancelled":
            raise RunCancelled
        if status == "cancelled, begun":
            text = "was under way when the run was cancelled, and may have run"
            raise CallError(text, tool=work.node.tool, code="plan.in_doubt")
        if status in ("succeeded", "failed"):
            raise CallNotMade  # the run has ended without it
        if status is not None:
            raise CallError("another process has taken over the run", tool=work.node.tool, code="plan.lease_lost")

    def given_out(self, run: str) -> set[Place]:
        """Return the places of all calls of a run that were queued, or raise a `SpecError` for an invalid row."""
        return {(row.node, row.item, row.number) for row in self.of(run)}

    def ended(self, ids: Sequence[str], is_over: Callable[[], bool]) -> list[Outcome]:
        """Return the outcomes of those calls in *ids* that have ended."""
        return self._outcomes(CALLS.c.id.in_(ids), is_over)

    def past(self, run: str) -> list[Outcome]:
        """Return the outcomes of all ended calls of a run, in the order in which they ended."""
        return self._outcomes(CALLS.c.run == run)

    def _outcomes(self, which: Any, is_over: Callable[[], bool] | None = None) -> list[Outcome]:
        ago = (self._database.now - CALLS.c.ended).label("ago")
        query = sa.select(*CALL_COLUMNS, ago).where(which, CALLS.c.ended.is_not(None))
        query = query.order_by(CALLS.c.ended, CALLS.c.id)
        rows = self._database.transaction(lambda connection: connection.execute(query).all(), is_over)
        return [outcome_in(row) for row in rows]

    def of(self, run: str) -> Iterable[Any]:
        """Return the rows of all calls of a run, in the order in which they began.

        Raises:
            SpecError: If a row is invalid.
        """
        query = sa.select(*CALL_COLUMNS).where(CALLS.c.run == run)
        query = query.order_by(sa.func.coalesce(CALLS.c.begun, 1e12), CALLS.c.id)
        rows = self._database.transaction(lambda connection: connection.execute(query).all())
        for row in rows:
            check_call(dict(row._mapping))
        return rows

    def give_up(self, ids: Sequence[str]) -> None:
        """End calls that have not begun and that no worker will make."""
        waiting = sa.and_(CALLS.c.id.in_(ids), CALLS.c.begun.is_(None), CALLS.c.ended.is_(None))
        error = damaged_row_error("", f"the row of DBOS's workflow_status with its id {DAMAGED}")
        ended = {"ended": self._database.now, "code": error.code, "outcome": failure(error)}
        change = sa.update(CALLS).where(waiting).values(**ended)
        self._database.transaction(lambda connection: connection.execute(change), once)

    # For workers

    def begin(self, id: str, worker: str, is_over: Callable[[], bool]) -> StartedCall | None:
        """Record that a call begins and return it, or None if there is nothing to run.

        Args:
            worker: The worker that makes the call.
            is_over: Called while the database is unreachable; returns whether to give up.

        Raises:
            Fenced: If the worker was declared dead.
        """
        token = os.urandom(8).hex()
        return self._database.transaction(lambda connection: self._start_call(connection, id, worker, token), is_over)

    def _start_call(self, connection: sa.Connection, id: str, worker: str, token: str) -> StartedCall | None:
        alive = sa.and_(WORKERS.c.id == worker, WORKERS.c.ended.is_(None))
        if not connection.execute(sa.update(WORKERS).where(alive).values(seen=self._database.now)).rowcount:
            raise WorkerFenced(worker)
        run = sa.select(CALLS.c.run).where(CALLS.c.id == id).scalar_subquery()
        status = connection.execute(
            sa.select(RUNS.c.status).where(RUNS.c.id == run).with_for_update(read=True)
        ).scalar()
        row = connection.execute(sa.select(*CALL_COLUMNS).where(CALLS.c.id == id).with_for_update()).one_or_none()
        if row is None or row.ended is not None:
            return None
        arguments, labels, error = arguments_in(row)
        error = error or _in_the_way(row, status == "running", token)
        which = sa.update(CALLS).where(CALLS.c.id == id)
        if error is not None:
            ended = {"ended": self._database.now, "code": error.code, "outcome": failure(error)}
            connection.execute(which.values(**ended))
            return None
        values = {"begun": self._database.now, "worker": worker, "token": token, "takes": row.takes + 1}
        connection.execute(which.values(**values))
        return StartedCall(id, row.tool, arguments, labels, row.timeout, row.patience, token)

    def end(self, call: StartedCall, code: str, outcome: str, is_over: Callable[[], bool]) -> None:
        """Record the outcome of a call, unless another worker has begun it since."""
        own_call = sa.and_(CALLS.c.id == call.id, CALLS.c.token == call.token, CALLS.c.ended.is_(None))
        change = sa.update(CALLS).where(own_call).values(ended=self._database.now, code=code, outcome=outcome)
        self._database.transaction(lambda connection: connection.execute(change), is_over)


def _seconds_to_wait(work: ScheduledCall) -> float:
    """Return how long to wait for an abandoned call, so that no two attempts at a node run at once."""
    return (work.node.timeout or ABANDONED_WAIT_SECONDS) if work.number <= work.node.retry.count else 0.0


def _in_the_way(row: Any, is_running: bool, token: str) -> CallError | None:
    """Return why a call that has not ended may not begin, or None."""
    has_begun = row.begun is not None and row.token != token  # the same token means that a commit succeeded unnoticed
    if has_begun and not (row.rerun and is_running):
        text = "was under way when its process died, and may have run"
        return CallError(text, tool=row.tool, code="plan.in_doubt")
    if has_begun and row.takes >= MAX_ATTEMPTS:
        text = f"was under way when its process died, {row.takes} times"
        return CallError(text, tool=row.tool, code="plan.in_doubt")
    return None if is_running else cancelled_error(row.tool)
