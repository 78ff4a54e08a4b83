"""Schemathesis, in its own environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

VERSION = "4.32.5"
KEPT = Path(__file__).parents[2] / ".pytest_cache"
"""Where it is stored, once for a checkout."""

UNAVAILABLE = "Schemathesis could not be installed with pip"
"""The reason for skipping its tests if the Python registry cannot be reached."""

INSTALL_SECONDS = 200
RUN_SECONDS = 900


def installed() -> Path:
    """Return its Python, and install the package if necessary.

    Raises:
        OSError: `UNAVAILABLE`.
    """
    place = KEPT / f"schemathesis-{VERSION}-{sys.version_info.major}.{sys.version_info.minor}"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as name:
            made = Path(name, "made")
            venv.create(made, symlinks=True)
            _install(made)
            if not place.exists():
                made.rename(place)
    return place / "bin" / "python"


def _install(place: Path) -> None:
    (target,) = place.glob("lib/python*/site-packages")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    try:
        done = subprocess.run(
            [*command, "--target", target, f"schemathesis=={VERSION}"], capture_output=True, timeout=INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise OSError(UNAVAILABLE) from None
    if done.returncode != 0:
        raise OSError(UNAVAILABLE)


def run(python: Path, scratch: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``schemathesis run`` with the options of the examples."""
    options = Path(__file__).parents[2] / "docs" / "examples" / "schemathesis.toml"
    (scratch / "schemathesis.toml").write_text(options.read_text())
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    return subprocess.run(
        [python, "-c", program, "run", *words, "--no-color", "--continue-on-failure", "--seed", "1"],
        cwd=scratch,
        env={"PATH": os.defpath, "HOME": str(scratch), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
    )
