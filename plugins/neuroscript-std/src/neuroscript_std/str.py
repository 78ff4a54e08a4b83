"""All tools on texts, gathered: their characters, their pieces, their encodings, JSON, the terminal, patterns.

Source: upstream ``pkg/tool/strtools``. What differs on purpose: counts and numbers stay whole, what is decoded is
strict, and no call can fill the memory or run without end.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_std.text import changes, codes, facts, inspect, jsontext, pieces, regex, terminal

toolset = Toolset(
    "str",
    (
        *facts.toolset,
        *changes.toolset,
        *pieces.toolset,
        *codes.toolset,
        *jsontext.toolset,
        *terminal.toolset,
        *inspect.toolset,
        *regex.toolset,
    ),
)
