"""The official conformance suite of MCP, from npm."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final, Literal

from tests import npm_packages

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "@modelcontextprotocol/conformance"
VERSION: Final = "0.2.0-alpha.12"
REVISIONS: Final = ("2025-11-25", "2026-07-28")

Role = Literal["server", "client"]

STAMP: Final = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
"""The end of the name of a directory with results."""


def program() -> list[str]:
    """Return the command of the suite, and install it if necessary.

    Raises:
        OSError: It cannot be installed.
    """
    return npm_packages.installed(PACKAGE, VERSION, "dist/index.js")


def required(role: Role, revision: str) -> set[str]:
    """Return the names of the scenarios that a protocol revision requires."""
    path = Path(program()[-1]).parents[1] / "requirements" / f"{revision}.yaml"
    section = path.read_text().partition(f"\n{role}:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  - (\S+)$", section, re.MULTILINE))


def run(role: Role, place: Path, *words: str, seconds: float = 300) -> dict[str, list[str]]:
    """Run the suite, and return the failed checks of each scenario, each with the suite's message.

    A warning counts as a failure, and so does a scenario in which no check succeeded: the suite itself does not fail a
    client that does nothing.

    Args:
        role: Which side is tested.
        place: A directory that does not exist yet, for the results.
        words: Further arguments of the suite.
        seconds: The maximum time of the whole run.
    """
    done = subprocess.run(
        [*program(), role, *words, "--output-dir", str(place)],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])},
    )
    results = {_scenario(path.parent, place): json.loads(path.read_text()) for path in place.rglob("checks.json")}
    assert results, done.stdout + done.stderr
    return {name: _failures(checks) for name, checks in results.items()}


def _scenario(directory: Path, place: Path) -> str:
    """Return the name of a scenario, which may contain ``/``, from the directory with its results."""
    return STAMP.sub("", directory.relative_to(place).as_posix().removeprefix("server-"))


def _failures(checks: list[dict[str, Any]]) -> list[str]:
    failed = [each for each in checks if each["status"] in ("FAILURE", "WARNING")]
    if not failed and all(each["status"] != "SUCCESS" for each in checks):
        return ["no check succeeded"]
    return [f"{each['id']}: {each.get('errorMessage', '')}" for each in failed]
