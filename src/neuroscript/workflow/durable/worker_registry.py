"""The workers of a database: which are alive, and what they lack."""

from __future__ import annotations

import platform
from collections.abc import Collection
from contextlib import suppress

from neuroscript.errors import CallError
from neuroscript.workflow.durable.database import WORKERS, Database, once, sa
from neuroscript.workflow.durable.tool_digests import ToolVersion, versions_text


class Workers:
    """The workers of a database; ids of workers are not reused."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def join(self, worker: str, lease: float) -> None:
        """Add a worker.

        Args:
            lease: Seconds without a heartbeat after which it is considered dead.
        """
        values = {"id": worker, "host": platform.node(), "seen": self._database.now, "lease": lease}
        self._database.transaction(lambda connection: connection.execute(sa.insert(WORKERS).values(**values)))

    def beat(self, worker: str) -> bool:
        """Record a heartbeat, and return whether the worker still counts as alive."""
        alive = sa.and_(WORKERS.c.id == worker, WORKERS.c.ended.is_(None))
        change = sa.update(WORKERS).where(alive).values(seen=self._database.now)
        return self._database.transaction(
            lambda connection: connection.execute(change).rowcount == 1, once, is_single=True
        )

    def leave(self, worker: str) -> None:
        """Record that a worker begins no more calls; the next living worker takes over its unfinished calls.

        If the database is unreachable, the lease expires by itself.
        """
        change = sa.update(WORKERS).where(WORKERS.c.id == worker).values(ended=self._database.now)
        with suppress(CallError):
            self._database.transaction(lambda connection: connection.execute(change), once)

    def lack(self, worker: str, versions: Collection[ToolVersion]) -> None:
        """Record for which waiting calls a worker does not have the tool."""
        change = sa.update(WORKERS).where(WORKERS.c.id == worker).values(lacking=versions_text(versions))
        self._database.transaction(lambda connection: connection.execute(change), once)

    def lacking(self) -> list[str | None]:
        """Return what each living worker does not have, as `lack` has stored it."""
        is_alive = sa.and_(WORKERS.c.ended.is_(None), self._database.is_alive(WORKERS.c.seen, WORKERS.c.lease))
        query = sa.select(WORKERS.c.lacking).where(is_alive)
        return self._database.transaction(lambda connection: [*connection.execute(query).scalars()])

    def alive(self) -> set[str]:
        """Return the living workers, after marking those as ended whose lease has expired.

        A heartbeat and the beginning of a call update the same row. So either the process that takes over sees the
        call, or the worker begins no more calls.
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
