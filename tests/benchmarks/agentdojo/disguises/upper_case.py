"""Write each string in upper case."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.agentdojo.strings import changed


def rewrite(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the disguised arguments of a call."""
    return changed(arguments, str.upper)
