"""A toolset whose worker holds a secret, which the tools of other engines try to read."""

from __future__ import annotations

import ctypes
from typing import Any

from neuroscript import Toolset

neighbour = Toolset("neighbour")

HELD: list[Any] = []


@neighbour.tool
def hold(secret: str) -> int:
    """Hold a secret in memory, and return its address."""
    if not HELD:
        HELD.append(ctypes.create_string_buffer(secret.encode(), 64))
    return ctypes.addressof(HELD[0])
