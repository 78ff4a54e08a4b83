"""A console with the tools of a workshop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console.conftest import MakeApp, ServedConsole, serving
from tests.console.tools.workshop import Workshop

from neuroscript.console import app


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    """Return the tools; at the end, those that wait go on."""
    made = Workshop()
    yield made
    made.go.set()


@pytest.fixture
def make_app(workshop: Workshop, tmp_path: Path) -> MakeApp:
    """Return what makes a console that runs tools without effects."""
    (tmp_path / "a.txt").write_text("text of a file")
    return lambda: app(workshop.engine(tmp_path))


@pytest.fixture
def effects_console(workshop: Workshop, tmp_path: Path) -> Iterator[ServedConsole]:
    """Return a console that runs tools with effects as well."""
    with serving(app(workshop.engine(tmp_path), run_effects=True)) as served:
        yield served
