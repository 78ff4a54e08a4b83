"""The caller of a durable run: queues each call once and waits until a worker has ended it.

When a run is repeated, past calls return their stored outcomes in the order in which they ended, so that the run
reaches the same state in the same way.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from neuroscript.errors import CallError
from neuroscript.flow.labels import Labels
from neuroscript.workflow.durable.calls import Calls, call_id
from neuroscript.workflow.durable.database import CALLS
from neuroscript.workflow.durable.encoding import NotStorable
from neuroscript.workflow.durable.outcomes import Outcome, Place
from neuroscript.workflow.durable.rows import fault, place_id
from neuroscript.workflow.durable.wakeup import BATCH_SECONDS, FALLBACK_SECONDS, Wakeup
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import CallNotMade, RunCancelled, Step
from neuroscript.workflow.scheduler import ScheduledCall

ORDER_POLLS: Final = 5
"""Checks after which the order of past calls is given up if the plan does not ask for the next one."""

ORDER_POLL_SECONDS: Final = 0.05

LOOP_TURNS: Final = 10
"""Turns of the event loop in which a plan processes a result and asks for the next calls."""


class Dispatcher:
    """Makes the calls of one run, as a `Caller`.

    Args:
        plan: The plan of the run.
        leader: The id of the process that drives the run.
        digests: The digest of each tool of the plan, by name.
        may_rerun: Returns whether a call may run again if its worker died.
        parallel: Maximum number of calls that are queued at once.
        declared: Returns what a tool reads by its declaration, for a result that a worker without flow rules has
            stored; None if the session of the run has no flow rules.
    """

    def __init__(
        self,
        calls: Calls,
        wakeup: Wakeup,
        run: str,
        plan: Plan,
        leader: str,
        digests: Mapping[str, str | None],
        may_rerun: Callable[[ScheduledCall], bool],
        parallel: int,
        declared: Callable[[ScheduledCall], Labels] | None,
    ) -> None:
        self._calls = calls
        self._wakeup = wakeup
        self._run = run
        self._plan = plan
        self._by_name = {node.name: node for node in plan.nodes}
        self._leader = leader
        self._digests = digests
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
        digest = self._digests.get(work.node.tool)
        arguments = (self._run, self._leader, work, labels, may_rerun, digest, is_over)
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
                await asyncio.sleep(ORDER_POLL_SECONDS)
                continue
            looks = 0
            id = next((each for each in (next_id, *order) if each in self._waiting), None)
            if id is None:
                self._is_new.set()  # the next past call depends on the result or the slot of a new one
                await asyncio.sleep(ORDER_POLL_SECONDS)
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
        loop, has_ended = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(has_ended.set)

        self._wakeup.subscribe("ended", wake)
        try:
            while True:
                with suppress(TimeoutError):  # not wait_for, which may ignore a cancellation before Python 3.12
                    async with asyncio.timeout(FALLBACK_SECONDS):
                        await has_ended.wait()
                has_ended.clear()
                ids = [id for id in self._waiting if id not in self._past]
                for outcome in await asyncio.to_thread(self._calls.ended, ids, self._is_over.is_set) if ids else ():
                    self._deliver(outcome)
                await asyncio.sleep(BATCH_SECONDS)
        finally:
            await asyncio.shield(asyncio.to_thread(self._wakeup.unsubscribe, "ended", wake))

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
