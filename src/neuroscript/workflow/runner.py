"""The runner of a plan: makes the calls that the schedule returns, in parallel, and reports progress.

Each call goes through the call pipeline, under the policy and the limits of its session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from neuroscript.calls.drivers import Runner
from neuroscript.calls.steps import GRACE_SECONDS, Invocation
from neuroscript.coercion.parameters import require
from neuroscript.engine.entries import SessionTool
from neuroscript.engine.session import Session
from neuroscript.errors import MAX_LISTED_PROBLEMS, ArgumentError, CallError, CallTimeout, SpecError
from neuroscript.runtime.interfaces import AskedModel
from neuroscript.runtime.masking import mask_secrets, secret_values
from neuroscript.spec.binding import bind_arguments
from neuroscript.tools.serialization import error_to_data
from neuroscript.workflow.plan.flows import InputLabels, PlanLabels, input_labels
from neuroscript.workflow.plan.model import Node, Plan
from neuroscript.workflow.plan.parameters import NUMBER, PLAN, SESSION
from neuroscript.workflow.plan.references import UnresolvedReference
from neuroscript.workflow.plan.validation import check
from neuroscript.workflow.scheduler import NodeState, Schedule, ScheduledCall
from neuroscript.workflow.trace.trace import Attempt, NodeTrace, Outcome, Trace

if TYPE_CHECKING:
    from neuroscript.workflow.labels import RunLabels

DEFAULT_PARALLEL_CALLS: Final = 16
"""Default number of calls of a plan that run at once."""

YIELD_SECONDS: Final = 0.005
"""Seconds of non-blocking calls after which the event loop gets a turn."""


@attrs.frozen
class Step:
    """A progress event of a run.

    Attributes:
        kind: ``started`` or ``ended`` for a call, ``finished`` for a node.
        node: The name of the node.
        item: The index of the item if the node maps a list, else None.
        number: The number of the attempt, from 1; 0 for a node without attempts.
        code: For an ended call, ``ok`` or the error code; for a finished node, its status.
        done: The number of finished nodes.
        total: The number of nodes.
    """

    kind: str
    node: str
    item: int | None
    number: int
    code: str
    done: int
    total: int


Watch = Callable[[Step], object]
"""A callback that receives each step."""


class CallNotMade(Exception):
    """A call that was not made, because the plan had been halted."""


class RunCancelled(CallNotMade):
    """A call that was not made, because the run had been cancelled."""


class Caller(Protocol):
    """A function that makes the calls of a plan."""

    def __call__(self, work: ScheduledCall, /) -> Awaitable[Any]:
        """Return the result of a call, or raise its `CallError`, `CallNotMade` or `RunCancelled`."""


def run(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    *,
    parallel: int = DEFAULT_PARALLEL_CALLS,
    watch: Watch | None = None,
    left: Callable[[Trace], object] | None = None,
    llm: AskedModel | None = None,
    labels: InputLabels | None = None,
) -> Trace:
    """Run a plan and return its trace. A failed node does not raise; the trace records it.

    Backoffs and timeouts use the host's clock. A clock with a coroutine method ``wait(seconds)`` is also used for
    waiting;
    otherwise the waits take real time.

    Args:
        session: An engine, or one of its sessions, whose policy and limits apply.
        inputs: The inputs of the plan, by name.
        parallel: Maximum number of calls that run at once; a concurrency limit may lower it.
        watch: Receives each `Step`. Its exceptions do not end the run.
        left: Receives the trace so far if the run is interrupted, possibly on another thread.
        llm: The model for the synthesis at the end of a plan; by default the one that the host provides.
        labels: What inputs carry, by name, such as ``{"page": ["untrusted"]}``. An input without labels counts as words
            of the user. Without flow rules it has no effect.

    Raises:
        SpecError: If the plan cannot run here, or a label or its input does not exist, with every problem; no call was
            made.
        ArgumentError: If the inputs are invalid, with every problem.
        ValueError: If *parallel* is less than 1.
    """
    require("run", session=(session, SESSION), plan=(plan, PLAN), parallel=(parallel, NUMBER))
    func = partial(arun, parallel=parallel, watch=watch, left=left, llm=llm, labels=labels)
    body = Invocation("plan", func, (session, plan, inputs), "coroutine")
    trace: Trace = Runner(session._shared).run(body).result()
    return trace


async def arun(
    session: Session,
    plan: Plan,
    inputs: Mapping[str, Any] | None = None,
    *,
    parallel: int = DEFAULT_PARALLEL_CALLS,
    watch: Watch | None = None,
    left: Callable[[Trace], object] | None = None,
    llm: AskedModel | None = None,
    labels: InputLabels | None = None,
    caller: Caller | None = None,
    is_behind: Callable[[], bool] | None = None,
    is_cancelled: Callable[[], Awaitable[bool]] | None = None,
    run_id: str = "",
    start: PlanLabels | None = None,
) -> Trace:
    """Return what `run` returns, without blocking the event loop.

    Args:
        caller: Makes the calls; by default the session does.
        is_behind: Called after the plan is halted. Returns whether the plan has not yet repeated all calls of an
            earlier
            process.
        is_cancelled: Called after the last call. Returns whether the run was cancelled.
        run_id: The id of the run; by default a random one.
        start: What the plan carries before it runs, in place of *labels*.
    """
    require("arun", session=(session, SESSION), plan=(plan, PLAN), parallel=(parallel, NUMBER))
    problems = check(session, plan, llm, labels=labels)
    if problems:
        raise SpecError(plan.subject, problems)
    if parallel < 1:
        raise ValueError("parallel must be 1 or more")
    inputs_data = {} if inputs is None else inputs
    exact = bind_arguments(plan.signature, session._shared.coercion, inputs_data, by_name=True)
    for secret in secret_values(plan.signature, exact):
        session._hide(secret)
    named = dict(plan.signature.by_name(list(exact)))
    driver = _Driver(session, plan, named, parallel, watch, caller, is_behind, start or input_labels(plan, labels))
    trace = await driver.run(run_id or os.urandom(8).hex(), left, is_cancelled)
    if not plan.synthesis or trace.status != "succeeded":
        return trace
    from neuroscript.workflow.synthesis import add_answer

    model: Any = llm or session.host.llm
    try:
        return await add_answer(session, model, plan, trace)
    except (asyncio.CancelledError, KeyboardInterrupt):
        if left is not None:
            left(attrs.evolve(trace, status="failed", error=error_to_data(_interrupted())))
        raise


def _interrupted() -> CallError:
    return CallError("the run was interrupted", code="plan.interrupted")


def _cancelled() -> CallError:
    return CallError("the run was cancelled", code="plan.cancelled")


def as_cancelled(trace: Trace) -> Trace:
    """Return the trace of a run that was cancelled after its last call."""
    return attrs.evolve(trace, status="cancelled", output=None, answer="", error=error_to_data(_cancelled()))


class _Driver:
    """One run of a plan."""

    def __init__(
        self,
        session: Session,
        plan: Plan,
        inputs: dict[str, Any],
        parallel: int,
        watch: Watch | None,
        caller: Caller | None,
        is_behind: Callable[[], bool] | None,
        start: PlanLabels,
    ) -> None:
        self._session = session
        self._plan = plan
        self._inputs = inputs
        self._parallel = min(parallel, session.policy.least("concurrency", parallel)) if caller is None else parallel
        self._watch = watch
        self._has_watch_failed = False
        self._clock = session.host.clock
        self._traces: dict[str, NodeTrace] = {}
        self._schedule = Schedule(plan, inputs, self._is_idempotent, is_behind)
        self._labels: RunLabels | None = None
        if session._entries.tracks_flow:
            from neuroscript.workflow.labels import RunLabels

            self._labels = labels = RunLabels(session, plan, self._schedule.states, inputs, start)
            self._call = labels.tracked(caller or _labelled_caller(session, labels))
        else:
            self._call = caller or _caller(session, session.acall_named)
        names = {node.tool for node in plan.nodes}
        may_be_plain = caller is None and self._labels is None
        self._tools = {name: _Tool(session._entry(name), may_be_plain) for name in names}
        self._running: set[asyncio.Task[None]] = set()
        self._wake: asyncio.Future[None] | None = None
        self._fault: BaseException | None = None

    def _is_idempotent(self, tool: str) -> bool:
        return bool(self._tools[tool].pipeline.tool.policy.is_idempotent)

    async def run(
        self,
        run_id: str,
        left: Callable[[Trace], object] | None = None,
        is_cancelled: Callable[[], Awaitable[bool]] | None = None,
    ) -> Trace:
        """Make all calls and return the trace."""
        started = self._clock()
        try:
            await self._drive()
            if is_cancelled is not None and await is_cancelled():
                self._schedule.is_cancelled = True
        except asyncio.CancelledError:
            await self._stop()
            self._schedule.halt()
            if left is not None:
                left(self._trace(run_id, started, _interrupted()))
            raise
        finally:
            await self._stop()
        return self._trace(run_id, started)

    async def _stop(self) -> None:
        """Cancel the running calls and give them time to end; the session has then read what the others returned."""
        running = set(self._running)
        if running:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=GRACE_SECONDS)
        if self._labels is not None:
            self._labels.read()

    async def _drive(self) -> None:
        schedule, breath = self._schedule, monotonic() + YIELD_SECONDS
        while True:
            if monotonic() >= breath:
                await asyncio.sleep(0)
                breath = monotonic() + YIELD_SECONDS
            if self._fault is not None:
                raise self._fault
            if schedule.due is not None:
                schedule.release(self._clock())
            work = schedule.next() if len(self._running) < self._parallel else None
            if schedule.over:
                self._finished()
            if work is None:
                if not self._running and schedule.due is None:
                    return
                await self._waited()
            elif work.node.timeout is None and self._tools[work.node.tool].is_plain:
                self._make_at_once(work)
            else:
                task = asyncio.ensure_future(self._make_call(work))
                self._running.add(task)
                task.add_done_callback(self._finish_task)
                breath = 0.0  # start it before a non-blocking call delays it

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._fault = self._fault or task.exception()
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _waited(self) -> None:
        """Wait until a call has ended or the next retry is due."""
        self._wake = asyncio.get_running_loop().create_future()
        due = self._schedule.due
        if due is None or len(self._running) >= self._parallel:
            await self._wake
            return
        timer = asyncio.ensure_future(_pause(self._clock, max(0.0, due - self._clock())))
        try:
            await asyncio.wait({timer, self._wake}, return_when=asyncio.FIRST_COMPLETED)
            if timer.done():
                self._schedule.release(due)  # even if the clock stopped or was set back
        finally:
            timer.cancel()

    async def _make_call(self, work: ScheduledCall) -> None:
        """Make one call and report its outcome to the schedule."""
        self._notify("started", work.node, work.item, work.number)
        started = self._clock()
        try:
            self._record_attempt(work, started, await self._call(work), None)
        except CallError as error:
            self._record_attempt(work, started, None, error)
        except RunCancelled:
            self._schedule.cancel(work)
        except CallNotMade:
            self._schedule.give_up(work)
        except asyncio.CancelledError:
            text = "was interrupted, and may have had its effect"
            self._record_attempt(work, started, None, CallError(text, tool=work.node.tool, code="call.interrupted"))
            raise

    def _make_at_once(self, work: ScheduledCall) -> None:
        """Make a non-blocking call without a task and report its outcome to the schedule."""
        self._notify("started", work.node, work.item, work.number)
        started = self._clock()
        try:
            result, error = self._session.call_named(work.node.tool, work.arguments), None
        except CallError as failure:
            result, error = None, failure
        self._record_attempt(work, started, result, error)

    def _record_attempt(self, work: ScheduledCall, started: float, result: Any, error: CallError | None) -> None:
        code = "ok" if error is None else error.code
        now = self._clock()
        began, seconds, ago = work.made or (started, now - started, 0.0)
        attempt = Attempt(work.number, work.item, began, seconds, code)
        self._schedule.ended(work, attempt, now - ago, result, error)
        self._notify("ended", work.node, work.item, attempt.number, code)
        if self._schedule.over:
            self._finished()

    def _finished(self) -> None:
        """Store and report the traces of the nodes that have just finished."""
        over = self._schedule.over
        while over:
            state = over.popleft()
            self._traces[state.node.name] = self._node_trace(state)
            state.given = None
            last = state.attempts[-1] if state.attempts else None
            item, number = (None, 0) if last is None else (last.item, last.number)
            self._notify("finished", state.node, item, number, state.status or "", len(over))

    def _notify(self, kind: str, node: Node, item: int | None, number: int, code: str = "", later: int = 0) -> None:
        if self._watch is None:
            return
        done, total = self._schedule.done - later, len(self._plan.nodes)
        try:
            self._watch(Step(kind, node.name, item, number, code, done, total))
        except Exception as error:
            if not self._has_watch_failed:
                self._has_watch_failed = True
                self._session._log_failure("the observer of the plan", error)

    # The trace

    def _trace(self, run_id: str, started: float, error: CallError | None = None) -> Trace:
        schedule, output, seconds = self._schedule, None, self._clock() - started
        if error is None and schedule.is_cancelled:
            error = _cancelled()
        elif error is None and schedule.is_halted:
            names = [state.node.name for state in schedule.states.values() if state.has_halted]
            more = f" and {len(names) - MAX_LISTED_PROBLEMS} more" if len(names) > MAX_LISTED_PROBLEMS else ""
            error = CallError(f"{' and '.join(names[:MAX_LISTED_PROBLEMS])}{more} failed", code="plan.failed")
        elif error is None:
            try:
                output = schedule.output()
            except UnresolvedReference as lost:
                error = CallError(f"output: {lost}", code="plan.reference")
        secrets = self._session.secrets
        if self._labels is not None and output is not None:
            self._labels.read_output(output)
        nodes = tuple(self._node_traces(secrets))
        plain: Callable[[Any], Any] = (lambda value: value) if secrets is None else secrets.plain
        return Trace(
            run=run_id,
            plan=self._plan.name,
            digest=self._plan.digest,
            inputs=plain(_masked(self._plan, self._inputs)),
            status=_status(error),
            nodes=nodes if self._labels is None else self._labels.shown(nodes),
            output=plain(output),
            error=None if error is None else plain(error_to_data(error)),
            started=started,
            seconds=seconds,
        )

    def _node_traces(self, secrets: Any) -> Iterator[NodeTrace]:
        for name, state in self._schedule.states.items():
            trace = self._traces.get(name) or self._node_trace(state)
            yield trace if secrets is None else _redacted(trace, secrets)

    def _node_trace(self, state: NodeState) -> NodeTrace:
        node, tool = state.node, self._tools[state.node.tool]
        arguments = state.given
        if arguments is not None:
            arguments = tool.shown(arguments) if node.items is None else [tool.shown(each) for each in arguments]
        result = state.result if state.status == "succeeded" else None
        error = None if state.error is None else error_to_data(state.error)
        return NodeTrace(
            node.name,
            tool.pipeline.tool.name,
            state.status or "unstarted",
            node.needs,
            arguments,
            result,
            error,
            state.reason,
            tuple(state.attempts),
        )


def _status(error: CallError | None) -> Outcome:
    if error is None:
        return "succeeded"
    return "cancelled" if error.code == "plan.cancelled" else "failed"


def _redacted(trace: NodeTrace, secrets: Any) -> NodeTrace:
    """Return a trace without values that became secret during the run."""
    arguments, result, error, reason = map(secrets.plain, (trace.arguments, trace.result, trace.error, trace.reason))
    return attrs.evolve(trace, arguments=arguments, result=result, error=error, reason=reason)


class _Tool:
    """A tool of the plan.

    Attributes:
        line: Its compiled call pipeline.
        is_plain: Whether its calls do not block, so that they need no task.
    """

    def __init__(self, known: SessionTool, by_doors: bool) -> None:
        self.pipeline = line = known.pipeline
        self.is_plain: bool = by_doors and line.is_direct and line.run_mode == "plain"
        self._bind = known.bind
        self._names = None if line.is_secret or line.tool.spec.variadic else [arg.name for arg in line.tool.spec.args]

    def shown(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the exact arguments of a call by name, with secrets masked, or None if they were invalid."""
        try:
            values = self._bind(arguments)
        except ArgumentError:
            return None
        return (
            mask_secrets(self.pipeline.tool.spec, values)
            if self._names is None
            else dict(zip(self._names, values, strict=True))
        )


def _masked(plan: Plan, inputs: Mapping[str, Any]) -> dict[str, Any]:
    return mask_secrets(plan.signature, [inputs[arg.name] for arg in plan.inputs])


def _caller(session: Session, acall_named: Callable[..., Awaitable[Any]]) -> Caller:
    """Return a caller that uses the session; a host clock with ``wait`` also measures the timeouts.

    Args:
        acall_named: Makes a call, as `Session.acall_named` does.
    """
    clock = session.host.clock

    async def made(work: ScheduledCall) -> Any:
        timeout = work.node.timeout
        if timeout is None or not hasattr(clock, "wait"):
            return await acall_named(work.node.tool, work.arguments, timeout)
        ends = session._entry(work.node.tool).pipeline.run_mode == "coroutine"  # a thread cannot be cancelled
        return await _call_with_timeout(acall_named(work.node.tool, work.arguments), work.node, timeout, clock, ends)

    return made


def _labelled_caller(session: Session, labels: RunLabels) -> Caller:
    """Return a caller that uses the session and states what the arguments of each call carry."""
    return lambda work: _caller(session, partial(labels.acall_named, work))(work)


async def _call_with_timeout(call: Any, node: Node, seconds: float, clock: Any, ends: bool) -> Any:
    """Return the result of a call, or raise `CallTimeout` after *seconds* on the clock.

    Args:
        ends: Whether cancelling the call stops it.
    """
    task = asyncio.ensure_future(call)
    timer = asyncio.ensure_future(_pause(clock, seconds))
    try:
        done, _ = await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            return task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        has_ended = ends and task.done()
        text = f"did not end within {seconds:g} s and was {'stopped' if has_ended else 'abandoned'}"
        raise CallTimeout(text, tool=node.tool, state="stopped" if has_ended else "abandoned", seconds=seconds)
    finally:
        timer.cancel()
        task.cancel()


async def _pause(clock: Any, seconds: float) -> None:
    await (asyncio.sleep(seconds) if not hasattr(clock, "wait") else clock.wait(seconds))
