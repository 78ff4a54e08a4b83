"""What it costs to start: whole processes, spawned in turn, the least of each.

The bytecode of what they load is written by a first run of each that does not count, whatever the environment says.

Source: performance.md parts 6 and 9.
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
"""A fresh process makes a tool by hand and calls it once."""

PROCESSES: Final[Mapping[str, Sequence[str]]] = {
    "bare": ("-c", "pass"),
    "imports": ("-c", "import attrs, pluggy"),
    "one call": ("-c", ONE_CALL),
    "list": ("-m", "neuroscript", "list"),
}
"""The arguments of the interpreter; ``list`` is measured where there is a command line."""

CALL_GOAL: Final = 2.0
"""One call, over what ``import attrs, pluggy`` costs; a bare interpreter is taken off both."""

LIST_GOAL: Final = 5.0
"""``neuroscript list``, over a bare interpreter."""


def fastest(rounds: int = 15) -> dict[str, Seconds]:
    """Return the least time of each of `PROCESSES` that ends well: on the wall's clock, and of the processor."""
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
