"""Distributions loaded, each in a process of its own that has a time limit, so that whatever they do is only told of.

What a process answers is read from a file; what it prints goes nowhere. A process that does not answer in time is ended
with all that it has started, where the system knows process groups.

Source: reliability.md part 4.3, "import hangs"; issue "Plugins", discovery.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, Final

import attrs

from neuroscript.errors import PluginError
from neuroscript.installed import Distribution, EntryPoint
from neuroscript.loading import Claims, load
from neuroscript.walk import type_name

LIMIT: Final = 10.0
"""Seconds that a distribution is given."""

SLOW: Final = 2.0
"""Seconds after which a distribution that can be used is told of all the same."""

WIDTH: Final = 2
"""How many processes run at once; more would count each other's time."""

LOOK: Final = 0.01
"""Seconds between two looks at them."""

JOB: Final = "job.json"
ANSWER: Final = "answer.json"

CHILD: Final = f"""\
import json, sys
with open(sys.argv[1] + "/{JOB}", encoding="utf-8") as job:
    sys.path[:] = json.load(job)["path"]
from neuroscript.probing import answer
answer(sys.argv[1])
"""


@attrs.frozen
class Report:
    """What came of one distribution.

    Attributes:
        distribution: It.
        tools: The names of its tools.
        toolsets: Those of its toolsets.
        hooks: Those of its hooks.
        seconds: How long it took to load, or 0.0 where that is not known.
        code: Of the `PluginError` that an engine would give, or ``plugin.hang``, or ``plugin.slow``; else ``""``.
        reason: In a sentence, or ``""``.
    """

    distribution: Distribution
    tools: tuple[str, ...] = ()
    toolsets: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str = ""
    reason: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether an engine takes it."""
        return self.code in ("", "plugin.slow")


def probed(found: Iterable[Distribution], limit: float = LIMIT) -> tuple[Report, ...]:
    """Load distributions, each in a process, and return what came of each, in order; nothing is imported here.

    Args:
        found: In the order in which an engine would take them: where two claim one tool, the first one has it.
        limit: Seconds that each is given, the start of its process among them.
    """
    claims = Claims({})
    return tuple(_judged(report, claims) for report in _reports([*found], limit))


def _judged(report: Report, claims: Claims) -> Report:
    """Return a report with what is wrong only because of other distributions."""
    try:
        claims.entry_points(report.distribution)
        if not report.is_usable:
            return report
        claims.tools(report.distribution, report.tools, report.toolsets)
    except PluginError as error:
        return attrs.evolve(report, code=error.code, reason=error.reason)
    return report


def _reports(found: list[Distribution], limit: float) -> list[Report]:
    """Return the reports of the processes, of which `WIDTH` run at once."""
    waiting, reports = [*reversed(found)], dict[str, Report]()
    running: list[_Child] = []
    with TemporaryDirectory(prefix="neuroscript-") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < WIDTH:
                    distribution = waiting.pop()
                    running.append(_Child(distribution, os.path.join(folder, str(len(waiting))), limit))
                for child in [child for child in running if child.is_over]:
                    running.remove(child)
                    reports[child.distribution.key] = child.report()
                sleep(LOOK)
        finally:
            for child in running:
                child.end()
    return [reports[each.key] for each in found]


class _Child:
    """A process that loads one distribution."""

    def __init__(self, distribution: Distribution, folder: str, limit: float) -> None:
        self.distribution = distribution
        self._folder = folder
        self._limit = limit
        self._end = monotonic() + limit
        os.mkdir(folder)
        _write(os.path.join(folder, JOB), {"path": sys.path, "distribution": attrs.asdict(distribution)})
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, folder],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
        )

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or has had its time."""
        return self._process.poll() is not None or monotonic() >= self._end

    def report(self) -> Report:
        """Return what came of it."""
        status = self._process.poll()
        if status is None:
            self.end()
            reason = f"has not been loaded after {self._limit:g} seconds"
            return Report(self.distribution, code="plugin.hang", reason=reason)
        with suppress(OSError, ValueError, KeyError):
            return _report(self.distribution, _read(os.path.join(self._folder, ANSWER)))
        reason = f"ended its process while it was loaded (exit code {status})"
        return Report(self.distribution, code="plugin.exit", reason=reason)

    def end(self) -> None:
        """End the process, if it runs, and whatever it has started."""
        if self._process.poll() is None:
            if hasattr(os, "killpg"):
                with suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def _report(distribution: Distribution, answer: Mapping[str, Any]) -> Report:
    names = {name: tuple(map(str, answer[name])) for name in ("tools", "toolsets", "hooks")}
    seconds, code, reason = float(answer["seconds"]), str(answer["code"]), str(answer["reason"])
    if not code and seconds > SLOW:
        code, reason = "plugin.slow", f"takes more than {SLOW:g} seconds to load"
    return Report(distribution, seconds=seconds, code=code, reason=reason, **names)


def answer(folder: str) -> None:
    """Load the distribution that a file in *folder* describes, write down what came of it, and end this process."""
    job = _read(os.path.join(folder, JOB))["distribution"]
    entries = tuple(EntryPoint(**each) for each in job.pop("entry_points"))
    distribution = Distribution(**job, entry_points=entries)
    start, found = monotonic(), {"tools": [], "toolsets": [], "hooks": [], "code": "", "reason": ""}
    try:
        brought = load(distribution)
        found["tools"] = [tool.name for tool in brought.tools]
        found["toolsets"] = list(brought.toolsets)
        found["hooks"] = _hooks(brought.plugins)
    except PluginError as error:
        found["code"], found["reason"] = error.code, error.reason
    except BaseException as error:
        found["code"], found["reason"] = "plugin.exit", f"can not be loaded ({type_name(error)})"
    _write(os.path.join(folder, ANSWER), {**found, "seconds": round(monotonic() - start, 3)})
    os._exit(0)  # whatever the distribution has started does not keep it


def _hooks(plugins: tuple[object, ...]) -> list[str]:
    """Return the names of the hooks that plugins have."""
    if not plugins:
        return []
    from neuroscript.hookspecs import ARGUMENTS, Plugins

    found = Plugins(plugins)
    return [name for name in ARGUMENTS if found.of(name)]


def _write(file: str, data: Mapping[str, Any]) -> None:
    import json

    with open(file, "w", encoding="utf-8") as opened:
        json.dump(data, opened)


def _read(file: str) -> Any:
    import json

    with open(file, encoding="utf-8") as opened:
        return json.load(opened)
