"""A worker: a process that takes calls from the queue of a database and makes them, under its own policy and limits.

It sends heartbeats and takes over the calls of dead workers. A worker that was itself declared dead begins no more
calls, because others have taken over its calls by then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Event, Lock, Semaphore
from typing import Final, Self

from neuroscript.calls.drivers import drive
from neuroscript.calls.steps import GRACE_SECONDS, Steps
from neuroscript.coercion.context import type_name
from neuroscript.coercion.parameters import STRING, optional, require
from neuroscript.engine.session import Session
from neuroscript.errors import CallError, CallTimeout, PolicyError, SpecError
from neuroscript.flow.labels import Labels
from neuroscript.flow.state import CallLabels
from neuroscript.state.heartbeat import DEFAULT_LEASE_SECONDS, Heartbeat, parse_lease
from neuroscript.workflow.durable.calls import Calls, StartedCall, WorkerFenced
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.encoding import NotStorable
from neuroscript.workflow.durable.labels import labelled_text
from neuroscript.workflow.durable.outcomes import failure
from neuroscript.workflow.durable.queue import QUEUE_POLL_SECONDS, Queue
from neuroscript.workflow.durable.worker_registry import Workers
from neuroscript.workflow.plan.parameters import SESSION
from neuroscript.workflow.scheduler import POLL_SECONDS

MAX_CONCURRENT_CALLS: Final = 1_000
"""Maximum number of calls that a worker makes at once."""


class Worker:
    """Makes the calls of a database while it is open. A process can have one worker.

    Args:
        session: An engine, or one of its sessions, whose policy and limits apply.
        url: The address of the database, as for `Database`.
        parallel: How many calls each worker of the database makes at once; the number is stored there. A concurrency
            limit of the session may lower it for this worker.
        lease: Seconds without a heartbeat after which this worker is considered dead.

    Attributes:
        id: The id of the worker in the database.
        is_lost: Whether it was declared dead and makes no further calls.

    Raises:
        SpecError: If the database cannot be used, a number is invalid, or this process is already a worker.
    """

    def __init__(
        self,
        session: Session,
        url: str | None = None,
        *,
        parallel: int | None = None,
        lease: float = DEFAULT_LEASE_SECONDS,
    ) -> None:
        require("Worker", session=(session, SESSION), url=(url, optional(STRING)))
        if parallel is not None and (type(parallel) is not int or not 1 <= parallel <= MAX_CONCURRENT_CALLS):
            raise SpecError("durable", [f"parallel must be an integer from 1 to {MAX_CONCURRENT_CALLS}"])
        self.id = os.urandom(8).hex()
        self.is_lost = False
        self._session = session
        self._lease = parse_lease(lease)
        self._database = Database(url)
        self._calls = Calls(self._database)
        self._workers = Workers(self._database)
        self._queue = Queue(self._database, parallel)
        self._heartbeat = Heartbeat("worker", self._beat, self._lose, self._lease)
        self._listens = Event()
        self._ended = Event()
        self._is_over = Event()
        self._lock = Lock()
        self._slots = Semaphore(session.policy.least("concurrency", MAX_CONCURRENT_CALLS))
        self._making = 0
        self._idle = Event()
        self._idle.set()
        self._lost: Callable[[], object] = self._ended.set

    def __enter__(self) -> Self:
        """Start to make calls."""
        self._workers.join(self.id, self._lease)
        self._heartbeat.__enter__()
        try:
            self._queue.listen(self.id, self._make)
        except BaseException:
            self._heartbeat.__exit__()
            self._let_go()
            raise
        self._listens.set()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop taking calls and let running ones end; calls of a worker that was declared dead are abandoned."""
        self._listens.clear()
        self._queue.hush()
        while not self._idle.wait(QUEUE_POLL_SECONDS) and not self.is_lost:
            pass
        self._idle.wait(GRACE_SECONDS)
        self._is_over.set()
        self._heartbeat.__exit__()
        self._let_go()

    def _let_go(self) -> None:
        self._workers.leave(self.id)
        self._queue.close()
        self._database.close()

    def on_lost(self, tell: Callable[[], object]) -> None:
        """Call *tell*, on a thread of the worker, when the worker is declared dead."""
        self._lost = tell
        if self.is_lost:
            tell()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the worker is declared dead, and return whether it was."""
        return self._ended.wait(seconds)

    # Heartbeat

    def _beat(self) -> bool:
        if not self._workers.beat(self.id):
            return False
        if self._listens.is_set():
            self._queue.put_back(self._workers.alive)
        return True

    def _lose(self) -> None:
        self.is_lost = True
        self._ended.set()
        self._lost()

    # Calls

    def _make(self, id: str) -> None:
        """Make one call of the queue; return only if that call need not be made again."""
        with self._lock:
            self._making += 1
            self._idle.clear()
        try:
            with self._slots:  # wait for a slot instead of exceeding a limit
                call = self._calls.begin(id, self.id, self._is_over.is_set)
                if call is not None:
                    self._end(call, *self._outcome_of(call))
        except WorkerFenced:
            self._lose()
        else:
            return
        finally:
            self._leave()
        self._is_over.wait()  # a return or an exception means done to DBOS, and another worker must make this call
        raise WorkerFenced(self.id)

    def _end(self, call: StartedCall, code: str, outcome: str) -> None:
        """Record the outcome of a call, or an error if the database does not accept it."""
        try:
            self._calls.end(call, code, outcome, self._is_over.is_set)
        except CallError:
            raise
        except Exception as fault:
            text = f"its result cannot be stored ({type_name(fault)})"
            error = CallError(text, tool=call.tool, code="plan.not_storable")
            self._calls.end(call, error.code, failure(error), self._is_over.is_set)

    def _leave(self) -> None:
        with self._lock:
            self._making -= 1
            if not self._making:
                self._idle.set()

    def _outcome_of(self, call: StartedCall) -> tuple[str, str]:
        """Make a call in the session, and return the code and the text of its outcome."""
        made = None if call.labels is None else CallLabels(call.labels)
        try:
            if made is None:
                value = self._session.call_named(call.tool, call.arguments, call.timeout)
            else:
                steps, made = self._labelled_steps(call, made.given)
                value = drive(steps, self._session._shared)
            return "ok", labelled_text({"value": value}, None if made is None else made.outcome)
        except CallError as failed:
            if isinstance(failed, CallTimeout):
                self._outlast(failed, call.patience)
            secrets = self._session.secrets
            error = failed if secrets is None else secrets.error(failed)
        except NotStorable as unkept:
            error = CallError(f"its result: {unkept}", tool=call.tool, code="plan.not_storable")
        except Exception as fault:
            error = CallError(f"could not be made ({type_name(fault)})", tool=call.tool)
        return error.code, failure(error, None if made is None else made.outcome)

    def _labelled_steps(self, call: StartedCall, given: Labels) -> tuple[Steps, CallLabels]:
        """Return the steps of a call whose arguments carry labels, and its own labels.

        Raises:
            PolicyError: The session has no rules about information flow, so it cannot follow the labels.
        """
        if self._session._entries.tracks_flow:
            return self._session._labelled_steps(call.tool, call.arguments, call.timeout, given)
        text = "was not made, because the run has rules about information flow, and this worker has none"
        error = PolicyError(text, tool=call.tool, code="policy.flow", need="flow", rule="flow")
        error.remedy = f"{call.tool}: start this worker with the flow rules of the process that drives the run"
        self._session._log_refusal(error)
        raise error

    def _outlast(self, late: CallTimeout, seconds: float) -> None:
        """Wait for an abandoned call, because only this process can notice that it has ended."""
        until = time.monotonic() + seconds
        while late.still_runs and time.monotonic() < until and not self.is_lost:
            time.sleep(POLL_SECONDS)
        if not late.still_runs:
            late.state = "stopped"
