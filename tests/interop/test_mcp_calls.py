"""Arguments, results, errors and cancellation of calls of tools of MCP servers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.mcp_engines import bare_server, children, code, done, engine_of, opened, until
from tests.interop.mcp_engines import engine as engine

from neuroscript import ArgType, CallTimeout, Engine, Host, ToolFailed
from neuroscript.interop.mcp import from_mcp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes and descriptors are counted in /proc")

# What goes out, and what comes back


FASTMCP: Final = """
from fastmcp import FastMCP
server = FastMCP("second")
@server.tool
def join(words: list[str], times: int = 1) -> str:
    "Join words."
    return " ".join(words * times)
server.run(show_banner=False)
"""


def test_arguments_reach_the_server_as_exact_values(engine: Engine) -> None:
    """Coerced by the contract first; a default is ours to fill in."""
    assert done(engine, "add", a="2").value == 3
    assert done(engine, "kinds", values='[1, "1", null, {"a": 1.5}]').value == ["int", "str", "NoneType", "dict"]


def test_an_error_names_the_argument_before_the_server_is_asked(engine: Engine) -> None:
    """With every problem at once."""
    result = done(engine, "add", a="x", c=1)

    assert str(result.error) == (
        "far.add: a: expected int, got str (a string must be a decimal integer, such as 42); "
        "c: expected only a, b, got an unknown name of type int"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("say", {"text": "a\nb"}, "a\nb"),
        ("slim", {"name": "tea"}, {"name": "tea", "size": 3}),
        ("picture", {}, {"media_type": "image/png", "data": b"\x89PNG\xff"}),
    ],
    ids=["text", "structure", "picture"],
)
def test_results_are_exact_values(engine: Engine, name: str, arguments: dict[str, Any], value: object) -> None:
    """Strings are unchanged, structures are maps, and bytes have their media type."""
    assert done(engine, name, **arguments).value == value


def test_an_output_schema_is_the_return_type(engine: Engine) -> None:
    """What SDKs put under ``result`` is the result."""
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
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ["a", "b"]),
        (
            [{"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "c"}}],
            {"uri": "a:b", "media_type": "text/plain", "text": "c"},
        ),
        (
            [{"type": "resource", "resource": {"uri": "a:b", "blob": "/w=="}}],
            {"uri": "a:b", "media_type": None, "data": b"\xff"},
        ),
        (
            [{"type": "resource_link", "uri": "a:b", "name": "c"}],
            {"uri": "a:b", "media_type": None, "name": "c", "description": None},
        ),
    ],
    ids=["nothing", "texts", "resource", "bytes", "link"],
)
def test_content_without_structure_becomes_values(bare: Engine, content: list[Any], value: object) -> None:
    """One is that value, several are a list, none is None."""
    assert done(bare, "raw", answer={"content": content}).value == value


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
def test_an_answer_that_is_not_what_was_promised_is_an_error(
    bare: Engine, tool: str, answer: dict[str, Any], error: str
) -> None:
    """It holds no value, and the next call goes on."""
    result = done(bare, tool, answer=answer)
    good = done(bare, "count", answer={"content": [], "structuredContent": {"result": 1}})

    assert (code(result), good.value) == (error, 1)
    assert "tea" not in str(result.error)


def test_an_error_of_the_server_is_told_escaped_and_cut(engine: Engine) -> None:
    """It is untrusted text with which the model can correct its call."""
    error = done(engine, "fail", text="no\n\x1b[2Jgo " + "x" * 5000).error

    assert isinstance(error, ToolFailed)
    assert (error.code, error.retry) == ("mcp.error", "model")
    assert error.text.startswith("the server says: Error executing tool fail: no \\x1b[2Jgo xxx")
    assert len(error.text) < 1100


def test_progress_arrives(tmp_path: Path) -> None:
    """Escaped, while the call runs."""
    seen: list[Any] = []
    with engine_of(opened(), host=Host(progress=seen.append)) as engine:
        assert done(engine, "wait", path=str(tmp_path / "log"), seconds=0.2).value == "waited"
        until(lambda: len(seen) >= 5)

    assert {each.tool for each in seen} == {"far.wait"}
    assert seen[0].text == "step 0"


def test_a_call_that_takes_too_long_is_cancelled_on_the_server(tmp_path: Path) -> None:
    """And the connection goes on."""
    log = tmp_path / "log"
    before = children()
    with engine_of(bare_server(timeout=1.5)) as engine:
        result = done(engine, "raw", answer={"wait": str(log)})
        process = children() - before
        until(lambda: log.exists() and log.read_text() != "")

        assert isinstance(result.error, CallTimeout)
        assert (result.error.state, log.read_text()) == ("stopped", "cancelled")
        assert done(engine, "raw", answer={"content": []}).ok
        assert children() - before == process


def test_a_caller_that_goes_away_cancels_the_call_on_the_server(engine: Engine, tmp_path: Path) -> None:
    """The awaiting task may be cancelled."""
    log = tmp_path / "log"

    async def left() -> None:
        task = asyncio.create_task(engine.acall_named("far.wait", {"path": str(log), "seconds": 60}))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(left())

    until(log.exists)


def test_a_second_implementation_is_called_too() -> None:
    """FastMCP, under the same rules."""
    with engine_of(from_mcp([sys.executable, "-c", FASTMCP], group="far", trusted=True)) as engine:
        assert done(engine, "join", words='["a", "b"]', times="2").value == "a b a b"
