"""A toolset for isolated processes, one tool of which ends its process."""

from __future__ import annotations

import os

from neuroscript import ToolPolicy, Toolset

fatal = Toolset("fatal")
IDEMPOTENT = ToolPolicy(effects=("idempotent",))


@fatal.tool(policy=IDEMPOTENT)
def die() -> int:
    """End the process."""
    os._exit(7)


@fatal.tool(policy=IDEMPOTENT)
def double(number: int) -> int:
    """Double a number."""
    return 2 * number
