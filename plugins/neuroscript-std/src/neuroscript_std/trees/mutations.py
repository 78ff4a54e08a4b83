"""``tree`` tools that change nodes and move them."""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, Toolset, ToolSpec
from neuroscript_std.trees.handles import NODE, TREE, WRITES, locked_tree
from neuroscript_std.trees.nodes import JSON_TYPES, TYPES, tree_error

OBJECT: Final = ArgSpec("object_node_id", ArgType.STRING, description="Id of the object node.")
KEY: Final = ArgSpec("attribute_key", ArgType.STRING, description="The key (attribute) in the object.")
FAILS: Final = "handle.unknown, handle.kind, tree.no_node"
NOTHING: Final = "None."

toolset = Toolset("tree")


def _set_value(rt: Runtime, tree_handle: str, node_id: str, value: Any) -> None:
    with locked_tree(rt, tree_handle) as tree:
        tree.set_value(node_id, value)


toolset.add(
    ToolSpec(
        "setvalue",
        "tree",
        (
            TREE,
            NODE,
            ArgSpec(
                "value",
                ArgType.ANY,
                nullable=True,
                description="A string, number, boolean or None; the type of the node changes to match.",
            ),
        ),
        return_type=ArgType.NIL,
        description="Set the value of a leaf node in a tree to a string, number, boolean or null.",
        when_to_use=(
            "Use it for leaf nodes; to change objects and arrays, use tree.addchildnode or tree.setobjectattribute."
        ),
        return_help=NOTHING,
        examples=(
            Example(("tree-1", "node-7", 4.5), None),
            Example(("tree-1", "node-7", None), None),
            Example(("tree-1", "node-4", 1), error="tree.wrong_type"),
            Example(("tree-1", "node-7", [1]), error="tree.bad_value"),
        ),
        error_conditions=f"{FAILS}, tree.wrong_type, tree.bad_value.",
    ),
    _set_value,
    WRITES,
)


def _add_child_node(
    rt: Runtime,
    tree_handle: str,
    parent_node_id: str,
    new_node_id_suggestion: str | None,
    node_type: str,
    value: Any,
    key_for_object_parent: str | None,
) -> str:
    content = _content(node_type, value)
    with locked_tree(rt, tree_handle) as tree:
        return tree.add(parent_node_id, content, key_for_object_parent, new_node_id_suggestion or "").id


def _content(node_type: str, value: Any) -> Any:
    """Return the content of a new node of a type; an object or array starts empty."""
    if value is None and node_type in ("object", "array"):
        return {} if node_type == "object" else []
    if node_type in ("object", "array") or TYPES.get(type(value)) != node_type:
        expected = "no value" if node_type in ("object", "array") else "a value of that type"
        got = "None" if value is None else type(value).__name__
        raise tree_error(f"value: expected {expected} for a node of type {node_type}, got {got}", "bad_value")
    return value


toolset.add(
    ToolSpec(
        "addchildnode",
        "tree",
        (
            TREE,
            ArgSpec("parent_node_id", ArgType.STRING, description="Id of the parent, an object or array node."),
            ArgSpec(
                "new_node_id_suggestion",
                ArgType.STRING,
                required=False,
                max_length=256,
                description="A unique id, at most 256 characters; generated if omitted or empty.",
            ),
            ArgSpec(
                "node_type",
                ArgType.STRING,
                choices=JSON_TYPES,
                description="The type of the new node.",
            ),
            ArgSpec(
                "value",
                ArgType.ANY,
                required=False,
                description="Its value, of that type; omit it for an object or array, which starts empty.",
            ),
            ArgSpec(
                "key_for_object_parent",
                ArgType.STRING,
                required=False,
                description="A new key in the object; required for an object parent, not allowed for an array.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Add a new child node to a tree, under a parent node that is an object or an array.",
        when_to_use=(
            "Use it for a new node; to move an existing one, use tree.setobjectattribute, to edit a leaf, "
            "tree.setvalue."
        ),
        return_help="Id of the new node.",
        examples=(
            Example(("tree-1", "node-4", None, "object"), "node-11"),
            Example(("tree-1", "node-1", "city", "string", "Bremen", "city"), "city"),
            Example(
                {
                    "tree_handle": "tree-1",
                    "parent_node_id": "node-5",
                    "node_type": "null",
                    "key_for_object_parent": "x",
                },
                "node-11",
            ),
            Example(("tree-1", "node-1", None, "string", "Bremen"), error="tree.bad_key"),
            Example(("tree-1", "node-4", None, "number", "4"), error="tree.bad_value"),
            Example(("tree-1", "node-2", None, "null"), error="tree.wrong_type"),
            Example(("tree-1", "node-4", "node-2", "null"), error="tree.id_taken"),
        ),
        error_conditions=(
            f"{FAILS}, tree.wrong_type, tree.bad_value, tree.bad_key, tree.key_taken, tree.id_taken, tree.too_deep, "
            "tree.too_large."
        ),
    ),
    _add_child_node,
    WRITES,
)


def _remove_node(rt: Runtime, tree_handle: str, node_id: str) -> None:
    with locked_tree(rt, tree_handle) as tree:
        tree.remove(node_id)


toolset.add(
    ToolSpec(
        "removenode",
        "tree",
        (TREE, NODE),
        return_type=ArgType.NIL,
        description="Delete a node and its descendants from a tree.",
        when_to_use="Use it to delete permanently; to detach a node and reuse it, use tree.removeobjectattribute.",
        return_help=NOTHING,
        examples=(
            Example(("tree-1", "node-8"), None),
            Example(("tree-1", "node-2"), None),
            Example(("tree-1", "node-1"), error="tree.root"),
        ),
        error_conditions=f"{FAILS}, tree.root.",
    ),
    _remove_node,
    WRITES,
)


def _set_object_attribute(
    rt: Runtime, tree_handle: str, object_node_id: str, attribute_key: str, child_node_id: str
) -> None:
    with locked_tree(rt, tree_handle) as tree:
        tree.link(object_node_id, attribute_key, child_node_id)


toolset.add(
    ToolSpec(
        "setobjectattribute",
        "tree",
        (
            TREE,
            OBJECT,
            KEY,
            ArgSpec("child_node_id", ArgType.STRING, description="Id of the node to move."),
        ),
        return_type=ArgType.NIL,
        description="Set an attribute of an object node: link an existing node as a child under a key.",
        when_to_use="Use it to move an existing node with its descendants; to create a node, use tree.addchildnode.",
        return_help="None. A node that was under the key is detached, as by tree.removeobjectattribute.",
        examples=(
            Example(("tree-1", "node-1", "best", "node-8"), None),
            Example(("tree-1", "node-5", "price", "node-10"), None, note="node-7 is detached"),
            Example(("tree-1", "node-4", "best", "node-2"), error="tree.wrong_type"),
            Example(("tree-1", "node-5", "all", "node-4"), error="tree.cycle"),
        ),
        error_conditions=f"{FAILS}, tree.wrong_type, tree.root, tree.cycle, tree.too_deep.",
    ),
    _set_object_attribute,
    WRITES,
)


def _remove_object_attribute(rt: Runtime, tree_handle: str, object_node_id: str, attribute_key: str) -> None:
    with locked_tree(rt, tree_handle) as tree:
        tree.unlink(object_node_id, attribute_key)


toolset.add(
    ToolSpec(
        "removeobjectattribute",
        "tree",
        (TREE, OBJECT, KEY),
        return_type=ArgType.NIL,
        description="Remove an attribute (key) from an object node and detach its child, which keeps its id.",
        when_to_use=(
            "Use it to link the child elsewhere later, with tree.setobjectattribute; to delete it, use tree.removenode."
        ),
        return_help=(
            "None. The child and its descendants keep their ids, but are not in the JSON until it is linked again."
        ),
        examples=(
            Example(("tree-1", "node-1", "open"), None),
            Example(("tree-1", "node-5", "type"), None),
            Example(("tree-1", "node-1", "closed"), error="tree.no_attribute"),
        ),
        error_conditions=f"{FAILS}, tree.wrong_type, tree.no_attribute.",
    ),
    _remove_object_attribute,
    WRITES,
)
