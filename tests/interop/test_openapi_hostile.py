"""Invalid and malicious OpenAPI descriptions: every problem is reported, and nothing in a description is executed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_httpserver import HTTPServer
from tests.conftest import ALL
from tests.interop.openapi_shop import NOTHING, PETS, Shop, ok, opened, query, ref, served

from neuroscript import CallError, SpecError, ToolCall
from neuroscript.interop.openapi import LoadResult, from_openapi

URL: Final = "https://x.example"


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    """One HTTP server for all tests."""
    with served() as server:
        yield server


@pytest.fixture
def shop(server: HTTPServer) -> Shop:
    """The server without recorded requests."""
    return opened(server)


def got(operation: dict[str, Any], route: str = "/a", **more: Any) -> dict[str, Any]:
    """Return a description with one GET operation."""
    paths = {route: {"get": {"responses": NOTHING, **operation}}}
    return {"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, **more}


def taking(parameter: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a description with one operation that has one parameter."""
    return got({"parameters": [parameter]}, **more)


def posting(content: Any, **more: Any) -> dict[str, Any]:
    """Return a description with one operation that has a body."""
    document = got({}, **more)
    document["paths"]["/a"] = {"post": {"requestBody": {"content": content}, "responses": NOTHING}}
    return document


def problems(document: Any, **options: Any) -> list[str]:
    """Return the problems of a description."""
    with pytest.raises(SpecError) as caught:
        from_openapi(document, **{"base_url": URL, **options})
    return list(caught.value.problems)


A: Final = "paths['/a'].get"
FIRST: Final = f"{A}.parameters[0]"
OUT: Final = "$ref: only references within the document are followed"
SERVER: Final = "expected an absolute http or https URL without user, query and fragment; pass base_url"

BAD: Final[dict[str, tuple[Any, str]]] = {
    "a list": ([], "expected an object, got list"),
    "yaml": (
        "openapi: 3.1.0",
        "line 1, column 1 is not JSON; parse a YAML description first and pass the resulting mapping",
    ),
    "a key twice": (
        '{"a": 1, "a": 2}',
        "the JSON text contains a duplicate key; parse a YAML description first and pass the resulting mapping",
    ),
    "version 2": ({"swagger": "1.2"}, "openapi: expected version 3.1 or 3.0, or swagger: expected version 2.0"),
    "dialect": (
        got({}, jsonSchemaDialect="https://other.example/"),
        "jsonSchemaDialect: expected the dialect of OpenAPI or JSON Schema 2020-12",
    ),
    "an object": ({"openapi": "3.1.0", "x": object()}, "contains a object, which JSON cannot represent"),
    "no number": ({"openapi": "3.1.0", "x": float("nan")}, "contains a number that is not finite"),
    "no paths": ({"openapi": "3.1.0", "info": {"title": "t"}}, "paths: expected an object with paths as keys"),
    "no title": (got({}) | {"info": {}}, "info.title: missing; pass a valid group"),
    "a title without letters": (
        got({}) | {"info": {"title": "…"}},
        "info.title: … cannot be used as a name; pass a valid group",
    ),
    "a path without a slash": (got({}, "a"), "paths.a: expected a path that begins with /"),
    "dots in a path": (
        got({}, "/a/../b"),
        "paths['/a/../b'].get: the path contains characters that must be written as %XX, or dot segments",
    ),
    "a query in a path": (
        got({}, "/a?b=c"),
        "paths['/a?b=c'].get: the path contains characters that must be written as %XX, or dot segments",
    ),
    "control characters in a path": (
        got({}, "/\x1b[2J"),
        "paths['/\\x1b[2J'].get: the path contains characters that must be written as %XX, or dot segments",
    ),
    "a place without a parameter": (got({}, "/{x}"), "paths['/{x}'].get: no parameter describes x in the path"),
    "a parameter without a place": (
        taking({"name": "x", "in": "path", "required": True, "schema": {"type": "string"}}),
        f"{A}: the path does not contain the parameter x",
    ),
    "out of the document": (taking({"$ref": "https://evil.test/x.json"}), f"{FIRST}: {OUT}"),
    "a file": (taking(query("q", {"$ref": "other.json#/x"})), f"{FIRST}: {OUT}"),
    "to nothing": (
        taking({"$ref": "#/components/parameters/X"}),
        f"{FIRST}: $ref: #/components/parameters/X not found in the document",
    ),
    "round and round": (
        taking({"$ref": "#/components/parameters/X"}, components={"parameters": {"X": ref("X", "parameters")}}),
        f"{FIRST}: $ref: #/components/parameters/X refers back to itself",
    ),
    "a schema that is itself": (
        taking(query("q", ref("X")), components={"schemas": {"X": ref("X")}}),
        f"{FIRST}: $ref: #/components/schemas/X refers back to itself",
    ),
    "a schema without an end": (
        taking(query("q", {"not": ref("X")}), components={"schemas": {"X": {"allOf": [ref("X")]}}}),
        f"{A}: #: a $ref leads back to itself without reaching another value",
    ),
    "a querystring": (
        taking({"name": "q", "in": "querystring"}),
        f"{FIRST}: expected a name, and in: path, query, header or cookie",
    ),
    "a header of the client": (
        taking({"name": "Host", "in": "header", "schema": {"type": "string"}}),
        f"{FIRST}: only the HTTP client sets this header",
    ),
    "a header of two lines": (
        taking({"name": "A\r\nB", "in": "header", "schema": {"type": "string"}}),
        f"{FIRST}: its name is not a valid header name",
    ),
    "a style of another part": (
        taking(query("q", {"type": "string"}, style="simple")),
        f"{FIRST}: style: expected form or spaceDelimited or pipeDelimited or deepObject",
    ),
    "lists within lists": (
        taking(query("q", {"type": "array", "items": {"type": "array"}})),
        f"{FIRST}: no style supports nested lists or maps; use content: application/json",
    ),
    "several cookies of one name": (
        taking({"name": "c", "in": "cookie", "schema": {"type": "array"}}),
        f"{FIRST}: explode: a cookie has one value; only explode: false is supported",
    ),
    "two of one name": (
        got({"parameters": [query("ids", {"type": "string"}), query("ids[]", {"type": "string"})]}),
        f"{A}.parameters: two parameters are named query_ids: ids, ids[]",
    ),
    "a body of GET": (
        got({"requestBody": {"content": {"text/plain": {}}}}),
        f"{A}.requestBody: a GET request cannot have a body",
    ),
    "xml": (
        posting({"application/xml": {}}),
        "paths['/a'].post.requestBody.content: expected JSON, application/x-www-form-urlencoded, "
        "multipart/form-data, text or bytes, got application/xml",
    ),
    "trace": (
        got({}) | {"paths": {"/a": {"trace": {"responses": NOTHING}}}},
        "paths['/a'].trace: the http toolset does not support the method TRACE",
    ),
    "a pattern that is none": (
        taking(query("q", {"type": "string", "pattern": "("})),
        f"{A}: #/properties/q/pattern: not valid JSON Schema",
    ),
    "one name": (
        got({"operationId": "getX"}) | {"paths": {f"/{id}": {"get": {"operationId": id}} for id in ("getX", "get_x")}},
        "paths['/getX'].get: has the same name, get_x, as paths['/get_x'].get",
    ),
    "a long name": (
        got({"operationId": "x" * 129}, f"/{'y' * 125}"),
        f"paths['/{'y' * 63}…'].get: its name is longer than 128 characters; give it a shorter operationId",
    ),
    "a secret without a name": (
        got({"security": [{"a": [], "b": []}, {"c": []}]}),
        f"{A}.security: requires a and b or c; name a host secret for each, as in secrets={{'scheme': 'name'}}",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_part_is_reported_with_its_path(case: str) -> None:
    """The error contains nothing else from the description except escaped names."""
    document, problem = BAD[case]

    assert [problem] == problems(document)


SERVERS: Final = {
    "relative": ("/v1", SERVER),
    "another scheme": ("ftp://x.example/", SERVER),
    "a file": ("file:/etc/passwd", SERVER),
    "a user": ("https://ada@x.example/", SERVER),
    "a query": ("https://x.example/?a=b", SERVER),
    "dots": ("https://x.example/v1/%2E%2e/v2", "expected a URL without dot segments"),
    "no variable": ("https://{region}.example/", "region has no default"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_server_must_be_an_absolute_url(case: str) -> None:
    """Any other URL needs a base_url."""
    url, reported = SERVERS[case]
    place = "servers[0].variables" if case == "no variable" else "servers[0].url"

    assert [f"{place}: {reported}"] == problems(got({}, servers=[{"url": url}]), base_url="")


@pytest.mark.parametrize("scheme", [{"type": "mutualTLS"}, {"type": "http", "scheme": "digest"}])
def test_unsupported_security_scheme_is_rejected(scheme: dict[str, str]) -> None:
    """It is not ignored."""
    document = got({"security": [{"s": []}]}, components={"securitySchemes": {"s": scheme}})

    text = "expected apiKey, http basic or bearer, oauth2 or openIdConnect"
    assert [f"components.securitySchemes.s: {text}"] == problems(document, secrets={"s": "name"})


def test_invalid_options_of_the_host_are_reported() -> None:
    """An unknown security scheme, an infinite timeout, an invalid group."""
    assert [
        "group: a b cannot be used as a name; pass a valid group",
        "secrets: the description has no security scheme other",
        "seconds: expected 0.1 to 300.0",
    ] == problems(got({}), secrets={"other": "x"}, seconds=0, group="a b")
    assert ["select: no operation matches t.x*"] == problems(got({}), select="t.x*")


def test_all_problems_are_reported_at_once() -> None:
    """Problems of several operations, and several problems of one."""
    bad = {"parameters": [{"name": "x", "in": "path"}, query("q", {"$ref": "x.json"})]}
    paths = {"/a": {"get": bad}, "/b": {"trace": {}}}

    assert [
        f"{A}.parameters[1]: {OUT}",
        f"{A}: the path does not contain the parameter x",
        "paths['/b'].trace: the http toolset does not support the method TRACE",
    ] == problems({"openapi": "3.0.0", "info": {"title": "t"}, "paths": paths})


def test_skip_loads_the_valid_operations() -> None:
    """The result contains the reasons for the others."""
    document = got({})
    document["paths"]["/b"] = {"trace": {}, "post": {}}

    taken = from_openapi(document, base_url=URL, skip=True)

    assert isinstance(taken, LoadResult)
    assert ["t.get_a", "t.post_b"] == [tool.name for tool in taken.toolset]
    assert ("paths['/b'].trace: the http toolset does not support the method TRACE",) == taken.skipped


def test_unnamed_operation_does_not_affect_others() -> None:
    """Neither selected operations nor, with skip, the ones next to it."""
    document = got({}, "/a")
    document["paths"] |= {
        "/b": {"$ref": "other.yaml"},
        "/c": {"get": {"$ref": "#/nowhere"}, "post": {"responses": NOTHING}},
        "/d-d": {"get": {"responses": NOTHING}},
        "/d_d": {"get": {"responses": NOTHING}},
        "no": {},
    }
    reported = [
        f"paths['/b']: {OUT}",
        "paths['/c'].get: $ref: #/nowhere not found in the document",
        "paths.no: expected a path that begins with /",
    ]
    twice = "paths['/d-d'].get: has the same name, get_d_d, as paths['/d_d'].get"

    taken = from_openapi(document, base_url=URL, skip=True)

    assert isinstance(taken, LoadResult)
    assert ["t.get_a", "t.post_c"] == [tool.name for tool in taken.toolset]
    assert (*reported, twice) == taken.skipped
    assert [*reported, twice] == problems(document)
    assert ["t.get_a"] == [tool.name for tool in from_openapi(document, base_url=URL, select="t.get_a")]
    assert [twice] == problems(document, select="t.get_*")
    assert ["select: no operation matches t.x", *reported] == problems(document, select="t.x")


def test_header_names_ignore_case() -> None:
    """A header of the operation overrides the one of its path, and none is sent twice."""
    document = got({"parameters": [{"name": "x-a", "in": "header", "schema": {"type": "integer"}}]})
    document["paths"]["/a"]["parameters"] = [{"name": "X-A", "in": "header", "schema": {"type": "string"}}]
    twice = got({"parameters": [{"name": name, "in": "header", "schema": {}} for name in ("X-A", "x-a")]})

    [tool] = from_openapi(document, base_url=URL)

    assert [("x-a", "int")] == [(arg.name, str(arg.type)) for arg in tool.spec.args]
    assert [f"{A}.parameters[1]: the same parameter is listed twice"] == problems(twice)


def with_facts(root: Any, facts: Any) -> dict[str, Any]:
    """Return a description whose body has our keyword at its root and at a property."""
    properties = {"a": {"type": "string", "x-neuroscript": facts}, "b": {"type": "integer", "default": 1}}
    schema = {"type": "object", "required": ["a"], "properties": properties, "x-neuroscript": root}
    document = posting({"application/json": {"schema": schema}})
    document["paths"]["/a"]["post"]["requestBody"]["required"] = True
    return document


def test_body_can_say_only_the_types_of_its_arguments() -> None:
    """Our keyword is read in the body of `to_openapi`, and no fact that changes more than that is."""
    spec = {"name": "x", "group": "fs", "args": []}
    more = {"spec": spec, "returns": {"type": "string"}, "validate": False, "stream": True, "deprecated": "x"}
    document = with_facts({"arguments": True, **more}, {"type": "blob", **more})

    [tool] = from_openapi(document, base_url=URL)

    assert [(arg.name, str(arg.type)) for arg in tool.spec.args] == [("a", "blob"), ("b", "int")]
    assert (tool.spec.full_name, tool.spec.stream, tool.spec.deprecated) == ("t.post_a", False, "")
    assert str(tool.spec.return_type) in ("nil", "any")


FACTS: Final = ("type", "nullable", "default", "format", "minimum", "minLength", "propertyNames", "order", "arguments")


@pytest.mark.parametrize("word", FACTS)
def test_invalid_facts_are_reported(word: str) -> None:
    """They raise nothing but a `SpecError`."""
    values: list[Any] = [None, 7, "x", [7], [{}], {"a": None}, {"$ref": "#/x"}, True, {"x-neuroscript": 7}]
    for value in values:
        for document in (
            with_facts({"arguments": True}, {word: value}),
            with_facts({"arguments": True, word: value, "variadic": True}, {}),
            with_facts({"arguments": value}, {word: value}),
            with_facts(value, {word: value}),
        ):
            try:
                from_openapi(document, base_url=URL)
            except SpecError as error:
                assert error.problems


def test_internal_keywords_are_ignored() -> None:
    """A schema cannot set its own types, names or capabilities."""
    mine = {"type": "blob", "spec": {"name": "x", "group": "fs", "args": []}, "variadic": True, "returnType": "blob"}
    schema = {"type": "string", "x-neuroscript": mine}
    document = taking(query("q", schema), **{"x-neuroscript": mine})

    [tool] = from_openapi(document, base_url=URL)

    assert [("q", "string")] == [(arg.name, str(arg.type)) for arg in tool.spec.args]
    assert ("t.get_a", "nil", False) == (tool.name, str(tool.spec.return_type), tool.spec.variadic)


def test_default_with_a_line_break_is_not_sent_in_a_header(shop: Shop) -> None:
    """Header values are printable ASCII, whatever their source."""
    parameter = {"name": "X", "in": "header", "schema": {"type": "string", "default": "a\r\nEvil: 1"}}
    with shop.engine(from_openapi(taking(parameter), base_url=shop.url, private=[shop.place])) as engine:
        result = engine.execute(ToolCall("t.get_a"))

    assert "t.get_a: X: expected printable ASCII without surrounding whitespace in a header" == str(result.error)
    assert [] == shop.requests


@pytest.mark.alone
def test_reference_bomb_is_rejected_quickly() -> None:
    """In schemas, and in YAML data that repeats one part many times."""
    schemas: dict[str, Any] = {f"s{n}": {"type": "array", "prefixItems": [ref(f"s{n + 1}")] * 10} for n in range(20)}
    schemas["s20"] = {"type": "string"}
    bomb: Any = "x"
    for _ in range(20):
        bomb = [bomb] * 10
    around: dict[str, Any] = {"openapi": "3.1.0"}
    around["around"] = around
    began = time.monotonic()

    assert ["#: more than 20000 schemas after its references are expanded"] == [
        each.removeprefix("paths['/a'].post: ")
        for each in problems(posting({"application/json": {"schema": ref("s0")}}, components={"schemas": schemas}))
    ]
    size = "more than 500000 values, 16777216 characters or 100 levels"
    assert [size] == problems({"openapi": "3.1.0", "x": bomb})
    assert [size] == problems(around)
    assert [
        "the JSON text nests too deeply; parse a YAML description first and pass the resulting mapping"
    ] == problems("[" * 100_000)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_malformed_description_only_raises_spec_error() -> None:
    """For a wrong value at any place."""
    text = json.dumps({**PETS, "security": []})
    paths = list(places(json.loads(text), ()))
    for turn, other in enumerate((None, "x", [7], {"$ref": 7})):
        for path in paths if ALL else paths[turn::12]:
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
    """Yield the paths of all containers, and of every fourth other value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for index, (key, each) in enumerate(items):
        if (index + len(path)) % 4 == 0 or isinstance(each, (dict, list)):
            yield (*path, key)
        yield from places(each, (*path, key))


def test_errors_contain_no_values(shop: Shop) -> None:
    """Neither rejected arguments nor the response of a server."""
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


def test_description_cannot_ask_for_handles() -> None:
    """Handles refer to objects of this process, and mean nothing to a server."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "x-neuroscript": {"type": "handle"}}},
        "x-neuroscript": {"arguments": True},
    }
    post = {"operationId": "send", "requestBody": {"content": {"application/json": {"schema": schema}}}}
    servers = [{"url": "https://a.example"}]
    document = {"openapi": "3.1.0", "info": {"title": "t"}, "servers": servers, "paths": {"/s": {"post": post}}}

    [tool] = from_openapi(document)

    assert [str(arg.type) for arg in tool.spec.args] == ["string"]


def test_form_field_of_swagger_needs_a_name() -> None:
    """It is not sent as ``None``."""
    post = {"parameters": [{"in": "formData", "type": "string"}]}
    document = {"swagger": "2.0", "info": {"title": "t"}, "host": "a.example", "paths": {"/s": {"post": post}}}

    with pytest.raises(SpecError) as caught:
        from_openapi(document)

    assert list(caught.value.problems) == ["paths['/s'].post: parameters: a form field has no name"]
