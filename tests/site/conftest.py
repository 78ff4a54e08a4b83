"""The built site, and which of its tests run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

collect_ignore = [] if os.environ.get("NEUROSCRIPT_TEST_ALL") else ["test_browser.py"]


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the directory of the site, built without warnings."""
    built = subprocess.run(
        [sys.executable, "-m", "docs._ext.build"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )

    assert (built.returncode, built.stderr) == (0, "")
    return ROOT / "build" / "site" / "html"
