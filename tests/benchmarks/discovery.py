"""The time to discover installed toolsets: 300 distributions, of which 20 or all offer toolsets with an index.

Each measurement is a fresh process with an engine, and the time is what discovery adds to it: for this project, and for
`importlib.metadata.entry_points()`, which finds the same entry points. Imports for discovery count on both sides, because
a program pays for them; the rows that say so exclude them on both. The standard library reads its metadata in each
process. Our cold start has no cache file and writes one. Both search one folder of 300 distributions and the folders of
the environment.
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
"""The number of distributions."""

OFFERING: Final = 20
"""The number of them that offer a toolset."""

TOOLS: Final = 5
"""The number of tools in each of them."""

COLD_GOAL: Final = 0.25
"""The maximum ratio of discovery without a cache to `importlib.metadata.entry_points()`."""

KEPT_GOAL: Final = 0.05
"""The same with a cache."""

LIST_GOAL: Final = 5.0
"""The maximum ratio of ``neuroscript list`` with 20 toolsets to a bare interpreter."""

TOOL: Final = '''
@toolset.tool()
def tool_{number}(text: str, times: int = 2, parts: list[str] | None = None) -> str:
    """Repeat a string several times.

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
    "found": ("from neuroscript.discovery.installed import installed_distributions", "installed_distributions()"),
    "indexed": ("from neuroscript.discovery.catalog import iter_offers", "[*iter_offers(None)]"),
}
"""The import, and the call."""

PEER: Final = "entry_points()"


@attrs.frozen
class Finding:
    """One way to discover what is installed.

    Attributes:
        name: Its name in the table.
        call: One of `CALLS`.
        is_cold: Whether the cache is empty.
        is_whole: Whether imports for it count.
        goal: The maximum ratio to the standard library; None if it is only reported.
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
        """The standard library, measured in the same way."""
        return Finding(PEER, "library", is_whole=self.is_whole)


FINDINGS: Final = (
    Finding("cold", "found", is_cold=True, goal=COLD_GOAL),
    Finding("from the cache", "found", goal=KEPT_GOAL),
    Finding("from the cache, with indexes", "indexed"),
    Finding("cold, the call alone", "found", is_cold=True, is_whole=False),
    Finding("from the cache, the call alone", "found", is_whole=False),
)
"""The measurements where 20 distributions offer toolsets, with their goals."""

ALL_OFFER: Final = tuple(attrs.evolve(each, name=f"{each.name}, all offer", goal=None) for each in FINDINGS[:3])
"""The same where all of them do."""


def publish(site: Path, offering: int = OFFERING, many: int = MANY) -> None:
    """Fill a folder with distributions, the first *offering* of which contain a toolset and its index."""
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
    """A folder of distributions, and the cache of the processes that search it."""

    folder: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that has them installed."""
        path = os.pathsep.join(filter(None, [str(self.folder), os.environ.get("PYTHONPATH")]))
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**kept, "PYTHONPATH": path, "XDG_CACHE_HOME": str(self.cache)}

    def timed(self, finding: Finding) -> Seconds:
        """Return the time of a way in a fresh process."""
        if finding.is_cold:
            shutil.rmtree(self.cache, ignore_errors=True)
        argv = [sys.executable, "-c", finding.code]
        done = subprocess.run(argv, env=self.environment, cwd=ROOT, check=True, capture_output=True, text=True)
        wall, process = map(float, done.stdout.split())
        return Seconds(wall, process)


def site(folder: Path, offering: int = OFFERING) -> Site:
    """Return a new site below a folder, with bytecode and with files that are old enough to be cached."""
    made = Site(folder / f"site-{offering}", folder / f"cache-{offering}")
    made.folder.mkdir()
    publish(made.folder, offering)
    while not are_settled(stamps([str(made.folder)]), time_ns()):
        sleep(0.01)
    return made


def fastest(made: Site, findings: Sequence[Finding], rounds: int) -> dict[Finding, Seconds]:
    """Return the minimum times of some ways and their peers, measured in turn, each after a run that fills the cache."""
    chosen = dict.fromkeys([*findings, *(each.peer for each in findings)])
    least = dict.fromkeys(chosen, Seconds(float("inf"), float("inf")))
    for turn in range(rounds + 1):
        for each in chosen:
            if not each.is_cold and each.call != "library":
                made.timed(attrs.evolve(each, call="indexed"))
            now = made.timed(each)
            if turn:  # the first run writes bytecode
                least[each] = Seconds(*map(min, least[each], now))
    return least


def listed(made: Site, rounds: int) -> tuple[Seconds, Seconds]:
    """Return the minimum times of ``neuroscript list`` in the site, and of a bare interpreter."""
    least = [Seconds(float("inf"), float("inf"))] * 2
    for turn in range(rounds + 1):
        for place, name in enumerate(("list", "bare")):
            _, now = run(PROCESSES[name], made.environment)
            if turn:
                least[place] = Seconds(*map(min, least[place], now))
    return least[0], least[1]
