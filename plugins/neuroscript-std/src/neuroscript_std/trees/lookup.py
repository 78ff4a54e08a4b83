"""``tree`` tools that read and find nodes."""

from __future__ import annotations

from typing import Any, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, Toolset, ToolSpec
from neuroscript_std.paths import Segments, parse_path
from neuroscript_std.trees.handles import NODE, READS, TREE, locked_tree
from neuroscript_std.trees.nodes import JSON_TYPES, Node, tree_error
from neuroscript_std.trees.queries import find_nodes

A_NODE: Final = (
    "A map of id, type, value (None for an object or array), attributes (for an object, the node ids by key), "
    "children (for an array, the node ids), parent_id and parent_attribute_key (None if it has none), and metadata."
)

FAILS: Final = "handle.unknown, handle.kind, tree.no_node, tree.big_number for an integer of more than 64 bits."

ROOT: Final[dict[str, Any]] = {
    "id": "node-1",
    "type": "object",
    "value": None,
    "attributes": {"name": "node-2", "open": "node-3", "shelf": "node-4"},
    "children": [],
    "parent_id": None,
    "parent_attribute_key": None,
    "metadata": {},
}
SHELF: Final[dict[str, Any]] = {
    **ROOT,
    "id": "node-4",
    "type": "array",
    "attributes": {},
    "children": ["node-5", "node-8"],
    "parent_id": "node-1",
    "parent_attribute_key": "shelf",
}
PRICE: Final[dict[str, Any]] = {
    **ROOT,
    "id": "node-7",
    "type": "number",
    "value": 4,
    "attributes": {},
    "parent_id": "node-5",
    "parent_attribute_key": "price",
}

toolset = Toolset("tree")


def node_data(node: Node) -> dict[str, Any]:
    """Return the map that tools return for a node."""
    content = node.content
    is_object, is_array = type(content) is dict, type(content) is list
    if type(content) is int and not -(2**63) <= content < 2**63:
        raise tree_error("the integer has more than 64 bits; use tree.tojson", "big_number")
    return {
        "id": node.id,
        "type": node.type,
        "value": None if is_object or is_array else content,
        "attributes": {key: each.id for key, each in content.items()} if is_object else {},
        "children": [each.id for each in content] if is_array else [],
        "parent_id": None if node.parent is None else node.parent.id,
        "parent_attribute_key": node.key,
        "metadata": node.metadata.copy(),
    }


def _get_node(rt: Runtime, tree_handle: str, node_id: str) -> dict[str, Any]:
    with locked_tree(rt, tree_handle) as tree:
        return node_data(tree.node(node_id))


toolset.add(
    ToolSpec(
        "getnode",
        "tree",
        (TREE, NODE),
        return_type=ArgType.MAP,
        description="Read a tree node by id: its type, value, children and metadata.",
        when_to_use=(
            "Use it if you know the id; to find a node by path, use tree.getnodebypath, by a query, tree.findnodes."
        ),
        return_help=A_NODE,
        examples=(
            Example(("tree-1", "node-7"), PRICE),
            Example(("tree-1", "node-4"), SHELF),
            Example(("tree-1", "node-99"), error="tree.no_node"),
        ),
        error_conditions=FAILS,
    ),
    _get_node,
    READS,
)


def _get_root(rt: Runtime, tree_handle: str) -> dict[str, Any]:
    with locked_tree(rt, tree_handle) as tree:
        return node_data(tree.root)


toolset.add(
    ToolSpec(
        "getroot",
        "tree",
        (TREE,),
        return_type=ArgType.MAP,
        description="Get the root node of a tree.",
        when_to_use=(
            "Use it to start a traversal; for other nodes, use tree.getnode, to see all of them, tree.rendertext."
        ),
        return_help=A_NODE,
        examples=(
            Example(("tree-1",), ROOT),
            Example({"tree_handle": "tree-1"}, ROOT),
            Example(("no-such-tree",), error="handle.unknown"),
        ),
        error_conditions=FAILS,
    ),
    _get_root,
    READS,
)


def _get_parent(rt: Runtime, tree_handle: str, node_id: str) -> dict[str, Any] | None:
    with locked_tree(rt, tree_handle) as tree:
        parent = tree.node(node_id).parent
        return None if parent is None else node_data(parent)


toolset.add(
    ToolSpec(
        "getparent",
        "tree",
        (TREE, NODE),
        return_type=ArgType.MAP,
        return_nullable=True,
        description="Get the parent of a node in a tree.",
        when_to_use="Use it to go up; to go down, use tree.getchildren or the attributes from tree.getnode.",
        return_help=f"None for the root and for a detached node, otherwise as from tree.getnode. {A_NODE}",
        examples=(
            Example(("tree-1", "node-5"), SHELF),
            Example(("tree-1", "node-1"), None),
            Example(("tree-1", ""), error="tree.no_node"),
        ),
        error_conditions=FAILS,
    ),
    _get_parent,
    READS,
)


def _get_children(rt: Runtime, tree_handle: str, node_id: str) -> list[str]:
    with locked_tree(rt, tree_handle) as tree:
        node = tree.node(node_id)
        if type(node.content) is not list:
            raise tree_error(f"expected an array, got a node of type {node.type}", "wrong_type")
        return [each.id for each in node.content]


toolset.add(
    ToolSpec(
        "getchildren",
        "tree",
        (TREE, NODE),
        return_type=ArgType.SLICE_STRING,
        description="List the children (child nodes) of an array node in a tree, by id.",
        when_to_use="Use it for an array; for an object, use the attributes from tree.getnode.",
        return_help="The ids in order; pass each to tree.getnode.",
        examples=(
            Example(("tree-1", "node-4"), ["node-5", "node-8"]),
            Example({"tree_handle": "tree-1", "node_id": "node-4"}, ["node-5", "node-8"]),
            Example(("tree-1", "node-5"), error="tree.wrong_type"),
        ),
        error_conditions="handle.unknown, handle.kind, tree.no_node, tree.wrong_type.",
    ),
    _get_children,
    READS,
)


def _get_node_by_path(rt: Runtime, tree_handle: str, path: Any) -> dict[str, Any]:
    with locked_tree(rt, tree_handle) as tree:
        return node_data(tree.at(_segments(path)))


def _segments(path: Any) -> Segments:
    try:
        return () if path == "" else parse_path(path)
    except ToolFailed as error:
        raise tree_error(error.text, "bad_path") from None


toolset.add(
    ToolSpec(
        "getnodebypath",
        "tree",
        (
            TREE,
            ArgSpec(
                "path",
                ArgType.ANY,
                description=(
                    "Path from the root: a string such as shelf[0].price or shelf.0.price, with zero-based indexes; or "
                    "a list of keys and indexes, in which keys can contain dots and brackets; empty for the root."
                ),
            ),
        ),
        return_type=ArgType.MAP,
        description="Get the node at a path in a tree.",
        when_to_use="Use it if you know the path; for data that is not in a tree, use shape.select.",
        return_help=A_NODE,
        examples=(
            Example(("tree-1", "shelf.0.price"), PRICE),
            Example(("tree-1", "shelf[0].price"), PRICE),
            Example(("tree-1", ["shelf"]), SHELF),
            Example(("tree-1", "shelf.2"), error="tree.missing"),
            Example(("tree-1", "name.first"), error="tree.wrong_type"),
            Example(("tree-1", "shelf..0"), error="tree.bad_path"),
        ),
        error_conditions=f"tree.bad_path, tree.missing, tree.wrong_type, {FAILS}",
    ),
    _get_node_by_path,
    READS,
)


def _find_nodes(
    rt: Runtime, tree_handle: str, start_node_id: str, query_map: dict[str, Any], max_depth: int, max_results: int
) -> list[str]:
    with locked_tree(rt, tree_handle) as tree:
        return find_nodes(tree.node(start_node_id), query_map, max_depth, max_results)


QUERY: Final = ArgSpec(
    "query_map",
    ArgType.MAP,
    min_length=1,
    keys=(
        ArgSpec("id", ArgType.STRING, required=False, description="The id of the node."),
        ArgSpec("type", ArgType.STRING, required=False, choices=JSON_TYPES, description="The JSON type."),
        ArgSpec(
            "value", ArgType.ANY, required=False, nullable=True, description="The value of a leaf; None matches null."
        ),
        ArgSpec(
            "attributes",
            ArgType.MAP,
            required=False,
            description="Keys of an object with the values of the leaves under them.",
        ),
        ArgSpec(
            "metadata",
            ArgType.MAP_STRING_STRING,
            required=False,
            description="Metadata keys and values that the node has.",
        ),
    ),
    description="Conditions that a node must all meet; numbers are compared by value.",
)

toolset.add(
    ToolSpec(
        "findnodes",
        "tree",
        (
            TREE,
            ArgSpec(
                "start_node_id", ArgType.STRING, description="Id of the node to start at; it is included in the search."
            ),
            QUERY,
            ArgSpec(
                "max_depth", ArgType.INT, default=-1, minimum=-1, description="Levels below the start; -1 for all."
            ),
            ArgSpec(
                "max_results", ArgType.INT, default=-1, minimum=-1, description="Maximum number of results; -1 for all."
            ),
        ),
        return_type=ArgType.SLICE_STRING,
        description="Search a tree and find all nodes that match a query by type, value, attributes or metadata.",
        when_to_use="Use it to find nodes by content; to find one by position, use tree.getnodebypath.",
        return_help="The ids of the nodes, in the order of the JSON.",
        examples=(
            Example(("tree-1", "node-1", {"attributes": {"type": "black"}}), ["node-8"]),
            Example(("tree-1", "node-1", {"type": "number"}), ["node-7", "node-10"]),
            Example(("tree-1", "node-1", {"type": "object"}, 1), ["node-1"], note="one level below the start"),
            Example(("tree-1", "node-4", {"type": "object"}, -1, 1), ["node-5"], note="only the first match"),
            Example(("tree-2", "node-1", {"metadata": {"currency": "EUR"}}), ["node-7"]),
            Example(("tree-1", "node-1", {"value": 2.5, "type": "string"}), []),
            Example(("tree-1", "node-1", {"value": [1]}), error="tree.bad_query"),
            Example(("tree-1", "node-1", {"type": "tea"}), error="coercion.choice"),
        ),
        error_conditions="handle.unknown, handle.kind, tree.no_node, tree.bad_query.",
    ),
    _find_nodes,
    READS,
)
