"""The users for whom the tests run, and a folder that both of them can use."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.isolation.children import NOBODY


@pytest.fixture(params=["the user of the tests", "an unprivileged user"])
def user(request: pytest.FixtureRequest) -> int:
    """A user id, or 0 for that of the tests."""
    if request.param == "the user of the tests":
        return 0
    if os.geteuid() != 0:
        pytest.skip("only the superuser can become another user")
    return NOBODY


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can read and change, with a folder ``inside`` and a folder ``outside``."""
    place = Path(tempfile.mkdtemp(prefix="neuroscript-", dir="/tmp"))
    for name in ("inside", "outside"):
        (place / name).mkdir()
        (place / name / "file").write_text(name)
        (place / name / "file").chmod(0o666)
        (place / name).chmod(0o777)
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)
