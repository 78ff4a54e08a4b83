"""The queue that the workers of a database share; only this module uses DBOS workflows.

Each attempt is one DBOS workflow with the id of the call. Only that id is passed to it. Arguments and results are in
our own tables, so DBOS cannot return the result of another step. Nothing is pickled or unpickled: see `serializer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.errors import SpecError
from neuroscript.workflow.durable.database import CALLS, Database, once, sa
from neuroscript.workflow.durable.serializer import EXACT, FORMAT, InvalidRow, refuse_pickles

try:
    from dbos import DBOS, DBOSClient, DBOSConfig
except ModuleNotFoundError as error:
    raise missing_extra("durable runs need DBOS", "durable", error) from None

NAME: Final = "neuroscript"
"""The names of the application and of its queue in DBOS."""

CALL: Final = "neuroscript.call"

VERSION: Final = "2"
"""The version of the contract between workers; DBOS passes a call only to workers of the same version."""

QUEUE_POLL_SECONDS: Final = 0.1
"""Seconds between two polls of the queue."""

WAITING: Final = ("ENQUEUED", "DELAYED", "PENDING")
"""The DBOS states of a workflow that runs or will run."""

_ONE: Final = Lock()
"""Held by the worker of this process, because DBOS supports one database in a process."""


class Queue:
    """The queue of a database.

    Args:
        parallel: How many calls each worker makes at once; None keeps the stored number.
        default: The number to store if no number is stored.
    """

    def __init__(self, database: Database, parallel: int | None = None, default: int = 16) -> None:
        self._database = database
        conflict: Any = "never_update" if parallel is None else "always_update"
        refuse_pickles()
        schema = None if database.engine.dialect.name == "sqlite" else "dbos"
        names = ("workflow_uuid", "status", "name", "executor_id", "serialization")
        self._workflows = sa.table("workflow_status", *(sa.column(name) for name in names), schema=schema)
        with database.used():
            DBOS.migrate(database.url)
            self._client = DBOSClient(
                system_database_url=database.url,
                system_database_engine=database.engine,
                application_name=NAME,
                serializer=EXACT,
            )
            self._client.register_queue(
                NAME,
                worker_concurrency=parallel or default,
                polling_interval_sec=QUEUE_POLL_SECONDS,
                on_conflict=conflict,
            )

    def put(self, connection: sa.Connection, id: str) -> None:
        """Put a call into the queue, in the transaction of *connection*."""
        options: Any = {"workflow_name": CALL, "queue_name": NAME, "workflow_id": id, "app_version": VERSION}
        self._client.enqueue_in_transaction(connection, options, id)

    def listen(self, worker: str, make: Callable[[str], None]) -> None:
        """Start to take calls from the queue, each on a thread.

        Args:
            worker: The name of this process in DBOS.
            make: Called with the id of each call. After it has returned, no worker makes the call again.

        Raises:
            SpecError: If this process already takes calls.
        """
        if not _ONE.acquire(blocking=False):
            raise SpecError("durable", ["this process is already a worker; a process can have only one"])
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": self._database.url,
            "system_database_engine": self._database.engine,
            "application_version": VERSION,
            "executor_id": worker,
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": QUEUE_POLL_SECONDS,
            "log_level": "CRITICAL",
            "serializer": EXACT,
        }

        def call(id: str) -> None:  # DBOS sets attributes on it, which a method does not allow
            if id != DBOS.workflow_id:
                raise InvalidRow("the row passes something else than its own id")
            make(id)

        try:
            DBOS(config=config)
            DBOS.workflow(name=CALL, max_recovery_attempts=None)(call)
            DBOS.listen_queues([NAME])
            DBOS.launch()
        except BaseException:
            self.hush()
            raise

    def hush(self) -> None:
        """Stop taking calls from the queue; calls that have begun go on."""
        DBOS.destroy(destroy_registry=True)
        _ONE.release()

    def put_back(self, alive: Callable[[], set[str]]) -> None:
        """Requeue the calls of dead workers, which must not begin any more calls.

        DBOS has no public function for this; the private one exists in all versions up to 3.4.

        Args:
            alive: Returns the living workers. It is called after the query, so that new workers are not missed.
        """
        columns = self._workflows.c
        query = sa.select(columns.executor_id).where(columns.status == "PENDING", columns.name == CALL).distinct()
        holding = self._database.transaction(lambda connection: set(connection.execute(query).scalars()), once)
        dead = {each for each in holding if isinstance(each, str)} - alive()
        if dead:
            DBOS._recover_pending_workflows(sorted(dead))

    def lost(self, ids: Collection[str]) -> list[str]:
        """Return those calls in *ids* that have not begun and that no worker will make.

        Their DBOS row is missing, has ended, or was not written by this version, so workers reject it.
        """
        columns = self._workflows.c
        is_due = sa.and_(columns.serialization == FORMAT, columns.name == CALL, columns.status.in_(WAITING))
        due = sa.select(columns.workflow_uuid).where(columns.workflow_uuid == CALLS.c.id, is_due)
        waits = sa.and_(CALLS.c.id.in_(ids), CALLS.c.begun.is_(None), CALLS.c.ended.is_(None))
        query = sa.select(CALLS.c.id).where(waits, ~due.exists())
        return self._database.transaction(lambda connection: [*connection.execute(query).scalars()], once)

    def close(self) -> None:
        """Close the connection to the database."""
        self._client.destroy()
