"""The ``fs`` toolset: list, read, verify and change files in the sandbox.

All tools describe an entry in the same shape, need grants for paths instead of trust, and never follow links.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_fs import changes, checksums, content, filenames, listing

toolset = Toolset("fs", (*listing.toolset, *content.toolset, *checksums.toolset, *changes.toolset, *filenames.toolset))
