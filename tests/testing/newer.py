"""A toolset for a Runtime that there is not yet."""

from __future__ import annotations

from tests.testing.defects import of, spec

RUNTIME_API = (2, 0)

toolset = of(spec())
