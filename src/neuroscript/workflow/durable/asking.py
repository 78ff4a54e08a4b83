"""What makes the calls of a plan whose run is durable: it gives each out once, and waits until a worker has ended it.

A run that is gone through again gets what its calls gave, in the order in which they ended, so that it comes to the
same point by the same way.

Source: issue "Beyond one machine"; ecosystem.md part 10, the silent swap of results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from neuroscript.errors import CallError
from neuroscript.workflow.durable.calls import Calls, Outcome, call_id
from neuroscript.workflow.durable.kept import Unkept
from neuroscript.workflow.durable.queueing import POLL, Queue
from neuroscript.workflow.plan import Plan
from neuroscript.workflow.running import Step
from neuroscript.workflow.scheduling import Work

PATIENCE: Final = 5
"""After how many looks the order in which past calls ended is given up, where the next of them is not asked for."""

TURNS: Final = 10
"""How many turns of the loop a plan has to take in what a call gave, and to ask for those that follow."""


class Asking:
    """Makes the calls of one run, as a `Caller`.

    Args:
        plan: Its plan.
        leader: The word of the process that drives the run.
        may_rerun: Tells of a call whether it may be made again where its worker has died meanwhile.
    """

    def __init__(
        self, calls: Calls, queue: Queue, run: str, plan: Plan, leader: str, may_rerun: Callable[[Work], bool]
    ) -> None:
        self._calls = calls
        self._queue = queue
        self._run = run
        self._plan = plan
        self._leader = leader
        self._may_rerun = may_rerun
        self._past: dict[str, Outcome] = {}
        self._waiting: dict[str, asyncio.Future[Outcome]] = {}
        self._is_new = asyncio.Event()
        self._is_halted = False

    async def __call__(self, work: Work) -> Any:
        """Return what a call gives, or raise its `CallError`."""
        id = call_id(self._run, work)
        is_past = id in self._past
        if not is_past:
            await self._is_new.wait()
            if self._is_halted:
                raise work.error or CallError(
                    "has not run, for the plan was halted", tool=work.node.tool, code="plan.halted"
                )
            await self._put(work)
        waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
        try:
            outcome = await waiting
        finally:
            self._waiting.pop(id, None)
        work.made = (outcome.started, outcome.seconds) if is_past else None
        return outcome.given()

    async def _put(self, work: Work) -> None:
        given = (self._run, self._leader, work, self._may_rerun(work), self._queue.put)
        try:
            await asyncio.to_thread(self._calls.put, *given)
        except Unkept as error:
            raise CallError(f"its arguments: {error}", tool=work.node.tool, code="plan.kept") from None

    def see(self, step: Step) -> None:
        """Take in what happens in the run: once it is halted, nothing is given out that was due again meanwhile."""
        if step.kind == "finished" and step.code == "failed" and self._plan[step.node].on_fail == "halt":
            self._is_halted = True

    async def open(self) -> None:
        """Learn what has come of the calls of the run before."""
        for outcome in await asyncio.to_thread(self._calls.past, self._run):
            self._past[outcome.id] = outcome

    async def go_through(self) -> None:
        """Tell what has come of past calls, in order, each when the plan has taken in the one before.

        New calls are given out after that, for a past one may have halted the plan.
        """
        order = list(self._past)
        looks = 0
        while order:
            await self._turned()
            if order[0] not in self._waiting and looks < PATIENCE:
                looks += 1
                await asyncio.sleep(POLL / 2)
                continue
            looks = 0
            id = next((each for each in order if each in self._waiting), None)
            if id is None:
                self._is_new.set()  # the next past one waits for what a new one gives, or for its place
                await asyncio.sleep(POLL / 2)
            else:
                order.remove(id)
                self._tell(self._past[id])
        await self._turned()
        self._is_new.set()

    async def _turned(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def listen(self) -> None:
        """Tell what comes of the calls that are waited for, until it is cancelled."""
        while True:
            await asyncio.sleep(POLL / 2)
            ids = [id for id in self._waiting if id not in self._past]
            for outcome in await asyncio.to_thread(self._calls.ended, ids) if ids else ():
                self._tell(outcome)

    def _tell(self, outcome: Outcome) -> None:
        waiting = self._waiting.get(outcome.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(outcome)
