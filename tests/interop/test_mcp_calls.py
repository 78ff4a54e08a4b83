"""Arguments, results, errors and cancellation of calls of tools of MCP servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.mcp_engines import (
    bare_server,
    call_tool,
    child_processes,
    engine_of,
    error_code,
    start_server,
    wait_until,
)
from tests.interop.mcp_engines import engine as engine

from neuroscript import ArgType, CallTimeout, Content, EmbeddedResource, Engine, Host, Image, ResourceLink, ToolFailed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes and descriptors are counted in /proc")

# Arguments and results


def test_arguments_reach_the_server_as_exact_values(engine: Engine) -> None:
    """The contract coerces them first, and fills in defaults."""
    assert call_tool(engine, "add", a="2").value == 3
    assert call_tool(engine, "kinds", values='[1, "1", null, {"a": 1.5}]').value == ["int", "str", "NoneType", "dict"]


def test_an_error_names_the_argument_before_a_request_is_sent(engine: Engine) -> None:
    """With every problem at once."""
    result = call_tool(engine, "add", a="x", c=1)

    assert str(result.error) == (
        "far.add: a: expected int, got str (a string must be a decimal integer, such as 42); "
        "c: expected only a, b, got an unknown name of type int"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("say", {"text": "a\nb"}, "a\nb"),
        ("slim", {"name": "tea"}, {"name": "tea", "size": 3}),
        ("picture", {}, Content(Image(b"\x89PNG\xff", "image/png"))),
    ],
    ids=["text", "structure", "picture"],
)
def test_results_are_exact_values(engine: Engine, name: str, arguments: dict[str, Any], value: object) -> None:
    """Strings are unchanged, structures are maps, and other blocks are content."""
    assert call_tool(engine, name, **arguments).value == value


def test_an_output_schema_is_the_return_type(engine: Engine) -> None:
    """SDKs wrap values under ``result``; the value itself is the result."""
    types = {name: engine.tools[f"far.{name}"].spec.return_type for name in ("add", "kinds", "slim", "picture")}

    assert types == {
        "add": ArgType.INT,
        "kinds": ArgType.SLICE_STRING,
        "slim": ArgType.MAP,
        "picture": ArgType.ANY,
    }


@pytest.fixture(scope="module")
def bare() -> Iterator[Engine]:
    """An engine with a server of an older protocol and without an SDK, whose tools return the requested data."""
    with engine_of(bare_server()) as engine:
        yield engine


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ([], None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], Content("a", "b")),
        (
            [{"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "c"}}],
            Content(EmbeddedResource("a:b", "c", media_type="text/plain")),
        ),
        (
            [{"type": "resource", "resource": {"uri": "a:b", "blob": "/w=="}}],
            Content(EmbeddedResource("a:b", b"\xff")),
        ),
        (
            [{"type": "resource_link", "uri": "a:b", "name": "c"}],
            Content(ResourceLink("a:b", "c")),
        ),
    ],
    ids=["nothing", "texts", "resource", "bytes", "link"],
)
def test_unstructured_content_becomes_values(bare: Engine, content: list[Any], value: object) -> None:
    """One text is a string, anything else is content, and nothing is None."""
    assert call_tool(bare, "raw", answer={"content": content}).value == value


@pytest.mark.parametrize(
    ("tool", "answer", "error"),
    [
        ("count", {"content": [], "structuredContent": {"result": "tea"}}, "mcp.answer"),
        ("count", {"content": [{"type": "text", "text": "1"}]}, "mcp.answer"),
        ("raw", {"content": [{"type": "image", "mimeType": "image/png", "data": "!"}]}, "mcp.answer"),
        ("raw", {"content": "tea"}, "mcp.answer"),
        ("raw", {"content": [{"type": "tea"}]}, "mcp.answer"),
        ("raw", {"error": {"code": -32602, "message": "not\nso"}}, "mcp.refused"),
    ],
    ids=["another type", "no structure", "not base64", "no content", "no such block", "a refusal"],
)
def test_an_answer_that_does_not_match_its_schema_is_an_error(
    bare: Engine, tool: str, answer: dict[str, Any], error: str
) -> None:
    """The error contains no value, and the next call works."""
    result = call_tool(bare, tool, answer=answer)
    good = call_tool(bare, "count", answer={"content": [], "structuredContent": {"result": 1}})

    assert (error_code(result), good.value) == (error, 1)
    assert "tea" not in str(result.error)


def test_an_error_of_the_server_is_escaped_and_truncated(engine: Engine) -> None:
    """It is untrusted text with which the model can correct its call."""
    error = call_tool(engine, "fail", text="no\n\x1b[2Jgo " + "x" * 5000).error

    assert isinstance(error, ToolFailed)
    assert (error.code, error.retry) == ("mcp.error", "model")
    assert error.text.startswith("the server says: Error executing tool fail: no \\x1b[2Jgo xxx")
    assert len(error.text) < 1100


@pytest.mark.slow
def test_progress_is_reported(tmp_path: Path) -> None:
    """It is escaped, and arrives while the call runs."""
    seen: list[Any] = []
    with engine_of(start_server(), host=Host(progress=seen.append)) as engine:
        assert call_tool(engine, "wait", path=str(tmp_path / "log"), seconds=0.2).value == "waited"
        wait_until(lambda: len(seen) >= 5)

    assert {each.tool for each in seen} == {"far.wait"}
    assert seen[0].text == "step 0"


@pytest.mark.slow
def test_a_call_that_times_out_is_cancelled_on_the_server(tmp_path: Path) -> None:
    """The connection continues."""
    log = tmp_path / "log"
    before = child_processes()
    with engine_of(bare_server(timeout=1.5)) as engine:
        result = call_tool(engine, "raw", answer={"wait": str(log)})
        process = child_processes() - before
        wait_until(lambda: log.exists() and log.read_text() != "")

        assert isinstance(result.error, CallTimeout)
        assert (result.error.state, log.read_text()) == ("stopped", "cancelled")
        assert call_tool(engine, "raw", answer={"content": []}).ok
        assert child_processes() - before == process


@pytest.mark.slow
def test_a_cancelled_call_is_cancelled_on_the_server(engine: Engine, tmp_path: Path) -> None:
    """When the awaiting task is cancelled."""
    log = tmp_path / "log"

    async def cancel() -> None:
        task = asyncio.create_task(engine.acall_named("far.wait", {"path": str(log), "seconds": 60}))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    wait_until(log.exists)
