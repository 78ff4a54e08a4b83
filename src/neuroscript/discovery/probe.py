"""Isolated loading of distributions, each in a separate process with a time limit.

The answer of a process is read from a file; its output is discarded. A process that exceeds the time limit is killed
with all processes that it started, if the system supports process groups.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory
from time import monotonic, sleep, time_ns
from typing import Any, Final

import attrs

from neuroscript.discovery.installed import Distribution, from_plain
from neuroscript.discovery.package_index import IndexedEntry, entries_of, index_to_data
from neuroscript.errors import PluginError
from neuroscript.io.tracebacks import error_summary

TIMEOUT_SECONDS: Final = 10.0
"""The time limit in seconds for one distribution."""

SLOW: Final = 2.0
"""The load time in seconds above which a usable distribution is reported as slow."""

WIDTH: Final = 2
"""Maximum number of processes at once. More would distort the measured times."""

POLL_SECONDS: Final = 0.01
"""Seconds between two checks of the processes."""

JOB: Final = "job.json"
ANSWER: Final = "answer.json"

CHILD: Final = f"""\
import json, sys
with open(sys.argv[1] + "/{JOB}", encoding="utf-8") as job:
    sys.path[:] = json.load(job)["path"]
from neuroscript.discovery.probe import answer
answer(sys.argv[1])
"""


@attrs.frozen
class Report:
    """The result for one distribution.

    Attributes:
        distribution: The distribution.
        entries: Its index; empty if it cannot be used.
        roots: The locations of its packages and modules, as far as known.
        seconds: How long loading took, or 0.0 if unknown.
        code: The code of the `PluginError` that an engine would report, such as ``plugin.timeout``, or ``""``.
        reason: The reason in one sentence, or ``""``.
        began: When its process was started, in nanoseconds as in `time.time_ns`.
    """

    distribution: Distribution
    entries: tuple[IndexedEntry, ...] = ()
    roots: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str = ""
    reason: str = ""
    began: int = 0

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of its tools."""
        return tuple(tool.name for each in self.entries for tool in each.tools)

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of its hooks."""
        return tuple(dict.fromkeys(name for each in self.entries for name in each.hooks))

    def error(self) -> PluginError:
        """Return the error that says why it cannot be used."""
        return PluginError(str(self.distribution), self.reason, code=self.code)

    def with_error(self, error: PluginError) -> Report:
        """Return the report with an error that is caused by other distributions."""
        return attrs.evolve(self, code=error.code, reason=error.reason)

    @property
    def is_usable(self) -> bool:
        """Whether an engine uses it."""
        return self.code in ("", "plugin.slow")


def probe_all(
    found: Iterable[Distribution], limit: float = TIMEOUT_SECONDS, path: Sequence[str] | None = None
) -> tuple[Report, ...]:
    """Load each distribution in a process and return the reports in order; nothing is imported in this process.

    Args:
        limit: The time limit for each in seconds, including the start of its process.
        path: Where to search for modules, ``sys.path`` if None.
    """
    found, path = tuple(found), [*(sys.path if path is None else path)]
    waiting, reports = [*reversed(found)], dict[str, Report]()
    running: list[_Child] = []
    with TemporaryDirectory(prefix="neuroscript-") as folder:
        try:
            while waiting or running:
                while waiting and len(running) < WIDTH:
                    distribution = waiting.pop()
                    running.append(_Child(distribution, os.path.join(folder, str(len(waiting))), limit, path))
                for child in [child for child in running if child.is_over]:
                    running.remove(child)
                    reports[child.distribution.key] = child.report()
                sleep(POLL_SECONDS)
        finally:
            for child in running:
                child.end()
    return tuple(reports[each.key] for each in found)


class _Child:
    """A process that loads one distribution."""

    def __init__(self, distribution: Distribution, folder: str, limit: float, path: list[str]) -> None:
        self.distribution = distribution
        self._folder = folder
        self._limit = limit
        self._end = monotonic() + limit
        self._began = time_ns()
        os.mkdir(folder)
        _write(os.path.join(folder, JOB), {"path": path, "distribution": distribution})
        self._process = _started([sys.executable or "", "-P", "-c", CHILD, folder])

    @property
    def is_over(self) -> bool:
        """Return whether it has ended or exceeded its time limit."""
        return self._process is None or self._process.poll() is not None or monotonic() >= self._end

    def report(self) -> Report:
        """Return its result."""
        return attrs.evolve(self._finish(), began=self._began)

    def _finish(self) -> Report:
        if self._process is None:
            return self._fault("plugin.process", "cannot be checked because this Python cannot start processes")
        status = self._process.poll()
        if status is None:
            self.end()
            return self._fault("plugin.timeout", f"did not load within {self._limit:g} seconds")
        with suppress(OSError, ValueError, KeyError):
            return _report(self.distribution, _read(os.path.join(self._folder, ANSWER)))
        return self._fault("plugin.exit", f"ended its process while loading (exit code {status})")

    def _fault(self, code: str, reason: str) -> Report:
        return Report(self.distribution, roots=tuple(_likely(self.distribution)), code=code, reason=reason)

    def end(self) -> None:
        """Kill the process and all processes that it started."""
        if self._process is not None and self._process.poll() is None:
            if hasattr(os, "killpg"):
                with suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def _started(words: list[str]) -> subprocess.Popen[bytes] | None:
    """Start a process, or return None if that is not possible, for example in a program that embeds Python."""
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    except OSError:
        return None


def _report(distribution: Distribution, answer: Mapping[str, Any]) -> Report:
    entries = entries_of(answer["index"], distribution) or ()
    seconds, code, reason = float(answer["seconds"]), str(answer["code"]), str(answer["reason"])
    if not code:
        code, reason = slowness(seconds)
    roots = tuple(map(str, answer["roots"])) or tuple(_likely(distribution))
    return Report(distribution, entries, roots, seconds, code, reason)


def slowness(seconds: float) -> tuple[str, str]:
    """Return the code and the reason of a usable distribution that loads slowly, both ``""`` for any other."""
    return ("plugin.slow", f"takes more than {SLOW:g} seconds to load") if seconds > SLOW else ("", "")


def _packages(distribution: Distribution) -> list[str]:
    """Return the top-level packages and modules of a distribution's entry points."""
    return [*dict.fromkeys(each.module.partition(".")[0] for each in distribution.entry_points if each.module)]


def _likely(distribution: Distribution) -> Iterator[str]:
    """Yield the probable locations of the packages of a distribution that did not report them."""
    for name in _packages(distribution):
        for folder in sys.path:
            places = (os.path.join(folder, name), os.path.join(folder, f"{name}.py"))
            yield from filter(os.path.exists, places)


def _roots(distribution: Distribution) -> Iterator[str]:
    """Yield the locations of its imported packages."""
    for name in _packages(distribution):
        module = sys.modules.get(name)
        places = [*getattr(module, "__path__", ())] or [getattr(module, "__file__", None)]
        yield from (os.path.abspath(place) for place in places if isinstance(place, str))


def answer(folder: str) -> None:
    """Load the distribution that is described in *folder*, write the result, and end this process."""
    from neuroscript.discovery.index_builder import index, load

    distribution = from_plain(_read(os.path.join(folder, JOB))["distribution"])
    start, path = monotonic(), [*sys.path]
    found: dict[str, Any] = {"index": None, "code": "", "reason": ""}
    try:
        brought = load(distribution)
        sys.path[:] = path  # undo changes by the distribution
        found["index"] = index_to_data(distribution, tuple(map(index, brought)))
    except PluginError as error:
        found["code"], found["reason"] = error.code, error.reason
    except BaseException as error:
        found["code"], found["reason"] = "plugin.exit", f"cannot be loaded: {error_summary(error)}"
    seconds = round(monotonic() - start, 3)
    _write(os.path.join(folder, ANSWER), {**found, "seconds": seconds, "roots": [*_roots(distribution)]})
    os._exit(0)  # exit even if the distribution has started threads


def _write(file: str, data: Mapping[str, Any]) -> None:
    import json

    with open(file, "w", encoding="utf-8") as opened:
        json.dump(data, opened)


def _read(file: str) -> Any:
    import json

    with open(file, encoding="utf-8") as opened:
        return json.load(opened)
