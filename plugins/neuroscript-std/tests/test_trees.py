"""The tree data structure: its content after each change, and refused changes that have no effect."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroscript import ToolFailed
from neuroscript_std.trees.nodes import Node
from neuroscript_std.trees.queries import find_nodes
from neuroscript_std.trees.texts import json_of, parse_tree, render_tree
from neuroscript_std.trees.tree import MAX_DEPTH, MAX_NODES, Tree

SHOP = {"name": "tea", "type": "shop", "shelf": [{"price": 4}, {"price": 2.5}], "none": None}
"""node-1; name node-2, type node-3, shelf node-4 with node-5 (node-6) and node-7 (node-8), none node-9."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def change_error(change: Callable[[], object]) -> tuple[str, str, str]:
    """Return the error of a failing change."""
    with pytest.raises(ToolFailed) as caught:
        change()
    return caught.value.text, caught.value.code, caught.value.retry


def nested(levels: int, leaf: Any = 0) -> Any:
    """Return nested arrays."""
    for _ in range(levels):
        leaf = [leaf]
    return leaf


def is_whole(tree: Tree) -> bool:
    """Return whether the tree is consistent: each node has one position and is known by its id."""
    tops = [node for node in tree._nodes.values() if node.parent is None]
    seen = [node for top in tops for node, _ in top.walk()]
    places = all(child.parent is node and child.key == key for node in seen for key, child in _places(node))
    return places and tree.root in tops and {id(node) for node in seen} == {*map(id, tree._nodes.values())}


def _places(node: Node) -> list[tuple[str | None, Node]]:
    content = node.content
    return [*content.items()] if isinstance(content, dict) else [(None, child) for child in node.children]


# JSON


@given(JSON)
def test_json_round_trip(value: Any) -> None:
    """For every JSON value, with the order of keys, integers of any size, and empty containers."""
    text = json.dumps(value)

    assert json.dumps(value) == json.dumps(json.loads(json_of(parse_tree(text))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": 1, "a": {"type": "x", "id": 2}}', '{\n  "b": 1,\n  "a": {\n    "type": "x",\n    "id": 2\n  }\n}'),
        ("[{}, [], 1, 1.0, -0.0]", "[\n  {},\n  [],\n  1,\n  1.0,\n  -0.0\n]"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("1e300", "1e+300"),
        ('"\\u00e9\\ud83d\\ude00\\n"', '"é😀\\n"'),
        (" null ", "null"),
        ('{"": {"": true}}', '{\n  "": {\n    "": true\n  }\n}'),
    ],
    ids=ascii,
)
def test_json_is_indented(text: str, expected: str) -> None:
    """By two spaces; Unicode is unescaped, and ``type`` is a key like any other."""
    assert expected == json_of(parse_tree(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "invalid JSON: syntax error at line 1, column 1"),
        ('{"a": }', "invalid JSON: syntax error at line 1, column 7"),
        ('{"a": 1, "a": 2}', "invalid JSON: an object in it has a duplicate key"),
        ("[NaN]", "invalid JSON: NaN is not a JSON number"),
        ("1e999", "invalid JSON: a number in it is too large for a float"),
        ('["\\ud800"]', "invalid JSON: a string in it contains a lone surrogate"),
        ('{"\\ud800": 1}', "invalid JSON: a string in it contains a lone surrogate"),
        ("[" * 1_000_000, "invalid JSON: it is nested deeper than 64 levels"),
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_what_is_not_json_is_refused(text: str, expected: str) -> None:
    """The caller receives what is wrong and where, and nothing of the text."""
    assert (expected, "tree.not_json", "model") == change_error(lambda: parse_tree(text))


@pytest.fixture(scope="module")
def full() -> Tree:
    """A tree with as many nodes as permitted, which no test can change."""
    return Tree([0] * (MAX_NODES - 1))


@pytest.mark.slow
def test_tree_size_is_limited(full: Tree) -> None:
    """To 64 levels and 200,000 nodes."""
    too_deep = ("objects and arrays can be nested at most 64 levels deep", "tree.too_deep", "model")
    too_large = ("a tree can have at most 200000 nodes", "tree.too_large", "model")

    assert len(Tree(nested(MAX_DEPTH))) == MAX_DEPTH + 1
    assert len(full) == MAX_NODES
    assert too_deep == change_error(lambda: Tree(nested(MAX_DEPTH + 1)))
    assert too_deep == change_error(lambda: parse_tree("[" * 65 + "]" * 65))
    assert too_large == change_error(lambda: Tree([0] * MAX_NODES))


@pytest.mark.slow
def test_rendered_size_is_limited() -> None:
    """Many lines with long indents stop at 8 MiB."""
    tree = Tree(nested(60, [0] * 100_000))
    expected = ("the result would exceed 8 MiB", "tree.too_large", "model")

    assert expected == change_error(lambda: json_of(tree)) == change_error(lambda: render_tree(tree))


def test_render_shows_each_node() -> None:
    """Indented, with key, type, id, and size or value."""
    assert render_tree(Tree(SHOP)) == (
        "- (object) node-1 (attrs: 4)\n"
        '  - "name": (string) node-2: "tea"\n'
        '  - "type": (string) node-3: "shop"\n'
        '  - "shelf": (array) node-4 (len: 2)\n'
        "    - (object) node-5 (attrs: 1)\n"
        '      - "price": (number) node-6: 4\n'
        "    - (object) node-7 (attrs: 1)\n"
        '      - "price": (number) node-8: 2.5\n'
        '  - "none": (null) node-9: null\n'
    )


# Finding


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), "node-1"),
        (("name",), "node-2"),
        (("shelf", 1, "price"), "node-8"),
        (("shelf", "1", "price"), "node-8"),
        (("shelf", "01"), "node-7"),
    ],
)
def test_node_at_a_path(path: Any, expected: str) -> None:
    """By keys of objects and indexes of arrays, from the root."""
    assert expected == Tree(SHOP).at(path).id


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("city",), ("city: expected a node, got nothing", "tree.missing")),
        (("shelf", 2), ("shelf[2]: expected a node, got nothing", "tree.missing")),
        (("shelf", "price"), ("shelf: expected an object, got a node of type array", "tree.wrong_type")),
        (("name", 0), ("name: expected an array, got a node of type string", "tree.wrong_type")),
        ((0,), ("the root: expected an array, got a node of type object", "tree.wrong_type")),
        (("shelf", "٣"), ("shelf: expected an object, got a node of type array", "tree.wrong_type")),
    ],
)
def test_missing_path_is_refused(path: Any, expected: tuple[str, str]) -> None:
    """The error says where the path ends."""
    assert (*expected, "model") == change_error(lambda: Tree(SHOP).at(path))


def test_unknown_id_is_refused() -> None:
    """The error repeats it, escaped and truncated."""
    id = "\x1b[2J" + "x" * 100
    expected = f"this tree has no node with the id \\x1b[2J{'x' * 60}…"

    assert (expected, "tree.no_node", "model") == change_error(lambda: Tree(SHOP).node(id))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"id": "node-7"}, ["node-7"]),
        ({"type": "object"}, ["node-1", "node-5", "node-7"]),
        ({"type": "null"}, ["node-9"]),
        ({"value": 4.0}, ["node-6"]),
        ({"value": None}, ["node-9"]),
        ({"value": True}, []),
        ({"value": "tea", "type": "string"}, ["node-2"]),
        ({"value": "tea", "type": "number"}, []),
        ({"attributes": {"type": "shop", "none": None}}, ["node-1"]),
        ({"attributes": {"price": 2.5}}, ["node-7"]),
        ({"attributes": {"city": None}}, []),
        ({"metadata": {"a": "1"}}, ["node-5"]),
        ({"metadata": {"a": "1", "b": "2"}}, []),
    ],
    ids=str,
)
def test_find_by_query(query: dict[str, Any], expected: list[str]) -> None:
    """Nodes must meet all conditions; they are in the order of the JSON."""
    tree = Tree(SHOP)
    tree.node("node-5").metadata["a"] = "1"

    assert expected == find_nodes(tree.root, query, -1, -1)


@pytest.mark.parametrize(
    ("depth", "results", "expected"),
    [
        (-1, -1, ["node-1", "node-5", "node-7"]),
        (0, -1, ["node-1"]),
        (1, -1, ["node-1"]),
        (2, -1, ["node-1", "node-5", "node-7"]),
        (-1, 2, ["node-1", "node-5"]),
        (-1, 0, []),
        (2**63 - 1, 2**63 - 1, ["node-1", "node-5", "node-7"]),
    ],
)
def test_find_is_limited_by_depth_and_results(depth: int, results: int, expected: list[str]) -> None:
    """Levels below the start, and the maximum number of results."""
    assert expected == find_nodes(Tree(SHOP).root, {"type": "object"}, depth, results)


def test_boolean_is_not_a_number() -> None:
    """Although they are equal in Python."""
    root = Tree([1, True, 0, False]).root

    assert [["node-2"], ["node-3"], ["node-4"]] == [
        find_nodes(root, {"value": value}, -1, -1) for value in (1.0, True, 0)
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"value": [1]}, "value: expected a string, a number, a boolean or None, got list"),
        ({"attributes": {"a": {}}}, "attributes['a']: expected a string, a number, a boolean or None, got dict"),
        ({"value": b""}, "value: expected a string, a number, a boolean or None, got bytes"),
    ],
)
def test_query_for_a_container_value_is_refused(query: dict[str, Any], expected: str) -> None:
    """It could never match, which would hide a mistake."""
    assert (f"query_map: {expected}", "tree.bad_query", "model") == change_error(
        lambda: find_nodes(Tree([]).root, query, -1, -1)
    )


# Changing


@pytest.mark.parametrize("value", ["x", 1, 2.5, True, None, ""])
def test_set_value_changes_the_type(value: Any) -> None:
    """None too."""
    tree = Tree([0])

    tree.set_value("node-2", value)

    assert ([value], type(value)) == (tree.root.value, type(tree.node("node-2").content))


def test_nodes_are_added_to_objects_and_arrays() -> None:
    """Under a new key or at the end, with a generated or chosen id."""
    tree = Tree({"list": [1]})

    added = [tree.add("node-2", {}).id, tree.add("node-4", "x", "key", "mine").id, tree.add("node-1", [], "").id]

    assert ["node-4", "mine", "node-5"] == added
    assert {"list": [1, {"key": "x"}], "": []} == tree.root.value
    assert is_whole(tree)


def test_ids_are_never_reused() -> None:
    """Neither that of an existing node nor that of a removed one."""
    tree = Tree([1])
    tree.add("node-1", 2, None, "node-3")
    tree.remove("node-2")

    assert "node-4" == tree.add("node-1", 3).id


def test_remove_includes_descendants() -> None:
    """From an object and from an array; the order of the others stays."""
    tree = Tree(SHOP)

    tree.remove("node-5")
    tree.remove("node-2")

    assert {"type": "shop", "shelf": [{"price": 2.5}], "none": None} == tree.root.value
    assert len(tree) == 6
    assert is_whole(tree)


def test_link_moves_a_node() -> None:
    """The key keeps its position in the object, and the node that was there is detached."""
    tree = Tree(SHOP)

    tree.link("node-1", "name", "node-7")

    assert {"name": {"price": 2.5}, "type": "shop", "shelf": [{"price": 4}], "none": None} == tree.root.value
    assert ["name", "type", "shelf", "none"] == list(tree.root.value)
    assert (None, None, "tea") == (tree.node("node-2").parent, tree.node("node-2").key, tree.node("node-2").value)
    assert is_whole(tree)


def test_link_to_the_same_key_changes_nothing() -> None:
    """The node stays where it is."""
    tree = Tree(SHOP)

    tree.link("node-1", "type", "node-3")

    assert list(SHOP.items()) == list(tree.root.value.items())
    assert is_whole(tree)


def test_node_can_replace_its_parent() -> None:
    """The old parent is detached."""
    tree = Tree({"a": {"b": {"c": 1}}})

    tree.link("node-1", "a", "node-3")

    assert {"a": {"c": 1}} == tree.root.value
    assert {} == tree.node("node-2").value
    assert is_whole(tree)


def test_detached_node_can_be_used() -> None:
    """It can be read, changed, extended, linked again and removed."""
    tree = Tree(SHOP)

    tree.unlink("node-1", "shelf")
    tree.add("node-4", 5)
    assert "shelf" not in tree.root.value
    assert ["node-5", "node-7"] == find_nodes(tree.node("node-4"), {"type": "object"}, -1, -1)
    tree.link("node-1", "again", "node-4")
    assert [{"price": 4}, {"price": 2.5}, 5] == tree.root.value["again"]
    tree.unlink("node-1", "again")
    tree.remove("node-4")

    assert len(tree) == 4
    assert is_whole(tree)


REFUSED: dict[str, tuple[Callable[[Tree], object], str, str]] = {
    "value of an object": (lambda t: t.set_value("node-1", 1), "wrong_type", "expected a leaf node, got an object"),
    "value of an array": (lambda t: t.set_value("node-4", 1), "wrong_type", "expected a leaf node, got an array"),
    "a list as a value": (lambda t: t.set_value("node-2", [1]), "bad_value", "value: expected a string, a number, a boolean or None, got list"),
    "bytes as a value": (lambda t: t.set_value("node-2", b"x"), "bad_value", "value: expected a string, a number, a boolean or None, got bytes"),
    "added to a leaf": (lambda t: t.add("node-2", 1), "wrong_type", "expected an object or an array, got a node of type string"),
    "added without a key": (lambda t: t.add("node-1", 1), "bad_key", "expected a key for a node in an object, got none"),
    "added with a key": (lambda t: t.add("node-4", 1, "key"), "bad_key", "expected no key for a node in an array, got one"),
    "added under a taken key": (lambda t: t.add("node-1", 1, "name"), "key_taken", "the object already has the key name"),
    "added with a taken id": (lambda t: t.add("node-4", 1, None, "node-2"), "id_taken", "the tree already has a node with the id node-2"),
    "added to nothing": (lambda t: t.add("node-99", 1), "no_node", "this tree has no node with the id node-99"),
    "removed root": (lambda t: t.remove("node-1"), "root", "the root cannot be moved or removed"),
    "linked root": (lambda t: t.link("node-5", "x", "node-1"), "root", "the root cannot be moved or removed"),
    "linked into itself": (lambda t: t.link("node-5", "x", "node-5"), "cycle", "a node cannot be moved into its own descendant"),
    "linked below itself": (lambda t: t.link("node-5", "x", "node-4"), "cycle", "a node cannot be moved into its own descendant"),
    "linked to an array": (lambda t: t.link("node-4", "x", "node-2"), "wrong_type", "expected an object, got a node of type array"),
    "linked from nothing": (lambda t: t.link("node-1", "x", "node-99"), "no_node", "this tree has no node with the id node-99"),
    "unlinked from an array": (lambda t: t.unlink("node-4", "0"), "wrong_type", "expected an object, got a node of type array"),
    "unlinked nothing": (lambda t: t.unlink("node-1", "city"), "no_attribute", "the object has no key city"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "word", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_change_has_no_effect(change: Callable[[Tree], object], word: str, text: str) -> None:
    """No node is left behind."""
    tree = Tree(SHOP)

    assert (text, f"tree.{word}", "model") == change_error(lambda: change(tree))
    assert (SHOP, 9, True) == (tree.root.value, len(tree), is_whole(tree))


@pytest.mark.slow
def test_changes_respect_the_limits(full: Tree) -> None:
    """A leaf can be added at the deepest level, a container cannot; a tall node cannot be linked too deep.

    No node can be added to a full tree.
    """
    tree = Tree({"deep": nested(MAX_DEPTH - 2, {}), "high": nested(2)})
    lowest = f"node-{MAX_DEPTH}"
    high = tree.at(("high",)).id

    tree.add(lowest, 1, "leaf")
    for change in (lambda: tree.add(lowest, {}, "object"), lambda: tree.link(lowest, "high", high)):
        assert "tree.too_deep" == change_error(change)[1]
    assert "tree.too_large" == change_error(lambda: full.add("node-1", 0))[1]
    assert is_whole(tree)


@given(st.integers(0, 2**32))
def test_random_changes_keep_the_tree_consistent(seed: int) -> None:
    """Each node has one position, and the JSON can be parsed again."""
    chance, tree = random.Random(seed), Tree(SHOP)

    for _ in range(40):
        with suppress(ToolFailed):
            change_somehow(tree, chance)

    assert is_whole(tree)
    assert tree.root.value == parse_tree(json_of(tree)).root.value


def change_somehow(tree: Tree, chance: random.Random) -> None:
    """Apply a random change."""
    one, other = chance.choices([*tree._nodes], k=2)
    key = chance.choice(["a", "b", "name"])
    changes: list[Callable[[], object]] = [
        lambda: tree.add(one, chance.choice([{}, [], 1]), chance.choice([key, None])),
        lambda: tree.link(one, key, other),
        lambda: tree.unlink(one, key),
        lambda: tree.remove(one),
        lambda: tree.set_value(one, key),
    ]
    chance.choice(changes)()
