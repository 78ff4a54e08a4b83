"""The ``str`` toolset: inspect, transform, split, encode and search strings, and read and write JSON.

Numbers keep their type, decoding is strict, and the memory and run time of every call are bounded.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_std.text import encodings, inspect, jsontext, queries, regex, split_join, terminal, transforms

toolset = Toolset(
    "str",
    (
        *queries.toolset,
        *transforms.toolset,
        *split_join.toolset,
        *encodings.toolset,
        *jsontext.toolset,
        *terminal.toolset,
        *inspect.toolset,
        *regex.toolset,
    ),
)
