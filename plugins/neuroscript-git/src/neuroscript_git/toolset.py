"""The ``git`` toolset: inspect and change repositories, and clone, pull and push.

Results are parsed, the tools need grants for paths and hosts instead of trust, and git executes nothing from a
repository.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_git import changes, inspection, remotes

toolset = Toolset("git", (*inspection.toolset, *changes.toolset, *remotes.toolset))
