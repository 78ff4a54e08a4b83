"""``tree`` tools for the metadata of nodes, strings that are separate from their values."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, Toolset, ToolSpec
from neuroscript_std.paths import escape_name
from neuroscript_std.trees.handles import NODE, READS, TREE, WRITES, locked_tree
from neuroscript_std.trees.nodes import tree_error

KEY: Final = ArgSpec("metadata_key", ArgType.STRING, description="Key of the metadata entry.")
FAILS: Final = "handle.unknown, handle.kind, tree.no_node"

toolset = Toolset("tree")


def _get(rt: Runtime, tree_handle: str, node_id: str) -> dict[str, str]:
    with locked_tree(rt, tree_handle) as tree:
        return tree.node(node_id).metadata.copy()


toolset.add(
    ToolSpec(
        "getnodemetadata",
        "tree",
        (TREE, NODE),
        return_type=ArgType.MAP_STRING_STRING,
        description="Read the metadata of a tree node.",
        when_to_use=(
            "Use it for metadata only; for all of the node, use tree.getnode, to search by metadata, tree.findnodes."
        ),
        return_help="The metadata, a map of strings.",
        examples=(
            Example(("tree-1", "node-7"), {}),
            Example(("tree-2", "node-7"), {"currency": "EUR"}),
            Example(("tree-1", "node-99"), error="tree.no_node"),
        ),
        error_conditions=f"{FAILS}.",
    ),
    _get,
    READS,
)


def _set(rt: Runtime, tree_handle: str, node_id: str, metadata_key: str, metadata_value: str) -> None:
    with locked_tree(rt, tree_handle) as tree:
        tree.node(node_id).metadata[metadata_key] = metadata_value


toolset.add(
    ToolSpec(
        "setnodemetadata",
        "tree",
        (TREE, NODE, KEY, ArgSpec("metadata_value", ArgType.STRING, description="Value of the metadata entry.")),
        return_type=ArgType.NIL,
        description="Attach metadata to a tree node: set the value of a metadata key.",
        when_to_use="Use it for information that is not part of the JSON; to change the JSON, use tree.setvalue.",
        return_help="None.",
        examples=(
            Example(
                ("tree-1", "node-7", "currency", "EUR"), None, note="examples of other tools use the result as tree-2"
            ),
            Example(("tree-1", "node-1", "seen", ""), None),
            Example(("tree-1", "node-7", "times", 3), error="coercion.type"),
        ),
        error_conditions=f"{FAILS}.",
    ),
    _set,
    WRITES,
)


def _remove(rt: Runtime, tree_handle: str, node_id: str, metadata_key: str) -> None:
    with locked_tree(rt, tree_handle) as tree:
        metadata = tree.node(node_id).metadata
        if metadata_key not in metadata:
            raise tree_error(f"the node has no metadata key {escape_name(metadata_key)}", "no_metadata")
        del metadata[metadata_key]


toolset.add(
    ToolSpec(
        "removenodemetadata",
        "tree",
        (TREE, NODE, KEY),
        return_type=ArgType.NIL,
        description="Remove metadata from a tree node: delete one metadata key.",
        when_to_use="Use it to delete an entry; to replace its value, use tree.setnodemetadata.",
        return_help="None.",
        examples=(
            Example(("tree-2", "node-7", "currency"), None),
            Example({"tree_handle": "tree-2", "node_id": "node-7", "metadata_key": "currency"}, None),
            Example(("tree-2", "node-7", "times"), error="tree.no_metadata"),
        ),
        error_conditions=f"{FAILS}, tree.no_metadata.",
    ),
    _remove,
    WRITES,
)
