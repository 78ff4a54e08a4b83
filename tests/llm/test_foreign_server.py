"""Conversations with the model server of another project, aimock from npm, which streams tool calls in three formats.

The server of the other tests is written beside the clients, so both could share an error. This server is not: it
matches each request by its own reading of the turns, and splits its replies into pieces in its own way.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests import npm_packages
from tests.llm.scripted_models import made
from tests.llm.server import APIS, Api

from neuroscript.llm import TextReceived, model

VERSION = "1.43.0"
UNAVAILABLE = "aimock could not be installed with npm"
"""The reason for skipping its tests if the npm registry cannot be reached."""

TEXTS = ["Let me s😀.", "The total is 3."]
PIECES = ["Let", " me", " s", "😀.", "The", " to", "tal", " is", " 3."]
"""What the model writes, and the pieces in which it arrives; the server splits the emoji between two pieces."""

TEXT = 'two lines,\n"quoted": ½ 😀'

FIXTURES: Any = {
    "fixtures": [
        {
            "match": {"userMessage": "Go.", "turnIndex": 0},
            "response": {
                "content": TEXTS[0],
                "toolCalls": [
                    {"name": "t__total", "arguments": json.dumps({"numbers": ["1", 2.0]}), "id": "call_total"},
                    {"name": "t__look", "arguments": json.dumps({"text": TEXT}, ensure_ascii=False), "id": "call_look"},
                ],
            },
        },
        {
            "match": {"turnIndex": 1, "toolCallId": "call_look", "toolResultContains": "½ 😀"},
            "response": {"toolCalls": [{"name": "t__total", "arguments": '{"numbers": ["many"]}', "id": "call_wrong"}]},
        },
        {
            "match": {"turnIndex": 2, "toolCallId": "call_wrong", "toolResultContains": "expected int, got str"},
            "response": {"content": TEXTS[1]},
        },
    ]
}
"""Parallel calls after text, a wrong type, and an answer; each depends on the result before it."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server that refuses requests without a fixture."""
    try:
        command = npm_packages.installed("@copilotkit/aimock", VERSION, "dist/cli.js")
    except OSError:
        pytest.skip(UNAVAILABLE)
    fixtures = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    options = ["--port", "0", "--fixtures", str(fixtures), "--chunk-size", "3", "--strict"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "")
            yield next(line.split()[-1] for line in lines if "listening on" in line)
        finally:
            running.kill()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", APIS)
def test_calls_of_a_foreign_server_are_executed(url: str, talk: Any, api: Api, stream: bool) -> None:
    """Parallel calls, exact values, an error that the model reads, and an answer; text arrives in pieces."""
    base = url if api == "anthropic" else f"{url}/v1"
    pieces: list[str] = []

    def listen(event: object) -> None:
        if isinstance(event, TextReceived):
            pieces.append(event.text)

    with model("tiny", base_url=base, api=api, stream=stream, attempts=1, timeout=20.0) as client:
        conversation = talk(made(), "Go.", model=client, on_event=listen)

    values = [result.value if result.ok else (result.error.code, result.error.retry) for result in conversation.results]
    assert values == [3, TEXT, ("coercion.format", "model")]
    assert [turn.content for turn in conversation.turns if turn.role == "assistant"] == [TEXTS[0], "", TEXTS[1]]
    assert pieces == (PIECES if stream else TEXTS)
