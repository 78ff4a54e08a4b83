"""Exact values as JSON holds them, and back.

Source: contract section 3, blob; issue "The contract runs", wire forms.
"""

from __future__ import annotations

import datetime
from array import array
from binascii import b2a_base64
from typing import Any

from neuroscript.scalars import Handle, lax_blob


def plain(value: Any) -> Any:
    """Return an exact value as JSON holds it.

    Bytes are written ``{"$base64": text}``, a time as ISO 8601, a handle as its id.
    """
    match value:
        case bytes():
            return {"$base64": b2a_base64(value, newline=False).decode("ascii")}
        case list() | tuple() | array():
            return [plain(each) for each in value]
        case dict():
            return {key if isinstance(key, str) else str(key): plain(each) for key, each in value.items()}
        case datetime.datetime():
            return value.isoformat()
        case Handle():
            return value.id
        case _:
            return value


def restored(value: Any) -> Any:
    """Return what `plain` wrote: bytes out of ``{"$base64": text}``, at every level."""
    match value:
        case {"$base64": str()} if len(value) == 1:
            return lax_blob(value)
        case list():
            return [restored(each) for each in value]
        case dict():
            return {key: restored(each) for key, each in value.items()}
        case _:
            return value
