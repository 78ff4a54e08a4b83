"""Values survive serialization: each is decoded from the raw request by an independent implementation of its style."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.interop.openapi_shop import NOTHING, STRINGS, WORDS, Shop, ShopRequest, opened, served

from neuroscript import Engine, ToolCall
from neuroscript.interop.openapi import from_openapi

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}

WAYS: Final = [
    *(("path", style, explode) for style in ("simple", "label", "matrix") for explode in (False, True)),
    *(("query", style, explode) for style in ("form", "spaceDelimited", "pipeDelimited") for explode in (False, True)),
    ("query", "deepObject", True),
    ("header", "simple", False),
    ("header", "simple", True),
    ("cookie", "form", False),
]
KINDS: Final = {"text": TEXT, "list": STRINGS, "map": WORDS, "number": NUMBER}


def cases() -> Iterator[tuple[str, str, str, bool, str]]:
    """Yield each combination of a style and a kind of value, with a name."""
    for where, style, explode in WAYS:
        for kind in ("map",) if style == "deepObject" else KINDS:
            yield f"{where}_{style}_{explode}_{kind}".lower(), where, style, explode, kind


CASES: Final = {name: rest for name, *rest in cases()}


def described() -> dict[str, Any]:
    """Return a description with one operation for each case, with a parameter ``v``."""
    paths = {}
    for name, (where, style, explode, kind) in CASES.items():
        parameter = {"name": "v", "in": where, "required": True, "style": style, "explode": explode}
        route = f"/{name}/{{v}}/end" if where == "path" else f"/{name}"
        operation = {"operationId": name, "responses": NOTHING, "parameters": [parameter | {"schema": KINDS[kind]}]}
        paths[route] = {"get": operation}
    return {"openapi": "3.1.1", "info": {"title": "Styles", "version": "1"}, "paths": paths}


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """One server for all tests."""
    with served() as server:
        yield opened(server)


@pytest.fixture(scope="module")
def engine(shop: Shop) -> Iterator[Engine]:
    """An engine with all operations."""
    with shop.engine(from_openapi(described(), base_url=shop.url, private=[shop.place])) as engine:
        yield engine


def pairs_of(text: str, between: str) -> list[tuple[str, str]]:
    """Return ``k=v`` strings as decoded pairs."""
    return [(unquote(key), unquote(value)) for key, _, value in (each.partition("=") for each in text.split(between))]


def alternating(items: list[str]) -> dict[str, str]:
    return dict(zip(items[::2], items[1::2], strict=True))


def decoded(request: ShopRequest, where: str, style: str, explode: bool, kind: str) -> Any:
    """Return the value in a request, from the tables of OpenAPI 3.1.1 and RFC 6570."""
    match where:
        case "path":
            segments = request.path.split("/")
            assert (len(segments), segments[-1]) == (4, "end")
            return in_path(segments[2], style, explode, kind)
        case "query":
            return in_query(request.query, style, explode, kind)
        case "header":
            return split(request.headers["V"], explode, kind, str)
        case _:
            name, _, value = request.headers["Cookie"].partition("=")
            assert name == "v"
            return split(value, False, kind, unquote)


def split(text: str, explode: bool, kind: str, decode: Any) -> Any:
    """Decode simple expansion."""
    match kind:
        case "list":
            return [decode(each) for each in text.split(",")]
        case "map" if explode:
            return {decode(key): decode(value) for key, _, value in (each.partition("=") for each in text.split(","))}
        case "map":
            return alternating([decode(each) for each in text.split(",")])
        case _:
            return decode(text)


def in_path(segment: str, style: str, explode: bool, kind: str) -> Any:
    if style == "simple":
        return split(segment, explode, kind, unquote)
    if style == "label":
        assert segment[0] == "."
        return split(
            segment[1:].replace(".", ",") if explode and kind in ("list", "map") else segment[1:],
            explode,
            kind,
            unquote,
        )
    assert segment[0] == ";"
    if kind in ("list", "map") and explode:
        pairs = pairs_of(segment[1:], ";")
        return dict(pairs) if kind == "map" else [value for name, value in pairs if name == "v"]
    name, _, value = segment[1:].partition("=")
    assert name == "v"
    return split(value, False, kind, unquote)


def in_query(query: str, style: str, explode: bool, kind: str) -> Any:
    if style == "deepObject":
        pairs = pairs_of(query, "&")
        assert all(name.startswith("v[") and name.endswith("]") for name, _ in pairs)
        return {name[2:-1]: value for name, value in pairs}
    if kind in ("list", "map") and explode:
        pairs = pairs_of(query, "&")
        return dict(pairs) if kind == "map" else [value for name, value in pairs if name == "v"]
    name, _, value = query.partition("=")
    assert name == "v"
    delimiter = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}[style]
    if kind in ("list", "map"):
        items = [unquote(each) for each in value.split(delimiter)]
        return items if kind == "list" else alternating(items)
    return unquote(value)


TEXTS: Final = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.text('aB0/?#.%;,=&[]| +:"\\é', max_size=6),
    st.sampled_from(["..", ".", "%2F", "%2e%2e", "../../etc", "a b", "1,2", "null", "true"]),
)
PLAIN: Final = st.text("abcXYZ019_-~", min_size=1, max_size=6)
VALUES: Final = {
    "text": TEXTS,
    "list": st.lists(st.one_of(TEXTS, PLAIN), max_size=4),
    "map": st.dictionaries(st.one_of(TEXTS, PLAIN), st.one_of(TEXTS, PLAIN), max_size=3),
    "number": st.floats(allow_nan=False, allow_infinity=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_value_arrives_unchanged_or_is_not_sent(shop: Shop, engine: Engine, name: str, data: Any) -> None:
    """A value that its style cannot represent is rejected before a request."""
    where, style, explode, kind = CASES[name]
    value = data.draw(VALUES[kind])
    shop.requests.clear()

    result = engine.execute(ToolCall(f"styles.{name}", {"v": value}))

    if not result.ok:
        assert result.error is not None
        expected = "coercion.length" if value == "" and where == "path" else "openapi.value"
        assert ((expected, "model"), []) == ((result.error.code, result.error.retry), shop.requests)
        return
    [request] = shop.requests
    outcome = decoded(request, where, style, explode, kind)
    assert (float(outcome) if kind == "number" else outcome) == value


@pytest.mark.parametrize("name", CASES)
def test_plain_values_are_sent_in_every_style(shop: Shop, engine: Engine, name: str) -> None:
    """No style rejects letters and digits."""
    where, style, explode, kind = CASES[name]
    value = {"text": "x1", "list": ["a", "b2"], "map": {"r": "1", "g": "2"}, "number": 15}[kind]
    shop.requests.clear()

    engine.call_named(f"styles.{name}", {"v": value})

    result = decoded(shop.requests[0], where, style, explode, kind)
    assert (float(result) if kind == "number" else result) == value


JSON: Final = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


def with_body(media_type: str, schema: Any) -> dict[str, Any]:
    """Return a description with one operation that has a body."""
    body = {"required": True, "content": {media_type: {"schema": schema}}}
    paths = {"/a": {"post": {"requestBody": body, "responses": NOTHING}}}
    return {"openapi": "3.1.1", "info": {"title": "t"}, "paths": paths}


@pytest.fixture(scope="module")
def by_json(shop: Shop) -> Iterator[Engine]:
    """An engine with an operation whose body is any JSON."""
    document = with_body("application/json", {"type": "object", "additionalProperties": True})
    with shop.engine(from_openapi(document, base_url=shop.url, private=[shop.place])) as engine:
        yield engine


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(TEXTS, JSON, max_size=4))
def test_json_body_arrives_unchanged(shop: Shop, by_json: Engine, value: dict[str, Any]) -> None:
    """At every level, in UTF-8."""
    shop.requests.clear()

    by_json.call_named("t.post_a", {"body": value})

    assert value == json.loads(shop.requests[0].body.decode())


@pytest.fixture(scope="module")
def by_form(shop: Shop) -> Iterator[Engine]:
    """An engine with an operation whose body is a form with any fields."""
    field = {"anyOf": [TEXT, STRINGS]}
    document = with_body("application/x-www-form-urlencoded", {"type": "object", "additionalProperties": field})
    with shop.engine(from_openapi(document, base_url=shop.url, private=[shop.place])) as engine:
        yield engine


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(TEXTS, st.one_of(TEXTS, st.lists(TEXTS, max_size=3)), max_size=4))
def test_form_arrives_unchanged(shop: Shop, by_form: Engine, value: dict[str, Any]) -> None:
    """A list becomes several fields with its name, in order."""
    shop.requests.clear()

    by_form.call_named("t.post_a", {"body": value})

    fields = [(name, text) for name, each in value.items() for text in ([each] if isinstance(each, str) else each)]
    assert fields == parse_qsl(shop.requests[0].body.decode("ascii"), keep_blank_values=True)


TABLE: Final = {
    "path_simple_false_list": "blue,black",
    "path_simple_true_map": "R=100,G=200",
    "path_simple_false_map": "R,100,G,200",
    "path_label_false_text": ".blue",
    "path_label_false_list": ".blue,black",
    "path_label_true_list": ".blue.black",
    "path_label_true_map": ".R=100.G=200",
    "path_matrix_false_text": ";v=blue",
    "path_matrix_false_list": ";v=blue,black",
    "path_matrix_true_list": ";v=blue;v=black",
    "path_matrix_false_map": ";v=R,100,G,200",
    "path_matrix_true_map": ";R=100;G=200",
    "query_form_false_text": "v=blue",
    "query_form_true_list": "v=blue&v=black",
    "query_form_false_list": "v=blue,black",
    "query_form_false_map": "v=R,100,G,200",
    "query_form_true_map": "R=100&G=200",
    "query_spacedelimited_false_list": "v=blue%20black",
    "query_spacedelimited_false_map": "v=R%20100%20G%20200",
    "query_pipedelimited_false_list": "v=blue%7Cblack",
    "query_pipedelimited_false_map": "v=R%7C100%7CG%7C200",
    "query_deepobject_true_map": "v%5BR%5D=100&v%5BG%5D=200",
}
"""The examples of the table "Style Examples" of OpenAPI 3.1.1, with ``v`` for ``color``."""


@pytest.mark.parametrize("name", TABLE)
def test_examples_of_the_specification(shop: Shop, engine: Engine, name: str) -> None:
    """Exactly."""
    where, _, _, kind = CASES[name]
    value = {"text": "blue", "list": ["blue", "black"], "map": {"R": "100", "G": "200"}}[kind]
    shop.requests.clear()

    engine.call_named(f"styles.{name}", {"v": value})

    assert TABLE[name] == (shop.requests[0].path.split("/")[2] if where == "path" else shop.requests[0].query)


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_path_value_cannot_remove_a_segment(shop: Shop, engine: Engine, value: str) -> None:
    """Empty values and dots are not sent."""
    shop.requests.clear()

    assert not engine.execute(ToolCall("styles.path_simple_false_text", {"v": value})).ok
    assert [] == shop.requests


def test_path_value_cannot_add_a_segment(shop: Shop, engine: Engine) -> None:
    """Slashes are written as %XX, and % is encoded again."""
    shop.requests.clear()

    engine.call_named("styles.path_simple_false_text", {"v": "../a?b#c%2F"})

    assert ["/path_simple_false_text/..%2Fa%3Fb%23c%252F/end"] == [each.target for each in shop.requests]


def test_json_parameter_arrives_unchanged(shop: Shop) -> None:
    """Lists within maps have no style, and are written as JSON."""
    schema = {"type": "object", "additionalProperties": True}
    parameter = {"name": "q", "in": "query", "content": {"application/json": {"schema": schema}}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t"},
        "paths": {"/a": {"get": {"parameters": [parameter], "responses": NOTHING}}},
    }
    value = {"a": [1, {"b": "&=é"}], "c": None}
    shop.requests.clear()

    with shop.engine(from_openapi(document, base_url=shop.url, private=[shop.place])) as engine:
        engine.call_named("t.get_a", {"q": value})

    assert value == json.loads(unquote(shop.requests[0].query.removeprefix("q=")))
