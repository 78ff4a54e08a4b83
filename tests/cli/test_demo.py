"""The demo of the README: a file of tool calls as models send them, with the installed standard toolset."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CALLS, REPORT, *WORLD = runpy.run_path(str(ROOT / "dev.py"))["DEMO"]
"""The arguments of ``dev.py demo``: the file, the report, and the authority of its tools."""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process at the root of the project."""
    command = [sys.executable, "-m", "neuroscript", "execute", CALLS, *WORLD, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_demo_reports_repairs_and_refusals() -> None:
    """The summary contains the counts, and the exit code is 0."""
    done = run(REPORT)

    assert (done.returncode, done.stderr) == (0, "")
    assert "  19  calls\n   9  ran\n   7  of these with repairs, 10 in total\n" in done.stdout
    assert "   9  refused before the tool ran\n   1  failed in the tool\n" in done.stdout
    assert "did you mean filepath?" in done.stdout


def test_demo_calls_produce_one_result_line_each() -> None:
    """The exit code is that of the first call that failed."""
    done = run()

    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (3, "")
    assert [result["id"] for result in results][:3] == ["call_a1", "toolu_b2", "call_c3"]
    assert sum(result["ok"] for result in results) == 9
    assert [result["error"]["code"] for result in results if not result["ok"]] == [
        "arg.invalid",
        "tool.not_found",
        "arg.missing",
        "arg.not_json",
        "coercion.type",
        "coercion.format",
        "math.division_by_zero",
        "policy.trust",
        "policy.capability",
        "policy.capability",
    ]
