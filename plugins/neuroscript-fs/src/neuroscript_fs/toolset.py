"""The ``fs`` toolset: list, read, verify and change files in the sandbox.

All tools describe an entry in the same shape, need grants for paths instead of trust, and never follow links.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_fs import changing, filenames, looking, reading, verifying

toolset = Toolset("fs", (*looking.toolset, *reading.toolset, *verifying.toolset, *changing.toolset, *filenames.toolset))
