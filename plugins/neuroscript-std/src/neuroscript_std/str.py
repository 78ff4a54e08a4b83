"""The ``str`` toolset: inspect, transform, split, encode and search strings, and read and write JSON.

Numbers keep their type, decoding is strict, and the memory and run time of every call are bounded.
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
