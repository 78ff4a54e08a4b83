"""The ``tree`` toolset: store JSON as a tree of nodes, and read and edit it node by node.

The metadata of a node is separate from its value, JSON keeps the order of its keys, and every change is atomic.
"""

from __future__ import annotations

from neuroscript import Toolset
from neuroscript_std.trees import lookup, metadata, mutations, serialization

toolset = Toolset("tree", (*serialization.toolset, *lookup.toolset, *mutations.toolset, *metadata.toolset))
