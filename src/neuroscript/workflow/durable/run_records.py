"""The runs of a database: their plans, inputs, states, and the processes that drive them.

The process that holds the lease of a run drives it. Heartbeats renew the lease; when it has expired, any process can
take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import attrs

from neuroscript.coercion.context import CoercionSettings
from neuroscript.coercion.parameters import STRING, require
from neuroscript.errors import ArgumentError, CallError, SpecError
from neuroscript.io.text import quote_untrusted
from neuroscript.spec.binding import bind_arguments
from neuroscript.state.heartbeat import MAX_LEASE_SECONDS
from neuroscript.workflow.durable.database import CALLS, RUNS, Database, once, sa
from neuroscript.workflow.durable.encoding import Unreadable, json_of, text_of
from neuroscript.workflow.durable.labels import labelled_inputs
from neuroscript.workflow.durable.rows import RUN, check_run, fault
from neuroscript.workflow.durable.schema import IS_WAITING
from neuroscript.workflow.plan.file import plan_from_data
from neuroscript.workflow.plan.flows import PlanLabels
from neuroscript.workflow.plan.model import Plan


@attrs.frozen(kw_only=True)
class Run:
    """A row of `RUNS`, and whether a living process drives it."""

    id: str
    name: str
    digest: str
    plan: str
    inputs: str
    parallel: int
    status: str
    error: str | None
    started: float
    ended: float | None
    tools: str | None
    is_driven: bool


@attrs.frozen
class DamagedRun:
    """A row of `RUNS` that is invalid."""

    id: str
    fault: SpecError


class Runs:
    """The runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run: Run, leader: str, lease: float) -> None:
        """Add a run that *leader* drives.

        Args:
            lease: Seconds for which the leader counts as alive without a heartbeat.

        Raises:
            SpecError: If a run with this id exists.
        """
        fields = attrs.asdict(run, filter=lambda field, _: field.name not in ("started", "ended", "is_driven"))
        now = self._database.now
        row = sa.insert(RUNS).values(**fields, started=now, seen=now, lease=lease, leader=leader)
        try:
            self._database.transaction(lambda connection: connection.execute(row))
        except sa.exc.IntegrityError:
            raise SpecError(f"run {quote_untrusted(run.id)}", ["already exists"]) from None

    def find(self, run: str) -> Run:
        """Return a run, or raise a `SpecError` if it does not exist or its row is invalid."""
        require("durable", run=(run, STRING))
        found = self._read(_rows(self._database).where(RUNS.c.id == run))
        if not found:
            raise SpecError(f"run {quote_untrusted(run)}", ["does not exist"])
        return _run(found[0])

    def use_tools(self, run: str, leader: str, tools: str) -> None:
        """Record the digests of the tools that a run was checked with last."""
        change = sa.update(RUNS).where(RUNS.c.id == run, RUNS.c.leader == leader).values(tools=tools)
        self._database.transaction(lambda connection: connection.execute(change))

    def all(self) -> list[Run | DamagedRun]:
        """Return all runs, the newest first."""
        rows = self._read(_rows(self._database).order_by(RUNS.c.started.desc(), RUNS.c.id))
        return [_run_or_damaged(row) for row in rows]

    def _read(self, query: sa.Select[Any]) -> list[dict[str, Any]]:
        rows = self._database.transaction(lambda connection: connection.execute(query).all())
        return [dict(row._mapping) for row in rows]

    # The lease

    def lead(self, run: str, leader: str, lease: float) -> bool:
        """Take the lease of a run, and return whether that succeeded."""
        is_free = sa.or_(RUNS.c.leader.is_(None), sa.not_(self._database.is_alive(RUNS.c.seen, RUNS.c.lease)))
        values = {"leader": leader, "seen": self._database.now, "lease": lease}
        change = sa.update(RUNS).where(RUNS.c.id == run, is_free).values(**values)
        return self._database.transaction(lambda connection: connection.execute(change).rowcount == 1)

    def beat(self, run: str, leader: str) -> bool:
        """Renew the lease of a run, and return whether it was still held."""
        change = sa.update(RUNS).where(RUNS.c.id == run, RUNS.c.leader == leader).values(seen=self._database.now)
        return self._database.transaction(
            lambda connection: connection.execute(change).rowcount == 1, once, is_single=True
        )

    def leave(self, run: str, leader: str) -> None:
        """Release the lease of a run, so that the next process does not have to wait for it to expire."""
        change = sa.update(RUNS).where(RUNS.c.id == run, RUNS.c.leader == leader).values(leader=None)
        with suppress(CallError):
            self._database.transaction(lambda connection: connection.execute(change), once)

    def left(self, run: str) -> float:
        """Return the seconds until the lease of a run expires, if it is not renewed."""
        query = sa.select(RUNS.c.seen + RUNS.c.lease - self._database.now).where(RUNS.c.id == run)
        seconds = self._database.transaction(lambda connection: connection.execute(query).scalar())
        return seconds if type(seconds) is float and 0 <= seconds <= 2 * MAX_LEASE_SECONDS else 0.0

    # Ends

    def end(self, run: str, leader: str, status: str, error: Mapping[str, Any] | None) -> str | None:
        """Record how a run ended, and return its status, or None if its lease was lost before.

        A cancelled run stays cancelled.
        """
        error_text = None if error is None else text_of(dict(error))
        own_run = sa.update(RUNS).where(RUNS.c.id == run, RUNS.c.leader == leader)
        changes = {"status": status, "error": error_text, "ended": self._database.now}

        def ended(connection: sa.Connection) -> str | None:
            connection.execute(own_run.where(RUNS.c.status == "running").values(**changes))
            is_own = connection.execute(own_run.values(leader=None)).rowcount == 1
            return _status(connection, run) if is_own else None

        return self._database.transaction(ended)

    def is_cancelled(self, run: str) -> bool:
        """Return whether a run was cancelled."""
        return self._database.transaction(lambda connection: _status(connection, run)) == "cancelled"

    def cancel(self, run: str, cancelled_outcome: str, doubtful_outcome: str) -> bool:
        """Cancel a run, and return whether it was running.

        Args:
            cancelled_outcome: The outcome for the calls that were queued and have not begun.
            doubtful_outcome: The outcome for those that have begun and wait to begin again.
        """
        waiting = sa.update(CALLS).where(CALLS.c.run == run, IS_WAITING)
        now = self._database.now

        def cancelled(connection: sa.Connection) -> bool:
            is_running = sa.and_(RUNS.c.id == run, RUNS.c.status == "running")
            if not connection.execute(sa.update(RUNS).where(is_running).values(status="cancelled", ended=now)).rowcount:
                return False
            ended = {"ended": now, "code": "plan.cancelled", "outcome": cancelled_outcome}
            connection.execute(waiting.where(CALLS.c.begun.is_(None)).values(**ended))
            ended = {"ended": now, "code": "plan.in_doubt", "outcome": doubtful_outcome}
            connection.execute(waiting.where(CALLS.c.begun.is_not(None)).values(**ended))
            return True

        is_cancelled = self._database.transaction(cancelled)
        self._database.wakeup.ring("ended")
        return is_cancelled


def _status(connection: sa.Connection, run: str) -> str | None:
    return connection.execute(sa.select(RUNS.c.status).where(RUNS.c.id == run)).scalar()


def plan_in(run: Run) -> Plan:
    """Return the plan of a run, or raise a `SpecError` if its row is invalid."""
    try:
        plan = plan_from_data(json_of(run.plan))
    except Unreadable as unreadable:
        raise fault(RUNS, run.id, [f"plan {unreadable}"]) from None
    except (SpecError, RecursionError):
        raise fault(RUNS, run.id, ["plan is not a valid plan"]) from None
    if plan.digest != run.digest:
        raise fault(RUNS, run.id, ["its digest does not match its plan"])
    return plan


def inputs_in(run: Run, plan: Plan, coercion: CoercionSettings) -> tuple[dict[str, Any], PlanLabels | None]:
    """Return the inputs of a run by name and what its plan carries, or raise a `SpecError` if its row is invalid.

    The second is None if the process that started the run had no flow rules.
    """
    try:
        inputs, labels = labelled_inputs(run.inputs, plan)
        if type(inputs) is not dict or not all(type(name) is str for name in inputs):
            raise Unreadable("is not an object")
        bind_arguments(plan.signature, coercion, inputs, by_name=True)
    except Unreadable as unreadable:
        raise fault(RUNS, run.id, [f"inputs {unreadable}"]) from None
    except ArgumentError:
        raise fault(RUNS, run.id, ["inputs do not match its plan"]) from None
    return inputs, labels


def _rows(database: Database) -> sa.Select[Any]:
    is_alive = database.is_alive(RUNS.c.seen, RUNS.c.lease)
    is_driven = sa.case((sa.and_(RUNS.c.leader.is_not(None), is_alive), 1), else_=0).label("is_driven")
    return sa.select(*(RUNS.c[name] for name in RUN), is_driven)


def _run(row: Mapping[str, Any]) -> Run:
    check_run(row)
    names = [field.name for field in attrs.fields(Run) if field.name != "is_driven"]
    return Run(**{name: row[name] for name in names}, is_driven=bool(row["is_driven"]))


def _run_or_damaged(row: Mapping[str, Any]) -> Run | DamagedRun:
    try:
        return _run(row)
    except SpecError as error:
        return DamagedRun(quote_untrusted(str(row["id"])), error)
