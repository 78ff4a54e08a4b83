"""Agent frameworks, each at one version in its own environment, because they conflict with each other."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

KEPT = Path(__file__).parents[2] / ".pytest_cache"
"""Where the environments are, once for a checkout: 30 to 850 MB each."""

OURS = ("attrs", "cattrs", "pluggy", "platformdirs")
"""What this project needs there."""

VERSIONS = {
    "smolagents": "1.26.0",
    "autogen-core": "0.7.5",
    "agno": "3.1.10",
    "dspy": "3.4.1",
    "llama-index-core": "0.14.25",
    "haystack-ai": "3.4.0",
    "crewai": "1.15.30",
    "strands-agents": "1.62.0",
    "google-adk": "2.13.0",
    "semantic-kernel": "1.45.0",
}
"""The version of each framework that is tested."""

SECONDS = 900
"""How long an installation may take."""


def installed(framework: str) -> Path:
    """Return the Python of an environment with a framework; the first call installs it."""
    version = VERSIONS[framework]
    place = KEPT / f"{framework}-{version}-{sys.version_info.major}.{sys.version_info.minor}"
    python, done = place / "bin" / "python", place / "installed"
    if not done.exists():
        venv.create(place, symlinks=True, clear=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, f"{framework}=={version}", *OURS], check=True, timeout=SECONDS)
        done.touch()
    return python


def run(framework: str, program: Path, scratch: Path) -> str:
    """Return the output of a program that runs where a framework is installed, with this checkout."""
    return run_in(installed(framework), framework, program, scratch)


def run_in(python: Path, framework: str, program: Path, scratch: Path) -> str:
    """Return the output of a program of this Python, with this checkout."""
    done = subprocess.run(
        [python, "-W", "ignore", program, framework],
        cwd=scratch,
        env={
            "PATH": os.defpath,
            "HOME": str(scratch),
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout
