"""All tools on files, gathered: what there is, what is in it, how it is changed, how it may be called.

Source: upstream ``pkg/tool/fs``, with glob, free and verify. What differs on purpose: one shape of entry, grants for
paths in place of trust, and no link that is followed.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_fs import changing, filenames, looking, reading, verifying

toolset = Toolset("fs", (*looking.toolset, *reading.toolset, *verifying.toolset, *changing.toolset, *filenames.toolset))
