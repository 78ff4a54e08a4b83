"""Find the nodes of a tree that match a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from neuroscript_std.paths import escape_name
from neuroscript_std.trees.nodes import TYPES, Node, tree_error


def find_nodes(start: Node, query: Mapping[str, Any], max_depth: int, max_results: int) -> list[str]:
    """Return the ids of the nodes that match a query, in the order of the JSON.

    Args:
        query: Conditions by the keys of `TESTS`; a node must meet all of them.
        max_depth: Levels below *start*; -1 for all.
        max_results: Maximum number of ids; -1 for all.

    Raises:
        ToolFailed: tree.bad_query.
    """
    _refuse_containers("value", query.get("value"))
    for key, value in query.get("attributes", {}).items():
        _refuse_containers(f"attributes['{escape_name(key)}']", value)
    fitting = (node.id for node, _ in start.walk(max_depth) if _fits(node, query))
    return list(fitting if max_results == -1 else islice(fitting, max_results))


def _refuse_containers(where: str, value: Any) -> None:
    if TYPES.get(type(value)) in (None, "object", "array"):
        got = type(value).__name__
        raise tree_error(f"query_map: {where}: expected a string, a number, a boolean or None, got {got}", "bad_query")


def _fits(node: Node, query: Mapping[str, Any]) -> bool:
    return all(TESTS[word](node, wanted) for word, wanted in query.items())


def _has_value(node: Node, expected: Any) -> bool:
    """Return whether a leaf has a value; numbers are compared by value, and a boolean is not a number."""
    return (
        type(node.content) not in (dict, list) and _kind(node.content) == _kind(expected) and node.content == expected
    )


def _kind(leaf: Any) -> str:
    return TYPES[type(leaf)]


def _has_attributes(node: Node, expected: Mapping[str, Any]) -> bool:
    nodes = node.content
    return type(nodes) is dict and all(key in nodes and _has_value(nodes[key], each) for key, each in expected.items())


TESTS: Final[Mapping[str, Callable[[Node, Any], bool]]] = {
    "id": lambda node, wanted: node.id == wanted,
    "type": lambda node, wanted: node.type == wanted,
    "value": _has_value,
    "attributes": _has_attributes,
    "metadata": lambda node, wanted: wanted.items() <= node.metadata.items(),
}
