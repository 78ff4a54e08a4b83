"""The published package neurosurfer, in its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

VERSION = "0.1.2"
KEPT = Path(__file__).parents[2] / ".pytest_cache"
"""Where it is kept, once for a checkout: some 17 MB, within some 6 seconds of one core."""

OURS = ("attrs", "cattrs", "pluggy", "platformdirs")
"""What this project needs there."""

ITS = ("pydantic",)
"""All that its tools need; it asks for much else, which its tools do not import."""

FOR_SQL = ("pydantic-settings", "sqlalchemy", "transformers")
"""What its ``SQLExecutor`` imports besides: some 300 MB."""

UNAVAILABLE = "neurosurfer could not be installed with pip"
"""The reason for skipping its tests if the Python registry cannot be reached."""


def installed(*others: str) -> Path:
    """Return its Python, and install the package if necessary.

    Args:
        others: Additional packages.

    Raises:
        OSError: `UNAVAILABLE`.
    """
    place = KEPT / "-".join(["neurosurfer", VERSION, f"{sys.version_info.major}.{sys.version_info.minor}", *others])
    if not place.exists():
        _install(place, others)
    return place / "bin" / "python"


def _install(place: Path, others: tuple[str, ...]) -> None:
    """Install it in a temporary directory and rename that, because another run may do the same."""
    place.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as name:
        made = Path(name, "made")
        venv.create(made, symlinks=True)
        (target,) = made.glob("lib/python*/site-packages")
        seconds = 900 if others else 50
        _pip(seconds, target, *OURS, *ITS, *others)
        _pip(seconds, target, "--no-deps", f"neurosurfer=={VERSION}")
        if not place.exists():
            made.rename(place)


def _pip(seconds: float, target: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    try:
        done = subprocess.run([*command, "--target", target, *words], capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise OSError(UNAVAILABLE) from None
    if done.returncode != 0:
        raise OSError(UNAVAILABLE)


def run(python: Path, program: Path, scratch: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return the output of a program that can import the package and this checkout, in a temporary directory."""
    root = Path(__file__).parents[2]
    return subprocess.run(
        [python, program, *words],
        cwd=scratch,
        env={
            "PATH": os.defpath,
            "HOME": str(scratch),
            "PYTHONPATH": str(root / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NEUROSURF_SILENCE": "1",
        },
        capture_output=True,
        text=True,
        timeout=100,
    )
