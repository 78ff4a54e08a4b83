"""Tools that note texts about nodes, apart from what the nodes hold."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, Toolset, ToolSpec
from neuroscript_std.paths import shown
from neuroscript_std.trees.keeping import NODE, READS, TREE, WRITES, held
from neuroscript_std.trees.nodes import failed

KEY: Final = ArgSpec("metadata_key", ArgType.STRING, description="What the note is called.")
FAILS: Final = "handle.unknown, handle.kind, tree.no_node"

toolset = Toolset("tree")


def _get(rt: Runtime, tree_handle: str, node_id: str) -> dict[str, str]:
    with held(rt, tree_handle) as tree:
        return tree.node(node_id).metadata.copy()


toolset.add(
    ToolSpec(
        "getnodemetadata",
        "tree",
        (TREE, NODE),
        return_type=ArgType.MAP_STRING_STRING,
        description="Give what has been noted about a node.",
        when_to_use="For notes alone; tree.getnode gives them with all the rest, tree.findnodes searches by them.",
        return_help="The notes by their names.",
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
    with held(rt, tree_handle) as tree:
        tree.node(node_id).metadata[metadata_key] = metadata_value


toolset.add(
    ToolSpec(
        "setnodemetadata",
        "tree",
        (TREE, NODE, KEY, ArgSpec("metadata_value", ArgType.STRING, description="The note, a text.")),
        return_type=ArgType.NIL,
        description="Note a text about a node, in place of what was noted under that name.",
        when_to_use="For what is not to be in the JSON; tree.setvalue and tree.addchildnode change that.",
        return_help="None.",
        examples=(
            Example(
                ("tree-1", "node-7", "currency", "EUR"), None, note="the other tools' examples call it tree-2 then"
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
    with held(rt, tree_handle) as tree:
        metadata = tree.node(node_id).metadata
        if metadata_key not in metadata:
            raise failed(f"nothing is noted under {shown(metadata_key)}", "no_metadata")
        del metadata[metadata_key]


toolset.add(
    ToolSpec(
        "removenodemetadata",
        "tree",
        (TREE, NODE, KEY),
        return_type=ArgType.NIL,
        description="Forget what was noted about a node under a name.",
        when_to_use="For a note that does not hold any more; tree.setnodemetadata puts another in its place.",
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
