"""Descriptions that can not be taken, and those that want something else than tools: all of it is told, none of it done."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests.interop.openapi_shop import NOTHING, PETS, Shop, ok, opened, query, ref, served

from neuroscript import CallError, SpecError, ToolCall
from neuroscript.interop.openapi import Taken, from_openapi

URL: Final = "https://x.example"


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    """A server for all of them."""
    with served() as server:
        yield server


@pytest.fixture
def shop(server: HTTPServer) -> Shop:
    """That server, which was asked nothing yet."""
    return opened(server)


def got(operation: dict[str, Any], route: str = "/a", **more: Any) -> dict[str, Any]:
    """Return a description of one operation by GET."""
    paths = {route: {"get": {"responses": NOTHING, **operation}}}
    return {"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, **more}


def taking(parameter: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a description of one operation with one parameter."""
    return got({"parameters": [parameter]}, **more)


def posting(content: Any, **more: Any) -> dict[str, Any]:
    """Return a description of one operation with a body."""
    document = got({}, **more)
    document["paths"]["/a"] = {"post": {"requestBody": {"content": content}, "responses": NOTHING}}
    return document


def problems(document: Any, **options: Any) -> list[str]:
    """Return what is wrong with a description."""
    with pytest.raises(SpecError) as caught:
        from_openapi(document, **{"base_url": URL, **options})
    return list(caught.value.problems)


A: Final = "paths['/a'].get"
FIRST: Final = f"{A}.parameters[0]"
OUT: Final = "$ref: only references into the document itself are followed"
SERVER: Final = "expected a whole URL of http or https, without user, query and fragment; give base_url"

BAD: Final[dict[str, tuple[Any, str]]] = {
    "a list": ([], "expected an object, got list"),
    "yaml": (
        "openapi: 3.1.0",
        "line 1, column 1 is not JSON; a description in YAML is given as what a YAML parser made of it",
    ),
    "a key twice": (
        '{"a": 1, "a": 2}',
        "the JSON text gives one key twice; a description in YAML is given as what a YAML parser made of it",
    ),
    "version 2": ({"swagger": "2.0"}, "openapi: expected version 3.1 or 3.0, got another one, or none"),
    "dialect": (
        got({}, jsonSchemaDialect="https://other.example/"),
        "jsonSchemaDialect: only that of OpenAPI and JSON Schema 2020-12 are understood",
    ),
    "an object": ({"openapi": "3.1.0", "x": object()}, "holds a object, for which JSON has no word"),
    "no number": ({"openapi": "3.1.0", "x": float("nan")}, "holds a number that is none"),
    "no paths": ({"openapi": "3.1.0", "info": {"title": "t"}}, "paths: expected paths by name"),
    "no title": (got({}) | {"info": {}}, "info.title: there is none; give a word as group"),
    "a title without letters": (
        got({}) | {"info": {"title": "…"}},
        "info.title: … makes no name; give a word as group",
    ),
    "a path without a slash": (got({}, "a"), "paths.a: a path begins with /"),
    "dots in a path": (
        got({}, "/a/../b"),
        "paths['/a/../b'].get: its path has characters that must be written as %XX, or segments of dots",
    ),
    "a query in a path": (
        got({}, "/a?b=c"),
        "paths['/a?b=c'].get: its path has characters that must be written as %XX, or segments of dots",
    ),
    "control characters in a path": (
        got({}, "/\x1b[2J"),
        "paths['/\\x1b[2J'].get: its path has characters that must be written as %XX, or segments of dots",
    ),
    "a place without a parameter": (got({}, "/{x}"), "paths['/{x}'].get: no parameter says what x in its path is"),
    "a parameter without a place": (
        taking({"name": "x", "in": "path", "required": True, "schema": {"type": "string"}}),
        f"{A}: its path has no place for x",
    ),
    "out of the document": (taking({"$ref": "https://evil.test/x.json"}), f"{FIRST}: {OUT}"),
    "a file": (taking(query("q", {"$ref": "other.json#/x"})), f"{FIRST}: {OUT}"),
    "to nothing": (
        taking({"$ref": "#/components/parameters/X"}),
        f"{FIRST}: $ref: #/components/parameters/X names nothing in the document",
    ),
    "round and round": (
        taking({"$ref": "#/components/parameters/X"}, components={"parameters": {"X": ref("X", "parameters")}}),
        f"{FIRST}: $ref: #/components/parameters/X comes back to itself",
    ),
    "a schema that is itself": (
        taking(query("q", ref("X")), components={"schemas": {"X": ref("X")}}),
        f"{FIRST}: $ref: #/components/schemas/X comes back to itself",
    ),
    "a schema without an end": (
        taking(query("q", {"not": ref("X")}), components={"schemas": {"X": {"allOf": [ref("X")]}}}),
        f"{A}: #: a $ref comes back to itself without coming to another value",
    ),
    "a querystring": (
        taking({"name": "q", "in": "querystring"}),
        f"{FIRST}: expected a name, and in: path, query, header or cookie",
    ),
    "a header of the client": (
        taking({"name": "Host", "in": "header", "schema": {"type": "string"}}),
        f"{FIRST}: the client itself says this header",
    ),
    "a header of two lines": (
        taking({"name": "A\r\nB", "in": "header", "schema": {"type": "string"}}),
        f"{FIRST}: no header can have its name",
    ),
    "a style of another part": (
        taking(query("q", {"type": "string"}, style="simple")),
        f"{FIRST}: style: expected form or spaceDelimited or pipeDelimited or deepObject, got another one",
    ),
    "lists within lists": (
        taking(query("q", {"type": "array", "items": {"type": "array"}})),
        f"{FIRST}: no style says how a list or a map within it is written; write content: application/json",
    ),
    "several cookies of one name": (
        taking({"name": "c", "in": "cookie", "schema": {"type": "array"}}),
        f"{FIRST}: explode: a cookie has one value; only explode: false can be written",
    ),
    "two of one name": (
        got({"parameters": [query("ids", {"type": "string"}), query("ids[]", {"type": "string"})]}),
        f"{A}.parameters: two of them would be called query_ids: ids, ids[]",
    ),
    "a body of GET": (got({"requestBody": {"content": {"text/plain": {}}}}), f"{A}.requestBody: GET has no body"),
    "multipart": (
        posting({"multipart/form-data": {}}),
        "paths['/a'].post.requestBody.content: only JSON, application/x-www-form-urlencoded and text/plain can be "
        "written, not multipart/form-data",
    ),
    "trace": (
        got({}) | {"paths": {"/a": {"trace": {"responses": NOTHING}}}},
        "paths['/a'].trace: the http toolset has no method TRACE",
    ),
    "a pattern that is none": (
        taking(query("q", {"type": "string", "pattern": "("})),
        f"{A}: #/properties/q/pattern: is not what JSON Schema allows there",
    ),
    "one name": (
        got({"operationId": "getX"}) | {"paths": {f"/{id}": {"get": {"operationId": id}} for id in ("getX", "get_x")}},
        "paths['/getX'].get: would be called get_x, and so would paths['/get_x'].get",
    ),
    "a long name": (
        got({"operationId": "x" * 129}, f"/{'y' * 125}"),
        f"paths['/{'y' * 63}…'].get: its name is longer than 128 characters; give it a shorter operationId",
    ),
    "a secret that nobody named": (
        got({"security": [{"a": [], "b": []}, {"c": []}]}),
        f"{A}.security: asks for a and b or c; name a secret of the host for each, as in secrets={{'scheme': 'name'}}",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_not_be_taken_is_named_by_its_path(case: str) -> None:
    """And by nothing more of it than names, escaped."""
    document, problem = BAD[case]

    assert [problem] == problems(document)


SERVERS: Final = {
    "relative": ("/v1", SERVER),
    "another scheme": ("ftp://x.example/", SERVER),
    "a file": ("file:/etc/passwd", SERVER),
    "a user": ("https://ada@x.example/", SERVER),
    "a query": ("https://x.example/?a=b", SERVER),
    "dots": ("https://x.example/v1/%2E%2e/v2", "a segment of dots leads elsewhere"),
    "no variable": ("https://{region}.example/", "region has no default"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_a_server_is_a_whole_url(case: str) -> None:
    """What is no such URL needs a base_url."""
    url, told = SERVERS[case]
    place = "servers[0].variables" if case == "no variable" else "servers[0].url"

    assert [f"{place}: {told}"] == problems(got({}, servers=[{"url": url}]), base_url="")


@pytest.mark.parametrize("scheme", [{"type": "mutualTLS"}, {"type": "http", "scheme": "digest"}])
def test_a_scheme_that_is_not_understood_is_refused(scheme: dict[str, str]) -> None:
    """It is not passed over."""
    document = got({"security": [{"s": []}]}, components={"securitySchemes": {"s": scheme}})

    text = "only apiKey, http basic and bearer, oauth2 and openIdConnect are understood"
    assert [f"components.securitySchemes.s: {text}"] == problems(document, secrets={"s": "name"})


def test_a_host_that_names_what_is_not_there_is_told() -> None:
    """A scheme by another name, seconds without end, a group that is no word."""
    assert [
        "group: a b makes no name; give a word as group",
        "secrets: the description has no scheme other",
        "seconds: expected 0.1 to 300.0",
    ] == problems(got({}), secrets={"other": "x"}, seconds=0, group="a b")
    assert ["select: no operation has a name that t.x* matches"] == problems(got({}), select="t.x*")


def test_everything_that_is_wrong_is_told_at_once() -> None:
    """Of several operations, and of several places of one."""
    bad = {"parameters": [{"name": "x", "in": "path"}, query("q", {"$ref": "x.json"})]}
    paths = {"/a": {"get": bad}, "/b": {"trace": {}}}

    assert [
        f"{A}.parameters[1]: {OUT}",
        f"{A}: its path has no place for x",
        "paths['/b'].trace: the http toolset has no method TRACE",
    ] == problems({"openapi": "3.0.0", "info": {"title": "t"}, "paths": paths})


def test_a_host_may_have_the_rest() -> None:
    """With the reasons for what is not there."""
    document = got({})
    document["paths"]["/b"] = {"trace": {}, "post": {}}

    taken = from_openapi(document, base_url=URL, skip=True)

    assert isinstance(taken, Taken)
    assert ["t.get_a", "t.post_b"] == [tool.name for tool in taken.toolset]
    assert ("paths['/b'].trace: the http toolset has no method TRACE",) == taken.skipped


def test_a_part_that_has_no_name_keeps_nothing_else_out() -> None:
    """Neither what is selected, nor, where the rest is wanted, what stands beside it."""
    document = got({}, "/a")
    document["paths"] |= {
        "/b": {"$ref": "other.yaml"},
        "/c": {"get": {"$ref": "#/nowhere"}, "post": {"responses": NOTHING}},
        "/d-d": {"get": {"responses": NOTHING}},
        "/d_d": {"get": {"responses": NOTHING}},
        "no": {},
    }
    told = [
        f"paths['/b']: {OUT}",
        "paths['/c'].get: $ref: #/nowhere names nothing in the document",
        "paths.no: a path begins with /",
    ]
    twice = "paths['/d-d'].get: would be called get_d_d, and so would paths['/d_d'].get"

    taken = from_openapi(document, base_url=URL, skip=True)

    assert isinstance(taken, Taken)
    assert ["t.get_a", "t.post_c"] == [tool.name for tool in taken.toolset]
    assert (*told, twice) == taken.skipped
    assert [*told, twice] == problems(document)
    assert ["t.get_a"] == [tool.name for tool in from_openapi(document, base_url=URL, select="t.get_a")]
    assert [twice] == problems(document, select="t.get_*")
    assert ["select: no operation has a name that t.x matches", *told] == problems(document, select="t.x")


def test_a_header_is_the_same_in_capitals_and_small_letters() -> None:
    """That of an operation stands for that of its path, and none is sent twice."""
    document = got({"parameters": [{"name": "x-a", "in": "header", "schema": {"type": "integer"}}]})
    document["paths"]["/a"]["parameters"] = [{"name": "X-A", "in": "header", "schema": {"type": "string"}}]
    twice = got({"parameters": [{"name": name, "in": "header", "schema": {}} for name in ("X-A", "x-a")]})

    [tool] = from_openapi(document, base_url=URL)

    assert [("x-a", "int")] == [(arg.name, str(arg.type)) for arg in tool.spec.args]
    assert [f"{A}.parameters[1]: the same parameter stands there twice"] == problems(twice)


def test_no_word_of_ours_comes_from_outside() -> None:
    """A schema can not say of itself what its types, names or needs are."""
    mine = {"type": "blob", "spec": {"name": "x", "group": "fs", "args": []}, "variadic": True, "returnType": "blob"}
    schema = {"type": "string", "x-neuroscript": mine}
    document = taking(query("q", schema), **{"x-neuroscript": mine})

    [tool] = from_openapi(document, base_url=URL)

    assert [("q", "string")] == [(arg.name, str(arg.type)) for arg in tool.spec.args]
    assert ("t.get_a", "nil", False) == (tool.name, str(tool.spec.return_type), tool.spec.variadic)


def test_a_default_of_two_lines_makes_no_header(shop: Shop) -> None:
    """What stands in a header is printable ASCII, wherever it comes from."""
    parameter = {"name": "X", "in": "header", "schema": {"type": "string", "default": "a\r\nEvil: 1"}}
    with shop.engine(from_openapi(taking(parameter), base_url=shop.url, private=[shop.place])) as engine:
        result = engine.execute(ToolCall("t.get_a"))

    assert "t.get_a: X: expected printable ASCII without blanks around it, for it stands in a header" == str(
        result.error
    )
    assert [] == shop.asked


@pytest.mark.alone
def test_a_bomb_of_references_is_refused_soon() -> None:
    """In schemas, and in a YAML that names one part many times."""
    schemas: dict[str, Any] = {f"s{n}": {"type": "array", "prefixItems": [ref(f"s{n + 1}")] * 10} for n in range(20)}
    schemas["s20"] = {"type": "string"}
    bomb: Any = "x"
    for _ in range(20):
        bomb = [bomb] * 10
    around: dict[str, Any] = {"openapi": "3.1.0"}
    around["around"] = around
    began = time.monotonic()

    assert ["#: more than 20000 schemas when its references are replaced by what they name"] == [
        each.removeprefix("paths['/a'].post: ")
        for each in problems(posting({"application/json": {"schema": ref("s0")}}, components={"schemas": schemas}))
    ]
    size = "more than 500000 values, 16777216 characters or 100 levels"
    assert [size] == problems({"openapi": "3.1.0", "x": bomb})
    assert [size] == problems(around)
    assert [
        "the JSON text nests too deeply; a description in YAML is given as what a YAML parser made of it"
    ] == problems("[" * 100_000)
    assert time.monotonic() - began < 20


def test_a_broken_description_is_a_spec_error_and_nothing_else() -> None:
    """Wherever something else stands in it than should."""
    text = json.dumps({**PETS, "security": []})
    paths = list(places(json.loads(text), ()))
    for other in (None, "x", [7], {"$ref": 7}):
        for path in paths:
            document = json.loads(text)
            holder = document
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = other
            try:
                tools = from_openapi(document, base_url=URL, skip=True).toolset
            except SpecError:
                continue
            assert all(tool.name.count(".") >= 1 for tool in tools)


def places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield where something stands; of what holds nothing every fourth one."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for index, (key, each) in enumerate(items):
        if (index + len(path)) % 4 == 0 or isinstance(each, (dict, list)):
            yield (*path, key)
        yield from places(each, (*path, key))


def test_no_error_holds_a_value(shop: Shop) -> None:
    """Of the arguments that were refused, and of the answer of a server."""
    tools = from_openapi(
        got(
            {
                "responses": ok({"type": "object"}),
                "parameters": [{"name": "x", "in": "header", "schema": {"type": "string"}}],
            }
        ),
        base_url=shop.url,
        private=[shop.place],
    )
    shop.says(500, {"canary": "k8Zq"})
    with shop.engine(tools) as engine:
        for value in ("k8Zq\n", "k8Zq"):
            with pytest.raises(CallError) as caught:
                engine.call_named("t.get_a", {"x": value})
            assert "k8Zq" not in str(caught.value)
