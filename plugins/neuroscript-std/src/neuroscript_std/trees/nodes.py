"""One value of a tree: its id, its place, what it holds, and what is noted about it.

Source: upstream ``pkg/utils``; there notes and nodes shared one map, and an object's type could be lost.
"""

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
    """One value of a tree and its place.

    Attributes:
        id: What it is called in its tree.
        content: The nodes of an object by their keys, the nodes of an array in order, or the value of a leaf.
        parent: The object or array that it stands in; None for the root and a detached node.
        key: Its key in an object.
        metadata: What is noted about it, apart from what it holds.
    """

    id: str
    content: Any
    parent: Node | None = None
    key: str | None = None
    metadata: dict[str, str] = attrs.field(factory=dict)

    @property
    def type(self) -> str:
        """The JSON type of its content."""
        return TYPES[type(self.content)]

    @property
    def children(self) -> Iterable[Node]:
        """The nodes that stand in it, in order."""
        match self.content:
            case dict() as nodes:
                return nodes.values()
            case list() as nodes:
                return nodes
            case _:
                return ()

    @property
    def value(self) -> Any:
        """The plain value of it, with all that stands in it."""
        match self.content:
            case dict() as nodes:
                return {key: node.value for key, node in nodes.items()}
            case list() as nodes:
                return [node.value for node in nodes]
            case leaf:
                return leaf

    def walk(self, depth: int = -1) -> Iterator[tuple[Node, int]]:
        """Yield it and all nodes that stand in it, no deeper than *depth* levels below it unless that is -1.

        Each comes after the one that it stands in, with the number of levels between; order is that of the JSON.
        """
        waiting = [(self, 0)]
        while waiting:
            node, level = waiting.pop()
            yield node, level
            if level != depth:
                waiting += [(child, level + 1) for child in reversed([*node.children])]


def failed(text: str, word: str) -> ToolFailed:
    """Return the failure of a tool that the caller can mend, with the code ``tree.word``."""
    return ToolFailed(text, code=f"tree.{word}", retry="model")


def up(node: Node | None) -> Iterator[Node]:
    """Yield a node and all that it stands in, from the inside out."""
    while node is not None:
        yield node
        node = node.parent


def level_of(node: Node) -> int:
    """Return how many nodes it stands in, itself counted too."""
    return sum(1 for _ in up(node))


def height_of(content: Any) -> int:
    """Return how many objects and arrays stand in each other, the outermost counted too."""
    if isinstance(content, Node):
        return max(level + (type(node.content) in (dict, list)) for node, level in content.walk())
    return 1 if type(content) in (dict, list) else 0
