"""The progress of a parallel run, as a file and as a terminal receive it."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import time

import pytest

@pytest.fixture
def broken():
    raise ValueError

@pytest.mark.parametrize("n", range(36))
def test_passes(n):
    time.sleep(0.02)

def test_fails():
    raise ValueError

def test_has_a_broken_fixture(broken):
    pass

def test_is_skipped():
    pytest.skip("no reason")

@pytest.mark.xfail
def test_is_expected_to_fail():
    raise ValueError
"""

WORDS = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", "2", "-p", "no:cacheprovider"]
ENVIRONMENT = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "60", "TERM": "xterm"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a directory with 40 tests, two of which fail."""
    shutil.copy(Path(__file__).with_name("progress.py"), tmp_path / "conftest.py")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").touch()
    return tmp_path


@pytest.mark.slow
def test_file_gets_a_line_for_each_twentieth(project: Path) -> None:
    """And each failure at once; the numbers at the end are those of pytest."""
    lines = subprocess.run(WORDS, cwd=project, env=ENVIRONMENT, capture_output=True, text=True).stdout.splitlines()
    shown = [line for line in lines if " of 40 in " in line]

    assert [f"[{percent:3}%] {percent * 2 // 5} of 40" for percent in range(5, 101, 5)] == [
        line.partition(" in ")[0] for line in shown
    ]
    assert shown[-1].endswith(" s, 2 failed; running: none")
    assert any("; running: test_some.py::test_passes (0 s)" in line for line in shown)
    failures = [line for line in lines if line.endswith((" (call)", " (setup)"))]
    assert {*failures} == {
        "FAILED test_some.py::test_fails (call)",
        "FAILED test_some.py::test_has_a_broken_fixture (setup)",
    }
    assert max(map(lines.index, failures)) < lines.index(shown[-1])
    assert "1 failed, 36 passed, 1 skipped, 1 xfailed, 1 error" in lines[-1]


@pytest.mark.slow
def test_terminal_shows_one_line_that_changes(project: Path) -> None:
    """No line is longer than the terminal is wide, and only failures remain."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(WORDS, cwd=project, env=ENVIRONMENT, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        output = read_all(controller)
    rows = [row for row in output.decode().split("\r\n") if "of 40" in row or "FAILED" in row]
    changes = [change for row in rows for change in row.split("\r") if " of 40 in " in change]

    assert process.returncode == 1
    assert changes
    assert all(len(change) < 60 for change in changes)
    assert any("FAILED test_some.py::test_fails (call)" in row.rpartition("\r")[2] for row in rows)
    assert b"1 failed" in output


def read_all(descriptor: int) -> bytes:
    """Return what a terminal receives until its program ends."""
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    os.close(descriptor)
    return b"".join(parts)
