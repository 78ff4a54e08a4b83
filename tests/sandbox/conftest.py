"""A directory for a sandbox, and both of its backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sandbox_layouts import BACKENDS


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"
