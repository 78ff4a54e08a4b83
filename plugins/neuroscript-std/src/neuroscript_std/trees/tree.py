"""A JSON value as a tree of nodes, each with its own id.

A node is the root, or has one parent, or is *detached*: it has no parent, but keeps its id and its descendants until it
is linked again or removed, or the tree is released. Linking a node removes it from its old parent, so a node never has
two parents and never contains itself.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Final

from neuroscript_std.paths import Segments, escape_name, format_path
from neuroscript_std.trees.nodes import TYPES, Node, height_of, level_of, tree_error, with_ancestors

MAX_DEPTH: Final = 64
"""Maximum nesting depth of objects and arrays, so that the JSON of a tree can be parsed again."""

MAX_NODES: Final = 200_000
"""Maximum number of nodes of a tree, including detached ones."""


class Tree:
    """All nodes of one tree. A method that raises `ToolFailed` has changed nothing.

    Args:
        value: The initial value, plain data; the ids are ``node-1`` and so on, in the order of the JSON.

    Attributes:
        lock: Hold it while you use a tree that other threads can use.
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
        """Return the node with an id, or fail with ``tree.no_node``."""
        node = self._nodes.get(id)
        if node is None:
            raise tree_error(f"this tree has no node with the id {escape_name(id)}", "no_node")
        return node

    def at(self, path: Segments) -> Node:
        """Return the node at a path from the root; an index can be a string of digits.

        Fails with ``tree.missing``, or with ``tree.wrong_type`` if the path continues into a leaf or uses a key for an
        array.
        """
        node = self.root
        for depth, segment in enumerate(path):
            found = _step(node, segment, path[:depth])
            if found is None:
                raise tree_error(f"{format_path(path[: depth + 1])}: expected a node, got nothing", "missing")
            node = found
        return node

    # Changing

    def set_value(self, id: str, value: Any) -> None:
        """Set the value of a leaf, of any leaf type; fails with ``tree.wrong_type`` or ``tree.bad_value``."""
        node = self.node(id)
        if type(node.content) in (dict, list):
            raise tree_error(f"expected a leaf node, got an {node.type}", "wrong_type")
        _refuse_container(value)
        node.content = value

    def add(self, parent_id: str, content: Any, key: str | None = None, id: str = "") -> Node:
        """Add a leaf, an empty object or an empty array to an object or to the end of an array, and return it.

        Args:
            key: The key, for an object parent only.
            id: The id of the new node; by default the next free ``node-…``.

        Fails with ``tree.no_node``, ``tree.wrong_type``, ``tree.bad_key``, ``tree.key_taken``, ``tree.id_taken``,
        ``tree.too_deep`` or ``tree.too_large``.
        """
        parent = self.node(parent_id)
        _refuse_place(parent, key)
        _refuse_deeper(level_of(parent) + height_of(content))
        node = self._new_node(content, id)
        _link(parent, key, node)
        return node

    def remove(self, id: str) -> None:
        """Remove a node and its descendants; fails with ``tree.no_node`` or ``tree.root``."""
        node = self.node(id)
        self._refuse_root(node)
        _take(node)
        for each, _ in [*node.walk()]:
            del self._nodes[each.id]

    def link(self, object_id: str, key: str, child_id: str) -> None:
        """Move a node under a key of an object; a node that was under the key is detached.

        Fails with ``tree.no_node``, ``tree.wrong_type``, ``tree.root``, ``tree.cycle`` or ``tree.too_deep``.
        """
        parent, child = self._object(object_id), self.node(child_id)
        self._refuse_root(child)
        if child in with_ancestors(parent):
            raise tree_error("a node cannot be moved into its own descendant", "cycle")
        _refuse_deeper(level_of(parent) + height_of(child))
        if parent.content.get(key) is child:
            return
        _take(child)
        if key in parent.content:
            _detach(parent.content[key])
        _link(parent, key, child)

    def unlink(self, object_id: str, key: str) -> None:
        """Detach the node under a key of an object; fails with ``tree.no_node``, ``tree.wrong_type`` or
        ``tree.no_attribute``.
        """
        parent = self._object(object_id)
        if key not in parent.content:
            raise tree_error(f"the object has no key {escape_name(key)}", "no_attribute")
        _take(parent.content[key])

    def _object(self, id: str) -> Node:
        node = self.node(id)
        if type(node.content) is not dict:
            raise tree_error(f"expected an object, got a node of type {node.type}", "wrong_type")
        return node

    def _refuse_root(self, node: Node) -> None:
        if node is self.root:
            raise tree_error("the root cannot be moved or removed", "root")

    def _grown(self, value: Any, level: int) -> Node:
        match value:
            case dict():
                _refuse_deeper(level)
                node = self._new_node({})
                for key, each in value.items():
                    _link(node, key, self._grown(each, level + 1))
            case list():
                _refuse_deeper(level)
                node = self._new_node([])
                for each in value:
                    _link(node, None, self._grown(each, level + 1))
            case _:
                node = self._new_node(value)
        return node

    def _new_node(self, content: Any, id: str = "") -> Node:
        if id in self._nodes:
            raise tree_error(f"the tree already has a node with the id {escape_name(id)}", "id_taken")
        if len(self) == MAX_NODES:
            raise tree_error(f"a tree can have at most {MAX_NODES} nodes", "too_large")
        node = Node(id or self._next_id(), content)
        self._nodes[node.id] = node
        return node

    def _next_id(self) -> str:
        """Return an unused id, which no node had before unless a caller chose it."""
        while True:
            self._made += 1
            if (id := f"node-{self._made}") not in self._nodes:
                return id


def _step(node: Node, segment: str | int, path: Segments) -> Node | None:
    match node.content, segment:
        case dict() as nodes, str():
            return nodes.get(segment)
        case list() as nodes, int() | str() if _is_index(segment):
            return nodes[int(segment)] if int(segment) < len(nodes) else None
        case _:
            expected = "an array" if isinstance(segment, int) else "an object"
            place = format_path(path) if path else "the root"
            raise tree_error(f"{place}: expected {expected}, got a node of type {node.type}", "wrong_type")


def _is_index(segment: str | int) -> bool:
    return isinstance(segment, int) or (segment.isascii() and segment.isdigit())


def _link(parent: Node, key: str | None, child: Node) -> None:
    child.parent, child.key = parent, key
    if key is None:
        parent.content.append(child)
    else:
        parent.content[key] = child


def _take(node: Node) -> None:
    """Remove a node from its parent, if it has one."""
    if node.parent is not None:
        if node.key is None:
            node.parent.content.remove(node)
        else:
            del node.parent.content[node.key]
    _detach(node)


def _detach(node: Node) -> None:
    node.parent = node.key = None


def _refuse_deeper(level: int) -> None:
    if level > MAX_DEPTH:
        raise tree_error(f"objects and arrays can be nested at most {MAX_DEPTH} levels deep", "too_deep")


def _refuse_container(value: Any) -> None:
    if TYPES.get(type(value)) in (None, "object", "array"):
        kind = type(value).__name__
        raise tree_error(f"value: expected a string, a number, a boolean or None, got {kind}", "bad_value")


def _refuse_place(parent: Node, key: str | None) -> None:
    match parent.content:
        case dict() as nodes:
            if key is None:
                raise tree_error("expected a key for a node in an object, got none", "bad_key")
            if key in nodes:
                raise tree_error(f"the object already has the key {escape_name(key)}", "key_taken")
        case list():
            if key is not None:
                raise tree_error("expected no key for a node in an array, got one", "bad_key")
        case _:
            raise tree_error(f"expected an object or an array, got a node of type {parent.type}", "wrong_type")
