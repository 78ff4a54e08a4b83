"""Conversion of trees from JSON, and to JSON or readable text. Keys keep their order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from neuroscript_std.jsontexts import NotJSON, parse_json
from neuroscript_std.text.size import MAX_RESULT_BYTES, utf8_length
from neuroscript_std.trees.nodes import Node, tree_error
from neuroscript_std.trees.tree import Tree

INDENT: Final = "  "


def parse_tree(text: str) -> Tree:
    """Parse JSON into a tree; fails with ``tree.not_json``, ``tree.too_deep`` or ``tree.too_large``."""
    try:
        return Tree(parse_json(text))
    except NotJSON as error:
        raise tree_error(f"invalid JSON: {error}", "not_json") from None


def json_of(tree: Tree) -> str:
    """Return a tree as JSON, indented by two spaces, keys in their order; fails with ``tree.too_large``."""
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=INDENT)
    return _join_pieces(encoder.iterencode(tree.root.value))


def render_tree(tree: Tree) -> str:
    """Return one line per node with type, id and value, indented by two spaces; fails with ``tree.too_large``."""
    return _join_pieces(_lines(tree.root))


def _lines(root: Node) -> Iterator[str]:
    for node, level in root.walk():
        key = "" if node.key is None else f"{_quoted(node.key)}: "
        yield f"{INDENT * level}- {key}({node.type}) {node.id}{_content(node)}\n"


def _content(node: Node) -> str:
    match node.content:
        case dict() as nodes:
            return f" (attrs: {len(nodes)})"
        case list() as nodes:
            return f" (len: {len(nodes)})"
        case leaf:
            return f": {_quoted(leaf)}"


def _quoted(leaf: Any) -> str:
    return json.dumps(leaf, ensure_ascii=False)


def _join_pieces(pieces: Iterable[str]) -> str:
    parts, total = [], 0
    for piece in pieces:
        total += utf8_length(piece)
        if total > MAX_RESULT_BYTES:
            raise tree_error("the result would exceed 8 MiB", "too_large")
        parts.append(piece)
    return "".join(parts)
