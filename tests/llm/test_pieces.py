"""Response bodies in arbitrary chunks, and the waits that a server asks for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from tests.llm.server import STREAMED, WHOLE, Api, asks, call, written

from neuroscript import LLMError
from neuroscript.io.text import MAX_VALUES
from neuroscript.llm.errors import error_code, retry_after_seconds
from neuroscript.llm.http_body import DONE, ResponseBody
from neuroscript.llm.wire.anthropic.stream import MessageAssembler
from neuroscript.llm.wire.openai.chat_stream import ChatAssembler
from neuroscript.llm.wire.openai.responses_stream import ResponsesAssembler

ASSEMBLERS: dict[Api, Any] = {
    "openai-chat": ChatAssembler,
    "openai-responses": ResponsesAssembler,
    "anthropic": MessageAssembler,
}
SAID = asks(call("math__add", {"a": "2"}), text="gr\u00fc\u00dfe \u2028 \U0001f600")


def body(chunks: Iterable[bytes], kind: str = "text/event-stream; charset=utf-8") -> ResponseBody:
    """Return a body that arrives in these chunks."""
    response = httpx2.Response(200, headers={"Content-Type": kind}, content=iter(chunks))
    return ResponseBody(response, time.monotonic() + 60, 60)


@pytest.mark.parametrize("api", STREAMED)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_events_do_not_depend_on_chunks(api: Api, end: bytes) -> None:
    """Also if a chunk ends within a character or a line end."""
    events = [*STREAMED[api](SAID)]
    data = b"".join(written(event).replace(b"\n", end) for event in events)
    expected = [content for _, content in events]

    assert expected[-1] == DONE or expected[-1]["type"] in ("response.completed", "message_stop")
    assert [*body(data[at : at + 1] for at in range(len(data))).events()] == expected
    for at in range(0, len(data), 7):
        assert [*body([data[:at], data[at:]]).events()] == expected


def test_only_newline_ends_a_line() -> None:
    """JSON may contain other line separators."""
    text = "a\u2028b\u2029c\u0085d"
    data = f"data: {json.dumps({'t': text}, ensure_ascii=False)}\n\n".encode()

    assert [*body([data]).events()] == [{"t": text}]


def test_comments_and_unfinished_events_are_ignored() -> None:
    """Servers send comments to keep a connection open."""
    data = b': wait\n\nid: 7\nretry: 5\nevent: x\ndata: {"a":\ndata: 1}\n\n: wait\n\ndata: {"b": 2}\n'

    assert [*body([data]).events()] == [{"a": 1}]


@pytest.mark.parametrize("api", STREAMED)
def test_characters_split_between_events_are_whole(api: Api) -> None:
    """Servers that count UTF-16 code units split a character in two surrogates."""
    halves = "ab\ud83d\ude00" * 5  # in pieces of four
    assembler = ASSEMBLERS[api]()
    for _, data in STREAMED[api](asks(call("t__say", f'{{"text": "{halves}"}}'), text=halves)):
        if data != DONE:
            data = {**data, "response": {"output": []}} if data.get("type") == "response.completed" else data
            assembler.take(json.loads(json.dumps(data)))

    turn = assembler.reply().turn

    arguments = turn.tool_calls[0].arguments
    assert turn.content == "ab\U0001f600" * 5
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == {"text": "ab\U0001f600" * 5}


@pytest.mark.parametrize(
    ("data", "kind", "code", "retry"),
    [
        (b"", "application/json", "llm.incomplete", "later"),
        (b'{"a": [1, 2', "application/json; charset=utf-8", "llm.incomplete", "later"),
        (b"[[[", "application/problem+json", "llm.incomplete", "later"),
        (b"<html>", "application/json", "llm.format", "host"),
        (b"{'a': 1}", "application/json", "llm.format", "host"),
        (b"{\xff}", "application/json", "llm.format", "host"),
        (b"[" * 200_000 + b"]" * 200_000, "application/json", "llm.format", "host"),
        (b"[" + b"0," * MAX_VALUES + b"0]", "application/json", "llm.format", "host"),
        (b"<html>", "text/html", "llm.format", "host"),
        (b"", "", "llm.format", "host"),
    ],
    ids=["none", "cut", "cut list", "page", "python", "bytes", "deep", "too many", "html", "nothing"],
)
def test_invalid_json_is_format_or_cut_error(data: bytes, kind: str, code: str, retry: str) -> None:
    """The error says whether the body ended too early."""
    with pytest.raises(LLMError) as caught:
        body([data], kind).whole()

    assert (caught.value.code, caught.value.retry) == (code, retry)


def test_body_over_size_limit_is_rejected() -> None:
    """After 64 MiB."""
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while len(taken) < 100:
            taken.append(1)
            yield b" " * 2**20

    with pytest.raises(LLMError) as caught:
        body(endless(), "application/json").whole()

    assert (caught.value.code, caught.value.retry, len(taken)) == ("llm.format", "host", 65)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Sat, 01 Jan 2000 00:00:00"}, 0.0),
        ({"retry-after": "9", "retry-after-ms": "20"}, 0.02),
        ({"retry-after": "9", "retry-after-ms": "soon"}, 9.0),
    ],
)
def test_retry_after_is_parsed_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Anything else means no wait."""
    assert retry_after_seconds(headers) == seconds


def test_future_retry_after_date_is_a_wait() -> None:
    """On the clock of this machine."""
    date = (datetime.now(UTC) + timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT")

    wait = retry_after_seconds({"retry-after": date})

    assert wait is not None
    assert 80 < wait <= 90


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"error": {"code": "model_not_found", "type": "invalid_request_error"}}, "model_not_found"),
        ({"code": None, "type": "overloaded_error"}, "overloaded_error"),
        ({"error": {"code": 429, "type": "You said: secret"}}, ""),
        ({"error": "model not found"}, ""),
        ({"error": {"code": "x" * 65}}, ""),
        ("<html>", ""),
        (None, ""),
    ],
)
def test_only_server_error_code_is_reported(data: Any, word: str) -> None:
    """Its message may repeat what was sent."""
    assert error_code(data) == word


def test_complete_body_is_read_in_any_chunks() -> None:
    """As they arrive."""
    data = json.dumps(WHOLE["openai-chat"](SAID)).encode()

    assert body([data[:9], data[9:]], "application/json").whole() == WHOLE["openai-chat"](SAID)


def test_import_loads_no_model_library() -> None:
    """Neither does the command line."""
    code = (
        "import sys, neuroscript.cli.parser, neuroscript.llm.clients, neuroscript.llm.models\n"
        "from neuroscript.cli.parser import build; build()\n"
        "print(*{'llm', 'openai', 'anthropic', 'httpx', 'httpx2', 'pydantic'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"
