"""Fixtures of the tests of pages of plans."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console.plans.boxes import BROKEN, SUM, WAITS, Box


@pytest.fixture
def box() -> Box:
    """Return tools, of which one waits."""
    return Box()


@pytest.fixture
def plans(tmp_path: Path) -> Path:
    """Return a directory with plan files."""
    directory = tmp_path / "plans"
    directory.mkdir()
    for name, text in (("sum.toml", SUM), ("broken.toml", BROKEN), ("waits.toml", WAITS), ("not.toml", "nodes = 5")):
        (directory / name).write_text(text)
    return directory
