"""Traces of many shapes: chains, fans, tangles of edges, failures and unstarted nodes, and random traces."""

from __future__ import annotations

import datetime
import random
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from hypothesis import strategies as st

from neuroscript.io.text import one_line
from neuroscript.workflow import Attempt, NodeTrace, Trace, load_plan, load_trace
from neuroscript.workflow.trace.trace import Outcome, Status

PLANS: Final = Path(__file__).parents[2] / "docs" / "examples" / "plans"
ODD: Final = "日本語のとても長い名前 W" * 9 + "\u202e\x1b[2J<&\"'>"


def trace(*nodes: NodeTrace, name: str = "plan", **facts: Any) -> Trace:
    """Return a trace of nodes that took two seconds."""
    usual: dict[str, Any] = {"run": "r1", "digest": "0" * 64, "inputs": {}, "status": "succeeded"}
    return Trace(plan=name, nodes=nodes, **{**usual, "started": 100.0, "seconds": 2.0, **facts})


def node(name: str, *needs: str, status: Status = "succeeded", **facts: Any) -> NodeTrace:
    """Return a node with needs; a node that did not run has no attempts."""
    result = status in ("succeeded", "failed")
    code = "ok" if status == "succeeded" else "tool.failed"
    usual: dict[str, Any] = {"attempts": (Attempt(1, None, 100.5, 0.25, code),) if result else ()}
    if status == "failed":
        usual["error"] = {"code": code, "message": "g.t: it broke"}
    return NodeTrace(name, "g.t", status, needs, **{**usual, **facts})


def shaped(count: int, needs: Callable[[random.Random, int], Any], seed: int = 7) -> Trace:
    """Return a trace of a number of nodes; *needs* returns the numbers of the nodes that each one needs."""
    rng, nodes = random.Random(seed), []
    for number in range(count):
        status: Status = rng.choice(("succeeded", "succeeded", "failed", "skipped", "unstarted"))
        named = tuple(dict.fromkeys(f"n{each}" for each in needs(rng, number)))
        nodes.append(node(f"n{number}", *named, status=status))
    return trace(*nodes)


def of_plan(path: Path) -> Trace:
    """Return a trace of a plan file in which nodes have ended in all ways."""
    plan, rng = load_plan(path), random.Random(path.name)
    nodes = (
        node(each.name, *each.needs, status=rng.choice(get_args(Status)), arguments=dict(each.inputs))
        for each in plan.nodes
    )
    return trace(*nodes, name=plan.name)


def _some(rng: random.Random, number: int) -> list[int]:
    return [rng.randrange(number) for _ in range(rng.choice((0, 1, 2)))] if number else []


def _items(count: int) -> tuple[Attempt, ...]:
    return tuple(Attempt(1, item, 100 + item / count, 0.5, "ok" if item % 3 else "tool.x") for item in range(count))


SHAPES: Final[Mapping[str, Trace]] = {
    "one": trace(node("a")),
    "chain": shaped(9, lambda rng, number: range(number)[-1:]),
    "deep": shaped(60, lambda rng, number: [number - 1, 0] if number else []),
    "wide": shaped(60, lambda rng, number: [0] if 0 < number < 59 else range(1, 59) if number else []),
    "many sources": shaped(40, lambda rng, number: range(39) if number == 39 else []),
    "apart": shaped(20, lambda rng, number: []),
    "sixty": shaped(60, _some),
    "all by all": shaped(14, lambda rng, number: range(number)),
    "crossed": trace(node("a"), node("b"), node("c", "b"), node("d", "a")),
    "map": trace(node("a"), node("b", "a", attempts=_items(12)), node("c", "b", attempts=_items(300))),
    "halted": trace(
        node("a", status="failed", attempts=(Attempt(1, None, 100, 0.1, "x"), Attempt(2, None, 101, 0.9, "x"))),
        node("b", "a", status="unstarted"),
        node("c", "b", status="unstarted"),
        status="failed",
        error={"code": "plan.failed", "message": "a failed"},
    ),
    "cancelled": trace(
        node("a"),
        node("b", "a", status="unstarted"),
        status="cancelled",
        error={"code": "plan.cancelled", "message": "the run was cancelled"},
    ),
    "skipped": trace(node("a"), node("b", "a", status="skipped", reason="its condition does not hold"), node("c", "b")),
    "long names": trace(
        node(ODD), node("W" * 64, ODD, reason=ODD, status="skipped"), node("m" * 64, ODD), name=ODD, run=ODD
    ),
    "no time": trace(node("a", attempts=(Attempt(1, None, 100.0, 0.0),)), seconds=0.0),
    "a clock set back": trace(node("a", attempts=(Attempt(1, None, 90.0, -5.0),)), seconds=-3.0),
    "an age": trace(node("a", attempts=(Attempt(1, None, 100.0, 3e7),)), seconds=4e7),
    **{f"run of {path.stem}": load_trace(path) for path in sorted((PLANS.parent / "traces").glob("*.json"))},
    **{f"plan {path.stem}": of_plan(path) for path in sorted([*PLANS.glob("*.toml"), *PLANS.glob("*.json")])},
}
"""Traces by their special features."""

NAMES: Final = st.sampled_from(["a", "_b", "C3", "d-d", "e" * 64, "f0"])
SECONDS: Final = st.sampled_from((0.0, -2.5, 0.1, 3.0, 1e-9, 1.7e9, 1e11))
TEXTS: Final = st.text(max_size=8)

SCALARS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.binary(max_size=5),
    st.sampled_from([array("f", [0.5, -1.25]), datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.UTC)]),
)
KEYS: Final = st.sampled_from(["", "a", "é", "$base64", "$map", "\ud800"])
VALUES: Final = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(KEYS, SCALARS | st.lists(SCALARS), max_size=2)
"""Exact values."""

ERRORS: Final = st.none() | st.fixed_dictionaries({"code": TEXTS, "message": TEXTS}, optional={"retry": TEXTS})
ATTEMPTS: Final = st.builds(
    Attempt, st.integers(1, 99), st.none() | st.integers(0, 99), SECONDS, SECONDS, st.just("ok") | TEXTS
)


@st.composite
def nodes(draw: st.DrawFn, names: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> tuple[NodeTrace, ...]:
    """Draw nodes of which each needs some of those before it; no two look alike in a picture."""
    made: list[NodeTrace] = []
    for name in draw(st.lists(names, max_size=5, unique_by=one_line)):
        needs = draw(st.lists(st.sampled_from([each.name for each in made]), max_size=2, unique=True)) if made else []
        status = draw(st.sampled_from(get_args(Status)))
        attempts = tuple(draw(st.lists(ATTEMPTS, max_size=2)))
        given, result, error, reason = draw(st.tuples(values, values, ERRORS, TEXTS))
        made.append(NodeTrace(name, draw(TEXTS), status, tuple(needs), given, result, error, reason, attempts))
    return tuple(made)


def traces(names: st.SearchStrategy[str] = NAMES, values: st.SearchStrategy[Any] = VALUES) -> st.SearchStrategy[Trace]:
    """Return a strategy for traces.

    Args:
        names: A strategy for the names of nodes.
        values: A strategy for arguments and results.
    """
    return st.builds(
        Trace,
        run=TEXTS,
        plan=TEXTS,
        digest=st.integers(0, 16).map(lambda number: f"{number:064x}"),
        inputs=st.dictionaries(TEXTS, values, max_size=2),
        status=st.sampled_from(get_args(Outcome)),
        nodes=nodes(names, values),
        output=values,
        error=ERRORS,
        answer=TEXTS,
        started=SECONDS,
        seconds=SECONDS,
    )
