"""The driver of a durable run: keeps the lease, runs the plan, and records how it ended."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from neuroscript.engine.session import Session
from neuroscript.errors import CallError, SpecError
from neuroscript.flow.labels import Labels
from neuroscript.io.text import quote_untrusted
from neuroscript.state.heartbeat import Heartbeat, parse_lease
from neuroscript.workflow.durable.calls import Calls
from neuroscript.workflow.durable.database import Database
from neuroscript.workflow.durable.dispatcher import Dispatcher
from neuroscript.workflow.durable.run_records import Run, Runs
from neuroscript.workflow.durable.tool_digests import ToolDigests, ToolVersion
from neuroscript.workflow.durable.worker import Worker
from neuroscript.workflow.labels import declared_labels
from neuroscript.workflow.plan.flows import PlanLabels
from neuroscript.workflow.plan.model import Plan
from neuroscript.workflow.runner import Step, Watch, arun, as_cancelled
from neuroscript.workflow.scheduler import ScheduledCall
from neuroscript.workflow.trace.trace import Trace

LEASE_POLL_SECONDS: Final = 0.1
"""Seconds between two attempts to take the lease of a run."""


class Driver:
    """Drives one run of a database from this process.

    Attributes:
        leader: The id of this process as the driver.
        lease: Seconds.
        runs: The runs of the database.
    """

    def __init__(self, session: Session, url: str | None, lease: float, connections: int | None = None) -> None:
        self.leader = os.urandom(8).hex()
        self.lease = parse_lease(lease)
        self._session = session
        self._url = url
        self._database = Database(url, connections=connections)
        self.runs = Runs(self._database)
        self._calls = Calls(self._database)
        self._tools = ToolDigests(session)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    async def take(self, run: Run) -> None:
        """Take the lease of a run as soon as it is free.

        Raises:
            SpecError: If another process renews it.
        """
        loop = asyncio.get_running_loop()
        until = None
        while not await asyncio.to_thread(self.runs.lead, run.id, self.leader, self.lease):
            if until is None:
                until = loop.time() + await asyncio.to_thread(self.runs.left, run.id) + LEASE_POLL_SECONDS
            elif loop.time() > until:
                raise SpecError(f"run {quote_untrusted(run.id)}", ["another process drives it"])
            await asyncio.sleep(LEASE_POLL_SECONDS)

    def digests(self, plan: Plan) -> dict[str, str | None]:
        """Return the digest of each tool of a plan, by name."""
        return self._tools.of_plan(plan)

    def use_tools(self, run: str, digests: Mapping[str, str | None]) -> None:
        """Continue a run with these versions of its tools; its waiting calls go to workers that have them."""
        self.runs.use_tools(run, self.leader, json.dumps(digests))
        self._calls.use_tools(run, [ToolVersion(tool, digest) for tool, digest in digests.items()])
        self._database.wakeup.ring("queued")

    async def drive(
        self,
        run: Run,
        plan: Plan,
        inputs: Mapping[str, Any],
        labels: PlanLabels | None,
        watch: Watch | None,
        local_calls: bool,
    ) -> Trace:
        """Run the plan of a run that is leased by this driver or has ended, and return its trace.

        Args:
            labels: What the plan carries; None if the process that started the run had no flow rules.
        """
        declared = self._declared if self._session._entries.tracks_flow else None
        digests, wakeup = self.digests(plan), self._database.wakeup
        asking = Dispatcher(
            self._calls, wakeup, run.id, plan, self.leader, digests, self._may_rerun, run.parallel, declared
        )
        parallel = run.parallel + await asking.open()  # past calls must not take slots of new ones

        def seen(step: Step) -> None:
            asking.see(step)
            if watch is not None:
                watch(step)

        listening, *others = [asyncio.ensure_future(each()) for each in (asking.listen, asking.go_through)]
        going = asyncio.ensure_future(
            arun(
                self._session,
                plan,
                inputs,
                parallel=parallel,
                watch=seen,
                caller=asking,
                is_behind=asking.is_behind,
                is_cancelled=partial(asyncio.to_thread, self.runs.is_cancelled, run.id),
                run_id=run.id,
                start=labels,
            )
        )
        try:
            if run.status == "running":
                return await self._led(run, going, (listening, *others), local_calls)
            await _first_fault(going, (listening, *others))
            return going.result()
        finally:
            asking.close()
            for task in (going, listening, *others):
                task.cancel()
            await asyncio.wait((going, listening, *others))

    async def _led(
        self, run: Run, going: asyncio.Task[Trace], beside: Sequence[asyncio.Task[None]], local_calls: bool
    ) -> Trace:
        """Keep the lease of a run until it has ended; with *local_calls*, a worker in this process makes calls too."""
        loop = asyncio.get_running_loop()

        def lost() -> None:
            loop.call_soon_threadsafe(going.cancel)

        worker = None
        try:
            with Heartbeat("run", lambda: self.runs.beat(run.id, self.leader), lost, self.lease):
                if local_calls:
                    worker = await asyncio.to_thread(self._helper, lost)
                await _first_fault(going, beside)
            if not going.cancelled():
                trace = going.result()
                status = await asyncio.to_thread(self.runs.end, run.id, self.leader, trace.status, trace.error)
                if status is not None:
                    return as_cancelled(trace) if status == "cancelled" else trace
            text = "this process lost its lease, and another one may continue the run"
            raise CallError(text, code="plan.lease_lost")
        finally:
            await asyncio.to_thread(self.runs.leave, run.id, self.leader)
            if worker is not None:
                await asyncio.to_thread(worker.__exit__)

    def _helper(self, lost: Callable[[], None]) -> Worker:
        """Start a worker and return it."""
        worker = Worker(self._session, self._url, lease=self.lease)
        worker.on_lost(lost)
        return worker.__enter__()

    def _may_rerun(self, work: ScheduledCall) -> bool:
        return work.node.rerun or self._session._entry(work.node.tool).pipeline.tool.policy.is_idempotent

    def _declared(self, work: ScheduledCall) -> Labels:
        return declared_labels(self._session, work.node.tool)


async def _first_fault(going: asyncio.Task[Trace], beside: Sequence[asyncio.Task[None]]) -> None:
    """Wait until a run has ended, or raise the first exception of a background task, without which it would not end."""
    waiting = {going, *beside}
    while not going.done():
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done - {going}:
            task.result()
