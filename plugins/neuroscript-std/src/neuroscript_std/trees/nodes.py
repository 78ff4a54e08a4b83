"""A node of a tree: its id, content, parent and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from neuroscript import ToolFailed

TYPES: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

JSON_TYPES: Final = tuple(dict.fromkeys(TYPES.values()))


@attrs.define(eq=False)
class Node:
    """One value of a tree.

    Attributes:
        id: The id of the node, unique in its tree.
        content: The child nodes of an object by key, the child nodes of an array in order, or the value of a leaf.
        parent: The object or array that contains the node; None for the root and a detached node.
        key: The key of the node, if its parent is an object.
        metadata: Strings by key, separate from the content.
    """

    id: str
    content: Any
    parent: Node | None = None
    key: str | None = None
    metadata: dict[str, str] = attrs.field(factory=dict)

    @property
    def type(self) -> str:
        """The JSON type of the content."""
        return TYPES[type(self.content)]

    @property
    def children(self) -> Iterable[Node]:
        """The child nodes, in order."""
        match self.content:
            case dict() as nodes:
                return nodes.values()
            case list() as nodes:
                return nodes
            case _:
                return ()

    @property
    def value(self) -> Any:
        """The plain value of the node, including its descendants."""
        match self.content:
            case dict() as nodes:
                return {key: node.value for key, node in nodes.items()}
            case list() as nodes:
                return [node.value for node in nodes]
            case leaf:
                return leaf

    def walk(self, depth: int = -1) -> Iterator[tuple[Node, int]]:
        """Yield the node and its descendants with their levels, down to *depth* levels; -1 for all.

        A node comes after its parent; the order is that of the JSON.
        """
        waiting = [(self, 0)]
        while waiting:
            node, level = waiting.pop()
            yield node, level
            if level != depth:
                waiting += [(child, level + 1) for child in reversed([*node.children])]


def tree_error(text: str, word: str) -> ToolFailed:
    """Return a tool failure that the caller can fix, with the code ``tree.word``."""
    return ToolFailed(text, code=f"tree.{word}", retry="model")


def with_ancestors(node: Node | None) -> Iterator[Node]:
    """Yield a node and its ancestors, innermost first."""
    while node is not None:
        yield node
        node = node.parent


def level_of(node: Node) -> int:
    """Return the number of ancestors of a node, including itself."""
    return sum(1 for _ in with_ancestors(node))


def height_of(content: Any) -> int:
    """Return the nesting depth of objects and arrays, including the outermost."""
    if isinstance(content, Node):
        return max(level + (type(node.content) in (dict, list)) for node, level in content.walk())
    return 1 if type(content) in (dict, list) else 0
