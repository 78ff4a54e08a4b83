"""Where a call stands: whose it is, which calls it stands in, what its tool may do, and how long it has.

Source: contract sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from time import monotonic
from typing import Any

import attrs

from neuroscript.capability import Capability, Grant


@attrs.define(eq=False, repr=False)
class CallFrame:
    """Where a call stands; nobody changes it but the line, and a frozen one would cost each nested call 200 ns.

    Attributes:
        session: Whose call it is: it has the scope that the tool sees, and makes the calls that the tool asks for.
        tool: The canonical name of its tool.
        depth: 1 for a call from outside, one more for each call within.
        parent: The call that it stands in.
        needs: What its tool may do in this call: its needs, filled from its arguments.
        timeout: Seconds that its caller gives it, or None.
        deadline: When nobody will wait for it any more, on the clock of `time.monotonic`.
        tools: The tools as they were when the outermost call began, a `Moment`; None means as they are.
        ended: Whether nobody waits for it any more. Frames of compiled lines serve many calls, and never end.
        spent: What this call and those within have used of the limits, where somebody counts.
        call: Its number within the run of the engine, where somebody counts, from 1.
        told: What the records of this call tell of its beginning.
    """

    session: Any
    tool: str
    depth: int = 1
    parent: CallFrame | None = None
    needs: tuple[Capability, ...] = ()
    timeout: float | None = None
    deadline: float | None = None
    tools: Any = None
    ended: bool = False
    _held: tuple[Grant, ...] | None = None
    spent: dict[str, Any] | None = None
    call: int = 0
    told: Any = None

    def chain(self) -> Iterator[CallFrame]:
        """Yield this frame and those that it stands in, the innermost first."""
        frame: CallFrame | None = self
        while frame is not None:
            yield frame
            frame = frame.parent

    def started(self, timeout: float | None) -> CallFrame:
        """Return a frame for one call alone, whose tool gives itself *timeout* seconds."""
        seconds = self.timeout
        if timeout is not None and (seconds is None or timeout < seconds):
            seconds = timeout
        deadline = self.deadline
        if seconds is not None:
            end = monotonic() + seconds
            deadline = end if deadline is None else min(deadline, end)
        return CallFrame(
            self.session, self.tool, self.depth, self.parent, self.needs, seconds, deadline, self.tools,
            spent=self.spent,
        )  # fmt: skip

    def numbered(self, call: int) -> CallFrame:
        """Return a frame for one call alone, which has a number and counts what it spends."""
        return CallFrame(
            self.session, self.tool, self.depth, self.parent, self.needs, self.timeout, self.deadline,
            self.tools, False, None, {}, call,
        )  # fmt: skip

    def uncovered(self, needs: Iterable[Capability]) -> Capability | None:
        """Return the first of *needs* that a tool in this chain of calls did not ask for itself."""
        for need, frame in product(needs, self.chain()):
            if not any(held.covers(need) for held in frame.held):
                return need
        return None

    def confine(self, needs: Iterable[Capability], others: Iterable[Capability]) -> None:
        """Hold the tool to *needs*, in place of whatever it holds that covers one of them.

        The frame has to be that of one call alone.

        Args:
            others: Needs that it has besides, and that stay.
        """
        exact, kept = tuple(needs), set(map(Grant.of, others))
        left = [held for held in self.held if held in kept or not any(map(held.covers, exact))]
        self._held = (*left, *map(Grant.of, exact))

    @property
    def is_left(self) -> bool:
        """Whether nobody waits any more for this call, or for one that it stands in."""
        frame: CallFrame | None = self
        while frame is not None:
            if frame.ended:
                return True
            frame = frame.parent
        return False

    @property
    def held(self) -> tuple[Grant, ...]:
        """The needs of this call, as the grants that they are to the calls within."""
        if self._held is None:
            self._held = tuple(map(Grant.of, self.needs))
        return self._held
