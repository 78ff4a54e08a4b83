"""Tools as an HTTP service: its document, its responses, and the way back through `from_openapi`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
from openapi_pydantic import OpenAPI
from tests.interop.mcp_place import until
from tests.interop.openapi_place import Place, serving

from neuroscript import (
    ArgSpec,
    ArgType,
    Content,
    Engine,
    ExecutionPolicy,
    Handle,
    Host,
    Image,
    Limits,
    MemoryAudit,
    Runtime,
    SpecError,
    Spill,
    ToolFailed,
    ToolPolicy,
    Toolset,
    ToolSpec,
    to_openapi,
)
from neuroscript.coercion.plain_data import to_plain
from neuroscript.interop.http_server.principals import Principal, StaticTokens
from neuroscript.interop.http_server.request_session import uses_handles
from neuroscript.interop.openapi import app, from_openapi
from neuroscript_http.toolset import toolset as http

TOKEN: Final = "s3cret-tok3n"
GIF: Final = b"GIF89a\x01\x00"
t = Toolset("t")
started, stopped = Event(), Event()


@t.tool
def shout(text: str, times: int = 1, mark: str | None = "!") -> str:
    """Repeat a text in capitals. The mark comes last.

    Args:
        text: What to shout.
        times: How often.
        mark: What ends it.
    """
    return " ".join([text.upper()] * times) + (mark or ".")


@t.tool
def image(kind: str = "gif") -> bytes:
    """Return bytes."""
    return GIF if kind == "gif" else b"<html>"


@t.tool
def nothing() -> None:
    """Do nothing."""


@t.tool
def fail(how: str) -> str:
    """Fail."""
    if how == "bug":
        raise RuntimeError("s3cret")
    raise (
        ToolFailed("not now", code="t.later", retry="later")
        if how == "later"
        else ToolFailed("not so", code="t.no", retry="model")
    )


@t.tool
def keep(rt: Runtime, value: int) -> int:
    """Set a variable."""
    rt.set_var("value", value)
    return value


@t.tool
def ask(rt: Runtime) -> str:
    """Ask the user."""
    return rt.prompt_user("Well? ")


@t.tool
def look(size: int = 0) -> Content:
    """Return content."""
    blocks = ("a text", Image(GIF, "image/gif"))
    return Content(*blocks, structured={"size": size}) if size else Content(*blocks)


def count(rt: Runtime, to: int) -> Iterator[int]:
    yield from range(to)


def gather(rt: Runtime, first: str, *rest: int) -> list[Any]:
    return [first, *rest]


async def wait(rt: Runtime) -> str:
    started.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        stopped.set()
        raise
    return "late"


def opened(rt: Runtime) -> Handle:
    return rt.handles.new(object(), "thing")


def refused(rt: Runtime) -> None:
    pass


t.add(ToolSpec("count", "t", (ArgSpec("to", "int", minimum=0),), return_type="int", stream=True), count)
t.add(ToolSpec("gather", "t", (ArgSpec("first", "string"), ArgSpec("rest", "int")), variadic=True), gather)
t.add(ToolSpec("wait", "t", return_type="string"), wait)
t.add(ToolSpec("open", "t", return_type="handle"), opened)
t.add(ToolSpec("approved", "t", return_type="nil"), refused, ToolPolicy(requires_approval=True))
t.add(
    ToolSpec("read", "t.deep", (ArgSpec("path", "string"),)),
    lambda rt, path: path,
    ToolPolicy(capabilities=("fs:read:{path}",)),
)
t.add(ToolSpec("login", "t", (ArgSpec("word", "string", secret=True, default="sesame"),)), lambda rt, word: len(word))


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with Engine(plugins="none", toolsets=[t], policy=ExecutionPolicy(deny=("t.denied",))) as engine:
        with serving(engine) as place:
            yield place


# Results


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        ("/t/shout", {"text": "tea", "times": 2}, "TEA TEA!"),
        ("/t/shout", {"text": "tea", "mark": None}, "TEA."),
        ("/t/count", {"to": 3}, [0, 1, 2]),
        ("/t/gather", {"first": "a", "rest": [1, 2]}, ["a", 1, 2]),
        ("/t/look", {"size": 4}, {"size": 4}),
    ],
)
def test_value_is_json(place: Place, path: str, arguments: Any, expected: Any) -> None:
    """A stream is a list, and content with structured content is that."""
    answer = place.call(path, arguments)

    assert (answer.status, answer.json) == (200, expected)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_bytes_are_media(place: Place) -> None:
    """A media type comes from the bytes, and never from what could be a page."""
    gif, page = place.call("/t/image", {}), place.call("/t/image", {"kind": "page"})

    assert (gif.headers["content-type"], gif.body) == ("image/gif", GIF)
    assert (page.headers["content-type"], page.body) == ("application/octet-stream", b"<html>")


def test_nothing_has_no_content(place: Place) -> None:
    """The body may be missing too if no argument is required."""
    for body in (None, b"{}"):
        answer = place.send("POST", "/t/nothing", body, **({"content_type": "application/json"} if body else {}))

        assert (answer.status, answer.body) == (204, b"")


def test_content_without_structure_is_that_of_mcp(place: Place) -> None:
    """All of its blocks are there."""
    kinds = [block["type"] for block in place.call("/t/look", {}).json["content"]]

    assert kinds == ["text", "image"]


# Problems

ARGUMENTS: Final = {
    "type": ({"text": 7}, "schema.type", 'text: expected type ["string"], got int'),
    "text for a number": (
        {"text": "a", "times": "2"},
        "schema.type",
        'times: expected type ["null", "integer"], got str of length 1',
    ),
    "missing": ({}, "schema.required", "expected the key text, got dict of length 0"),
    "unknown": (
        {"text": "a", "x": 1},
        "schema.additionalProperties",
        "expected no additional keys, got dict of length 2",
    ),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_the_document_does_not_describe(place: Place, case: str) -> None:
    """They are refused even where the engine would convert them, with each problem."""
    arguments, code, text = ARGUMENTS[case]

    answer = place.call("/t/shout", arguments)

    assert answer.problem == (400, code, "model", f"t.shout: {text}")
    assert [each["code"] for each in answer.json["problems"]] == [code]


CALLS: Final = {
    "no tool": (
        "/t/nope",
        {},
        (404, "tool.not_found", "model", "no tool has this path; /openapi.json lists the paths"),
    ),
    "other spelling": (
        "/T/shout",
        {"text": "a"},
        (404, "tool.not_found", "model", "no tool has this path; /openapi.json lists the paths"),
    ),
    "handle": (
        "/t/open",
        {},
        (422, "openapi.stateless", "host", "t.open: works with handles, but requests of this service have no session"),
    ),
    "variable": (
        "/t/keep",
        {"value": 1},
        (422, "openapi.stateless", "host", "t.keep: cannot set variables: requests of this service have no session"),
    ),
    "prompt": ("/t/ask", {}, (422, "prompt.noninteractive", "host", "t.ask: cannot ask the user: a service has none")),
    "capability": ("/t/deep/read", {"path": "a"}, (403, "policy.capability", "host", "t.deep.read: needs fs:read:a")),
    "bug": ("/t/fail", {"how": "bug"}, (500, "tool.failed", "never", "t.fail: the tool failed (RuntimeError)")),
    "later": ("/t/fail", {"how": "later"}, (503, "t.later", "later", "t.fail: not now")),
    "no": ("/t/fail", {"how": "no"}, (422, "t.no", "model", "t.fail: not so")),
}


@pytest.mark.parametrize("case", CALLS)
def test_failed_call_is_a_problem(place: Place, case: str) -> None:
    """It has our code and retry word, and no argument value or internal message."""
    path, arguments, expected = CALLS[case]

    assert place.call(path, arguments).problem == expected


REQUESTS: Final = {
    "method": ("GET", "/t/shout", None, {}, (405, "openapi.request", "model", "expected POST")),
    "method of the document": ("POST", "/openapi.json", b"", {}, (405, "openapi.request", "model", "expected GET or HEAD")),
    "media type": ("POST", "/t/shout", b"{}", {"content_type": "text/plain"}, (415, "openapi.request", "model", "expected a body of type application/json")),
    "no media type": ("POST", "/t/shout", b"{}", {}, (415, "openapi.request", "model", "expected a body of type application/json")),
    "not JSON": ("POST", "/t/shout", b"{", {"content_type": "application/json"}, (400, "openapi.request", "model", "line 1, column 2 is not JSON")),
    "not UTF-8": ("POST", "/t/shout", b"\xff", {"content_type": "application/json"}, (400, "openapi.request", "model", "expected UTF-8")),
    "a list": ("POST", "/t/shout", b"[]", {"content_type": "application/json"}, (400, "openapi.request", "model", "expected an object with the arguments by name, got list")),
    "another website": ("POST", "/t/shout", b"{}", {"origin": "https://evil.example"}, (403, "openapi.request", "host", "pages of this origin may not access this server")),
    "another host": ("POST", "/t/shout", b"{}", {"host": "evil.example"}, (421, "openapi.request", "host", "this server only accepts requests from its own machine")),
}  # fmt: skip


@pytest.mark.parametrize("case", REQUESTS)
def test_invalid_request_is_a_problem(place: Place, case: str) -> None:
    """This includes those that the guard refuses."""
    method, path, body, headers, expected = REQUESTS[case]

    assert place.send(method, path, body, **headers).problem == expected


def test_refused_method_lists_the_allowed_ones(place: Place) -> None:
    """RFC 9110 requires it."""
    assert place.send("PUT", "/t/shout").headers["allow"] == "POST"
    assert place.send("PUT", "/openapi.json").headers["allow"] == "GET, HEAD"


def test_limits_and_approvals() -> None:
    """A call that needs an approval is refused where no one can be asked."""
    policy = ExecutionPolicy(limits=Limits(calls=1))
    with Engine(plugins="none", toolsets=[t], policy=policy) as engine, serving(engine, most_bytes=100) as place:
        large = place.call("/t/shout", {"text": "a" * 200})
        denied = place.call("/t/approved", {})
        first, second = (place.call("/t/shout", {"text": "a"}) for _ in range(2))

    assert large.problem == (413, "openapi.request", "model", "expected a body of at most 100 bytes")
    assert denied.problem[:3] == (404, "tool.not_found", "model")
    assert (first.status, second.problem[:3]) == (200, (429, "limit.calls", "host"))


def test_timeout_is_504() -> None:
    """The policy of a tool limits its time."""
    slow = Toolset("slow")
    slow.add(ToolSpec("wait", "slow"), wait, ToolPolicy(timeout=0.05))
    with Engine(plugins="none", toolsets=[slow]) as engine, serving(engine) as place:
        answer = place.call("/slow/wait", {})

    assert answer.problem[:3] == (504, "call.timeout", "later")


def test_slow_and_large_bodies() -> None:
    """The guard limits their time, and the service their size, also without a declared length."""
    with Engine(plugins="none", toolsets=[t]) as engine, serving(engine, slowest=0.2, most_bytes=10) as place:
        slow = raw(place, b"Content-Length: 5\r\n\r\n{")
        large = raw(place, b"Transfer-Encoding: chunked\r\n\r\n14\r\n" + b" " * 20 + b"\r\n0\r\n\r\n")

    assert slow.startswith(b"HTTP/1.1 408 ")
    assert b'"the body did not arrive in time", "code": "openapi.request", "retry": "later"' in slow
    assert large.startswith(b"HTTP/1.1 413 ")
    assert b'"expected a body of at most 10 bytes"' in large


def raw(place: Place, rest: bytes) -> bytes:
    """Send the end of a request by hand, and return the response."""
    with socket.create_connection(("127.0.0.1", place.port), timeout=10) as client:
        client.sendall(b"POST /t/shout HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + rest)
        received = b""
        while piece := client.recv(65_536):
            received += piece
        return received


def test_call_ends_when_its_client_disconnects(place: Place) -> None:
    """The tool is cancelled."""
    started.clear()
    stopped.clear()
    with socket.create_connection(("127.0.0.1", place.port)) as client:
        client.sendall(b"POST /t/wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
        until(started.is_set)

    until(stopped.is_set)


def test_refused_arguments_are_in_the_audit_log() -> None:
    """As they are for every other way to call a tool."""
    log = MemoryAudit()
    with Engine(plugins="none", toolsets=[t], audit=[log]) as engine, serving(engine) as place:
        place.call("/t/shout", {"text": 7})
        place.call("/t/shout", {"text": "a"})

    assert [(record.tool, record.code) for record in log.records] == [("t.shout", "schema.type"), ("t.shout", "ok")]


# Access


def test_token_is_required() -> None:
    """The document needs it too, and says so."""
    with Engine(plugins="none", toolsets=[t]) as engine, serving(engine, token=TOKEN) as place:
        refused = place.send("GET", "/openapi.json")
        document = place.send("GET", "/openapi.json", authorization=f"Bearer {TOKEN}").json
        called = place.call("/t/shout", {"text": "a"}, authorization=f"Bearer {TOKEN}")

    assert refused.problem == (401, "openapi.request", "host", "a token is required")
    assert refused.headers["www-authenticate"] == "Bearer"
    assert document["security"] == [{"token": []}]
    assert "401" in document["paths"]["/t/shout"]["post"]["responses"]
    assert called.json == "A!"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"is_local": False}, "a server that other machines can reach needs a token"),
        ({"token": "a b"}, "expected a token of visible ASCII characters without spaces"),
        (
            {"token": "a", "authenticator": StaticTokens({"b": Principal("b")})},
            "expected a token or an authenticator, not both",
        ),
    ],
)
def test_unsafe_access_is_refused(words: dict[str, Any], text: str) -> None:
    """No argument value is in the error."""
    with Engine(plugins="none", toolsets=[t]) as engine, pytest.raises(ValueError) as caught:
        app(engine, **words)

    assert str(caught.value) == text


def test_patterns_select_tools() -> None:
    """Others cannot be called; a pattern without a tool is an error."""
    with Engine(plugins="none", toolsets=[t]) as engine:
        with serving(engine, tools="t.sh*", title="Mine") as place:
            document = place.send("GET", "/openapi.json").json
            other = place.call("/t/nothing", {})
        with pytest.raises(SpecError) as caught:
            app(engine, tools=["x.*"])

    assert (document["info"]["title"], [*document["paths"]]) == ("Mine", ["/t/shout"])
    assert other.problem[:2] == (404, "tool.not_found")
    assert str(caught.value) == "openapi: tools: x.* matches no tool that may be called here"


def test_document_changes_with_the_tools(tmp_path: Path) -> None:
    """A tool that is added later can be called at once."""
    plugin = tmp_path / "late.py"
    plugin.write_text(
        "from neuroscript import Toolset\nlate = Toolset('late')\n@late.tool\ndef one() -> int:\n    '''One.'''\n    return 1\n"
    )
    with Engine(plugins="none", toolsets=[t]) as engine, serving(engine) as place:
        before = place.call("/late/one", {}).status
        engine.load_plugin(plugin)

        assert (before, place.call("/late/one", {}).json) == (404, 1)
        assert "/late/one" in place.send("GET", "/openapi.json").json["paths"]


# The document


def test_document_is_valid(place: Place) -> None:
    """Another library reads it, and it names each tool without handles once."""
    document = place.send("GET", "/openapi.json").json
    found = OpenAPI.model_validate(document)

    assert found.openapi == "3.1.1"
    assert "/t/open" not in document["paths"]
    assert [*document["paths"]] == sorted(document["paths"])
    post = document["paths"]["/t/shout"]["post"]
    assert (post["operationId"], post["summary"]) == ("t__shout", "Repeat a text in capitals")
    assert post["description"] == "Repeat a text in capitals. The mark comes last."
    assert post["responses"]["200"]["content"] == {"application/json": {"schema": {"type": "string"}}}
    assert document["paths"]["/t/nothing"]["post"]["responses"]["204"] == {"description": "The tool has run."}


def test_default_of_a_secret_is_not_in_the_document(place: Place) -> None:
    """Neither as a default nor under our keyword."""
    document = place.send("GET", "/openapi.json")

    word = document.json["paths"]["/t/login"]["post"]["requestBody"]["content"]["application/json"]["schema"][
        "properties"
    ]["word"]
    assert (word["writeOnly"], word.get("format", "")) == (True, "")
    assert b"sesame" not in document.body


def test_tools_without_an_engine() -> None:
    """Tools and specs are enough for a document; a wrong type is an error."""
    spec = ToolSpec("ping", "net", (ArgSpec("host", ArgType.STRING),), deprecated="use net.find")

    document = to_openapi([spec], title="Net", version="2", url="https://a.example", token=True)

    assert document["info"] == {"title": "Net", "version": "2"}
    assert document["servers"] == [{"url": "https://a.example"}]
    assert document["paths"]["/net/ping"]["post"]["deprecated"] is True
    with pytest.raises(SpecError) as caught:
        to_openapi([5])  # type: ignore[list-item]
    assert str(caught.value) == "to_openapi: tools[0] must be a tool or a spec, not int"


# The way back


def test_tools_with_similar_names_load_back() -> None:
    """Each has a name of its own, which does not depend on the order and on tools that are not similar."""
    long = ToolSpec("x" * 64, ".".join(["deep" * 16] * 5), return_type="int")
    similar = [ToolSpec("c", "a.b"), ToolSpec("b_c", "a"), ToolSpec("c", "a_b"), ToolSpec("c_", "a.b")]
    specs = [*similar, long, ToolSpec("one", "z")]

    document = to_openapi(specs)
    tools = from_openapi(document, group="far", base_url="https://a.example")

    ids = {path: each["post"]["operationId"] for path, each in document["paths"].items()}
    assert len([*tools]) == len(specs)
    assert ids["/z/one"] == "z__one"
    assert ids == {path: each["post"]["operationId"] for path, each in to_openapi([*reversed(specs)])["paths"].items()}
    assert ids["/a/b/c"] == to_openapi(similar)["paths"]["/a/b/c"]["post"]["operationId"]


def test_name_with_the_digest_of_another_tool_loads_back() -> None:
    """No tool can take the name that another one gets."""
    first = to_openapi([ToolSpec("c", "a.b"), ToolSpec("b_c", "a")])["paths"]["/a/b/c"]["post"]["operationId"]
    specs = [ToolSpec("c", "a.b"), ToolSpec("b_c", "a"), ToolSpec(first.replace("__", "_").removeprefix("a_"), "a")]

    tools = from_openapi(to_openapi(specs), group="far", base_url="https://a.example")

    assert len({tool.spec.name for tool in tools}) == 3


def looped(place: Place) -> Engine:
    """Return an engine whose tools are those of a service, from its document."""
    document = place.send("GET", "/openapi.json").json
    tools = from_openapi(document, group="far", base_url=place.url, private=[place.place], limit=8 * 1024 * 1024)
    grants = (f"net:read,write:{place.place}", f"lan:reach:{place.place}")
    return Engine(toolsets=[http, tools], plugins="none", policy=ExecutionPolicy(grants=grants))


def far(name: str) -> str:
    """Return the imported name of a tool."""
    return f"far.{name.replace('.', '_')}"


def test_imported_arguments_are_equal() -> None:
    """No type, nested spec, default or description of a first-party tool is lost."""
    with Engine(policy=ExecutionPolicy(trusted=True), toolsets=[t]) as engine:
        tools = {
            tool.spec.name: tool for tool in from_openapi(to_openapi(engine), group="far", base_url="https://a.example")
        }
        ours = {name: tool.spec for name, tool in engine.infos.items() if not uses_handles(tool.spec)}

    assert len(ours) > 130
    without_secrets = {name: spec for name, spec in ours.items() if name != "t.login"}
    for name, spec in without_secrets.items():
        found = tools[name.replace(".", "_")].spec
        assert (found.args, found.variadic) == (spec.args, spec.variadic), name
        assert found.description == " ".join(filter(None, (spec.description, spec.when_to_use))), name


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("t.shout", {"text": "tea", "mark": None}),
        ("t.shout", {"text": "tea"}),
        ("t.image", {}),
        ("t.nothing", {}),
        ("t.count", {"to": 2}),
        ("t.gather", {"first": "a", "rest": [1, 2]}),
        ("t.look", {"size": 2}),
    ],
)
def test_imported_call_returns_the_same(place: Place, name: str, arguments: dict[str, Any]) -> None:
    """None, bytes, streams and variadic arguments included."""
    direct = to_plain(place.engine.execute({"name": name, "arguments": arguments}).value)
    direct = direct["structuredContent"] if name == "t.look" else direct

    with looped(place) as engine:
        assert to_plain(engine.call_named(far(name), arguments)) == direct


@pytest.mark.slow
def test_examples_return_the_same_through_the_loop() -> None:
    """Every example of a pure first-party tool is called directly and through the service."""
    differ, count = [], 0
    with Engine(plugins=["neuroscript-std"], policy=ExecutionPolicy(trusted=True)) as engine, serving(engine) as place:
        with looped(place) as loop:
            for name, tool in engine.tools.items():
                if uses_handles(tool.spec) or tool.policy.effects != ("pure",):
                    continue
                for example in tool.spec.examples:
                    positional = dict(zip([arg.name for arg in tool.spec.args], example.args, strict=False))
                    if tool.spec.variadic:
                        continue
                    direct = engine.execute({"name": name, "arguments": to_plain(positional)})
                    again = loop.execute({"name": far(name), "arguments": to_plain(positional)})
                    count += 1
                    if direct.ok != again.ok or to_plain(direct.value) != to_plain(again.value):
                        differ.append((name, example, again.error))

    assert differ == []
    assert count > 50


# Hostile requests


def test_host_header_selects_no_tool() -> None:
    """The URL of a request is made of this header and the path, so only the path may be read."""
    with Engine(plugins="none", toolsets=[t]) as engine, serving(engine, token=TOKEN, is_local=False) as place:
        answers = []
        for host in (b"a/t/shout?", b"["):
            with socket.create_connection(("127.0.0.1", place.port), timeout=10) as client:
                lines = (b"POST /nope HTTP/1.1", b"Host: " + host, b"Authorization: Bearer " + TOKEN.encode())
                client.sendall(b"\r\n".join((*lines, b"Content-Length: 0", b"Connection: close", b"", b"")))
                answers.append(client.recv(100).partition(b"\r\n")[0])

    assert answers == [b"HTTP/1.1 404 Not Found"] * 2


def test_query_is_not_read() -> None:
    """It may be any bytes."""
    with Engine(plugins="none", toolsets=[t]) as engine:
        assert asyncio.run(status_of(app(engine), "/t/nothing", b"\xff")) == 204


async def status_of(service: Any, path: str, query: bytes) -> int:
    """Return the status of a request that is passed by hand."""
    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": headers}
    messages = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await service(scope, receive, send)
    return int(sent[0]["status"])


def test_lone_surrogates_are_invalid(place: Place) -> None:
    """JSON can contain them, but UTF-8 cannot."""
    for body in (b'{"\\ud800": 1}', b'{"text": "\\ud800", "times": "x"}'):
        answer = place.send("POST", "/t/shout", body, content_type="application/json")

        assert answer.status in (400, 422)
        assert answer.json["retry"] == "model"


def test_title_is_sendable() -> None:
    """A terminal may pass bytes that are no text."""
    with Engine(plugins="none", toolsets=[t]) as engine, serving(engine, title="\udcff") as place:
        assert place.send("GET", "/openapi.json").json["info"]["title"] == "\\udcff"


def test_many_invalid_values_are_reported_by_the_first(place: Place) -> None:
    """Collecting the problems of each would take seconds, in which no other request is answered."""
    answer = place.call("/t/gather", {"first": "a", "rest": ["x"] * 150_000})

    assert answer.status == 400
    assert [each["where"] for each in answer.json["problems"]] == ["rest[0]"]


def test_body_has_a_maximum_number_of_values(place: Place) -> None:
    """It is that of the engine, which is checked before the JSON is read."""
    answer = place.call("/t/gather", {"first": "a", "rest": [1] * 200_000})

    assert answer.problem == (400, "openapi.request", "model", "the JSON text has more than 200000 values")


def test_tools_without_result_stay_so_if_results_are_written_to_files(tmp_path: Path) -> None:
    """The document says what the service responds."""
    with (
        Engine(plugins="none", toolsets=[t], host=Host(sandbox_dir=tmp_path), spill=Spill()) as engine,
        serving(engine) as place,
    ):
        document = place.send("GET", "/openapi.json").json
        answer = place.call("/t/nothing", {})

    assert answer.status == 204
    assert "204" in document["paths"]["/t/nothing"]["post"]["responses"]
