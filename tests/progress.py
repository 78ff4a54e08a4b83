"""The progress of a parallel run: how far it is, which tests run now, and each failure when it happens.

A terminal shows one line that changes; other output gets a line for every twentieth of the tests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence

import pytest
from _pytest.terminal import TerminalReporter

INTERVAL_SECONDS = 0.2
"""Seconds between two changes of the line on a terminal."""

PARTS = 20
"""The number of lines in output that is not a terminal."""


@pytest.hookimpl(trylast=True)  # after the reporter
def pytest_configure(config: pytest.Config) -> None:
    """Show progress in the process that distributes the tests; verbose output has a line for each test."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if config.getoption("numprocesses", 0) and config.get_verbosity() == 0 and reporter is not None:
        config.pluginmanager.register(
            Progress(reporter, sys.stdout.isatty(), config.get_terminal_writer().fullwidth - 1)
        )


class Progress:
    """Follows the tests of all workers.

    Args:
        reporter: Receives the lines.
        is_terminal: Whether a line can be changed.
        width: The characters of a line that can be changed.
    """

    def __init__(self, reporter: TerminalReporter, is_terminal: bool, width: int) -> None:
        self._reporter = reporter
        self._is_terminal = is_terminal
        self._width = width
        self._started = self._shown = time.monotonic()
        self._running: dict[str, float] = {}
        self._done = self._failed = self._total = self._part = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Record the number of tests, which is the same in every worker."""
        self._total = len(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Record that a test begins."""
        self._running[nodeid] = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, object, object], tuple[str, str, str]]:
        """Return the category of a result without a letter, because letters would interrupt the lines."""
        category, _, _ = yield
        return category, "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show a failure at once; its traceback follows at the end of the run."""
        if report.failed:
            self._failed += 1
            self._write(f"FAILED {report.nodeid} ({report.when})", red=True)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Show the progress after a test, if that is due."""
        self._running.pop(nodeid, None)
        self._done += 1
        now = time.monotonic()
        if self._is_terminal:
            if now - self._shown >= INTERVAL_SECONDS:
                self._shown = now
                self._reporter.rewrite(self.line(now)[: self._width], erase=True)
                self._reporter.flush()
        elif self._total and self._done * PARTS // self._total > self._part:
            self._part = self._done * PARTS // self._total
            self._write(self.line(now))

    def pytest_sessionfinish(self) -> None:
        """End the line that changes."""
        if self._is_terminal:
            self._reporter.rewrite("", erase=True)
            self._reporter.write_line("")

    def line(self, now: float) -> str:
        """Return how far the run is and which tests run, the longest first."""
        share = f"[{100 * self._done // max(self._total, 1):3}%] {self._done:,} of {self._total:,}"
        failed = f", {self._failed} failed" if self._failed else ""
        running = [
            f"{nodeid.split('[')[0]} ({now - began:.0f} s)"
            for nodeid, began in sorted(self._running.items(), key=lambda each: each[1])
        ]
        return f"{share} in {now - self._started:.0f} s{failed}; running: {', '.join(running) or 'none'}"

    def _write(self, line: str, **markup: bool) -> None:
        if self._is_terminal:
            self._reporter.rewrite("", erase=True)
            self._reporter.rewrite("")
        self._reporter.write_line(line, **markup)
