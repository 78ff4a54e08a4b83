"""The caller of a durable run: queues each call once and waits until a worker has ended it.

When a run is repeated, past calls return their stored outcomes in the order in which they ended, so that the run
reaches the same state in the same way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from neuroscript.errors import CallError
from neuroscript.flow.labels import Labels
from neuroscript.workflow.durable.calls import Calls, call_id
from neuroscript.workflow.durable.database import CALLS
from neuroscript.workflow.durable.encoding import NotStorable
from neuroscript.workflow.durable.outcomes import Outcome, Place
from neuroscript.workflow.durable.queue import QUEUE_POLL_SECONDS, Queue
from neuroscript.workflow.durable.rows import fault, place_id
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import CallNotMade, RunCancelled, Step
from neuroscript.workflow.scheduler import ScheduledCall

ORDER_POLLS: Final = 5
"""Checks after which the order of past calls is given up if the plan does not ask for the next one."""

ABANDONED_POLLS: Final = 20
"""Number of checks for results between two checks for calls that no worker will make."""

LOOP_TURNS: Final = 10
"""Turns of the event loop in which a plan processes a result and asks for the next calls."""


class Dispatcher:
    """Makes the calls of one run, as a `Caller`.

    Args:
        plan: The plan of the run.
        leader: The id of the process that drives the run.
        may_rerun: Returns whether a call may run again if its worker died.
        parallel: Maximum number of calls that are queued at once.
        declared: Returns what a tool reads by its declaration, for a result that a worker without flow rules has
            stored; None if the session of the run has no flow rules.
    """

    def __init__(
        self,
        calls: Calls,
        queue: Queue,
        run: str,
        plan: Plan,
        leader: str,
        may_rerun: Callable[[ScheduledCall], bool],
        parallel: int,
        declared: Callable[[ScheduledCall], Labels] | None,
    ) -> None:
        self._calls = calls
        self._queue = queue
        self._run = run
        self._plan = plan
        self._by_name = {node.name: node for node in plan.nodes}
        self._leader = leader
        self._may_rerun = may_rerun
        self._declared = declared
        self._past: dict[str, Outcome] = {}
        self._queued_calls: set[Place] = set()
        self._unasked: set[Place] = set()
        self._waiting: dict[str, asyncio.Future[Outcome]] = {}
        self._is_new = asyncio.Event()
        self._slots = asyncio.Semaphore(parallel)
        self._is_halted = False
        self._is_over = threading.Event()

    async def __call__(self, work: ScheduledCall) -> Any:
        """Return the result of a call, or raise its `CallError`, `CallNotMade` or `RunCancelled`."""
        id, place = call_id(self._run, work), (work.node.name, work.item, work.number)
        self._unasked.discard(place)
        if id in self._past:
            outcome = await self._wait_for_outcome(id)
            work.made = (outcome.started, outcome.seconds, outcome.ago)
            return self._result(work, outcome)
        work.made = None
        await self._is_new.wait()
        async with self._slots:
            if self._is_halted and place not in self._queued_calls:
                raise CallNotMade
            await self._enqueue(work)
            return self._result(work, await self._wait_for_outcome(id))

    def _result(self, work: ScheduledCall, outcome: Outcome) -> Any:
        """Return the result of a call, or raise its error; under flow rules, record its labels."""
        if outcome.is_cancelled:
            raise RunCancelled
        if self._declared is not None:
            work.labels.result = outcome.labels()
            if work.labels.result is None:
                work.labels.own = self._declared(work)
        return outcome.given()

    async def _wait_for_outcome(self, id: str) -> Outcome:
        waiting: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[id] = waiting
        try:
            return await waiting
        finally:
            self._waiting.pop(id, None)

    async def _enqueue(self, work: ScheduledCall) -> None:
        labels = None if self._declared is None else work.labels.given
        may_rerun, is_over = self._may_rerun(work), self._is_over.is_set
        arguments = (self._run, self._leader, work, labels, may_rerun, self._queue.put, is_over)
        try:
            await asyncio.to_thread(self._calls.put, *arguments)
        except NotStorable as error:
            raise CallError(f"its arguments: {error}", tool=work.node.tool, code="plan.not_storable") from None

    def see(self, step: Step) -> None:
        """Watch the run: once it is halted, no retries are queued."""
        if step.kind == "finished" and step.code == "failed" and self._plan[step.node].on_fail == "halt":
            self._is_halted = True

    async def open(self) -> int:
        """Load the calls that were queued before and their outcomes; return how many have ended."""
        self._queued_calls = await asyncio.to_thread(self._calls.given_out, self._run)
        for place in self._queued_calls:
            self._check(*place)
        for outcome in await asyncio.to_thread(self._calls.past, self._run):
            self._past[outcome.id] = outcome
        self._unasked = set(self._queued_calls)
        return len(self._past)

    def _check(self, name: str, item: int | None, number: int) -> None:
        """Raise a `SpecError` for a call that the plan cannot contain."""
        node = self._by_name.get(name)
        if node is None or (item is None) != (node.map is None) or number > node.retry.count + 1:
            raise fault(CALLS, place_id(self._run, name, item, number), ["its plan has no such call"])

    async def go_through(self) -> None:
        """Report the outcomes of past calls in order, each after the plan has processed the previous one.

        An outcome that halted the plan is held back until the plan has asked for all calls that were queued before it.
        New calls are queued only after that, because a past outcome may have halted the plan.
        """
        order = list(self._past)
        looks = 0
        while order:
            await self._turned()
            next_id = next((each for each in order if not (self._unasked and self._halts(each))), order[0])
            if next_id not in self._waiting and looks < ORDER_POLLS:
                looks += 1
                await asyncio.sleep(QUEUE_POLL_SECONDS / 2)
                continue
            looks = 0
            id = next((each for each in (next_id, *order) if each in self._waiting), None)
            if id is None:
                self._is_new.set()  # the next past call depends on the result or the slot of a new one
                await asyncio.sleep(QUEUE_POLL_SECONDS / 2)
            else:
                order.remove(id)
                self._deliver(self._past[id])
        await self._turned()
        self._is_new.set()

    def _halts(self, id: str) -> bool:
        """Return whether a past call failed without a retry and its node halts the plan."""
        name, item, number = self._past[id].place
        is_last = self._past[id].has_failed and (name, item, number + 1) not in self._queued_calls
        return is_last and self._plan[name].on_fail == "halt"

    async def _turned(self) -> None:
        for _ in range(LOOP_TURNS):
            await asyncio.sleep(0)

    async def listen(self) -> None:
        """Report the outcomes of awaited calls, until it is cancelled."""
        for look in count(1):
            await asyncio.sleep(QUEUE_POLL_SECONDS / 2)
            ids = [id for id in self._waiting if id not in self._past]
            if ids and not look % ABANDONED_POLLS:
                await asyncio.to_thread(self._give_up_lost, ids)
            for outcome in await asyncio.to_thread(self._calls.ended, ids, self._is_over.is_set) if ids else ():
                self._deliver(outcome)

    def _give_up_lost(self, ids: list[str]) -> None:
        with suppress(CallError):  # the database is unreachable; the next check tries again
            lost = self._queue.lost(ids)
            if lost:
                self._calls.give_up(lost)

    def is_behind(self) -> bool:
        """Return whether the plan has not asked again for all calls that were queued before."""
        return bool(self._unasked)

    def close(self) -> None:
        """Stop waiting for an unreachable database. Until then, the lease limits that wait."""
        self._is_over.set()

    def _deliver(self, outcome: Outcome) -> None:
        waiting = self._waiting.get(outcome.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
