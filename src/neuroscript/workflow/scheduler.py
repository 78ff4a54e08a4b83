"""Which call of a plan comes next, as a machine that does no waiting: a driver makes the calls and tells how they end.

A node begins when all that it needs has ended. It ends once: it has succeeded, failed or was skipped. After a failure
that halts, nothing further begins, and what runs is waited for.

Source: issue "Plans"; reliability.md part 4.2 on retries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

import attrs

from neuroscript.calls.steps import END
from neuroscript.errors import CallError, CallTimeout
from neuroscript.workflow.plan.conditions import Undecided
from neuroscript.workflow.plan.model import LATER, Node, Plan
from neuroscript.workflow.plan.references import Lost, Reference, Template
from neuroscript.workflow.trace.trace import Attempt, Status

LOOK: Final = 0.05
"""Seconds between two looks whether a call that was left behind has ended, before its node is tried again."""

LEFT: Final = 60.0
"""Seconds that this is waited for where the node has no timeout; else it is as long as that."""

FINAL: Final = frozenset({"plan.cancelled", "plan.in_doubt", "plan.taken", "plan.row"})
"""Codes of errors after which a node is not tried again, whatever the plan says."""

Lookup = Callable[[Reference], Any]
"""What gives the value of a reference."""


class Skipped(Lost):
    """A reference to a node that was skipped."""


@attrs.define(eq=False, repr=False)
class State:
    """How far a node is.

    Attributes:
        node: It.
        left: How many of the nodes that it needs have not ended.
        above: The nodes that need it.
        status: How it has ended; None as long as it has not.
        open: How many of its calls have been given out and have not come to their end.
        given: The arguments of its call, or of each of its calls where it is a map; None where it has not begun.
        result: What it gave, or the list of what each item gave.
        attempts: The calls that were made.
        error: What it failed with.
        reason: Why it did not run.
    """

    node: Node
    left: int
    above: list[State]
    status: Status | None = None
    open: int = 0
    given: Any = None
    result: Any = END
    attempts: list[Attempt] = attrs.field(factory=list)
    error: CallError | None = None
    reason: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether each of its calls has given something."""
        if self.node.items is None:
            return self.result is not END
        return not any(each is END for each in self.result)

    @property
    def has_halted(self) -> bool:
        """Whether its failure has halted the plan."""
        return self.status == "failed" and self.node.on_fail == "halt"


@attrs.define(eq=False, repr=False)
class Work:
    """One call to be made.

    Attributes:
        node: Whose call it is.
        state: How far that is.
        item: The index of the item, where the node maps a list.
        arguments: By name, with nothing to be filled in any more.
        number: Of the attempt, from 1.
        error: What the attempt before came to.
        until: When a call of the attempt before that still runs is waited for no more.
        made: When it began, how many seconds it took, and how many seconds ago it ended, where who makes the calls
            knows that it was made before. The first is by a clock that need not be the host's.
    """

    node: Node
    state: State
    item: int | None
    arguments: dict[str, Any]
    number: int = 1
    error: CallError | None = None
    until: float = 0.0
    made: tuple[float, float, float] | None = None


class Schedule:
    """A run of a plan, between what has ended and what comes next.

    Args:
        inputs: What the plan is given, exact, by name.
        is_idempotent: Whether a tool may be tried again after a timeout, by its name in the plan.

    Args:
        is_behind: Asked once the plan is halted: whether calls were made before that it has not come to again.

    Attributes:
        states: How far each node is, in the order of the plan.
        is_halted: Whether nothing further begins.
        done: How many nodes have ended.
        over: Those that have, until the driver takes them.
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
        self.done = 0
        self.over = deque[State]()
        self._inputs = inputs
        self._is_idempotent = is_idempotent
        self._is_behind = is_behind or (lambda: False)
        self.states = {node.name: State(node, len(node.needs), []) for node in plan.nodes}
        for state in self.states.values():
            for name in state.node.needs:
                self.states[name].above.append(state)
        self._ready = deque(state for state in self.states.values() if not state.left)
        self._works: deque[Work] = deque()
        self._later: list[tuple[float, int, Work]] = []
        self._numbers = count()

    def next(self) -> Work | None:
        """Return a call to be made now, or None as long as there is none."""
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
        """Begin nothing further, and give up the calls that were still to be made."""
        self.is_halted = True
        self._drop()

    def _drop(self) -> None:
        """Give up the calls that were still to be made, for the plan is halted."""
        works = [*self._works, *(work for _, _, work in self._later)]
        self._works.clear()
        self._later.clear()
        for work in works:
            self.give_up(work)

    def give_up(self, work: Work) -> None:
        """Count a call that is not made, or not made again."""
        work.state.error = work.state.error or work.error
        self._closed(work.state)

    # Time

    def release(self, now: float) -> None:
        """Put what was to be tried again by now among the calls to be made."""
        while self._later and self._later[0][0] <= now:
            work = heappop(self._later)[2]
            if not isinstance(work.error, CallTimeout) or not work.error.still_runs:
                self._works.append(work)
            elif now < work.until:  # never two copies of a node at once
                heappush(self._later, (now + LOOK, next(self._numbers), work))
            else:
                self.give_up(work)

    @property
    def due(self) -> float | None:
        """When the next further attempt may begin, by the host's clock; None where none waits."""
        return self._later[0][0] if self._later else None

    # Beginnings

    def _begin(self, state: State) -> None:
        """Decide whether a node runs, and give out its calls."""
        node = state.node
        lookup = self._with_trace(self._so_far(node)) if node.takes_trace else self._value
        try:
            if node.condition is not None and not node.condition.holds(lookup, self._state):
                return self._end(state, "skipped", reason="its condition does not hold")
            given = self._many(node, node.items, lookup) if node.items is not None else _arguments(node, lookup)
        except Skipped as error:
            return self._end(state, "skipped", reason=str(error))
        except Lost as error:
            return self._failed(state, CallError(str(error), tool=node.tool, code="plan.reference"))
        except Undecided as error:
            return self._failed(state, CallError(f"when: {error}", tool=node.tool, code="plan.condition"))
        state.given = given
        if isinstance(given, dict):
            state.open = 1
            self._works.append(Work(node, state, None, given))
            return None
        state.open, state.result = len(given), [END] * len(given)
        self._works.extend(Work(node, state, index, arguments) for index, arguments in enumerate(given))
        if not given:
            self._end(state, "succeeded")
        return None

    def _many(self, node: Node, over: Template, lookup: Lookup) -> list[dict[str, Any]]:
        """Return the arguments for each item of what a node maps."""
        items = over.filled(lookup)
        if type(items) is not list:
            raise Lost("map: what it goes over is no list")
        return [_arguments(node, partial(_value_within, index, item, lookup)) for index, item in enumerate(items)]

    def _value(self, reference: Reference) -> Any:
        """Return what a reference stands for, of the plan's inputs or of what a node gave."""
        state = self.states.get(reference.root)
        value = self._inputs if state is None else self._result(state)
        return reference.within(value) if reference.path else value

    def _with_trace(self, trace: list[dict[str, Any]]) -> Lookup:
        """Return the same, with what nodes have done."""
        return lambda reference: reference.within(trace) if reference.root == "trace" else self._value(reference)

    def _result(self, state: State) -> Any:
        """Return what a node gave.

        Raises:
            Skipped: It was skipped.
            Lost: It has failed.
        """
        if state.status == "succeeded":
            return state.result
        if state.status == "skipped":
            raise Skipped(f"{state.node.name} was skipped")
        raise Lost(f"{state.node.name} has failed, and gives nothing")

    def _so_far(self, node: Node) -> list[dict[str, Any]]:
        """Return what all nodes have done that had to end before one, in the order of the plan."""
        above: set[str] = set()
        waiting = list(node.needs)
        while waiting:
            name = waiting.pop()
            if name not in above:
                above.add(name)
                waiting.extend(self.states[name].node.needs)
        return [told(state) for name, state in self.states.items() if name in above]

    def _state(self, name: str) -> str:
        return self.states[name].status or ""

    # Ends

    def ended(self, work: Work, attempt: Attempt, end: float, result: Any, error: CallError | None) -> None:
        """Take what came of a call: its result, or its error.

        Args:
            attempt: When it began and how long it took.
            end: When it ended, by the host's clock.
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
            work.number, work.error, work.until = work.number + 1, error, due + (work.node.timeout or LEFT)
            heappush(self._later, (due, next(self._numbers), work))
        else:
            state.error = state.error or error
            self._closed(state)
            self._drop_later(work.node)

    def _drop_later(self, node: Node) -> None:
        """Give up the further attempts at other items of a node that has failed."""
        works = [work for _, _, work in self._later if work.node is node]
        if works:
            self._later = [each for each in self._later if each[2].node is not node]
            heapify(self._later)
            for work in works:
                self.give_up(work)

    def _may_try_again(self, work: Work, state: State, error: CallError) -> bool:
        retry = work.node.retry
        if state.error is not None or work.number > retry.count:
            return False
        if isinstance(error, CallTimeout) and not self._is_idempotent(work.node.tool):
            return False
        if error.code in FINAL:
            return False
        words = (error.code, LATER) if error.retry == LATER else (error.code,)
        return any(fnmatchcase(word, pattern) for word in words for pattern in retry.on)

    def _closed(self, state: State) -> None:
        """Count a call that has come to its end; with the last one the node has ended."""
        state.open -= 1
        if state.open:
            return
        if state.error is not None:
            self._failed(state, state.error)
        elif state.is_whole:
            self._end(state, "succeeded")
        elif state.attempts:
            text = "has not run for every item, for the plan was halted"
            self._failed(state, CallError(text, tool=state.node.tool, code="plan.halted"))

    def _failed(self, state: State, error: CallError) -> None:
        state.error = error
        self._end(state, "failed")
        self.is_halted = self.is_halted or state.has_halted

    def _end(self, state: State, status: Status, reason: str = "") -> None:
        state.status, state.reason = status, reason
        self.done += 1
        self.over.append(state)
        for above in state.above:
            above.left -= 1
            if not above.left:
                self._ready.append(above)

    # The whole

    def output(self) -> Any:
        """Return what the plan gives.

        Raises:
            Lost: A node that it takes something of gave nothing.
        """
        if self.plan.answer is not None:
            return self.plan.answer.filled(self._with_trace([told(state) for state in self.states.values()]))
        ends = self.plan.ends
        results = {name: self.states[name].result for name in ends if self.states[name].status == "succeeded"}
        return results.get(ends[0]) if len(ends) == 1 else results


def _arguments(node: Node, lookup: Lookup) -> dict[str, Any]:
    return node.arguments.filled(lookup)  # type: ignore[no-any-return]  # of its own or not, the call binds new ones


def _value_within(index: int, item: Any, lookup: Lookup, reference: Reference) -> Any:
    """Return what a reference stands for in one call of a map."""
    match reference.root:
        case "item":
            return reference.within(item)
        case "index":
            return reference.within(index)
        case _:
            return lookup(reference)


def told(state: State) -> dict[str, Any]:
    """Return what a node has done, for those after it: no argument of it, for one may be secret."""
    data: dict[str, Any] = {"node": state.node.name, "tool": state.node.tool, "status": state.status or "unstarted"}
    if state.status == "succeeded":
        data["result"] = state.result
    if state.error is not None:
        data["error"] = {"code": state.error.code, "message": str(state.error)}
    if state.reason:
        data["reason"] = state.reason
    return data
