"""The queue that the workers of a database share: the one door to DBOS.

Each attempt is one workflow of DBOS, called as the call is. Nothing but that word is handed over: what a call is given
and gives stands in our own tables, so nothing is pickled, and no step of DBOS can be mistaken for another.

Source: ecosystem.md part 10, both traps.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from neuroscript.errors import SpecError
from neuroscript.extras import missing
from neuroscript.workflow.durable.database import Database, sa

try:
    from dbos import DBOS, DBOSClient, DBOSConfig
except ModuleNotFoundError as error:
    raise missing("durable runs need DBOS", "durable", error) from None

NAME: Final = "neuroscript"
"""The application and its queue, as DBOS knows them."""

CALL: Final = "neuroscript.call"

VERSION: Final = "1"
"""Of what the workers of a database agree on; DBOS hands a call to workers of the same one alone."""

POLL: Final = 0.1
"""Seconds between two looks into the queue."""

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
        with database.used():
            DBOS.migrate(database.url)
            self._client = DBOSClient(
                system_database_url=database.url, system_database_engine=database.engine, application_name=NAME
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
        }
        try:
            DBOS(config=config)
            DBOS.workflow(name=CALL, max_recovery_attempts=None)(lambda call: make(call))  # a method takes no marks
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
        held = self._client.list_workflows(status="PENDING", name=CALL, load_input=False, load_output=False)
        holding = {each.executor_id for each in held if each.executor_id is not None}
        gone = holding - alive()
        if gone:
            DBOS._recover_pending_workflows(sorted(gone))

    def close(self) -> None:
        """Let go of the database."""
        self._client.destroy()
