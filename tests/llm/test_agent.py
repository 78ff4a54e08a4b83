"""``docs/examples/agent.py`` as a program and in this process, against a server with three APIs, streamed or not."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from tests.llm.server import APIS, ModelServer, asks, call, cut_after, refuses, says, status

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "docs" / "examples" / "agent.py"


@pytest.fixture(params=["streamed", "whole"])
def whole(request: pytest.FixtureRequest) -> list[str]:
    """The options for complete replies or for streaming."""
    return ["--whole"] if request.param == "whole" else []


def words(server: ModelServer, api: str, whole: list[str]) -> list[str]:
    """Return the arguments of the command."""
    return [str(AGENT), "Total and tidy up.", "--base-url", server.base_url(api), "--api", api, *whole]


def test_program_has_at_most_forty_lines() -> None:
    """The example stays small."""
    assert len(AGENT.read_text().splitlines()) <= 40


SCRIPT = (
    asks(call("fs__read", {"filepath": "prices.txt"}), call("math__plus", {"a": 1}), text="Let me see."),
    status(429, {"Retry-After": "0"}),
    asks(call("math__add", {"num1": "184.50", "num2": " 96.20 "}), call("math__add", {"num1": "many", "num2": 1})),
    asks(call("fs__delete", {"path": "prices.txt"})),
    says("The total is 280.7."),
)
"""Parallel calls, wrong types, an unknown tool, a denied tool and a busy server."""

TRANSCRIPT = [
    "user: Total and tidy up.",
    "assistant: Let me see.",
    'assistant: calls fs.read {"filepath": "prices.txt"}',
    'assistant: calls math.plus {"a": 1}',
    "tool: fs.read: 184.50 and 96.20",
    "tool: math.plus: error tool.not_found: no tool with this name is available; did you mean "
    "math__add? Fix the arguments and call again.",
    "assistant: retried after 0 s (llm.rate)",
    'assistant: calls math.add {"num1": "184.50", "num2": " 96.20 "}',
    'assistant: calls math.add {"num1": "many", "num2": 1}',
    "tool: math.add: 280.7 (repaired num1: str -> float, num2: str -> float)",
    "tool: math.add: error coercion.format: num1: expected float, got str "
    "(a string must be a decimal number, such as -1.5e3). Fix the arguments and call again.",
    'assistant: calls fs.delete {"path": "prices.txt"}',
    "tool: fs.delete: error policy.denied: is denied by the host. "
    "Only the host can change that; do not repeat this call.",
    "assistant: The total is 280.7.",
    "tokens: 40 in, 12 out",
]
"""The transcript of that conversation."""


@pytest.mark.parametrize("api", APIS)
def test_transcript_shows_repairs_refusals_and_retries(
    server: ModelServer, api: str, whole: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every API, streamed or not."""
    server.script(*SCRIPT)
    monkeypatch.setattr(sys, "argv", words(server, api, whole))

    runpy.run_path(str(AGENT), run_name="__main__")

    out, err = capsys.readouterr()
    assert (out.splitlines(), err) == (TRANSCRIPT, "")
    assert [request.streamed for request in server.requests] == [not whole] * 5


@pytest.mark.slow
def test_transcript_is_the_output_of_the_program(server: ModelServer) -> None:
    """In its own process."""
    server.script(*SCRIPT)
    command = [sys.executable, *words(server, APIS[0], [])]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1"})

    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (0, "", TRANSCRIPT)


@pytest.mark.parametrize("api", APIS)
def test_failed_conversation_prints_its_transcript(
    server: ModelServer, api: str, whole: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a refusal, an endless conversation, and a truncated reply."""

    def why_it_ended() -> str:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(AGENT), run_name="__main__")
        return str(ended.value.code)

    monkeypatch.setattr(sys, "argv", words(server, api, whole))
    read = asks(call("fs__read", {"filepath": "prices.txt"}))
    server.script(read, refuses())
    refused = why_it_ended(), capsys.readouterr().out
    server.script(forever=read)
    endless = why_it_ended(), capsys.readouterr().out
    server.requests.clear()
    server.script(read, forever=cut_after(60))
    cut = why_it_ended(), capsys.readouterr().out

    assert refused[0] == "llm.refused: the model refused to answer"
    assert endless[0] == "llm.turn_limit: the model did not finish within 8 turns"
    assert cut[0].startswith("llm.incomplete: ")
    assert len(server.requests) == 1 + 3
    for (_, reported), times in ((refused, 1), (endless, 8), (cut, 1)):
        assert reported.count("tool: fs.read: 184.50 and 96.20") == times
