"""The built site, and which of its tests run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests with a browser, unless all tests run."""
    left_out = [item for item in items if item.path == Path(__file__).with_name("test_browser.py")]
    if left_out and not os.environ.get("NEUROSCRIPT_TEST_ALL"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the directory of the site, built without warnings."""
    built = subprocess.run(
        [sys.executable, "-m", "docs._ext.build"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )

    assert (built.returncode, built.stderr) == (0, "")
    return ROOT / "build" / "site" / "html"
