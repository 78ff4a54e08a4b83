"""The tree toolset, called through an engine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from neuroscript import ArgumentError, Engine, ToolFailed


@pytest.fixture
def tree(engine: Engine) -> Callable[..., Any]:
    """Takes JSON, and returns a function that calls the tree tools with that tree."""

    def loaded(text: str) -> Callable[..., Any]:
        handle = engine.call("tree.loadjson", [text])
        return lambda tool, *args: engine.call(f"tree.{tool}", [handle, *args])

    return loaded


def refused(call: Callable[..., Any], *args: Any) -> tuple[str, str, str]:
    """Return the error of a failing call."""
    with pytest.raises(ToolFailed) as caught:
        call(*args)
    return str(caught.value), caught.value.code, caught.value.retry


def test_changes_persist_between_calls(tree: Callable[..., Any]) -> None:
    """Each call sees the changes of the previous ones, and so does the JSON."""
    shop = tree('{"type": "shop", "shelf": [{"price": 4}], "owner": null}')

    shelf = shop("getnodebypath", "shelf")["id"]
    tea = shop("addchildnode", shelf, None, "object")
    shop("addchildnode", tea, None, "number", 2.5, "price")
    shop("setvalue", shop("getnodebypath", "owner")["id"], "Ada")
    shop("setobjectattribute", shop("getroot")["id"], "best", tea)
    shop("setnodemetadata", tea, "seen", "today")
    shop("removenode", shop("getnodebypath", "shelf.0")["id"])

    assert {"type": "shop", "shelf": [], "owner": "Ada", "best": {"price": 2.5}} == json.loads(shop("tojson"))
    assert [tea] == shop("findnodes", "node-1", {"metadata": {"seen": "today"}})


def test_metadata_is_separate_from_values(tree: Callable[..., Any]) -> None:
    """A metadata key of an object is neither one of its keys nor in the JSON."""
    note = tree('{"a": 1}')

    note("setnodemetadata", "node-1", "a", "about")
    root = note("getroot")

    assert ({"a": "node-2"}, {"a": "about"}) == (root["attributes"], root["metadata"])
    assert {"a": 1} == json.loads(note("tojson"))
    assert {"a": "about"} == note("getnodemetadata", "node-1")
    note("removenodemetadata", "node-1", "a")
    assert {} == note("getnodemetadata", "node-1")


def test_results_are_copies(tree: Callable[..., Any]) -> None:
    """Changing a result does not change the tree."""
    mine = tree("[]")

    mine("getroot")["metadata"]["a"] = "b"
    mine("getnodemetadata", "node-1")["a"] = "b"

    assert {} == mine("getnodemetadata", "node-1")


def test_detached_node_has_no_parent(tree: Callable[..., Any]) -> None:
    """It has no key either, and can be read and linked again by its id."""
    mine = tree('{"a": {"b": 1}, "c": {}}')

    mine("removeobjectattribute", "node-1", "a")
    unlinked = mine("getnode", "node-2")

    assert (None, None) == (unlinked["parent_id"], unlinked["parent_attribute_key"])
    assert mine("getparent", "node-2") is None
    assert {"c": {}} == json.loads(mine("tojson"))
    mine("setobjectattribute", "node-4", "a", "node-2")
    assert {"c": {"a": {"b": 1}}} == json.loads(mine("tojson"))


@pytest.mark.parametrize(("path", "expected"), [("", "node-1"), (["a.b"], "node-2"), (["a.b", 0], "node-3")])
def test_path_can_be_a_list(tree: Callable[..., Any], path: Any, expected: str) -> None:
    """So keys can contain dots; an empty path is the root."""
    assert expected == tree('{"a.b": [1]}')("getnodebypath", path)["id"]


def test_large_integers_are_preserved_in_json(tree: Callable[..., Any]) -> None:
    """Integers of more than 64 bits cannot be returned as a value."""
    mine = tree(f"[{2**63 - 1}, {2**63}, {-(2**63)}, {-(2**63) - 1}]")
    text = "tree.getnode: the integer has more than 64 bits; use tree.tojson"

    assert [2**63 - 1, 2**63, -(2**63), -(2**63) - 1] == json.loads(mine("tojson"))
    assert [2**63 - 1, -(2**63)] == [mine("getnode", id)["value"] for id in ("node-2", "node-4")]
    for id in ("node-3", "node-5"):
        assert (text, "tree.big_number", "model") == refused(mine, "getnode", id)


@pytest.mark.parametrize(
    ("node_type", "value", "text"),
    [
        ("string", None, "expected a value of that type for a node of type string, got None"),
        ("string", 1, "expected a value of that type for a node of type string, got int"),
        ("number", True, "expected a value of that type for a node of type number, got bool"),
        ("boolean", 1, "expected a value of that type for a node of type boolean, got int"),
        ("null", 0, "expected a value of that type for a node of type null, got int"),
        ("object", {"a": 1}, "expected no value for a node of type object, got dict"),
        ("array", "x", "expected no value for a node of type array, got str"),
        ("number", [1], "expected a value of that type for a node of type number, got list"),
    ],
)
def test_value_must_match_the_node_type(tree: Callable[..., Any], node_type: str, value: Any, text: str) -> None:
    """Otherwise no node is added."""
    mine = tree("[]")

    reported = refused(mine, "addchildnode", "node-1", None, node_type, value)

    assert (f"tree.addchildnode: value: {text}", "tree.bad_value", "model") == reported
    assert [] == mine("getchildren", "node-1")


def test_queries_are_validated(tree: Callable[..., Any]) -> None:
    """An unknown key or an empty query is refused before the search."""
    for query, code in (({"name": "x"}, "arg.unknown"), ({}, "coercion.length"), ({"type": "file"}, "coercion.choice")):
        with pytest.raises(ArgumentError) as caught:
            tree("[]")("findnodes", "node-1", query)
        assert (code, "model") == (caught.value.code, caught.value.retry)


def test_handle_of_another_kind_is_refused(engine: Engine) -> None:
    """As is an unknown handle."""
    expected = "tree.getroot: this handle is unknown or was released"

    assert (expected, "handle.unknown", "model") == refused(engine.call, "tree.getroot", ["tree-0"])


@pytest.fixture
def _hurry() -> Iterator[None]:
    """Make threads switch a thousand times as often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_hurry")
def test_tree_is_thread_safe(tree: Callable[..., Any]) -> None:
    """Four threads add and read: every node exists once, and no thread sees an unfinished change."""
    mine, failures = tree("{}"), []

    def work(worker: int) -> None:
        try:
            for count in range(100):
                mine("addchildnode", "node-1", None, "null", None, f"{worker}-{count}")
                mine("tojson")
        except ToolFailed as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert [] == failures
    assert 400 == len(json.loads(mine("tojson"))) == len(set(mine("getroot")["attributes"].values()))
