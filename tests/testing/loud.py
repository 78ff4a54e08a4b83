"""A toolset whose module looks around when it is imported."""

from __future__ import annotations

from pathlib import Path

from tests.testing.defects import of, spec

FOUND = [*Path("/").iterdir()]

toolset = of(spec())
