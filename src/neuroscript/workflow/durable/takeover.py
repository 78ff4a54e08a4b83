"""Takeover of the calls of dead workers.

It is unknown whether such a call ran. If it may run again, it waits for another worker; otherwise it ends in doubt. A
call that kills its worker takes the other calls of that worker with it, so all of them become suspects. A suspect runs
alone on a worker: if that worker dies too, the call is the cause, and it is given up after `MAX_ATTEMPTS` attempts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from neuroscript.errors import CallError
from neuroscript.workflow.durable.database import CALLS, RUNS, WORKERS, Database, once, sa
from neuroscript.workflow.durable.outcomes import arguments_in, failure
from neuroscript.workflow.durable.rows import CALL_COLUMNS
from neuroscript.workflow.durable.schema import CHANNEL, IS_OPEN

MAX_ATTEMPTS: Final = 5
"""Maximum number of times that a call which was alone on a dead worker has begun."""


def take_over(database: Database) -> int:
    """End or requeue the calls of dead workers, and return how many there were.

    Workers that were declared dead cannot begin or end these calls any more.
    """
    living = sa.select(WORKERS.c.id).where(WORKERS.c.ended.is_(None))
    status = RUNS.c.status.label("run_status")
    query = sa.select(*CALL_COLUMNS, status).outerjoin(RUNS, RUNS.c.id == CALLS.c.run)
    query = query.where(IS_OPEN, CALLS.c.worker.not_in(living)).order_by(CALLS.c.id)

    def taken(connection: sa.Connection) -> int:
        rows = connection.execute(query.with_for_update(of=CALLS)).all()
        beside = Counter(row.worker for row in rows)
        for row in rows:
            own = sa.and_(CALLS.c.id == row.id, CALLS.c.worker == row.worker, CALLS.c.ended.is_(None))
            change = _change(database, row, is_alone=beside[row.worker] == 1)
            connection.execute(sa.update(CALLS).where(own).values(**change))
        if rows and connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_notify(CHANNEL, "queued")))
        return len(rows)

    count = database.transaction(taken, once)
    if count:
        database.wakeup.ring("queued", "ended")
    return count


def _change(database: Database, row: Any, *, is_alone: bool) -> dict[str, Any]:
    error = arguments_in(row)[2] or _doubt(row, is_alone)
    if error is not None:
        return {"ended": database.now, "code": error.code, "outcome": failure(error)}
    return {"worker": None, "token": None, "suspect": 1}


def _doubt(row: Any, is_alone: bool) -> CallError | None:
    """Return why a call whose worker died may not run again, or None."""
    if not row.rerun or row.run_status != "running":
        return died_error(row.tool)
    if is_alone and row.takes >= MAX_ATTEMPTS:
        text = f"was under way when its process died, {row.takes} times"
        return CallError(text, tool=row.tool, code="plan.in_doubt")
    return None


def died_error(tool: str) -> CallError:
    """Return the error of a call whose process died."""
    return CallError("was under way when its process died, and may have run", tool=tool, code="plan.in_doubt")
