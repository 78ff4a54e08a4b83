"""Tests marked ``alone`` run alone in every worker, and the number of workers."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TESTS = """
import json, time, pytest

def spend(request):
    began = time.monotonic()
    time.sleep(0.05)
    with open("spans", "a") as spans:
        spans.write(json.dumps(["alone" in request.keywords, began, time.monotonic()]) + "\\n")

@pytest.mark.parametrize("n", range(16))
def test_shares(request, n):
    spend(request)

@pytest.mark.alone
@pytest.mark.parametrize("n", range(4))
def test_measures(request, n):
    spend(request)
"""


def test_marked_test_has_no_neighbor(tmp_path: Path) -> None:
    """The other tests run concurrently."""
    shutil.copy(Path(__file__).with_name("alone.py"), tmp_path / "conftest.py")
    (tmp_path / "test_spans.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone\n")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "-n", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    spans = sorted(map(json.loads, (tmp_path / "spans").read_text().splitlines()), key=lambda span: span[1])
    together = [(one[0], other[0]) for one, other in pairwise(spans) if other[1] < one[2]]

    assert (done.returncode, done.stdout.splitlines()[-1].split(" in ")[0]) == (0, "20 passed")
    assert set(together) == {(False, False)}


@pytest.mark.parametrize(
    ("cores", "words", "expected"),
    [
        (2, [], ["-n", "4"]),
        (2, ["--expected-skips=.ci/expected-skips", "--durations=40"], ["-n", "4"]),
        (64, [], ["-n", "8"]),
        (1, [], ["-n", "2"]),
        (2, ["tests/test_alone.py"], []),
        (2, ["-k", "alone"], []),
    ],
    ids=["all", "options", "many-cores", "one-core", "a-path", "a-choice"],
)
def test_whole_suite_uses_two_processes_per_core(
    monkeypatch: pytest.MonkeyPatch, cores: int, words: list[str], expected: list[str]
) -> None:
    """A selection of tests runs in one process."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    options = runpy.run_path(str(ROOT / "dev.py"))["parallel"]

    assert options(words, slow=True)[:2] == expected
    assert options(words, slow=False)[4:] == (["-m", "not slow"] if expected else [])
