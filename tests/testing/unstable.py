"""A toolset whose tools are others in every process."""

from __future__ import annotations

import os

import attrs
from tests.testing.defects import TEXT, of, spec

toolset = of(spec(attrs.evolve(TEXT, default=f"process {os.getpid()}", required=False)))
