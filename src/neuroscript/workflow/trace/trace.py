"""What a run of a plan has done: each node with what it was given, what it gave or why it failed, and when.

No secret is in it: what a spec calls secret is masked, and what the host hides is hidden here as well.

Source: issue "Plans", the trace; Smith rows SM-30, SM-31 and SM-62.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

Status = Literal["succeeded", "failed", "skipped", "unstarted"]
"""How a node has ended; what had not begun when the plan was halted is unstarted."""

Outcome = Literal["succeeded", "failed"]
"""How a plan has ended."""


@attrs.frozen
class Attempt:
    """One call that a run has made.

    Attributes:
        number: Of the attempts at the same arguments, from 1.
        item: The index of the item, where the node maps a list; else None.
        started: Seconds since 1970-01-01 UTC, by the host's clock.
        seconds: How long it took, by the same clock.
        code: ``ok``, or the code of its error.
    """

    number: int
    item: int | None
    started: float
    seconds: float
    code: str = "ok"


@attrs.frozen
class NodeTrace:
    """What became of one node.

    Attributes:
        name: Its name in the plan.
        tool: The canonical name of its tool.
        status: How it has ended.
        needs: The nodes that had to end before it.
        arguments: The exact values by name, secrets masked; of a map the list of them, one for each item that began.
        result: What it gave; of a map the list of what each item gave. None where it has not succeeded.
        error: Its error as plain data, ``code``, ``message``, ``retry``; None where there is none.
        reason: Why it did not run, or ``""``.
        attempts: The calls that were made, in the order in which they ended.
    """

    name: str
    tool: str
    status: Status
    needs: tuple[str, ...] = ()
    arguments: Any = None
    result: Any = None
    error: Mapping[str, Any] | None = None
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def started(self) -> float | None:
        """When its first call began, or None where none did."""
        return min((each.started for each in self.attempts), default=None)

    @property
    def seconds(self) -> float:
        """How long it took from its first call to the end of its last one."""
        if not self.attempts:
            return 0.0
        return max(each.started + each.seconds for each in self.attempts) - min(each.started for each in self.attempts)


@attrs.frozen(kw_only=True)
class Trace:
    """What a run of a plan has done.

    Attributes:
        run: The id of the run.
        plan: The name of the plan.
        digest: SHA-256 of the plan, in hexadecimal digits: traces of the same plan have the same.
        inputs: What the plan was given, exact, secrets masked.
        status: How it has ended.
        nodes: What became of each node, in the order of the plan.
        output: What the plan gives; None where it has failed before.
        error: Why it has failed, as plain data; None where it has not.
        answer: What a model said of it at the end, or ``""``; where it said nothing, the plan has failed in that.
        started: Seconds since 1970-01-01 UTC, by the host's clock.
        seconds: How long it took.
    """

    run: str
    plan: str
    digest: str
    inputs: Mapping[str, Any]
    status: Outcome
    nodes: tuple[NodeTrace, ...]
    output: Any = None
    error: Mapping[str, Any] | None = None
    answer: str = ""
    started: float
    seconds: float

    def __getitem__(self, name: str) -> NodeTrace:
        """Return what became of the node of a name, or raise a KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)
