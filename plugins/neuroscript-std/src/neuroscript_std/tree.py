"""All tools on trees, gathered: JSON that stays here under a handle, looked at and changed node by node.

Source: upstream ``pkg/tool/tree``. What differs on purpose: a tree stays a tree, metadata is apart from what a node
holds, JSON comes out as it went in, and no call leaves half of a change behind.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_std.trees import changing, looking, noting, reading

toolset = Toolset("tree", (*reading.toolset, *looking.toolset, *changing.toolset, *noting.toolset))
