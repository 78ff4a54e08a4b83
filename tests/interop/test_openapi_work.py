"""The amount of work to read a description, counted: shared parts are read once, and nothing is quadratic."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.interop.openapi_shop import NOTHING, query, ref
from tests.work import calls_in, seconds_in

from neuroscript.config.lock_file import Lock
from neuroscript.interop.openapi import from_openapi
from neuroscript.interop.openapi.document import Problems, document_of
from neuroscript.interop.openapi.names import Operation, name_operations
from neuroscript.interop.openapi.schemas import Schemas


def described(operation: dict[str, Any], count: int, **schemas: Any) -> dict[str, Any]:
    """Return a description with equal operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "t"},
        "servers": [{"url": "https://a.example"}],
        "paths": {f"/a{n}": {"get": {"responses": NOTHING, **operation}} for n in range(count)},
        "components": {"schemas": schemas},
    }


def per_operation(operation: dict[str, Any], **schemas: Any) -> int:
    """Return the number of function calls for each further operation."""
    few, many = (described(operation, count, **schemas) for count in (2, 12))
    return (calls_in(lambda: from_openapi(many)) - calls_in(lambda: from_openapi(few))) // 10


def test_shared_enum_adds_no_work_per_operation() -> None:
    """Regardless of the number of values."""
    operation = {"parameters": [query("q", ref("E"))]}
    small, large = (
        per_operation(operation, E={"type": "string", "enum": [f"v{n}" for n in range(count)]})
        for count in (10, 20_000)
    )

    assert large < small * 1.1


def test_shared_schema_is_read_once() -> None:
    """All operations have the same object."""
    parts = {f"p{n}": {"type": "string"} for n in range(1_000)}
    document = document_of(described({}, 1, S={"type": "object", "properties": parts}))
    first = Schemas(document).taken(ref("S"), "x")

    again = Schemas(document)

    assert calls_in(lambda: again.taken(ref("S"), "x")) < 100
    assert again.taken(ref("S"), "x") is first


def test_shared_schema_equals_a_fresh_one() -> None:
    """In any order of operations, including chains and cycles."""
    schemas: dict[str, Any] = {f"c{n}": {"allOf": [ref(f"c{n + 1}")]} for n in range(30)}
    schemas |= {"c30": {"type": "string"}, "loop": {"items": [ref("c29"), ref("loop")], "not": ref("loop")}}
    data = described({}, 1, **schemas)
    shared = document_of(data)
    for name in ("c20", "loop", "c0", "c10", "loop", "c29", "c1"):
        fresh, again = Schemas(document_of(data)), Schemas(shared)

        assert again.taken(ref(name), "x") == fresh.taken(ref(name), "x")
        assert again.definitions == fresh.definitions


def operations(count: int) -> Callable[[], object]:
    """Return a function that names operations with their own ids."""
    each = [Operation(f"p{n}", f"/a{n}", "GET", {}, {"operationId": f"op{n}"}) for n in range(count)]
    return lambda: name_operations(each, Problems())


def lock(count: int) -> Callable[[], object]:
    """Return a function that reads a lock file."""
    text = json.dumps({"lock": 1, "distributions": {f"d{n}": {"version": "1", "tools": {}} for n in range(count)}})
    return lambda: Lock.of_text(text)


def slots(count: int) -> Callable[[], object]:
    """Return a function that reads a path with parameters."""
    parameters = [{"name": f"n{n}", "in": "path", "schema": {"type": "string"}} for n in range(count)]
    data = described({"parameters": parameters}, 1)
    data["paths"] = {"/" + "/".join(f"{{n{n}}}" for n in range(count)): data["paths"]["/a0"]}
    return lambda: from_openapi(data, group="g")


def bodies(count: int) -> Callable[[], object]:
    """Return a function that reads a body with required properties."""
    parts = {f"n{n}": {"type": "string", "readOnly": bool(n % 2)} for n in range(count)}
    schema = {"type": "object", "properties": parts, "required": [*parts]}
    data = described({}, 1)
    post = {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": NOTHING,
    }
    data["paths"] = {"/a": {"post": post}}
    return lambda: from_openapi(data)


GROWING: Final[dict[str, tuple[Callable[[int], Callable[[], object]], int]]] = {
    "operations": (operations, 1_000),
    "distributions": (lock, 1_000),
    "places in a path": (slots, 200),
    "required properties": (bodies, 400),
}


@pytest.mark.alone
@pytest.mark.parametrize("case", GROWING)
def test_four_times_the_input_takes_about_four_times_as_long(case: str) -> None:
    """Quadratic work would take sixteen times as long."""
    made, count = GROWING[case]

    assert seconds_in(made(count * 4)) < 8 * seconds_in(made(count))
