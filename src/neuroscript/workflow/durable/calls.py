"""The calls of durable runs: each is queued once, claimed by one worker, and ended by that worker.

The table of calls is the queue. A worker claims calls in one transaction, which also records that they begin; the
outcome of each is recorded afterwards. If a worker dies in between, it is unknown whether the tool ran, so the call
runs again only if that is allowed: see `takeover`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

import attrs

from neuroscript.errors import CallError
from neuroscript.flow.labels import Labels
from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database, sa
from neuroscript.workflow.durable.labels import labelled_text
from neuroscript.workflow.durable.outcomes import (
    Outcome,
    Place,
    arguments_in,
    failure,
    outcome_in,
)
from neuroscript.workflow.durable.rows import CALL_COLUMNS, check_call, place_id
from neuroscript.workflow.durable.schema import IS_WAITING, postgresql, sqlite
from neuroscript.workflow.durable.tool_digests import ToolVersion
from neuroscript.workflow.runner import CallNotMade, RunCancelled
from neuroscript.workflow.scheduler import ABANDONED_WAIT_SECONDS, ScheduledCall

PUT_COLUMNS: Final = (
    *("id", "run", "node", "item", "number", "tool", "arguments", "timeout", "patience", "rerun", "takes", "digest"),
)
"""The columns that are set when a call is queued."""


class WorkerFenced(Exception):
    """Raised when a worker was declared dead; it begins no more calls."""


@attrs.frozen
class WaitingCalls:
    """Calls of running runs that wait for a worker: those of one tool that are suspects, or those that are not."""

    version: ToolVersion
    are_suspects: bool


@attrs.frozen
class StartedCall:
    """A call to make now.

    Attributes:
        labels: What its arguments carry; None if the process that drives the run has no flow rules.
        patience: Seconds to wait for a call that was abandoned at its timeout, before the timeout is recorded.
        token: The random id of this beginning. Only its holder can end the call.
        is_suspect: Whether a worker died while it made this call and others, so that it must run alone.
    """

    id: str
    tool: str
    arguments: dict[str, Any]
    labels: Labels | None
    timeout: float | None
    patience: float
    token: str
    is_suspect: bool


def call_id(run: str, work: ScheduledCall) -> str:
    """Return the database id of an attempt."""
    return place_id(run, work.node.name, work.item, work.number)


class Calls:
    """The calls of all runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._put_statements = _put_statements(database)

    # For the driver of a run

    def put(
        self,
        run: str,
        leader: str,
        work: ScheduledCall,
        labels: Labels | None,
        may_rerun: bool,
        digest: str | None,
        is_over: Callable[[], bool],
    ) -> None:
        """Queue a call, unless it was queued before.

        Args:
            labels: What its arguments carry; None without flow rules.
            digest: The digest of its tool.
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
            "digest": digest,
        }
        led, insert = self._put_statements
        own_run = {"its_run": run, "its_leader": leader}

        def queued(connection: sa.Connection) -> bool:
            if insert is None:
                return bool(connection.execute(led, own_run | {f"its_{name}": row[name] for name in row}).scalar())
            if not connection.execute(led, own_run).rowcount:
                return False
            connection.execute(insert, row)
            return True

        def why_not(connection: sa.Connection) -> str:
            status = connection.execute(sa.select(RUNS.c.status).where(RUNS.c.id == run)).scalar()
            begun = connection.execute(sa.select(CALLS.c.begun).where(CALLS.c.id == row["id"])).scalar()
            return str(status) if begun is None else f"{status}, begun"

        if self._database.transaction(queued, is_over, is_single=insert is None):
            self._database.wakeup.ring("queued")
            return
        status = self._database.transaction(why_not, is_over)
        if status == "cancelled":
            raise RunCancelled
        if status == "cancelled, begun":
            text = "was under way when the run was cancelled, and may have run"
            raise CallError(text, tool=work.node.tool, code="plan.in_doubt")
        if status in ("succeeded", "failed"):
            raise CallNotMade  # the run has ended without it
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
        rows = self._database.transaction(lambda connection: connection.execute(query).all(), is_over, is_single=True)
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

    def use_tools(self, run: str, versions: Collection[ToolVersion]) -> None:
        """Pass the waiting calls of a run to workers that have its tools in other versions."""
        waiting = sa.update(CALLS).where(CALLS.c.run == run, IS_WAITING)

        def changed(connection: sa.Connection) -> None:
            for version in versions:
                connection.execute(waiting.where(CALLS.c.tool == version.tool).values(digest=version.digest))

        self._database.transaction(changed)

    # For workers

    def waiting(self, is_over: Callable[[], bool] | None = None) -> list[WaitingCalls]:
        """Return what waits for a worker."""
        query = sa.select(CALLS.c.tool, CALLS.c.digest, CALLS.c.suspect).distinct()
        query = query.join(RUNS, RUNS.c.id == CALLS.c.run).where(IS_WAITING, RUNS.c.status == "running")
        rows = self._database.transaction(lambda connection: connection.execute(query).all(), is_over, is_single=True)
        return [WaitingCalls(ToolVersion(row.tool, row.digest), bool(row.suspect)) for row in rows]

    def claim(
        self, worker: str, which: Collection[WaitingCalls], limit: int, is_over: Callable[[], bool]
    ) -> list[StartedCall]:
        """Record that waiting calls begin and return them; those that were queued first come first.

        Args:
            worker: The worker that makes the calls.
            which: The calls that it can make.
            limit: The maximum number of calls.
            is_over: Called while the database is unreachable; returns whether to give up.

        Raises:
            WorkerFenced: If the worker was declared dead.
        """
        token = os.urandom(8).hex()
        tries = []

        def claimed(connection: sa.Connection) -> list[StartedCall]:
            tries.append(token)
            return self._claim(connection, worker, which, limit, token, is_repeated=len(tries) > 1)

        return self._database.transaction(claimed, is_over)

    def _claim(
        self,
        connection: sa.Connection,
        worker: str,
        which: Collection[WaitingCalls],
        limit: int,
        token: str,
        *,
        is_repeated: bool,
    ) -> list[StartedCall]:
        alive = sa.and_(WORKERS.c.id == worker, WORKERS.c.ended.is_(None))
        if not connection.execute(sa.update(WORKERS).where(alive).values(seen=self._database.now)).rowcount:
            raise WorkerFenced(worker)
        rows: Sequence[Any] = []
        if is_repeated:  # the commit may have succeeded although the connection was lost
            own = sa.select(*CALL_COLUMNS).where(CALLS.c.token == token, CALLS.c.worker == worker)
            rows = connection.execute(own).all()
        if not rows:
            rows = connection.execute(_next_calls(which, limit)).all()
            begins = {"begun": self._database.now, "worker": worker, "token": token, "takes": CALLS.c.takes + 1}
            change = sa.update(CALLS).where(CALLS.c.id.in_([row.id for row in rows])).values(**begins)
            if rows:
                connection.execute(change)
        return [call for row in rows if (call := self._started(connection, row, token)) is not None]

    def _started(self, connection: sa.Connection, row: Any, token: str) -> StartedCall | None:
        """Return a call that was claimed, or end it if its row is invalid."""
        arguments, labels, error = arguments_in(row)
        if error is None:
            return StartedCall(row.id, row.tool, arguments, labels, row.timeout, row.patience, token, bool(row.suspect))
        ended = {"ended": self._database.now, "code": error.code, "outcome": failure(error)}
        connection.execute(sa.update(CALLS).where(CALLS.c.id == row.id).values(**ended))
        return None

    def end(self, call: StartedCall, code: str, outcome: str, is_over: Callable[[], bool]) -> None:
        """Record the outcome of a call, unless another worker has begun it since."""
        own_call = sa.and_(CALLS.c.id == call.id, CALLS.c.token == call.token, CALLS.c.ended.is_(None))
        change = sa.update(CALLS).where(own_call).values(ended=self._database.now, code=code, outcome=outcome)
        self._database.transaction(lambda connection: connection.execute(change), is_over, is_single=True)
        self._database.wakeup.ring("ended")


def _put_statements(database: Database) -> tuple[Any, Any]:
    """Return the statements that renew the lease of a run, and queue a call of it if that succeeds.

    PostgreSQL does both in one statement, which returns 0 if the run is no longer driven by its leader.
    """
    own_run = (RUNS.c.id == sa.bindparam("its_run"), RUNS.c.leader == sa.bindparam("its_leader"))
    renew = sa.update(RUNS).where(*own_run, RUNS.c.status == "running").values(seen=database.now)
    if database.engine.dialect.name == "sqlite":
        return renew, sqlite.insert(CALLS).values(queued=database.now).on_conflict_do_nothing()
    led = renew.returning(RUNS.c.id).cte("led")
    values = [sa.bindparam(f"its_{name}", type_=CALLS.c[name].type) for name in PUT_COLUMNS]
    row = sa.select(*values, database.now).where(sa.exists(sa.select(led.c.id)))
    insert = postgresql.insert(CALLS).from_select([*PUT_COLUMNS, "queued"], row, include_defaults=False)
    queued = insert.on_conflict_do_nothing().returning(CALLS.c.id).cte("queued")
    return sa.select(sa.func.count()).select_from(led).add_cte(queued), None


def _next_calls(which: Collection[WaitingCalls], limit: int) -> sa.Select[Any]:
    kinds = [
        sa.and_(
            CALLS.c.tool == each.version.tool,
            CALLS.c.digest.is_(None) if each.version.digest is None else CALLS.c.digest == each.version.digest,
            CALLS.c.suspect == int(each.are_suspects),
        )
        for each in which
    ]
    query = sa.select(*CALL_COLUMNS).join(RUNS, RUNS.c.id == CALLS.c.run)
    query = query.where(IS_WAITING, RUNS.c.status == "running", sa.or_(sa.false(), *kinds))
    query = query.order_by(CALLS.c.queued, CALLS.c.id).limit(limit)
    return query.with_for_update(of=CALLS, skip_locked=True)


def _seconds_to_wait(work: ScheduledCall) -> float:
    """Return how long to wait for an abandoned call, so that no two attempts at a node run at once."""
    return (work.node.timeout or ABANDONED_WAIT_SECONDS) if work.number <= work.node.retry.count else 0.0
