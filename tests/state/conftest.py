"""Fixtures of the tests of shared state: SQLite files, and databases of a PostgreSQL server that the tests start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.workflow.durable.databases import MISSING, binaries, postgresql

MakeUrl = Callable[[], str]
"""Returns the address of a new, empty database."""

NUMBERS = count(1)


@pytest.fixture(scope="session")
def new_postgres() -> Iterator[MakeUrl]:
    """Return a factory for databases of a PostgreSQL server."""
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    with postgresql(programs) as make:
        yield lambda: make(f"state{next(NUMBERS)}", "template1")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a new, empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.sqlite"
    make: MakeUrl = request.getfixturevalue("new_postgres")
    return make()
