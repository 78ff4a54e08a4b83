"""The io toolset, called through an engine, with the streams of a host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest

from neuroscript import Engine, Handle, Host, ToolFailed


@pytest.fixture
def host() -> Iterator[Host]:
    """A host whose user typed two lines and left, through a real pipe."""
    reading, writing = os.pipe()
    os.write(writing, "Ada\r\nnächste Zeile\n".encode())
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stdin:
        yield Host(stdin=stdin, stdout=StringIO(), stderr=StringIO())


@pytest.fixture
def engine(host: Host) -> Iterator[Engine]:
    with Engine(plugins=["neuroscript-std"], host=host) as engine:
        yield engine


PRINTED = {
    "texts": (["a", "b c"], "a b c"),
    "nothing": ([], ""),
    "numbers": ([1, 2.0, True, None], "1 2.0 true null"),
    "a list": ([["a", 1]], '["a",1]'),
    "a map, keys sorted": ([{"b": 1, "a": "ä"}], '{"a":"ä","b":1}'),
    "bytes": ([b"\x00"], '{"$base64":"AA=="}'),
    "a handle": ([Handle("tree-1", "tree")], '"tree-1"'),
    "what would move the cursor": (["a\x1b[2J\nb"], "a\\x1b[2J\\nb"),
}


@pytest.mark.parametrize(("values", "expected"), PRINTED.values(), ids=PRINTED)
def test_print_writes_one_line(engine: Engine, host: Host, values: list[Any], expected: str) -> None:
    """To the host's output, not to that of the process: strings unchanged, other values as JSON."""
    assert engine.call("io.print", values) is None
    assert engine.call_named("io.print", {"values": values}) is None

    assert f"{expected}\n" * 2 == host.output.getvalue()  # type: ignore[attr-defined]


def test_each_prompt_reads_the_next_line(engine: Engine, host: Host) -> None:
    """No answer is lost, and the prompt does not mix with results."""
    answers = [engine.call("io.input", ["Name?"]), engine.call("io.input")]

    assert ["Ada", "nächste Zeile"] == answers
    assert "Name?" in host.stderr.getvalue()  # type: ignore[union-attr]
    assert "" == host.output.getvalue()  # type: ignore[attr-defined]


def test_input_without_a_user_fails(engine: Engine) -> None:
    """The error says so."""
    for _ in range(2):
        engine.call("io.input")

    with pytest.raises(ToolFailed) as caught:
        engine.call("io.input")

    assert ("prompt.eof", "host") == (caught.value.code, caught.value.retry)
