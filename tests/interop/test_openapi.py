"""OpenAPI operations as tools, called through an engine against a real HTTP server on loopback."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest
from pytest_httpserver import HTTPServer
from tests.interop.openapi_shop import LENT, NOTHING, PETS, SECRETS, Shop, ok, opened, served
from werkzeug import Response

from neuroscript import ArgumentError, Engine, ExecutionPolicy, PolicyError, Recording, ToolCall, ToolFailed, bind_named
from neuroscript.interop.openapi import from_openapi


@pytest.fixture(scope="module")
def server() -> Iterator[HTTPServer]:
    """One HTTP server for all tests."""
    with served() as server:
        yield server


@pytest.fixture
def shop(server: HTTPServer) -> Shop:
    """The server without recorded requests."""
    return opened(server)


@pytest.fixture
def engine(shop: Shop) -> Iterator[Engine]:
    """An engine with the pet store at that server, and all grants."""
    tools = from_openapi(PETS, base_url=shop.url, secrets=SECRETS, private=[shop.place])
    with shop.engine(tools, "secret:read:*", secrets=LENT) as engine:
        yield engine


def with_paths(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """Return a description with these paths."""
    return {"openapi": version, "info": {"title": "t", "version": "1"}, "paths": paths, **more}


def posted(schema: Any, media_type: str = "application/json", **body: Any) -> dict[str, Any]:
    """Return the paths of one operation with a body, ``t.post_a``."""
    content = {media_type: {"schema": schema}}
    return {"/a": {"post": {"requestBody": {"required": True, **body, "content": content}, "responses": NOTHING}}}


def sent(shop: Shop, document: dict[str, Any], arguments: dict[str, Any], tool: str = "t.post_a") -> bytes:
    """Return the body that a call sends."""
    with shop.engine(from_openapi(document, base_url=shop.url, private=[shop.place])) as engine:
        engine.call_named(tool, arguments)
    return shop.requests[-1].body


def test_description_of_these_tests_is_valid() -> None:
    """According to another library."""
    models = pytest.importorskip("openapi_pydantic")

    assert "3.1.0" == models.OpenAPI.model_validate(PETS).openapi


def test_names_come_from_operation_ids_or_method_and_path(engine: Engine) -> None:
    """In the group from the title."""
    names = [name.removeprefix("pet_store.") for name in engine.tools if name.startswith("pet_store.")]

    assert {
        *("list_pets", "create_pet", "get_pet_by_id", "pets_replace", "update_pet", "delete_pet", "plant", "login"),
        *("get_pets_pet_id_photo", "put_pets_pet_id_note", "count_pets", "health", "me", "me_basic", "me_cookie"),
        *("me_query", "open_id"),
    } == set(names)


def test_query_is_coerced_and_sent(shop: Shop, engine: Engine) -> None:
    """Including names with brackets, defaults and secrets; omitted arguments are not sent."""
    shop.says(200, [{"id": 1}])

    result = engine.call_named("pet_store.list_pets", {"tags": '["a b"]', "filter_name": "x", "X-Trace": "t"})

    assert [{"id": 1}] == result
    [request] = shop.requests
    assert ("GET", "/pets?limit=20&tags=a%20b&filter%5Bname%5D=x") == (request.method, request.target)
    assert ("t", "k-2f61c0aa", "application/json") == tuple(
        request.headers[name] for name in ("X-Trace", "X-Api-Key", "Accept")
    )


def test_invalid_arguments_are_rejected_before_a_request(shop: Shop, engine: Engine) -> None:
    """With every problem, as for any tool."""
    with pytest.raises(ArgumentError) as caught:
        engine.call_named("pet_store.list_pets", {"limit": 101, "status": "lost", "other": 1})

    assert ["limit", "other", "status"] == sorted(problem.where for problem in caught.value.problems)
    assert [] == shop.requests


def test_descriptions_are_one_safe_line(engine: Engine) -> None:
    """No control character reaches a model or a terminal."""
    spec = engine.tools["pet_store.list_pets"].spec

    assert "List all pets. Those that are there, \\x1b[2J in pages." == spec.description
    assert "(deprecated)" == next(arg.description for arg in spec.args if arg.name == "status")
    assert engine.tools["pet_store.delete_pet"].spec.deprecated


def test_policy_depends_on_the_method(shop: Shop, engine: Engine) -> None:
    """The only network capability is the host of the server."""
    place, lan = shop.place, f"lan:reach:{shop.place.replace(':', chr(92) + ':')}"
    policies = {name: engine.tools[f"pet_store.{name}"].policy for name in ("list_pets", "pets_replace", "delete_pet")}

    assert {
        "list_pets": ("net", "reads", "idempotent"),
        "pets_replace": ("net", "writes", "idempotent"),
        "delete_pet": ("net", "deletes", "idempotent"),
    } == {name: tuple(policy.effects) for name, policy in policies.items()}
    assert (f"net:read:{place}", lan, "secret:read:shop-key") == policies["list_pets"].capabilities
    assert f"net:read,write:{place}" == policies["delete_pet"].capabilities[0]
    assert {
        "list_pets": (("untrusted", "private"), ("outside",)),
        "pets_replace": (("untrusted", "private"), ("outside", "storage")),
        "delete_pet": (("untrusted", "private"), ("outside", "storage")),
    } == {name: (policy.sources, policy.sinks) for name, policy in policies.items()}


def test_properties_of_a_body_are_arguments(shop: Shop, engine: Engine) -> None:
    """Except properties that the server sets, even required ones."""
    shop.says(201, {"id": 1})

    engine.call_named("pet_store.create_pet", {"name": "Ada", "price": "1.5"})

    assert ("application/json", {"name": "Ada", "price": 1.5}) == (
        shop.requests[0].headers["Content-Type"],
        json.loads(shop.requests[0].body),
    )
    names = {arg.name for arg in engine.tools["pet_store.create_pet"].spec.args}
    assert {"X-Trace", "name", "tags", "price"} == names


def test_body_distinguishes_null_from_absent(shop: Shop, engine: Engine) -> None:
    """An optional nullable property makes the body one argument."""
    shop.says(200, {})

    engine.call_named("pet_store.update_pet", {"petId": 1, "body": {"owner": None}})
    engine.call_named("pet_store.update_pet", {"petId": 1, "body": {"name": "Eve"}})

    assert [{"owner": None}, {"name": "Eve"}] == [json.loads(each.body) for each in shop.requests]
    assert "application/merge-patch+json" == shop.requests[0].headers["Content-Type"]


def test_recursive_schema_is_checked_at_every_level(shop: Shop, engine: Engine) -> None:
    """A tree is sent unchanged; a tree with a deep invalid leaf is not sent."""
    tree: dict[str, Any] = {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}
    shop.says(200, tree)

    assert tree == engine.call_named("pet_store.plant", tree)
    tree["children"][0]["children"][0] = {"value": "x"}
    with pytest.raises(ArgumentError):
        engine.call_named("pet_store.plant", tree)

    assert 1 == len(shop.requests)


def test_form_fields_follow_their_encoding(shop: Shop, engine: Engine) -> None:
    """A list is repeated, an object is JSON or follows its style; a password is a secret."""
    shop.says(200, "token", "text/plain")
    given = {"user": "a&b", "word": "ä +", "roles": ["x", "y"], "more": {"x": 1}, "codes": [1, 2]}

    assert "token" == engine.call_named("pet_store.login", given)

    pairs = parse_qsl(shop.requests[0].body.decode())
    expected = [("user", "a&b"), ("word", "ä +"), ("roles", "x"), ("roles", "y"), ("more", '{"x":1}'), ("codes", "1,2")]
    assert sorted(expected) == sorted(pairs)
    assert next(arg.secret for arg in engine.tools["pet_store.login"].spec.args if arg.name == "word")


def test_text_body_and_colliding_names(shop: Shop, engine: Engine) -> None:
    """A query parameter with the name of a path parameter gets a prefix."""
    engine.call_named("pet_store.put_pets_pet_id_note", {"petId": "7", "query_petId": "true", "body": "grün"})
    engine.call_named("pet_store.put_pets_pet_id_note", {"petId": "7"})

    first, second = shop.requests
    assert ("/pets/7/note?petId=true", "grün".encode()) == (first.target, first.body)
    assert ("/pets/7/note", b"", None) == (second.target, second.body, second.headers.get("Content-Type"))


AUTHORIZED: Final = {
    "me": ("Authorization", "Bearer t-77d1e9b2"),
    "open_id": ("Authorization", "Bearer t-77d1e9b2"),
    "me_basic": ("Authorization", f"Basic {base64.b64encode(b'ada:open sesame').decode()}"),
    "me_cookie": ("Cookie", "sid=s-51a0f3cc"),
    "list_pets": ("X-Api-Key", "k-2f61c0aa"),
}


@pytest.mark.parametrize("name", AUTHORIZED)
def test_secret_is_sent_as_its_scheme_requires(shop: Shop, engine: Engine, name: str) -> None:
    """It is not an argument."""
    shop.says(200, [])

    engine.call_named(f"pet_store.{name}", {})

    header, value = AUTHORIZED[name]
    assert value == shop.requests[0].headers[header]


def test_secret_in_the_query_is_not_an_argument(shop: Shop, engine: Engine) -> None:
    """The declared parameter is removed, and no free key can replace it."""
    shop.says(200, {})

    engine.call_named("pet_store.me_query", {"any": {"a": "1"}})
    refused = engine.execute(ToolCall("pet_store.me_query", {"any": {"api_key": "mine"}}))

    assert ["/me/query?api_key=q%26%3D95b1d0&a=1"] == [each.target for each in shop.requests]
    assert "pet_store.me_query: any: expected keys that differ from the names of other fields" == str(refused.error)


def test_echoed_secret_is_redacted(shop: Shop, engine: Engine) -> None:
    """If the server echoes it, the model does not see it."""
    shop.answer = lambda request: Response(
        json.dumps({"seen": request.headers["Authorization"]}), 200, mimetype="application/json"
    )

    result = engine.execute(ToolCall("pet_store.me", {}))

    assert "t-77d1e9b2" not in str(result.value)


def test_recordings_contain_no_secrets_of_requests(shop: Shop, tmp_path: Path) -> None:
    """Neither a password in a form nor a key in a query or a header, in any encoding."""
    tools = from_openapi(PETS, base_url=shop.url, secrets=SECRETS, private=[shop.place])
    file = tmp_path / "calls.jsonl"
    with shop.engine(tools, "secret:read:*", secrets=LENT, recording=Recording(file)) as engine:
        engine.execute(ToolCall("pet_store.login", {"user": "ada", "word": "correct horse"}))
        engine.execute(ToolCall("pet_store.me_basic"))
        engine.execute(ToolCall("pet_store.me_query"))

    reported = file.read_text()
    assert 6 == len(reported.splitlines())
    for secret in ("correct", "open", base64.b64encode(b"ada:open sesame").decode(), "95b1d0"):
        assert secret not in reported


def test_nothing_is_sent_without_the_grant_of_a_secret(shop: Shop) -> None:
    """The tool itself needs the capability."""
    tools = from_openapi(PETS, base_url=shop.url, secrets=SECRETS, private=[shop.place])
    with shop.engine(tools, secrets=LENT) as engine, pytest.raises(PolicyError) as caught:
        engine.call_named("pet_store.me", {})

    assert ("secret:read", []) == (caught.value.need, shop.requests)


def test_nothing_is_sent_to_a_host_without_a_grant(shop: Shop) -> None:
    """Nor to a private address without one."""
    document = with_paths({"/a": {"get": {"responses": NOTHING}}})
    for private, grants in (((shop.place,), ()), ((), (f"net:read:{shop.place}",))):
        tools = from_openapi(document, base_url=shop.url, private=private)
        policy = ExecutionPolicy(grants=grants)
        with Engine(toolsets=[shop.http, tools], plugins="none", policy=policy) as engine:
            result = engine.execute(ToolCall("t.get_a"))
        assert result.error is not None
        assert (result.error.code, result.error.retry) == ("policy.capability", "host")

    assert [] == shop.requests


def test_missing_http_toolset_is_an_error_for_the_host() -> None:
    """The model cannot fix it."""
    tools = from_openapi(with_paths({"/a": {"get": {"responses": NOTHING}}}), base_url="https://x.example")
    policy = ExecutionPolicy(grants=("net:read:*",))
    with Engine(toolsets=[tools], plugins="none", policy=policy) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("t.get_a")

    assert ("openapi.no_http", "host") == (caught.value.code, caught.value.retry)


STATUSES: Final = {
    400: ("400 bad request", "model"),
    401: ("401 unauthorized", "host"),
    403: ("403 forbidden", "host"),
    404: ("404 not found", "model"),
    405: ("405 method not allowed", "host"),
    408: ("408 request timeout", "later"),
    409: ("409 conflict", "model"),
    429: ("429 too many requests", "later"),
    500: ("500 internal server error", "later"),
    503: ("503 service unavailable", "later"),
    599: ("599", "later"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_error_of_a_status_contains_nothing_from_the_body(shop: Shop, engine: Engine, status: int) -> None:
    """Only the status, and who can resolve it."""
    shop.says(status, {"error": "the word of the server"})

    with pytest.raises(ToolFailed) as caught:
        engine.call("pet_store.get_pet_by_id", (7,))

    text, retry = STATUSES[status]
    assert (text, retry, "openapi.status") == (
        caught.value.text.removeprefix("the server responded with "),
        caught.value.retry,
        caught.value.code,
    )


ANSWERS: Final = {
    "map": ("get_pet_by_id", (7,), {"id": 1}, "application/json", {"id": 1}),
    "problem": ("get_pet_by_id", (7,), {"id": 1}, "application/json", {"id": 1}),
    "null": ("count_pets", (), None, "application/json", None),
    "int": ("count_pets", (), 3, "application/json", 3),
    "bytes": ("get_pets_pet_id_photo", ("7",), b"\x89PNG", "image/png", b"\x89PNG"),
    "any json": ("me", (), [1], "application/json", [1]),
    "any text": ("me", (), "hello", "text/plain", "hello"),
    "any bytes": ("me", (), b"\xff", "application/octet-stream", b"\xff"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_response_is_decoded(shop: Shop, engine: Engine, case: str) -> None:
    """By its media type, and checked against the declared type."""
    name, args, body, media_type, expected = ANSWERS[case]
    shop.says(200, body, media_type)

    assert expected == engine.call(f"pet_store.{name}", args)


UNLIKE: Final = {
    "another type": (200, [1], "application/json", "a different type than described"),
    "no json": (200, "<html>", "text/html", "a response that does not match its description"),
    "broken": (200, '{"a":', "application/vnd.x+json", "invalid JSON"),
    "twice": (200, '{"a": 1, "a": 2}', "application/vnd.x+json", "invalid JSON"),
    "nothing": (200, "", "text/plain", "an empty response"),
}


@pytest.mark.parametrize("case", UNLIKE)
def test_response_of_another_type_is_an_error(shop: Shop, engine: Engine, case: str) -> None:
    """A model does not get an HTML page in place of a pet."""
    status, body, media_type, reported = UNLIKE[case]
    shop.says(status, body, media_type)

    with pytest.raises(ToolFailed) as caught:
        engine.call("pet_store.get_pet_by_id", (7,))

    assert ("openapi.answer", "never", f"the server returned {reported}") == (
        caught.value.code,
        caught.value.retry,
        caught.value.text,
    )


def test_redirect_to_another_host_is_not_followed(shop: Shop, engine: Engine) -> None:
    """GET follows redirects within the server; POST is not repeated."""
    shop.answer = lambda request: (
        Response("[]", 200, mimetype="application/json")
        if request.path == "/there"
        else Response(status=302, headers={"Location": "/there" if "limit=1" in request.url else "http://evil.test/"})
    )

    assert [] == engine.call_named("pet_store.list_pets", {"limit": 1})
    results = [
        engine.execute(ToolCall("pet_store.list_pets", {"limit": 2})),
        engine.execute(ToolCall("pet_store.create_pet", {"name": "Ada"})),
    ]

    assert [("http.redirect", "host"), ("openapi.status", "host")] == [
        (each.error.code, each.error.retry) for each in results if each.error
    ]
    assert ["/pets?limit=1", "/there", "/pets?limit=2", "/pets"] == [each.target for each in shop.requests]


def test_too_large_response_is_an_error_for_the_host(shop: Shop) -> None:
    """A model cannot raise the limit."""
    shop.says(200, "x" * 100, "text/plain")
    document = with_paths({"/a": {"get": {"responses": ok({})}}})

    tools = from_openapi(document, base_url=shop.url, private=[shop.place], limit=50)
    with shop.engine(tools) as engine, pytest.raises(ToolFailed) as caught:
        engine.call("t.get_a")

    assert ("http.too_large", "host") == (caught.value.code, caught.value.retry)


def test_head_response_has_no_content(shop: Shop) -> None:
    """Even if the description declares one."""
    document = with_paths({"/a": {"head": {"responses": ok({"type": "object"})}}})
    tools = from_openapi(document, base_url=shop.url, private=[shop.place])

    with shop.engine(tools) as engine:
        shop.says(200, {})
        there = engine.execute(ToolCall("t.head_a"))
        shop.says(404, {})
        gone = engine.execute(ToolCall("t.head_a"))

    assert (True, None) == (there.ok, there.value)
    assert gone.error is not None
    assert ("openapi.status", "model") == (gone.error.code, gone.error.retry)


def test_only_selected_operations_are_examined() -> None:
    """A secret that other operations need may be missing."""
    tools = from_openapi(PETS, group="shop", select=["shop.login", "shop.heal*"])

    assert ["shop.login", "shop.health"] == [tool.name for tool in tools]
    assert "net:read,write:eu.pets.example:443" == tools.tools[0].policy.capabilities[0]


def test_responses_without_a_secret_are_public() -> None:
    """They come from a public address, and nothing shows that only some may read them."""
    login, health = from_openapi(PETS, group="shop", select=["shop.login", "shop.heal*"])

    assert (("untrusted",), ("outside", "storage")) == (login.policy.sources, login.policy.sinks)
    assert (("untrusted",), ("outside",)) == (health.policy.sources, health.policy.sinks)


def test_description_can_be_json_text() -> None:
    """It gives the same tools."""
    as_text = from_openapi(json.dumps(PETS), secrets=SECRETS)

    assert [tool.spec for tool in from_openapi(PETS, secrets=SECRETS)] == [tool.spec for tool in as_text]


def test_description_is_not_modified() -> None:
    """By loading its operations."""
    before = copy.deepcopy(PETS)

    from_openapi(PETS, secrets=SECRETS)

    assert before == PETS


def test_parsed_yaml_may_have_numeric_statuses(shop: Shop) -> None:
    """As YAML parsers read unquoted statuses."""
    responses: dict[Any, Any] = {200: ok({"type": "integer"})["200"]}
    tools = from_openapi(with_paths({"/a": {"get": {"responses": responses}}}), base_url=shop.url)

    assert ["int"] == [tool.spec.return_type for tool in tools]


OLD: Final = {
    "type": "object",
    "required": ["low", "none"],
    "properties": {
        "low": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
        "none": {"type": "string", "nullable": True, "enum": ["a"]},
        "id": {"type": "integer", "readOnly": True},
    },
}


def test_null_and_bounds_of_version_3_0(shop: Shop) -> None:
    """Exclusive bounds are booleans there, and null is ``nullable``."""
    document = with_paths(posted(OLD), "3.0.4")

    assert {"low": 0.5, "none": None} == json.loads(sent(shop, document, {"low": 0.5, "none": None}))
    for wrong in ({"low": 0, "none": None}, {"low": 9.5, "none": "a"}, {"low": 1, "none": "b"}):
        with pytest.raises(ArgumentError):
            sent(shop, document, wrong)
    assert 1 == len(shop.requests)


def test_rules_beyond_a_spec_are_checked(shop: Shop) -> None:
    """A pattern, a multiple and alternatives; a format only if the host says so."""
    schema = {
        "type": "object",
        "required": ["code", "at", "step", "way"],
        "properties": {
            "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
            "at": {"type": "string", "format": "date-time"},
            "step": {"type": "integer", "multipleOf": 5},
            "way": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]},
        },
    }
    good = {"code": "ABC", "at": "2026-11-21T00:00:00Z", "step": 10, "way": True}

    assert good == json.loads(sent(shop, with_paths(posted(schema)), good))
    assert {**good, "at": "soon"} == json.loads(sent(shop, with_paths(posted(schema)), {**good, "at": "soon"}))
    (checked,) = from_openapi(with_paths(posted(schema)), group="g", base_url="https://x.example", formats=True)
    with pytest.raises(ArgumentError, match="at: expected a string in the format date-time"):
        bind_named(checked.spec, {**good, "at": "soon"})
    for name, wrong in (("code", "abc"), ("step", 3), ("way", "x")):
        with pytest.raises(ArgumentError) as caught:
            sent(shop, with_paths(posted(schema)), {**good, name: wrong})
        assert [name] == [problem.where for problem in caught.value.problems]


def test_body_without_fixed_properties_is_one_argument(shop: Shop) -> None:
    """A list, and a map with arbitrary keys."""
    assert b"[1,2]" == sent(
        shop, with_paths(posted({"type": "array", "items": {"type": "integer"}})), {"body": ["1", 2]}
    )
    free = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}
    assert {"a": 1, "b": 2} == json.loads(sent(shop, with_paths(posted(free)), {"body": {"a": "1", "b": 2}}))


def test_optional_body_is_omitted(shop: Shop) -> None:
    """It is sent as soon as one property is passed."""
    document = with_paths(posted({"type": "object", "properties": {"a": {"type": "integer"}}}, required=False))

    assert [b"", b'{"a":1}'] == [sent(shop, document, {}), sent(shop, document, {"a": 1})]
