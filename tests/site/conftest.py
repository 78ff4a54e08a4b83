"""The built site, and which of its tests run."""

from __future__ import annotations

import fcntl
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
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the site, built without warnings by the first process of a run that needs it."""
    shared = tmp_path_factory.getbasetemp().parent  # of the processes of a run, if there are several
    is_built = shared / "site-is-built"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if "PYTEST_XDIST_WORKER" not in os.environ or not is_built.exists():
            build_site()
            is_built.touch()
    return ROOT / "build" / "site" / "html"


def build_site() -> None:
    """Build the site; a warning is an error."""
    words = [sys.executable, "-m", "docs._ext.build"]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)

    assert (built.returncode, built.stderr) == (0, "")
