"""How the tools of the group take and keep trees, and the words that their specs share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from neuroscript import ArgSpec, ArgType, Handle, Runtime, ToolPolicy
from neuroscript_std.trees.tree import Tree

KIND: Final = "tree"
"""Of the handles."""

READS: Final = ToolPolicy(effects=("reads",), blocking=False)
WRITES: Final = ToolPolicy(effects=("writes",), blocking=False)
"""What is read and written is in memory, so nobody waits for it."""

TREE: Final = ArgSpec("tree_handle", ArgType.HANDLE, description="What tree.loadjson gave for the tree.")
NODE: Final = ArgSpec("node_id", ArgType.STRING, description="The id of the node, such as node-1, which is the root.")

SHOP: Final = (
    '{"name": "tea shop", "open": true, "shelf": [{"type": "green", "price": 4}, {"type": "black", "price": 2.5}]}'
)
"""What ``tree-1`` and ``tree-2`` hold in the examples; the latter has a note."""


def kept(rt: Runtime, tree: Tree) -> Handle:
    """Keep a tree for the caller."""
    return rt.handles.new(tree, KIND)


@contextmanager
def held(rt: Runtime, tree_handle: str) -> Iterator[Tree]:
    """Give the tree of a handle, for this call alone; `ToolFailed` where it is none."""
    tree: Tree = rt.handles.get(tree_handle, KIND)
    with tree.lock:
        yield tree
