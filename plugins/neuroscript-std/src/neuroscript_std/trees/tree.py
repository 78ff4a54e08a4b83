"""A JSON value as nodes, each with an id of its own; whatever is done to it, it stays a tree.

A node is the root, or stands in one object or one array, or is *detached*: unlinked, but kept under its id, with all
that stands in it, until it is linked again, is removed, or the tree is given up. A node that is linked somewhere leaves
the place where it stood.

Source: upstream ``pkg/tool/tree``, where a node could stand in two places, or in itself.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from neuroscript_std.paths import Segments, shown, spelt
from neuroscript_std.trees.nodes import TYPES, Node, failed, height_of, level_of, up

DEEPEST: Final = 64
"""How many objects and arrays may stand in each other, so that the JSON of a tree can be read again."""

MOST_NODES: Final = 200_000
"""How many nodes a tree may have, detached ones too."""


class Tree:
    """All nodes of one tree. Its methods raise `ToolFailed` and then have changed nothing.

    Args:
        value: What it holds at first, of exact built-ins; the ids are ``node-1`` and so on, in the order of the JSON.

    Attributes:
        lock: Whoever uses a tree that others may use holds it.
    """

    def __init__(self, value: Any) -> None:
        self.lock = Lock()
        self._nodes: dict[str, Node] = {}
        self._made = 0
        self.root = self._grown(value, 1)

    def __len__(self) -> int:
        return len(self._nodes)

    # Finding

    def node(self, id: str) -> Node:
        """Return the node of that id, or fail with ``tree.no_node``."""
        node = self._nodes.get(id)
        if node is None:
            raise failed(f"no node of this tree has the id {shown(id)}", "no_node")
        return node

    def at(self, path: Segments) -> Node:
        """Return the node at a path from the root; an index may be a text of digits.

        Fails with ``tree.missing``, or ``tree.wrong_type`` where the way leads into a leaf, or by a word into an array.
        """
        node = self.root
        for depth, segment in enumerate(path):
            found = _step(node, segment, path[:depth])
            if found is None:
                raise failed(f"{spelt(path[: depth + 1])}: expected a node, got nothing", "missing")
            node = found
        return node

    # Changing

    def set_value(self, id: str, value: Any) -> None:
        """Give a leaf another value, of any type of leaf; fails with ``tree.wrong_type`` or ``tree.bad_value``."""
        node = self.node(id)
        if type(node.content) in (dict, list):
            raise failed(f"expected a node without nodes in it, got an {node.type}", "wrong_type")
        _refuse_container(value)
        node.content = value

    def add(self, parent_id: str, content: Any, key: str | None = None, id: str = "") -> Node:
        """Add a leaf, an empty object or an empty array to an object or at the end of an array, and return it.

        Args:
            key: For an object, and only for one.
            id: The new node's id, where it is not to be the next free ``node-…``.

        Fails with ``tree.no_node``, ``tree.wrong_type``, ``tree.bad_key``, ``tree.key_taken``, ``tree.id_taken``,
        ``tree.too_deep`` or ``tree.too_large``.
        """
        parent = self.node(parent_id)
        _refuse_place(parent, key)
        _refuse_deeper(level_of(parent) + height_of(content))
        node = self._new(content, id)
        _put(parent, key, node)
        return node

    def remove(self, id: str) -> None:
        """Remove a node and all that stands in it; fails with ``tree.no_node`` or ``tree.root``."""
        node = self.node(id)
        self._refuse_root(node)
        _take(node)
        for each, _ in [*node.walk()]:
            del self._nodes[each.id]

    def link(self, object_id: str, key: str, child_id: str) -> None:
        """Take a node from where it stands and put it under a key of an object; what stood there is detached.

        Fails with ``tree.no_node``, ``tree.wrong_type``, ``tree.root``, ``tree.cycle`` or ``tree.too_deep``.
        """
        parent, child = self._object(object_id), self.node(child_id)
        self._refuse_root(child)
        if child in up(parent):
            raise failed("the object stands in the node that is to be put into it", "cycle")
        _refuse_deeper(level_of(parent) + height_of(child))
        if parent.content.get(key) is child:
            return
        _take(child)
        if key in parent.content:
            _detach(parent.content[key])
        _put(parent, key, child)

    def unlink(self, object_id: str, key: str) -> None:
        """Detach the node under a key of an object; fails with ``tree.no_node``, ``tree.wrong_type`` or
        ``tree.no_attribute``.
        """
        parent = self._object(object_id)
        if key not in parent.content:
            raise failed(f"the object has no key {shown(key)}", "no_attribute")
        _take(parent.content[key])

    def _object(self, id: str) -> Node:
        node = self.node(id)
        if type(node.content) is not dict:
            raise failed(f"expected an object, got a node of type {node.type}", "wrong_type")
        return node

    def _refuse_root(self, node: Node) -> None:
        if node is self.root:
            raise failed("the root stays where it is", "root")

    def _grown(self, value: Any, level: int) -> Node:
        match value:
            case dict():
                _refuse_deeper(level)
                node = self._new({})
                for key, each in value.items():
                    _put(node, key, self._grown(each, level + 1))
            case list():
                _refuse_deeper(level)
                node = self._new([])
                for each in value:
                    _put(node, None, self._grown(each, level + 1))
            case _:
                node = self._new(value)
        return node

    def _new(self, content: Any, id: str = "") -> Node:
        if id in self._nodes:
            raise failed(f"the tree has a node with the id {shown(id)}", "id_taken")
        if len(self) == MOST_NODES:
            raise failed(f"a tree has at most {MOST_NODES} nodes", "too_large")
        node = Node(id or self._next_id(), content)
        self._nodes[node.id] = node
        return node

    def _next_id(self) -> str:
        """Return an id that no node has, and that no node has had unless somebody chose it."""
        while True:
            self._made += 1
            if (id := f"node-{self._made}") not in self._nodes:
                return id


def _step(node: Node, segment: str | int, way: Segments) -> Node | None:
    match node.content, segment:
        case dict() as nodes, str():
            return nodes.get(segment)
        case list() as nodes, int() | str() if _is_index(segment):
            return nodes[int(segment)] if int(segment) < len(nodes) else None
        case _:
            wanted = "an array" if isinstance(segment, int) else "an object"
            place = spelt(way) if way else "the root"
            raise failed(f"{place}: expected {wanted}, got a node of type {node.type}", "wrong_type")


def _is_index(segment: str | int) -> bool:
    return isinstance(segment, int) or (segment.isascii() and segment.isdigit())


def _put(parent: Node, key: str | None, child: Node) -> None:
    child.parent, child.key = parent, key
    if key is None:
        parent.content.append(child)
    else:
        parent.content[key] = child


def _take(node: Node) -> None:
    """Take a node out of what it stands in, if it stands in anything."""
    if node.parent is not None:
        if node.key is None:
            node.parent.content.remove(node)
        else:
            del node.parent.content[node.key]
    _detach(node)


def _detach(node: Node) -> None:
    node.parent = node.key = None


def _refuse_deeper(level: int) -> None:
    if level > DEEPEST:
        raise failed(f"objects and arrays stand in each other at most {DEEPEST} levels deep", "too_deep")


def _refuse_container(value: Any) -> None:
    if TYPES.get(type(value)) in (None, "object", "array"):
        kind = type(value).__name__
        raise failed(f"value: expected a text, a number, a truth value or None, got {kind}", "bad_value")


def _refuse_place(parent: Node, key: str | None) -> None:
    match parent.content:
        case dict() as nodes:
            if key is None:
                raise failed("an object holds each node under a key, got none", "bad_key")
            if key in nodes:
                raise failed(f"the object has a key {shown(key)}", "key_taken")
        case list():
            if key is not None:
                raise failed("an array has no keys, got one", "bad_key")
        case _:
            raise failed(f"expected an object or an array, got a node of type {parent.type}", "wrong_type")
