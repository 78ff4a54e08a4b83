"""A toolset whose distribution ships an index of what it was before."""

from __future__ import annotations

from tests.testing.defects import of, spec

toolset = of(spec())
