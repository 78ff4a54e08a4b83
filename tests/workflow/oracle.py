"""The expected outcome of a plan of scripted calls, computed event by event without any code of the real scheduler.

For each attempt, a node's script says how long it takes and how it ends; the oracle decides which attempts are made.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Any

import attrs


@attrs.frozen
class Drawn:
    """A node, its needs, and the script of its attempts.

    Attributes:
        after: Nodes that must end first.
        uses: Those of them whose results it uses.
        script: The seconds and the end of each attempt: ``ok``, ``failed`` or ``later``.
        above: None, or a node and a bound: the node's result, a number of seconds, decides whether this one runs.
        unless: None, or a node whose failure this one requires.
    """

    name: str
    after: tuple[str, ...]
    uses: tuple[str, ...]
    script: tuple[tuple[float, str], ...]
    retries: int
    backoff: float
    on: tuple[str, ...]
    timeout: float | None
    idempotent: bool
    halts: bool
    above: tuple[str, float] | None
    unless: str | None


def outcome(nodes: list[Drawn]) -> tuple[bool, dict[str, tuple[str, int]]]:
    """Return whether the plan fails, and for each node how it ends and how often it runs."""
    known = {node.name: node for node in nodes}
    left = {node.name: set(node.after) for node in nodes}
    status: dict[str, str] = {}
    value: dict[str, float] = {}
    runs = dict.fromkeys(known, 0)
    ready = deque(name for name, needs in left.items() if not needs)
    events: list[tuple[float, int, str, str]] = []
    number, now, halted = count(), 0.0, False

    def end(name: str, how: str) -> None:
        nonlocal halted
        status[name] = how
        halted = halted or (how == "failed" and known[name].halts)
        for other, needs in left.items():
            if name in needs:
                needs.discard(name)
                if not needs:
                    ready.append(other)

    def attempt(node: Drawn) -> None:
        seconds, how = node.script[runs[node.name]]
        runs[node.name] += 1
        if node.timeout is not None and seconds > node.timeout:
            seconds, how = node.timeout, "timeout"
        heappush(events, (now + seconds, next(number), node.name, how))

    def begin(node: Drawn) -> None:
        if node.unless is not None and status[node.unless] != "failed":
            return end(node.name, "skipped")
        for name in ([node.above[0]] if node.above else []) + list(node.uses):
            if status[name] != "succeeded":
                return end(node.name, "skipped" if status[name] == "skipped" else "failed")
            if node.above and name == node.above[0] and value[name] <= node.above[1]:
                return end(node.name, "skipped")
        return attempt(node)

    while True:
        while ready and not halted:
            begin(known[ready.popleft()])
        if not events:
            return halted, {name: (status.get(name, "unstarted"), runs[name]) for name in known}
        now, _, name, how = heappop(events)
        node = known[name]
        words = {"failed": ("tool.*",), "later": ("tool.*", "later"), "timeout": ("later",)}.get(how, ())
        if how == "again":
            attempt(node) if not halted else end(name, "failed")
        elif how == "ok":
            value[name] = node.script[runs[name] - 1][0]
            end(name, "succeeded")
        elif (
            not halted
            and runs[name] <= node.retries
            and (how != "timeout" or node.idempotent)
            and set(words) & set(node.on)
        ):
            heappush(events, (now + node.backoff * 2.0 ** (runs[name] - 1), next(number), name, "again"))
        else:
            end(name, "failed")


def plan_data(nodes: list[Drawn]) -> dict[str, Any]:
    """Return the same plan as plain data."""
    return {"nodes": {node.name: _node(node) for node in nodes}}


def _node(node: Drawn) -> dict[str, Any]:
    when: list[Any] = [] if node.unless is None else [{"failed": node.unless}]
    when += [] if node.above is None else [{"value": f"${{{node.above[0]}}}", "above": node.above[1]}]
    return {
        "tool": "lab.again" if node.idempotent else "lab.once",
        "inputs": {"name": node.name, "given": [f"${{{name}}}" for name in node.uses]},
        "depends_on": list(node.after),
        "retry": {"count": node.retries, "backoff": node.backoff, "on": list(node.on)},
        **({} if node.timeout is None else {"timeout": node.timeout}),
        "on_fail": "halt" if node.halts else "continue",
        **({"when": {"all": when}} if when else {}),
    }
