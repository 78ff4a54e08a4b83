"""Encode each string with base64."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from tests.benchmarks.agentdojo.strings import changed


def rewrite(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the disguised arguments of a call."""
    return changed(arguments, lambda text: b64encode(text.encode()).decode())
