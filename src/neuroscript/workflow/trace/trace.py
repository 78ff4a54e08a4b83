"""The trace of a run: the arguments, result or error, and times of each node.

It contains no secrets: arguments that a spec declares secret are masked, and values that the host hides are redacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

Status = Literal["succeeded", "failed", "skipped", "unstarted"]
"""The status of a node; ``unstarted`` if it had not begun when the plan was halted or its run was cancelled."""

Outcome = Literal["succeeded", "failed", "cancelled"]
"""The status of a plan; ``cancelled`` if its durable run was cancelled, whatever its nodes have done until then."""


@attrs.frozen
class Attempt:
    """One call of a run.

    Attributes:
        number: The number of the attempt at the same arguments, from 1.
        item: The index of the item if the node maps a list, else None.
        started: Seconds since 1970-01-01 UTC, on the host's clock.
        seconds: The duration, on the same clock.
        code: ``ok``, or an error code.
    """

    number: int
    item: int | None
    started: float
    seconds: float
    code: str = "ok"


@attrs.frozen
class NodeTrace:
    """The trace of one node.

    Attributes:
        name: The name of the node in the plan.
        tool: The canonical name of its tool.
        status: Its status.
        needs: The nodes that had to end first.
        arguments: The exact arguments by name, secrets masked. For a map, a list of them, one for each item that began.
        result: The result, or the list of results for a map. None unless the node succeeded.
        error: The error as plain data, with ``code``, ``message`` and ``retry``, or None.
        reason: Why it did not run, or ``""``.
        attempts: The calls, in the order in which they ended.
        labels: The labels of the result or the error, such as ``untrusted``, sorted; empty without flow rules.
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
    labels: tuple[str, ...] = ()

    @property
    def started(self) -> float | None:
        """When the first call began, or None."""
        return min((each.started for each in self.attempts), default=None)

    @property
    def seconds(self) -> float:
        """The time from the beginning of the first call to the end of the last one."""
        if not self.attempts:
            return 0.0
        return max(each.started + each.seconds for each in self.attempts) - min(each.started for each in self.attempts)


@attrs.frozen(kw_only=True)
class Trace:
    """The trace of one run.

    Attributes:
        run: The id of the run.
        plan: The name of the plan.
        digest: SHA-256 of the plan in hexadecimal digits; traces of equal plans have the same digest.
        inputs: The exact inputs of the plan, secrets masked.
        status: The status of the plan.
        nodes: The trace of each node, in the order of the plan.
        output: The output of the plan, or None if it failed or was cancelled.
        error: Why it failed, or that it was cancelled, as plain data, or None.
        answer: The model's answer to the synthesis, or ``""``. If the model did not answer, the plan has failed.
        started: Seconds since 1970-01-01 UTC, on the host's clock.
        seconds: The duration of the run.
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
        """Return the trace of the node called *name*, or raise a KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)
