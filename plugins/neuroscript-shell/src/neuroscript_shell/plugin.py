"""The plugin entry point, which provides the toolsets that work on this machine."""

from __future__ import annotations

import os

from neuroscript import Toolset, hookimpl


@hookimpl
def neuroscript_toolsets() -> list[Toolset]:
    """Return `os`, and `shell` if the system has process groups, which are needed to stop a program with its children.

    A model never sees a tool that cannot work on its machine.
    """
    from neuroscript_shell import system

    if not hasattr(os, "killpg"):
        return [system.toolset]
    from neuroscript_shell import execute

    return [system.toolset, execute.toolset]
