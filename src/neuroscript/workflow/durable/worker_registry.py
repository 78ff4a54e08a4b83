"""The workers of a database: who is alive, and who has to be taken over from.

Source: issue "Beyond one machine", a dead worker's nodes are taken over after a lease.
"""

from __future__ import annotations

import platform
from contextlib import suppress

from neuroscript.errors import CallError
from neuroscript.workflow.durable.database import WORKERS, Database, once, sa


class Workers:
    """The workers of a database; the id of one is never used again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def join(self, worker: str, lease: float) -> None:
        """Add a worker.

        Args:
            lease: Seconds after which it is taken for dead where it has not beaten.
        """
        values = {"id": worker, "host": platform.node(), "seen": self._database.now, "lease": lease}
        self._database.transaction(lambda connection: connection.execute(sa.insert(WORKERS).values(**values)))

    def beat(self, worker: str) -> bool:
        """Say that a worker is alive, and tell whether nobody has taken it for dead."""
        alive = sa.and_(WORKERS.c.id == worker, WORKERS.c.ended.is_(None))
        change = sa.update(WORKERS).where(alive).values(seen=self._database.now)
        return self._database.transaction(lambda connection: connection.execute(change).rowcount == 1, once)

    def leave(self, worker: str) -> None:
        """Say that a worker begins nothing any more; what it has not ended is taken over at once.

        Where the database is away, its lease ends by itself.
        """
        change = sa.update(WORKERS).where(WORKERS.c.id == worker).values(ended=self._database.now)
        with suppress(CallError):
            self._database.transaction(lambda connection: connection.execute(change), once)

    def alive(self) -> set[str]:
        """Return the workers that are alive, after those that have not beaten for their lease have been buried.

        A worker beats and begins a call in the same row: either what it has begun is seen by who takes over from it, or
        it begins nothing more.
        """
        now = self._database.now
        is_alive = self._database.is_alive(WORKERS.c.seen, WORKERS.c.lease)
        late = sa.and_(WORKERS.c.ended.is_(None), sa.not_(is_alive))
        living = sa.select(WORKERS.c.id).where(WORKERS.c.ended.is_(None))

        def buried(connection: sa.Connection) -> set[str]:
            if connection.execute(sa.select(WORKERS.c.id).where(late)).first() is not None:
                connection.execute(sa.update(WORKERS).where(late).values(ended=now))
            return set(connection.execute(living).scalars())

        return self._database.transaction(buried)
