"""What it costs to know what is installed: among 300 distributions, of which 20, or all, offer toolsets with an index.

Each measurement is a fresh process that has an engine, and the time is what finding adds to it: ours, and that of
`importlib.metadata.entry_points()`, which finds the same entry points. What is imported for it counts on both sides, for
a program pays it; the rows that say so leave it out on both. The library's metadata of a program have to be read in each
process; ours is cold where there is no file in the cache, and it writes one then. Both look through one folder of 300
distributions and through those of the environment.

Source: issue "Plugins", proof of done; performance.md parts 6 and 9.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import sleep, time_ns
from typing import Final

import attrs
from tests.distributions import Published, ship

from neuroscript.io.user_cache import are_settled, stamps

from .harness import Seconds
from .startup import PROCESSES, ROOT, run

MANY: Final = 300
"""How many distributions there are."""

OFFERING: Final = 20
"""How many of them offer a toolset."""

TOOLS: Final = 5
"""How many tools each of them has."""

COLD_GOAL: Final = 0.25
"""Finding what is installed without a cache, over `importlib.metadata.entry_points()`."""

KEPT_GOAL: Final = 0.05
"""The same with one."""

LIST_GOAL: Final = 5.0
"""``neuroscript list`` with 20 toolsets, over a bare interpreter."""

TOOL: Final = '''
@toolset.tool()
def tool_{number}(text: str, times: int = 2, parts: list[str] | None = None) -> str:
    """Say a text several times.

    Args:
        text: What is said.
        times: How many times.
        parts: What comes between.
    """
    return text * times
'''

TIMED: Final = """
import time
from neuroscript.engine.engine import Engine
{before}
start, process = time.perf_counter(), time.process_time()
{timed}
print(time.perf_counter() - start, time.process_time() - process)
"""

CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "library": ("from importlib.metadata import entry_points", "entry_points()"),
    "found": ("from neuroscript.discovery.installed import known", "known()"),
    "indexed": ("from neuroscript.discovery.catalog import offered", "[*offered(None)]"),
}
"""What is imported, and what is called."""

PEER: Final = "entry_points()"


@attrs.frozen
class Finding:
    """One way to know what is installed.

    Attributes:
        name: What the table calls it.
        call: One of `CALLS`.
        is_cold: Whether the cache is empty.
        is_whole: Whether what is imported for it counts.
        goal: What the ratio to the library's may be at most; None where it is only reported.
    """

    name: str
    call: str
    is_cold: bool = False
    is_whole: bool = True
    goal: float | None = None

    @property
    def code(self) -> str:
        """The program that measures it."""
        imports, call = CALLS[self.call]
        before, timed = ("", f"{imports}\n{call}") if self.is_whole else (imports, call)
        return TIMED.format(before=before, timed=timed)

    @property
    def peer(self) -> Finding:
        """The library, measured in the same way."""
        return Finding(PEER, "library", is_whole=self.is_whole)


FINDINGS: Final = (
    Finding("cold", "found", is_cold=True, goal=COLD_GOAL),
    Finding("from the cache", "found", goal=KEPT_GOAL),
    Finding("from the cache, with indexes", "indexed"),
    Finding("cold, the call alone", "found", is_cold=True, is_whole=False),
    Finding("from the cache, the call alone", "found", is_whole=False),
)
"""What is measured where 20 offer toolsets; the goals are the issue's."""

ALL_OFFER: Final = tuple(attrs.evolve(each, name=f"{each.name}, all offer", goal=None) for each in FINDINGS[:3])
"""The same where all do."""


def publish(site: Path, offering: int = OFFERING, many: int = MANY) -> None:
    """Fill a folder with distributions, the first *offering* of which bring a toolset and its index."""
    for number in range(many):
        name = f"acme-{number:03}"
        tools = "".join(TOOL.format(number=each) for each in range(TOOLS))
        code = f"from neuroscript import Toolset\ntoolset = Toolset('acme{number}')\n{tools}"
        offers = number < offering
        published = Published(name, code if offers else "def main(): ...\n")
        published.install(site)
        (info,) = site.glob(f"{name.replace('-', '_')}-*.dist-info")
        with (info / "METADATA").open("a") as metadata:
            metadata.write("Requires-Dist: attrs\n" * 10 + "\n" + "What it is good for, at length.\n" * 200)
        if not offers:
            scripts = f"[console_scripts]\n{name} = {published.module}:main\n" if number % 2 else ""
            (info / "entry_points.txt").write_text(scripts)
    ship(site)


@attrs.frozen
class Site:
    """A folder of distributions, and the cache of those who look through it."""

    folder: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that has them installed."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPATH": path, "XDG_CACHE_HOME": str(self.cache)}

    def timed(self, finding: Finding) -> Seconds:
        """Return what a way takes in a fresh process."""
        if finding.is_cold:
            shutil.rmtree(self.cache, ignore_errors=True)
        argv = [sys.executable, "-c", finding.code]
        done = subprocess.run(argv, env=self.environment, cwd=ROOT, check=True, capture_output=True, text=True)
        wall, process = map(float, done.stdout.split())
        return Seconds(wall, process)


def site(folder: Path, offering: int = OFFERING) -> Site:
    """Return a new site below a folder, with bytecode, that was not changed a moment ago."""
    made = Site(folder / f"site-{offering}", folder / f"cache-{offering}")
    made.folder.mkdir()
    publish(made.folder, offering)
    while not are_settled(stamps([str(made.folder)]), time_ns()):
        sleep(0.01)
    return made


def fastest(made: Site, findings: Sequence[Finding], rounds: int) -> dict[Finding, Seconds]:
    """Return the least times of some ways and their peers, measured in turn, each after one that fills the cache."""
    chosen = dict.fromkeys([*findings, *(each.peer for each in findings)])
    least = dict.fromkeys(chosen, Seconds(float("inf"), float("inf")))
    for turn in range(rounds + 1):
        for each in chosen:
            if not each.is_cold and each.call != "library":
                made.timed(attrs.evolve(each, call="indexed"))
            now = made.timed(each)
            if turn:  # the first one writes bytecode
                least[each] = Seconds(*map(min, least[each], now))
    return least


def listed(made: Site, rounds: int) -> tuple[Seconds, Seconds]:
    """Return the least times of ``neuroscript list`` there, and of a bare interpreter."""
    least = [Seconds(float("inf"), float("inf"))] * 2
    for turn in range(rounds + 1):
        for place, name in enumerate(("list", "bare")):
            _, now = run(PROCESSES[name], made.environment)
            if turn:
                least[place] = Seconds(*map(min, least[place], now))
    return least[0], least[1]
