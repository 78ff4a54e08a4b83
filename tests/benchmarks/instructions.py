"""The instruction count of calls relative to a bare call: a check that repeats exactly and needs no peer.

``python -m tests.benchmarks.instructions`` runs one process under valgrind's cachegrind. The process forks children
that make the call of a case 500 and 2,500 times. valgrind counts what each child has done since the start of the first
process, so the difference is exactly that of 2,000 calls. A third child makes 500 calls again, so the work of the first
process between two forks can be subtracted. A ratio is that slope over the slope of a bare call.

Exit code 1 means that a case exceeds its goal. The goals apply to one version of Python; other versions are only
reported.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from timeit import Timer
from typing import Final

from neuroscript import Engine

from . import cases, flow
from .harness import Statement

ROOT: Final = Path(__file__).resolve().parent.parent.parent
BARE: Final = "bare call"
AMONG: Final = "W1 among 2,000 tools"
CHILD: Final = "--child"
ONE, THOUSAND, WATCHED = "W1 with 1 pattern", "W1 with 1,000 patterns", "W1 limited and observed"
RULED: Final = "W1 with flow rules"

FROM_ENTRIES: Final = frozenset({"execute", "execute, JSON text", "a timeout"})
"""Cases of `cases.ENTRIES` that are counted; the thread of a call with a timeout has run a call before."""

SAME: Final = {THOUSAND: (ONE, 1.005), RULED: ("W1", 1.6)}
"""The maximum ratio of the instructions of a case to those of another one, on any version of Python."""

INDEX, SEARCH = "index 64 KiB of labels", "search 10 KiB for labels"

LONG: Final = frozenset(
    {"100,000 ints", "1,000 declared maps", "1,000 maps", "1,000 mixed numbers", "100 nested orders", INDEX, SEARCH}
)
"""Cases with long calls, of which a few are sufficient."""

WARM: Final = 20
"""Python 3.11 specializes a function after eight calls, however long its loops are."""

REPORTED: Final = frozenset({"default omitted"})
"""Cases that are counted although the table of times has no goal for them."""

GOALS: Final[Mapping[tuple[int, int], Mapping[str, float]]] = {
    (3, 11): {
        "W1": 9.0,
        "W2": 15.8,
        "W3": 14.1,
        "W1 named": 13.1,
        "W1 coerced": 16.5,
        "W3 coerced": 35.8,
        "100,000 ints": 69_650.0,
        "1,000 declared maps": 8_100.0,
        "error": 67.0,
        "default omitted": 10.0,
        AMONG: 9.0,
        ONE: 9.0,
        THOUSAND: 9.0,
        WATCHED: 20.3,
        RULED: 11.5,
        INDEX: 145_000.0,
        SEARCH: 50_000.0,
        "1,000 maps": 17_400.0,
        "100 nested orders": 10_900.0,
        "1,000 mixed numbers": 3_600.0,
        "execute": 43.0,
        "execute, JSON text": 80.0,
        "a timeout": 256.0,
    },
}
"""The maximum ratio to the instructions of ``two(2, 3)``, 4 to 14 % above the measurement when this was written."""


def main() -> int:
    """Count, print a table, and return the exit code."""
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return 0
    goals = GOALS.get(sys.version_info[:2], {})
    slopes = counted()
    print(
        f"Python {sys.version.split()[0]}, PYTHONHASHSEED=0; instructions of one call, and over those of a bare call\n"
    )
    goals = {**goals, **{name: most * slopes[other] / slopes[BARE] for name, (other, most) in SAME.items()}}
    missed = [name for name, slope in slopes.items() if slope / slopes[BARE] > goals.get(name, float("inf"))]
    for name, slope in slopes.items():
        verdict = "MISSED" if name in missed else "ok" if name in goals else ""
        goal = f"{goals[name]:,.2f}" if name in goals else ""
        print(f"{name:24}{slope:12,.0f}  {slope / slopes[BARE]:10,.2f}  {goal:>9}  {verdict}".rstrip())
    print(f"\n{len(slopes)} cases, {len(missed)} goals missed")
    return 1 if missed else 0


def statements() -> dict[str, Statement]:
    """Return the counted cases: a bare call, and calls through an engine."""
    engine = Engine(toolsets=[cases.toolset()])
    counted = (each for each in cases.COMPARISONS if each.goal is not None or each.name in REPORTED)
    return {
        BARE: Statement("two(2, 3)", {"two": cases.without_runtime}),
        **{each.name: cases.ours(engine, each) for each in counted},
        **{
            name: Statement("engine.call('bench.two', (2, 3))", {"engine": cases.engine_with(**options)})
            for name, options in (
                (ONE, {"policy": cases.many_patterns(1)}),
                (THOUSAND, {"policy": cases.many_patterns(1_000)}),
                (RULED, {"policy": cases.FLOW_RULES}),
                (WATCHED, {"policy": cases.LIMITS, "hooks": [cases.Observer()]}),
            )
        },
        AMONG: Statement("engine.call('many.t1000', (2, 3))", {"engine": cases.engine_of(2_000, called=10)}),
        INDEX: Statement("LabelledTexts().add(text, labels)", flow.names(64 << 10)),
        SEARCH: Statement("texts.search([argument])", flow.names(64 << 10)),
        **{each.name: each.ours for each in cases.own_cases(engine) if each.name in FROM_ENTRIES},
    }


def times(name: str) -> tuple[int, int]:
    """Return how often a case is executed: by the children that do little, and by the one that does much."""
    return (2, 6) if name in LONG else (500, 2_500)


def counted() -> dict[str, float]:
    """Return the number of instructions of one execution for each of `statements`.

    Raises:
        RuntimeError: valgrind or the measured process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        tool = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
            f"--log-file={log}",
        ]
        command = [*tool, sys.executable, "-m", "tests.benchmarks.instructions", CHILD]
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"valgrind ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        return slopes(done.stdout, log.read_text())


def slopes(children: str, log: str) -> dict[str, float]:
    """Return the slope of each case.

    Args:
        children: For each child a line with its process id, a space, and the name of its case.
        log: The output of valgrind, with a line for each process that has ended.
    """
    counts = {pid: int(count.replace(",", "")) for pid, count in re.findall(r"==(\d+)== I\s+refs:\s+([\d,]+)", log)}
    found: dict[str, list[int]] = {}
    for line in children.splitlines():
        pid, _, name = line.partition(" ")
        found.setdefault(name, []).append(counts[pid])
    return {name: _slope(*times(name), *of_case) for name, of_case in found.items()}


def _slope(few: int, many: int, before: int, between: int, after: int) -> float:
    return (between - (before + after) / 2) / (many - few)


def fork_children() -> None:
    """Run `statements` in children, and print which child runs which."""
    inners = {name: Timer(each.code, globals=dict(each.names)).inner for name, each in statements().items()}  # type: ignore[attr-defined]
    for name, inner in inners.items():
        inner(repeat(None, max(WARM, times(name)[0])), int)
    gc.collect()
    gc.disable()
    for name, inner in inners.items():
        few, many = times(name)
        for count in (few, many, few):
            pid = os.fork()
            if pid == 0:
                inner(repeat(None, count), int)
                os._exit(0)
            os.waitpid(pid, 0)
            print(pid, name, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == [CHILD]:
        fork_children()
    else:
        sys.exit(main())
