"""Unusable answers of a server: each is a typed error at once, and the connection continues."""

from __future__ import annotations

import logging
import sys
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.mcp_raw import SURROGATE, served

from neuroscript import Content, Engine, ExecutionPolicy, PluginError, ToolCall, ToolFailed
from neuroscript.interop.mcp import from_mcp
from neuroscript.interop.mcp.client.log_filter import ROOTS
from neuroscript.interop.mcp.client.pending_requests import MAX_PARTS
from neuroscript.interop.mcp.client.size_limits import MAX_VALUES

RAW: Final = [sys.executable, str(Path(__file__).with_name("mcp_raw.py"))]
GRANTS: Final = ExecutionPolicy(grants=("mcp:call:far/*",))
SECONDS: Final = 20.0
"""How long a call may take. Every error here comes without waiting for that."""

GOOD: Final = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"hi"}]}}'


@pytest.fixture(scope="module", params=["stdio", "application/json", "text/event-stream"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine with the tools of a server that answers what a test asks for, over each transport."""
    words: dict[str, Any] = {"group": "far", "trusted": True, "timeout": SECONDS}
    if request.param == "stdio":
        with Engine(plugins="none", hooks=[from_mcp(RAW, **words)], policy=GRANTS) as engine:
            yield engine
    else:
        with served(request.param) as url:
            with Engine(plugins="none", hooks=[from_mcp(url=url, **words)], policy=GRANTS) as engine:
                yield engine


def call_error(engine: Engine, line: str, tool: str = "raw") -> tuple[str, str, str]:
    """Return the code, the retry and the message of the error of a call; the next call must succeed."""
    error = engine.execute(ToolCall(f"far.{tool}", {"line": line})).error
    again = engine.execute(ToolCall("far.raw", {"line": GOOD}))

    assert isinstance(error, ToolFailed)
    assert again.value == "hi"
    return error.code, error.retry, error.text


def result(text: str) -> str:
    return f'{{"jsonrpc":"2.0","id":ID,"result":{text}}}'


UNPARSED: Final = {
    "a list for a result": result("[1]"),
    "no result": result("null"),
    "no version": '{"id":ID,"result":{"content":[]}}',
    "another version": '{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}',
    "half a number": '{"jsonrpc":"2.0","id":ID.0,"result":{"content":[]}}',
    "a lone surrogate": result('{"content":[{"type":"text","text":"\\ud800"}]}'),
    "a number of 5,000 digits": result(f'{{"content":[],"structuredContent":{{"a":{"1" * 5000}}}}}'),
    "1,000 levels": result(f'{{"content":[],"structuredContent":{{"a":{"[" * 1000}{"]" * 1000}}}}}'),
    "a trailing comma": result('{"content":[],}'),
    "single quotes": "{'jsonrpc':'2.0','id':ID,'result':{'content':[]}}",
    "half a line": '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"ty',
    "an error without a code": '{"jsonrpc":"2.0","id":ID,"error":{"message":"no"}}',
    "a string for an error": '{"jsonrpc":"2.0","id":ID,"error":"no"}',
    "a batch": '[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]',
    "a mark of the byte order": "\ufeff" + GOOD,
}


@pytest.mark.parametrize("line", UNPARSED.values(), ids=[each.replace(" ", "-") for each in UNPARSED])
def test_answer_that_the_sdk_cannot_parse_is_named(engine: Engine, line: str) -> None:
    """It is not shown as a timeout, and the error contains no part of it."""
    assert call_error(engine, line) == ("mcp.answer", "never", "the server's answer cannot be parsed")


def test_answer_that_cannot_be_parsed_is_in_no_log(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """The SDK logs a traceback that quotes it."""
    caplog.set_level(logging.DEBUG)

    call_error(engine, UNPARSED["a trailing comma"])

    assert [each.name for each in caplog.records if each.name.partition(".")[0] in ROOTS] == []


def test_invalid_utf_8_does_not_end_the_connection(engine: Engine, request: pytest.FixtureRequest) -> None:
    """It is refused like other broken JSON; in an event stream each byte is replaced, as its standard says."""
    line = result(f'{{"content":[{{"type":"text","text":"{SURROGATE}"}}]}}')

    if "event-stream" in request.node.name:
        assert engine.execute(ToolCall("far.raw", {"line": line})).value == "\ufffd"
    else:
        assert call_error(engine, line) == ("mcp.answer", "never", "the server's answer cannot be parsed")


@pytest.mark.parametrize("tool", ["raw", "held"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_number_that_json_does_not_have_is_an_error(engine: Engine, number: str, tool: str) -> None:
    """It does not become None, with an output schema or without."""
    line = result(f'{{"content":[],"structuredContent":{{"a":{number}}}}}')

    assert call_error(engine, line, tool) == (
        "mcp.answer",
        "never",
        "the server's answer contains a number that JSON does not support, such as NaN",
    )


def test_content_blocks_are_counted_before_they_are_built(engine: Engine) -> None:
    """One more than the limit is refused with the limit's name."""
    most, _ = MAX_PARTS["content"]
    line = result('{"content":[N * %d {"type":"text","text":""}]}')

    assert call_error(engine, line % (most + 1)) == (
        "mcp.answer",
        "never",
        f"the server's answer has more than {most} content parts",
    )
    assert engine.execute(ToolCall("far.raw", {"line": line % most})).value == Content(*[""] * most)


@pytest.mark.slow
@pytest.mark.parametrize("item", ['{"type":"text","text":""}', "[]", "1", '{"a":{"b":"\\",["}}'])
def test_values_are_counted_before_they_are_parsed(engine: Engine, item: str) -> None:
    """Memory for 300,000 values does not exceed the text and what has been read of it."""
    line = result(f'{{"content":[],"structuredContent":{{"a":[N * 300000 {item}]}}}}')
    tracemalloc.start()
    try:
        code, retry, text = call_error(engine, line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (code, retry) in (("mcp.answer", "never"), ("mcp.closed", "later"))
    assert code == "mcp.closed" or text == f"the server's answer has more than {MAX_VALUES} values"
    assert peak < 100_000_000


def test_commas_and_brackets_in_a_text_are_not_values(engine: Engine) -> None:
    """For any number of them, including escaped quotes."""
    text = '[{\\"a\\": \\"\\\\\\\\\\"},' * 100_000
    line = result(f'{{"content":[{{"type":"text","text":"{text}"}}]}}')

    value = engine.execute(ToolCall("far.raw", {"line": line})).value

    assert value == '[{"a": "\\\\"},' * 100_000


def test_answer_is_attributed_to_its_own_call() -> None:
    """If several calls wait, only the one with the invalid answer fails."""
    server = from_mcp(RAW, group="far", trusted=True, timeout=SECONDS)
    with Engine(plugins="none", hooks=[server], policy=GRANTS) as engine, ThreadPoolExecutor(16) as pool:
        lines = [GOOD, UNPARSED["a trailing comma"], UNPARSED["a list for a result"]] * 20
        calls = [pool.submit(engine.execute, ToolCall("far.raw", {"line": line})) for line in lines]
        found = [each.result().error for each in calls]

    assert [each is None for each in found] == [True, False, False] * 20
    assert {str(each) for each in found if each} == {"far.raw: the server's answer cannot be parsed"}


def test_line_that_answers_nothing_is_still_ignored() -> None:
    """Some servers log to stdout, even JSON with errors, while a call waits."""
    server = from_mcp(RAW, group="far", trusted=True, timeout=SECONDS)
    noise = [
        '{"level":"error","error":"x"}',
        "jsonrpc: got a request",
        '{"id":"other","result":{}}',
        "[1, 2]",
        '{"jsonrpc":"2.0","result":{}}',
        '{"jsonrpc":"2.0","id":null,"result":{}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such notification"}}',
        '{"jsonrpc":"2.0","id":null,"error":"no"}',
    ]
    with Engine(plugins="none", hooks=[server], policy=GRANTS) as engine:
        values = [engine.execute(ToolCall("far.raw", {"line": f"{each}\n{GOOD}"})).value for each in noise]

    assert values == ["hi"] * len(noise)


def test_server_that_cannot_parse_a_request_is_reported() -> None:
    """Its error has no id, because it could not read one; only one call waits."""
    line = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    server = from_mcp(RAW, group="far", trusted=True, timeout=SECONDS)
    with Engine(plugins="none", hooks=[server], policy=GRANTS) as engine:
        assert call_error(engine, line) == ("mcp.refused", "host", "the server refused: Parse error")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_first_answer_that_cannot_be_parsed_is_named(kind: str) -> None:
    """An unreadable server is not reported as unresponsive."""
    tools = [{"name": "a", "inputSchema": {"type": "object", "default": "\ud800"}}]
    with served(kind, tools) as url, pytest.raises(PluginError) as caught:
        from_mcp(url=url, group="far", timeout=SECONDS)

    assert (caught.value.code, caught.value.reason) == ("mcp.answer", "the server's answer cannot be parsed")


def test_list_of_too_many_tools_is_named() -> None:
    """Before an object is built for each."""
    tools = [{"name": f"t{index}", "inputSchema": {"type": "object"}} for index in range(1_001)]
    with served("application/json", tools) as url, pytest.raises(PluginError) as caught:
        from_mcp(url=url, group="far", timeout=SECONDS)

    assert (caught.value.code, caught.value.reason) == ("mcp.answer", "the server's answer has more than 1000 tools")
