"""The state machine of a run: decides which call comes next, without I/O or waiting.

A driver makes the calls and reports how they end. A node begins when all nodes that it needs have ended, and ends once:
succeeded, failed or skipped. After a failure that halts the plan, no further call begins, and running calls are
awaited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import attrs

from neuroscript.calls.steps import END
from neuroscript.errors import CallError, CallTimeout
from neuroscript.workflow.plan.conditions import ComparisonError
from neuroscript.workflow.plan.model import LATER, Node, Plan, nodes_before
from neuroscript.workflow.plan.references import Reference, Template, UnresolvedReference
from neuroscript.workflow.trace.trace import Attempt, Status

if TYPE_CHECKING:
    from neuroscript.flow.state import CallLabels

POLL_SECONDS: Final = 0.05
"""Seconds between two checks whether an abandoned call has ended, before its node is retried."""

ABANDONED_WAIT_SECONDS: Final = 60.0
"""Maximum seconds to wait for an abandoned call if the node has no timeout; otherwise the timeout is used."""

NON_RETRYABLE_CODES: Final = frozenset({"plan.cancelled", "plan.in_doubt", "plan.lease_lost", "plan.invalid_row"})
"""Error codes after which a node is never retried, whatever the plan says."""

Lookup = Callable[[Reference], Any]
"""A function that returns the value of a reference."""


class SkippedNode(UnresolvedReference):
    """A reference to a skipped node."""


@attrs.define(eq=False, repr=False)
class NodeState:
    """The state of a node in a run.

    Attributes:
        node: The node.
        left: The number of needed nodes that have not ended.
        above: The nodes that need this one.
        status: How the node ended, or None.
        open: The number of its calls that were issued and have not ended.
        given: The arguments of its call, or a list of them for a map; None before it begins.
        result: The result, or the list of results for a map.
        attempts: The calls that were made.
        error: The error, if it failed.
        reason: Why it did not run, or ``""``.
    """

    node: Node
    left: int
    above: list[NodeState]
    status: Status | None = None
    open: int = 0
    given: Any = None
    result: Any = END
    attempts: list[Attempt] = attrs.field(factory=list)
    error: CallError | None = None
    reason: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether each of its calls has a result."""
        if self.node.items is None:
            return self.result is not END
        return not any(each is END for each in self.result)

    @property
    def has_halted(self) -> bool:
        """Whether its failure halted the plan."""
        return self.status == "failed" and self.node.on_fail == "halt"


@attrs.define(eq=False, repr=False)
class ScheduledCall:
    """A call to make.

    Attributes:
        node: The node.
        state: The state of the node.
        item: The index of the item if the node maps a list, else None.
        arguments: By name, with all references resolved.
        number: The number of the attempt, from 1.
        error: The error of the previous attempt.
        until: When to stop waiting for a call of the previous attempt that still runs.
        made: Set by a caller that finds the call in its records: when it began, how many seconds it took, and how many
            seconds ago it ended. The first may come from another clock than the host's.
        labels: What its arguments carry, and its outcome once it has ended; only set under flow rules.
    """

    node: Node
    state: NodeState
    item: int | None
    arguments: dict[str, Any]
    number: int = 1
    error: CallError | None = None
    until: float = 0.0
    made: tuple[float, float, float] | None = None
    labels: CallLabels = attrs.field(init=False)


class Schedule:
    """The schedule of one run.

    Args:
        inputs: The exact inputs of the plan, by name.
        is_idempotent: Returns whether a tool, by its name in the plan, may be retried after a timeout.
        is_behind: Called after the plan is halted. Returns whether the plan has not yet repeated all calls of an
            earlier
            process.

    Attributes:
        states: The state of each node, in the order of the plan.
        is_halted: Whether the plan was halted, so that no further call begins.
        is_cancelled: Whether the run was cancelled.
        done: The number of nodes that have ended.
        over: The nodes that have ended and that the driver has not taken yet.
    """

    def __init__(
        self,
        plan: Plan,
        inputs: Mapping[str, Any],
        is_idempotent: Callable[[str], bool],
        is_behind: Callable[[], bool] | None = None,
    ) -> None:
        self.plan = plan
        self.is_halted = False
        self.is_cancelled = False
        self.done = 0
        self.over = deque[NodeState]()
        self._inputs = inputs
        self._is_idempotent = is_idempotent
        self._is_behind = is_behind or (lambda: False)
        self.states = {node.name: NodeState(node, len(node.needs), []) for node in plan.nodes}
        for state in self.states.values():
            for name in state.node.needs:
                self.states[name].above.append(state)
        self._ready = deque(state for state in self.states.values() if not state.left)
        self._works: deque[ScheduledCall] = deque()
        self._later: list[tuple[float, int, ScheduledCall]] = []
        self._numbers = count()

    def next(self) -> ScheduledCall | None:
        """Return the next call to make now, or None if no call is ready."""
        while not self.is_halted or self._is_behind():
            if self._works:
                work = self._works.popleft()
                if work.state.error is None:
                    return work
                self.give_up(work)
            elif self._ready:
                self._begin(self._ready.popleft())
            else:
                return None
        self._drop()
        return None

    def halt(self) -> None:
        """Halt the plan and drop the calls that were not made yet."""
        self.is_halted = True
        self._drop()

    def cancel(self, work: ScheduledCall) -> None:
        """Halt the plan and count a call that will not be made, because the run was cancelled."""
        self.is_halted = self.is_cancelled = True
        self.give_up(work)

    def _drop(self) -> None:
        """Drop the calls that were not made yet."""
        works = [*self._works, *(work for _, _, work in self._later)]
        self._works.clear()
        self._later.clear()
        for work in works:
            self.give_up(work)

    def give_up(self, work: ScheduledCall) -> None:
        """Count a call that will not be made, or not retried."""
        work.state.error = work.state.error or work.error
        self._closed(work.state)

    # Time

    def release(self, now: float) -> None:
        """Queue the retries that are due at *now*."""
        while self._later and self._later[0][0] <= now:
            work = heappop(self._later)[2]
            if not isinstance(work.error, CallTimeout) or not work.error.still_runs:
                self._works.append(work)
            elif now < work.until:  # two attempts at a node never run at once
                heappush(self._later, (now + POLL_SECONDS, next(self._numbers), work))
            else:
                self.give_up(work)

    @property
    def due(self) -> float | None:
        """When the next retry may begin, on the host's clock, or None."""
        return self._later[0][0] if self._later else None

    # Starting nodes

    def _begin(self, state: NodeState) -> None:
        """Decide whether a node runs, and queue its calls."""
        node = state.node
        lookup = self._with_trace(self._so_far(node)) if node.takes_trace else self._value
        try:
            if node.condition is not None and not node.condition.holds(lookup, self._state):
                return self._end(state, "skipped", reason="its condition does not hold")
            given = (
                self._map_arguments(node, node.items, lookup) if node.items is not None else _arguments(node, lookup)
            )
        except SkippedNode as error:
            return self._end(state, "skipped", reason=str(error))
        except UnresolvedReference as error:
            return self._failed(state, CallError(str(error), tool=node.tool, code="plan.reference"))
        except ComparisonError as error:
            return self._failed(state, CallError(f"when: {error}", tool=node.tool, code="plan.condition"))
        state.given = given
        if isinstance(given, dict):
            state.open = 1
            self._works.append(ScheduledCall(node, state, None, given))
            return None
        state.open, state.result = len(given), [END] * len(given)
        self._works.extend(ScheduledCall(node, state, index, arguments) for index, arguments in enumerate(given))
        if not given:
            self._end(state, "succeeded")
        return None

    def _map_arguments(self, node: Node, over: Template, lookup: Lookup) -> list[dict[str, Any]]:
        """Return the arguments for each item of a map."""
        items = over.fill(lookup)
        if type(items) is not list:
            raise UnresolvedReference("map: expected a list")
        return [_arguments(node, partial(_value_within, index, item, lookup)) for index, item in enumerate(items)]

    def _value(self, reference: Reference) -> Any:
        """Return the value of a reference to an input of the plan or to a node's result."""
        state = self.states.get(reference.root)
        value = self._inputs if state is None else self._result(state)
        return reference.within(value) if reference.path else value

    def _with_trace(self, trace: list[dict[str, Any]]) -> Lookup:
        """Return a lookup that also resolves ``trace``."""
        return lambda reference: reference.within(trace) if reference.root == "trace" else self._value(reference)

    def _result(self, state: NodeState) -> Any:
        """Return the result of a node.

        Raises:
            Skipped: If the node was skipped.
            Lost: If the node failed.
        """
        if state.status == "succeeded":
            return state.result
        if state.status == "skipped":
            raise SkippedNode(f"{state.node.name} was skipped")
        raise UnresolvedReference(f"{state.node.name} failed and has no result")

    def _so_far(self, node: Node) -> list[dict[str, Any]]:
        """Return the outcome of all nodes that had to end before *node*, in the order of the plan."""
        return [outcome_data(self.states[name]) for name in nodes_before(self.plan, node)]

    def _state(self, name: str) -> str:
        return self.states[name].status or ""

    # Ending nodes

    def ended(self, work: ScheduledCall, attempt: Attempt, end: float, result: Any, error: CallError | None) -> None:
        """Record the result or the error of a call.

        Args:
            attempt: When the call began and how long it took.
            end: When it ended, on the host's clock.
        """
        state = work.state
        state.attempts.append(attempt)
        if error is None:
            if work.item is None:
                state.result = result
            else:
                state.result[work.item] = result
            self._closed(state)
        elif self._may_try_again(work, state, error):
            due = end + work.node.retry.pause(work.number)
            work.number, work.error, work.until = (
                work.number + 1,
                error,
                due + (work.node.timeout or ABANDONED_WAIT_SECONDS),
            )
            heappush(self._later, (due, next(self._numbers), work))
        else:
            state.error = state.error or error
            self._closed(state)
            self._drop_later(work.node)

    def _drop_later(self, node: Node) -> None:
        """Drop the retries for other items of a failed node."""
        works = [work for _, _, work in self._later if work.node is node]
        if works:
            self._later = [each for each in self._later if each[2].node is not node]
            heapify(self._later)
            for work in works:
                self.give_up(work)

    def _may_try_again(self, work: ScheduledCall, state: NodeState, error: CallError) -> bool:
        retry = work.node.retry
        if state.error is not None or work.number > retry.count:
            return False
        if isinstance(error, CallTimeout) and not self._is_idempotent(work.node.tool):
            return False
        if error.code in NON_RETRYABLE_CODES:
            return False
        words = (error.code, LATER) if error.retry == LATER else (error.code,)
        return any(fnmatchcase(word, pattern) for word in words for pattern in retry.on)

    def _closed(self, state: NodeState) -> None:
        """Count a call that has ended; after the last one, the node has ended."""
        state.open -= 1
        if state.open:
            return
        if state.error is not None:
            self._failed(state, state.error)
        elif state.is_whole:
            self._end(state, "succeeded")
        elif state.attempts:
            why, code = (
                ("run was cancelled", "plan.cancelled") if self.is_cancelled else ("plan was halted", "plan.halted")
            )
            text = f"did not run for every item, because the {why}"
            self._failed(state, CallError(text, tool=state.node.tool, code=code))

    def _failed(self, state: NodeState, error: CallError) -> None:
        state.error = error
        self._end(state, "failed")
        self.is_halted = self.is_halted or state.has_halted

    def _end(self, state: NodeState, status: Status, reason: str = "") -> None:
        state.status, state.reason = status, reason
        self.done += 1
        self.over.append(state)
        for above in state.above:
            above.left -= 1
            if not above.left:
                self._ready.append(above)

    # The result

    def output(self) -> Any:
        """Return the output of the plan.

        Raises:
            Lost: If a node that the output refers to has no result.
        """
        if self.plan.answer is not None:
            return self.plan.answer.fill(self._with_trace([outcome_data(state) for state in self.states.values()]))
        ends = self.plan.ends
        results = {name: self.states[name].result for name in ends if self.states[name].status == "succeeded"}
        return results.get(ends[0]) if len(ends) == 1 else results


def _arguments(node: Node, lookup: Lookup) -> dict[str, Any]:
    return node.arguments.fill(lookup)  # type: ignore[no-any-return]  # may be shared, because the call binds new values


def _value_within(index: int, item: Any, lookup: Lookup, reference: Reference) -> Any:
    """Return the value of a reference in one call of a map."""
    match reference.root:
        case "item":
            return reference.within(item)
        case "index":
            return reference.within(index)
        case _:
            return lookup(reference)


def outcome_data(state: NodeState) -> dict[str, Any]:
    """Return the outcome of a node for the nodes after it, without arguments, which may be secret."""
    data: dict[str, Any] = {"node": state.node.name, "tool": state.node.tool, "status": state.status or "unstarted"}
    if state.status == "succeeded":
        data["result"] = state.result
    if state.error is not None:
        data["error"] = {"code": state.error.code, "message": str(state.error)}
    if state.reason:
        data["reason"] = state.reason
    return data
