"""Handles of trees, and the arguments that the specs of the ``tree`` tools share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from neuroscript import ArgSpec, ArgType, Handle, Runtime, ToolPolicy
from neuroscript_std.trees.tree import Tree

KIND: Final = "tree"
"""The kind of the handles."""

READS: Final = ToolPolicy(effects=("reads",), blocking=False, sources=(), sinks=())
WRITES: Final = ToolPolicy(effects=("writes",), blocking=False, sources=(), sinks=())
"""Trees are in memory, so the tools do not block."""

TREE: Final = ArgSpec("tree_handle", ArgType.HANDLE, description="Handle of the tree, from tree.loadjson.")
NODE: Final = ArgSpec("node_id", ArgType.STRING, description="Id of the node, such as node-1, the root.")

SHOP: Final = (
    '{"name": "tea shop", "open": true, "shelf": [{"type": "green", "price": 4}, {"type": "black", "price": 2.5}]}'
)
"""The content of ``tree-1`` and ``tree-2`` in the examples; ``tree-2`` also has metadata."""


def store_tree(rt: Runtime, tree: Tree) -> Handle:
    """Store a tree for the caller and return its handle."""
    return rt.handles.new(tree, KIND)


@contextmanager
def locked_tree(rt: Runtime, tree_handle: str) -> Iterator[Tree]:
    """Lock and yield the tree of a handle; `ToolFailed` if the handle does not refer to a tree."""
    tree: Tree = rt.handles.get(tree_handle, KIND)
    with tree.lock:
        yield tree
