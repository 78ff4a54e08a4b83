"""Write each character of each string as a URL escape."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.agentdojo.strings import changed


def rewrite(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the disguised arguments of a call."""
    return changed(arguments, lambda text: "".join(f"%{byte:02X}" for byte in text.encode()))
