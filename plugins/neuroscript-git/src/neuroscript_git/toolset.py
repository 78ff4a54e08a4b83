"""All tools on repositories, gathered: what there is, how it is changed, where it comes from and goes to.

Source: upstream ``pkg/tool/git``, with log. What differs on purpose: results are parsed, grants for paths and hosts
stand in place of trust, and nothing of a repository is executed.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_git import changing, looking, remotes

toolset = Toolset("git", (*looking.toolset, *changing.toolset, *remotes.toolset))
