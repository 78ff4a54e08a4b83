"""What makes the calls of a plan whose run is durable: it gives each out once, and waits until a worker has ended it.

A run that is gone through again gets what its calls gave, in the order in which they ended, so that it comes to the
same point by the same way.

Source: issue "Beyond one machine"; ecosystem.md part 10, the silent swap of results.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from neuroscript.errors import CallError
from neuroscript.workflow.durable.calls import Calls, call_id
from neuroscript.workflow.durable.database import CALLS
from neuroscript.workflow.durable.encoding import Unkept
from neuroscript.workflow.durable.outcomes import Outcome, Place
from neuroscript.workflow.durable.queue import POLL, Queue
from neuroscript.workflow.durable.rows import fault, place_id
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import Step, Unmade
from neuroscript.workflow.scheduler import Work

PATIENCE: Final = 5
"""After how many looks the order in which past calls ended is given up, where the next of them is not asked for."""

LOOKS: Final = 20
"""After how many looks for results the driver looks for calls that no worker will make."""

TURNS: Final = 10
"""How many turns of the loop a plan has to take in what a call gave, and to ask for those that follow."""


class Asking:
    """Makes the calls of one run, as a `Caller`.

    Args:
        plan: Its plan.
        leader: The word of the process that drives the run.
        may_rerun: Tells of a call whether it may be made again where its worker has died meanwhile.
        parallel: How many calls are given out at once.
    """

    def __init__(
        self,
        calls: Calls,
        queue: Queue,
        run: str,
        plan: Plan,
        leader: str,
        may_rerun: Callable[[Work], bool],
        parallel: int,
    ) -> None:
        self._calls = calls
        self._queue = queue
        self._run = run
        self._plan = plan
        self._by_name = {node.name: node for node in plan.nodes}
        self._leader = leader
        self._may_rerun = may_rerun
        self._past: dict[str, Outcome] = {}
        self._given: set[Place] = set()
        self._unasked: set[Place] = set()
        self._waiting: dict[str, asyncio.Future[Outcome]] = {}
        self._is_new = asyncio.Event()
        self._slots = asyncio.Semaphore(parallel)
        self._is_halted = False
        self._is_over = threading.Event()

    async def __call__(self, work: Work) -> Any:
        """Return what a call gives, or raise its `CallError`; or `Unmade`."""
        id, place = call_id(self._run, work), (work.node.name, work.item, work.number)
        self._unasked.discard(place)
        if id in self._past:
            outcome = await self._told(id)
            work.made = (outcome.started, outcome.seconds, outcome.ago)
            return outcome.given()
        work.made = None
        await self._is_new.wait()
        async with self._slots:
            if self._is_halted and place not in self._given:
                raise Unmade
            await self._put(work)
            return (await self._told(id)).given()

    async def _told(self, id: str) -> Outcome:
        waiting: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[id] = waiting
        try:
            return await waiting
        finally:
            self._waiting.pop(id, None)

    async def _put(self, work: Work) -> None:
        given = (self._run, self._leader, work, self._may_rerun(work), self._queue.put, self._is_over.is_set)
        try:
            await asyncio.to_thread(self._calls.put, *given)
        except Unkept as error:
            raise CallError(f"its arguments: {error}", tool=work.node.tool, code="plan.kept") from None

    def see(self, step: Step) -> None:
        """Take in what happens in the run: once it is halted, nothing is given out that was due again meanwhile."""
        if step.kind == "finished" and step.code == "failed" and self._plan[step.node].on_fail == "halt":
            self._is_halted = True

    async def open(self) -> int:
        """Learn which calls of the run were given out before, and what has come of them; return how many have ended."""
        self._given = await asyncio.to_thread(self._calls.given_out, self._run)
        for place in self._given:
            self._check(*place)
        for outcome in await asyncio.to_thread(self._calls.past, self._run):
            self._past[outcome.id] = outcome
        self._unasked = set(self._given)
        return len(self._past)

    def _check(self, name: str, item: int | None, number: int) -> None:
        """Raise the `SpecError` of a call that the plan cannot have asked for."""
        node = self._by_name.get(name)
        if node is None or (item is None) != (node.map is None) or number > node.retry.count + 1:
            raise fault(CALLS, place_id(self._run, name, item, number), ["its plan has no such call"])

    async def go_through(self) -> None:
        """Tell what has come of past calls, in order, each when the plan has taken in the one before.

        What halted the plan waits until all is asked for that was given out, for that was so before.

        New calls are given out after that, for a past one may have halted the plan.
        """
        order = list(self._past)
        looks = 0
        while order:
            await self._turned()
            next_id = next((each for each in order if not (self._unasked and self._halts(each))), order[0])
            if next_id not in self._waiting and looks < PATIENCE:
                looks += 1
                await asyncio.sleep(POLL / 2)
                continue
            looks = 0
            id = next((each for each in (next_id, *order) if each in self._waiting), None)
            if id is None:
                self._is_new.set()  # the next past one waits for what a new one gives, or for its place
                await asyncio.sleep(POLL / 2)
            else:
                order.remove(id)
                self._tell(self._past[id])
        await self._turned()
        self._is_new.set()

    def _halts(self, id: str) -> bool:
        """Tell whether a past call has failed, with no attempt after it, and its node halts the plan."""
        name, item, number = self._past[id].place
        is_last = self._past[id].has_failed and (name, item, number + 1) not in self._given
        return is_last and self._plan[name].on_fail == "halt"

    async def _turned(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def listen(self) -> None:
        """Tell what comes of the calls that are waited for, until it is cancelled."""
        for look in count(1):
            await asyncio.sleep(POLL / 2)
            ids = [id for id in self._waiting if id not in self._past]
            if ids and not look % LOOKS:
                await asyncio.to_thread(self._give_up_lost, ids)
            for outcome in await asyncio.to_thread(self._calls.ended, ids, self._is_over.is_set) if ids else ():
                self._tell(outcome)

    def _give_up_lost(self, ids: list[str]) -> None:
        with suppress(CallError):  # the database cannot be reached, and is asked again
            lost = self._queue.lost(ids)
            if lost:
                self._calls.give_up(lost)

    def is_behind(self) -> bool:
        """Tell whether calls were given out before that the plan has not asked for again."""
        return bool(self._unasked)

    def close(self) -> None:
        """Wait no longer for a database that is away; until then the lease says how long that may take."""
        self._is_over.set()

    def _tell(self, outcome: Outcome) -> None:
        waiting = self._waiting.get(outcome.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
