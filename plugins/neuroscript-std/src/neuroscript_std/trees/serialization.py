"""``tree`` tools that load and output a whole tree."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Handle, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.trees.handles import READS, SHOP, TREE, locked_tree, store_tree
from neuroscript_std.trees.texts import json_of, parse_tree, render_tree

NEW: Final = ToolPolicy(effects=("writes", "random"), blocking=False, sources=(), sinks=())

toolset = Toolset("tree")


def _load_json(rt: Runtime, json_string: str) -> Handle:
    return store_tree(rt, parse_tree(json_string))


toolset.add(
    ToolSpec(
        "loadjson",
        "tree",
        (
            ArgSpec(
                "json_string",
                ArgType.STRING,
                description="JSON with at most 200,000 values and 64 levels; the keys of an object must be unique.",
            ),
        ),
        return_type=ArgType.HANDLE,
        description="Load a JSON document into a tree of nodes, which other calls can read and edit.",
        when_to_use="Use it to edit JSON in several calls; to get its value at once, use str.parsejsonstring.",
        return_help=(
            "The handle of the tree. The nodes are node-1 (the root), node-2 and so on, in the order of the JSON."
        ),
        examples=(
            Example((SHOP,), note="examples of other tools use this tree as tree-1"),
            Example(("[]",)),
            Example(('{"name": }',), error="tree.not_json"),
        ),
        error_conditions="tree.not_json, tree.too_deep, tree.too_large.",
    ),
    _load_json,
    NEW,
)


def _to_json(rt: Runtime, tree_handle: str) -> str:
    with locked_tree(rt, tree_handle) as tree:
        return json_of(tree)


toolset.add(
    ToolSpec(
        "tojson",
        "tree",
        (TREE,),
        return_type=ArgType.STRING,
        description="Serialize a tree to a JSON string.",
        when_to_use=(
            "Use it to export a tree; to inspect one, use tree.rendertext, for a plain value, str.tojsonstring."
        ),
        return_help="JSON indented by two spaces, keys in their original order, without metadata.",
        examples=(
            Example(
                ("tree-1",),
                """{
  "name": "tea shop",
  "open": true,
  "shelf": [
    {
      "type": "green",
      "price": 4
    },
    {
      "type": "black",
      "price": 2.5
    }
  ]
}""",
            ),
            Example({"tree_handle": "tree-1"}, note="the same, by name"),
            Example(("no-such-tree",), error="handle.unknown"),
        ),
        error_conditions="handle.unknown, handle.kind, tree.too_large.",
    ),
    _to_json,
    READS,
)


def _render_text(rt: Runtime, tree_handle: str) -> str:
    with locked_tree(rt, tree_handle) as tree:
        return render_tree(tree)


toolset.add(
    ToolSpec(
        "rendertext",
        "tree",
        (TREE,),
        return_type=ArgType.STRING,
        description="Render a tree as indented, human-readable text with the types, ids and values of its nodes.",
        when_to_use="Use it to see the ids of nodes; for JSON, use tree.tojson, to search for nodes, tree.findnodes.",
        return_help="One line for each node: a dash, its key if any, type, id, and size or value.",
        examples=(
            Example(
                ("tree-1",),
                """- (object) node-1 (attrs: 3)
  - "name": (string) node-2: "tea shop"
  - "open": (boolean) node-3: true
  - "shelf": (array) node-4 (len: 2)
    - (object) node-5 (attrs: 2)
      - "type": (string) node-6: "green"
      - "price": (number) node-7: 4
    - (object) node-8 (attrs: 2)
      - "type": (string) node-9: "black"
      - "price": (number) node-10: 2.5
""",
            ),
            Example({"tree_handle": "tree-1"}, note="the same, by name"),
            Example(("no such tree",), error="coercion.format"),
        ),
        error_conditions="handle.unknown, handle.kind, tree.too_large.",
    ),
    _render_text,
    READS,
)
