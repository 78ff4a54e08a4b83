"""The number of generated cases, and the permitted skips."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

ALL = os.environ.get("NEUROSCRIPT_TEST_ALL") == "1"
"""Whether to run the full counts, which take too long for every change."""


def examples(count: int) -> int:
    """Return the number of generated examples: *count* for the full counts, otherwise a fifth."""
    return count if ALL else count // 5


settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True)
settings.register_profile(
    "all", max_examples=5_000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("all" if ALL else "ci")


@pytest.fixture
def full_counts() -> bool:
    """Return whether to run the full counts."""
    return ALL


def pytest_configure() -> None:
    """Handle interrupts even if a background shell ignores them; the processes of the tests inherit that setting."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exempt long-lived objects from garbage collection: imported modules and the tests themselves."""
    gc.freeze()


UNEXPECTED_SKIP: Final = 6
"""The exit code if a test was skipped that must not be; pytest itself uses smaller ones."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--expected-skips", help="a file with a reason in each line; any other skip fails the run")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    listed = session.config.getoption("--expected-skips")
    if listed is None or hasattr(session.config, "workerinput"):
        return
    expected = [line for line in Path(listed).read_text().splitlines() if line and not line.startswith("#")]
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if reason not in expected:
            reporter.write_line(f"not expected to be skipped: {report.nodeid}: {reason}", red=True)
            session.exitstatus = UNEXPECTED_SKIP


@pytest.fixture(autouse=True)
def _watchdog() -> Iterator[None]:
    """End the run with every thread's stack if a test hangs."""
    faulthandler.dump_traceback_later(1200 if ALL else 120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
