"""The time to start: whole processes, spawned in turn, and the minimum of each.

A first run of each process, which does not count, writes the bytecode of its modules in any environment.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from .harness import Seconds

ROOT: Final = Path(__file__).resolve().parent.parent.parent

ONE_CALL: Final = """
from neuroscript import ArgSpec, Engine, ToolSpec, Toolset
def add(rt, a, b):
    return a + b
tools = Toolset("math")
tools.add(ToolSpec("add", "math", (ArgSpec("a", "int"), ArgSpec("b", "int")), return_type="int"), add)
assert Engine(plugins="none", toolsets=[tools]).call("math.add", (2, 3)) == 5
"""
"""A fresh process creates a tool without decorators and calls it once."""

PROCESSES: Final[Mapping[str, Sequence[str]]] = {
    "bare": ("-c", "pass"),
    "imports": ("-c", "import attrs, pluggy"),
    "one call": ("-c", ONE_CALL),
    "list": ("-m", "neuroscript", "list"),
}
"""The arguments of the interpreter; ``list`` is measured if the command line is installed."""

CALL_GOAL: Final = 2.0
"""One call relative to ``import attrs, pluggy``; the time of a bare interpreter is subtracted from both."""

LIST_GOAL: Final = 5.0
"""``neuroscript list`` relative to a bare interpreter."""


def fastest(rounds: int = 15) -> dict[str, Seconds]:
    """Return the minimum wall time and CPU time of each of `PROCESSES` that succeeds."""
    chosen = {name: words for name, words in PROCESSES.items() if run(words)[0] == 0}
    least = dict.fromkeys(chosen, Seconds(float("inf"), float("inf")))
    for _ in range(rounds):
        for name, words in chosen.items():
            _, now = run(words)
            least[name] = Seconds(*map(min, least[name], now))
    return least


def run(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[int, Seconds]:
    """Run an interpreter with *words*, and return its exit code and its times."""
    kept = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command, nothing = [sys.executable, *words], subprocess.DEVNULL
    started, before = perf_counter(), _of_children()
    code = subprocess.run(command, cwd=ROOT, env=kept, stdout=nothing, stderr=nothing).returncode
    return code, Seconds(perf_counter() - started, _of_children() - before)


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
