"""Descriptions with wrong values in every field, and with long chains of references."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from tests.conftest import ALL
from tests.interop.openapi_shop import NOTHING, query
from tests.interop.openapi_whole import SECRETS, WHOLE

from neuroscript import SpecError
from neuroscript.interop.openapi import from_openapi

OTHERS: Final[tuple[Any, ...]] = (
    None,
    True,
    7,
    "x",
    "\ud800",
    [7],
    [{}],
    {"": None},
    {"$ref": 7},
    {"$ref": "#/"},
    [{"$ref": "#/info"}],
)
"""The values for each field; most have the wrong type."""

CHAIN: Final = 900
"""Length of a chain of references."""

KINDS: Final = ("reference", "allOf", "properties", "deep", "read only")
"""The kinds of links of a chain."""

ENDS: Final = ("value", "cycle", "nothing")
"""What the last link refers to."""

SHARE: Final = 7
"""One place of so many has a chain of one kind and end; the other kinds and ends cover its neighbors."""

A: Final = "paths['/a'].get"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a description."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def changed(path: tuple[Any, ...], other: Any, version: str = "3.1.0") -> dict[str, Any]:
    """Return the whole description with another value at a path."""
    document = json.loads(json.dumps(WHOLE | {"openapi": version}))
    at(document, path[:-1])[path[-1]] = other
    return document


def taken(document: dict[str, Any], **options: Any) -> None:
    """Load a description; the only error is a bounded `SpecError` with at least one problem."""
    try:
        from_openapi(document, **{"secrets": SECRETS, **options})
    except SpecError as error:
        assert error.problems
        assert all(error.problems)
        assert len(str(error)) < 50_000


def chained(kind: str, end: Any) -> dict[str, Any]:
    """Return parts of a description that form a chain of references of one kind."""
    ways = {
        "reference": lambda ref: ref,
        "allOf": lambda ref: {"allOf": [ref]},
        "properties": lambda ref: {"type": "object", "properties": {"a": ref}},
        "deep": lambda ref: {"items": {"items": {"items": {"items": ref}}}},
        "read only": lambda ref: {"type": "object", "properties": {"a": {"readOnly": True}, "b": ref}},
    }
    parts = {f"c{n}": ways[kind]({"$ref": f"#/x-chain/c{n + 1}"}) for n in range(CHAIN)}
    return parts | {f"c{CHAIN}": end}


def test_whole_description_is_loaded() -> None:
    """Otherwise the tests below would prove little."""
    tools = from_openapi(WHOLE, secrets=SECRETS)

    assert ["pets.get_pet", "pets.put_pets_id", "pets.add_pet", "pets.patch_x"] == [tool.name for tool in tools]


@pytest.mark.slow
@pytest.mark.parametrize("part", [each for each in WHOLE if each != "paths"] + [*WHOLE["paths"]])
def test_wrong_type_in_any_field_is_a_spec_error(part: str) -> None:
    """Never a TypeError, an AttributeError or a KeyError."""
    start = (part,) if part in WHOLE else ("paths", part)
    for index, path in enumerate([start, *places(at(WHOLE, start), start)]):
        for turn, other in enumerate(OTHERS):
            if not ALL and (index + turn) % 13:
                continue
            version = ("3.1.0", "3.0.3")[(index + turn) % 2]
            taken(changed(path, other, version), skip=bool(index % 2))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_long_chain_of_references_is_read_or_rejected(kind: str, end: str) -> None:
    """Chains are not followed recursively, wherever references are allowed."""
    objects = [path for path in places(WHOLE) if isinstance(at(WHOLE, path), dict)]
    if kind != "reference":
        objects = [each for each in objects if "schema" in map(str, each)]
    first = KINDS.index(kind) + ENDS.index(end)
    for path in objects if ALL else objects[first % SHARE :: SHARE]:
        last = {"value": at(WHOLE, path), "cycle": {"$ref": "#/x-chain/c0"}, "nothing": {"$ref": "#/x"}}[end]
        document = changed(path, {"$ref": "#/x-chain/c0"})
        document["x-chain"] = chained(kind, last)
        taken(document)


def problems(document: dict[str, Any], **options: Any) -> list[str]:
    """Return the problems of a description."""
    with pytest.raises(SpecError) as caught:
        from_openapi(document, **{"base_url": "https://a.example", **options})
    return list(caught.value.problems)


def got(operation: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a description with one GET operation."""
    paths = {"/a": {"get": {"responses": NOTHING, **operation}}}
    return {"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, **more}


def test_chain_of_references_is_limited() -> None:
    """The error contains the path of the first reference; chains of schemas have the limit of schemas."""
    ref = {"$ref": "#/x-chain/c0"}
    more = {"x-chain": chained("reference", {"type": "string"})}

    text = "$ref: more than 64 references in a chain; refer to the last"
    assert [f"{A}.parameters[0]: {text}"] == problems(got({"parameters": [ref]}, **more))
    assert [f"{A}.parameters[0]: {text}"] == problems(got({"parameters": [query("q", ref)]}, **more))
    more = {"x-chain": chained("allOf", {"type": "string"})}
    assert [f"{A}: #: more than 64 schemas in one chain of $ref, anyOf and similar keywords"] == problems(
        got({"parameters": [{"name": "q", "in": "query", "content": {"application/json": {"schema": ref}}}]}, **more)
    )
    assert [f"{A}.parameters[0]: $ref: expected at most 2000 characters"] == problems(
        got({"parameters": [{"$ref": "#/" + "x" * 2000}]})
    )


TITLES: Final = {"a list": ([7], "list"), "a number": (7, "int"), "true": (True, "bool"), "a map": ({}, "dict")}


@pytest.mark.parametrize("case", TITLES)
def test_title_of_the_wrong_type_is_reported(case: str) -> None:
    """It gives no group, so the host must pass one."""
    title, kind = TITLES[case]

    assert [f"info.title: expected a string, got {kind}; pass a valid group"] == problems(
        got({}) | {"info": {"title": title}}
    )
    named = got({}, servers=[{"url": "https://a.example"}]) | {"info": {"title": title}}
    assert ["g.get_a"] == [each.name for each in from_openapi(named, group="g")]


def test_parameter_of_the_wrong_type_is_reported() -> None:
    """Before the description is read."""
    wrong = {
        "group": 5,
        "base_url": 5,
        "select": 5,
        "secrets": 5,
        "private": 5,
        "seconds": "x",
        "limit": "x",
        "skip": 5,
    }

    assert [
        "group must be a string, or None, not int",
        "base_url must be a string, not int",
        "select must be a collection of strings, or None, not int",
        "secrets must be a mapping with string keys, or None, not int",
        "private must be a collection of strings, not int",
        "seconds must be a number, not str",
        "limit must be a number, not str",
        "skip must be True or False, not int",
    ] == problems(got({}), **wrong)
