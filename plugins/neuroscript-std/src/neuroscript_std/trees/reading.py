"""Tools that take a whole tree in, and give it out."""

from __future__ import annotations

from typing import Final

from neuroscript import ArgSpec, ArgType, Example, Handle, Runtime, ToolPolicy, Toolset, ToolSpec
from neuroscript_std.trees.keeping import READS, SHOP, TREE, held, kept
from neuroscript_std.trees.texts import drawing_of, json_of, tree_of

NEW: Final = ToolPolicy(effects=("writes", "random"), blocking=False)

toolset = Toolset("tree")


def _load_json(rt: Runtime, json_string: str) -> Handle:
    return kept(rt, tree_of(json_string))


toolset.add(
    ToolSpec(
        "loadjson",
        "tree",
        (
            ArgSpec(
                "json_string",
                ArgType.STRING,
                description="One JSON value of at most 200,000 values and 64 levels, each key of an object once.",
            ),
        ),
        return_type=ArgType.HANDLE,
        description="Keep JSON as a tree of nodes, to be looked at and changed node by node.",
        when_to_use="For JSON that several calls work on; str.parsejsonstring gives its value at once.",
        return_help="The handle of the tree. Its nodes are node-1, the root, node-2 … in the order of the text.",
        examples=(
            Example((SHOP,), note="the other tools' examples call this one tree-1"),
            Example(("[]",)),
            Example(('{"name": }',), error="tree.not_json"),
        ),
        error_conditions="tree.not_json, tree.too_deep, tree.too_large.",
    ),
    _load_json,
    NEW,
)


def _to_json(rt: Runtime, tree_handle: str) -> str:
    with held(rt, tree_handle) as tree:
        return json_of(tree)


toolset.add(
    ToolSpec(
        "tojson",
        "tree",
        (TREE,),
        return_type=ArgType.STRING,
        description="Write a tree as JSON text.",
        when_to_use="To hand a tree on; tree.rendertext is for looking at one, str.tojsonstring for a value.",
        return_help="JSON, two blanks a level, keys in the order in which they came; metadata is not in it.",
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
    with held(rt, tree_handle) as tree:
        return drawing_of(tree)


toolset.add(
    ToolSpec(
        "rendertext",
        "tree",
        (TREE,),
        return_type=ArgType.STRING,
        description="Draw a tree with the types, ids and values of its nodes.",
        when_to_use="To see which node is called what; tree.tojson writes the JSON, tree.findnodes picks nodes.",
        return_help="One line for each node: a dash, its key if it has one, its type, its id, its size or value.",
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
