"""What came of a call, as Smith's trace holds it.

Source: seed-systems.md rows SM-51 to SM-54.
"""

from __future__ import annotations

from typing import Any

from neuroscript.errors import CallError, CallTimeout
from neuroscript.jsonable import plain
from neuroscript.runtime import ToolResult


def payload_of(result: ToolResult) -> dict[str, Any]:
    """Return the payload of a result: a map with a ``status`` as it is, anything else below ``result``.

    An error is told in its own words, of what a tool raised the type and the text; a timeout in Smith's.

    >>> payload_of(ToolResult("", "smith.weather", "sunny"))
    {'status': 'success', 'result': 'sunny'}
    >>> payload_of(ToolResult("", "smith.weather", {"status": "success", "temp": 3}))
    {'status': 'success', 'temp': 3}
    """
    if result.error is not None:
        return {"status": "error", "error": _told(result.error)}
    value = plain(result.value)
    if isinstance(value, dict) and "status" in value:
        return value
    return {"status": "success", "result": value}


def _told(error: CallError) -> str:
    if isinstance(error, CallTimeout) and error.seconds is not None:
        return f"Execution timed out ({error.seconds:g}s)"
    return str(error)
