"""The queue that the workers of a database share: the one door to DBOS.

Each attempt is one workflow of DBOS with the id of the call. Nothing but that id is passed: arguments and results are
in our own tables, and no step of DBOS can be mistaken for another. Nothing is pickled or unpickled: see `serializer`.

Source: ecosystem.md part 10, both traps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock
from typing import Any, Final

from neuroscript._imports import missing
from neuroscript.errors import SpecError
from neuroscript.workflow.durable.database import CALLS, Database, once, sa
from neuroscript.workflow.durable.serializer import EXACT, FORMAT, Refused, refuse_pickles

try:
    from dbos import DBOS, DBOSClient, DBOSConfig
except ModuleNotFoundError as error:
    raise missing("durable runs need DBOS", "durable", error) from None

NAME: Final = "neuroscript"
"""The application and its queue, as DBOS knows them."""

CALL: Final = "neuroscript.call"

VERSION: Final = "2"
"""Of what the workers of a database agree on; DBOS hands a call to workers of the same one alone."""

POLL: Final = 0.1
"""Seconds between two looks into the queue."""

WAITING: Final = ("ENQUEUED", "DELAYED", "PENDING")
"""The states of a workflow that DBOS still runs, or will run."""

_ONE: Final = Lock()
"""Held by the worker of this process, for DBOS knows one database in a process."""


class Queue:
    """The queue of a database.

    Args:
        parallel: How many calls each worker makes at once; None leaves it as the database has it.
        default: How many, where the database says nothing yet.
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
                NAME, worker_concurrency=parallel or default, polling_interval_sec=POLL, on_conflict=conflict
            )

    def put(self, connection: sa.Connection, id: str) -> None:
        """Put a call into the queue, in the transaction of *connection*."""
        options: Any = {"workflow_name": CALL, "queue_name": NAME, "workflow_id": id, "app_version": VERSION}
        self._client.enqueue_in_transaction(connection, options, id)

    def listen(self, worker: str, make: Callable[[str], None]) -> None:
        """Have this process take calls out of the queue, each on a thread.

        Args:
            worker: What DBOS calls this process.
            make: Called with the id of each. Once it has returned, nobody makes the call again.

        Raises:
            SpecError: This process takes calls already.
        """
        if not _ONE.acquire(blocking=False):
            raise SpecError("durable", ["this process is a worker already, and can not be a second one"])
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": self._database.url,
            "system_database_engine": self._database.engine,
            "application_version": VERSION,
            "executor_id": worker,
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": POLL,
            "log_level": "CRITICAL",
            "serializer": EXACT,
        }

        def call(id: str) -> None:  # a method takes no marks
            if id != DBOS.workflow_id:
                raise Refused("the row passes something else than its own id")
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
        """Take no further calls out of the queue; those that are being made go on."""
        DBOS.destroy(destroy_registry=True)
        _ONE.release()

    def put_back(self, alive: Callable[[], set[str]]) -> None:
        """Put what is with workers that are not alive into the queue again; these must begin nothing any more.

        DBOS has no public name for that: what 3.4 and all before it have is this one.

        Args:
            alive: Asked after the calls were looked at, so that no worker is missing that has come meanwhile.
        """
        columns = self._workflows.c
        query = sa.select(columns.executor_id).where(columns.status == "PENDING", columns.name == CALL).distinct()
        holding = self._database.transaction(lambda connection: set(connection.execute(query).scalars()), once)
        gone = {each for each in holding if isinstance(each, str)} - alive()
        if gone:
            DBOS._recover_pending_workflows(sorted(gone))

    def lost(self, ids: Collection[str]) -> list[str]:
        """Return those of some calls that have not begun and that no worker will make.

        Their row of DBOS is missing, has ended, or was not written by this version: a worker refuses it.
        """
        columns = self._workflows.c
        is_due = sa.and_(columns.serialization == FORMAT, columns.name == CALL, columns.status.in_(WAITING))
        due = sa.select(columns.workflow_uuid).where(columns.workflow_uuid == CALLS.c.id, is_due)
        waits = sa.and_(CALLS.c.id.in_(ids), CALLS.c.begun.is_(None), CALLS.c.ended.is_(None))
        query = sa.select(CALLS.c.id).where(waits, ~due.exists())
        return self._database.transaction(lambda connection: [*connection.execute(query).scalars()], once)

    def close(self) -> None:
        """Let go of the database."""
        self._client.destroy()
