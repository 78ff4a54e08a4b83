"""Features that a framework does not have."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path


class Missing(Exception):
    """The framework has no such feature. The message is the cell."""


def refuse_if_defined(package: str, pattern: str, cell: str) -> None:
    """Raise `Missing` if a package defines no class and no function whose name matches.

    If it defines one, raise an `AssertionError`: a later version that has the feature fails, and its cell is not wrong.
    """
    found = [*definitions_of(package, pattern)]
    assert not found, f"{package} may have this feature now: {found[:3]}"
    raise Missing(cell)


def definitions_of(package: str, pattern: str) -> Iterator[str]:
    """Yield the matching definitions of a package."""
    definition = re.compile(rf"^ *(?:class|def|async def) \w*(?:{pattern})", re.IGNORECASE)
    directory = Path(inspect.getfile(importlib.import_module(package))).parent
    for path in sorted(directory.rglob("*.py")):
        for line in path.read_text(errors="replace").splitlines():
            if definition.match(line):
                yield f"{path.relative_to(directory)}: {line.strip()}"
