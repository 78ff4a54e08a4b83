"""The door of the distribution: its toolsets, computed for the machine at hand.

Source: contract section 7, the group ``neuroscript.plugins``.
"""

from __future__ import annotations

import os

from neuroscript import Toolset, hookimpl


@hookimpl
def neuroscript_toolsets() -> list[Toolset]:
    """Return `os`, and `shell` where the system has process groups: a program is ended with all that it has begun.

    A model is shown no tool that could not do anything on its machine.
    """
    from neuroscript_shell import system

    if not hasattr(os, "killpg"):
        return [system.toolset]
    from neuroscript_shell import execute

    return [system.toolset, execute.toolset]
