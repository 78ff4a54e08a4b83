"""``neuroscript execute``: lines of tool calls become lines of results, or a readable report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command

NO_TYPE = "type: expected one of function, function_call, tool_use, or no type"
NO_JSON = "expected a tool call as JSON, got invalid JSON"
ECHO = {"id": "1", "name": "probe.echo", "arguments": {"text": "ä"}}


def executed(*calls: Any, words: tuple[str, ...] = ()) -> tuple[int, list[dict[str, Any]]]:
    """Run calls, each an object or the bytes of a line, and return the exit code and the results without seconds."""
    lines = [call if isinstance(call, bytes) else json.dumps(call).encode() for call in calls]
    outcome = command("execute", "-", *words, stdin=b"".join(line + b"\n" for line in lines))
    assert outcome.err == ""
    results = [json.loads(line) for line in outcome.out.splitlines()]
    for result in results:
        assert 0 <= result.pop("seconds") < 5
    return outcome.code, results


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(ECHO, id="plain"),
        pytest.param({**ECHO, "arguments": ["ä"]}, id="in order"),
        pytest.param({**ECHO, "arguments": '{"text": "ä"}'}, id="JSON text"),
        pytest.param(
            {"id": "1", "type": "function", "function": {"name": "probe__echo", "arguments": '["ä"]'}}, id="openai chat"
        ),
        pytest.param(
            {"type": "function_call", "id": "9", "call_id": "1", "name": "probe__echo", "arguments": '{"text":"ä"}'},
            id="openai responses",
        ),
        pytest.param({"type": "tool_use", "id": "1", "name": "probe__echo", "input": {"text": "ä"}}, id="anthropic"),
        pytest.param({"functionCall": {"id": "1", "name": "probe__echo", "args": {"text": "ä"}}}, id="gemini"),
        pytest.param({"function_call": {"id": "1", "name": "probe__echo", "args": {"text": "ä"}}}, id="gemini sdk"),
    ],
)
def test_call_in_every_format_runs(call: dict[str, Any]) -> None:
    """All formats produce the same result."""
    code, results = executed(call)

    assert (0, [{"id": "1", "tool": "probe.echo", "ok": True, "value": "ä"}]) == (code, results)


def test_results_are_in_order_and_invalid_lines_stop_nothing() -> None:
    """Each non-blank line has one result; the exit code is that of the first failure."""
    calls = (ECHO, b"", b"  \r", b"{", {**ECHO, "id": "2", "name": "probe.trusted"}, {**ECHO, "id": "3"})

    code, results = executed(*calls)

    assert (3, ["1", "", "2", "3"]) == (code, [result["id"] for result in results])
    assert [True, False, False, True] == [result["ok"] for result in results]


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        pytest.param([], 0, id="no call"),
        pytest.param(["probe.echo"], 0, id="all ran"),
        pytest.param(["probe.echo", "probe.fails", "probe.trusted"], 1, id="the tool failed"),
        pytest.param(["probe.nope", "probe.fails"], 2, id="not found"),
        pytest.param(["probe.tags", "probe.nope"], 3, id="arguments"),
        pytest.param(["probe.trusted", "probe.nope"], 4, id="refused"),
        pytest.param(["probe.slow", "probe.nope"], 124, id="a timeout"),
    ],
)
def test_first_failed_call_sets_the_exit_code(calls: list[str], code: int) -> None:
    """Later calls do not matter."""
    given = {"probe.echo": ["a"], "probe.fails": ["x"], "probe.tags": [5]}

    result, _ = executed(*({"name": name, "arguments": given.get(name, [])} for name in calls))

    assert code == result


@pytest.mark.parametrize(
    ("line", "id", "code", "text"),
    [
        pytest.param(b"nonsense", "", "arg.not_json", f"{NO_JSON} (column 1 is not JSON)", id="no JSON"),
        pytest.param(
            b'{"id": "7", "name": "x"', "", "arg.not_json", f"{NO_JSON} (column 24 is not JSON)", id="cut off"
        ),
        pytest.param(
            b'{"id": "7", "id": "8"}',
            "",
            "arg.duplicate_key",
            f"{NO_JSON} (the JSON text contains a duplicate key)",
            id="one key twice",
        ),
        pytest.param(
            b'{"arguments": NaN}', "", "coercion.nonfinite", f"{NO_JSON} (NaN is not a JSON number)", id="no number"
        ),
        pytest.param(b"[" * 100_000, "", "limit.depth", f"{NO_JSON} (the JSON text nests too deeply)", id="deep"),
        pytest.param(
            b'{"id": ' + b"9" * 5_000 + b"}",
            "",
            "coercion.range",
            f"{NO_JSON} (a number in the JSON text is too long)",
            id="a long number",
        ),
        pytest.param(b'{"id": "\xff"}', "", "coercion.encoding", "expected UTF-8 text, got other bytes", id="no UTF-8"),
        pytest.param(b"[1, 2]", "", "arg.type", "expected a JSON object that is a tool call, got list", id="a list"),
        pytest.param(
            b'{"id": "7", "arguments": []}',
            "7",
            "arg.missing",
            "name: expected the name of a tool, got nothing",
            id="no name",
        ),
        pytest.param(
            b'{"id": "7", "type": "custom"}', "7", "call.type", f"{NO_TYPE}, got another string", id="another type"
        ),
        pytest.param(
            b"x" * (16 * 2**20 + 1), "", "limit.text", "expected at most 16777216 bytes, got more", id="too long"
        ),
    ],
)
def test_invalid_line_produces_an_error_with_its_number(line: bytes, id: str, code: str, text: str) -> None:
    """The error has the line number, the id if it is readable, and the problem; the next line runs."""
    exit_code, (_, bad, good) = executed(ECHO, line, ECHO)

    error = bad.pop("error")
    assert {"id": id, "tool": "", "ok": False, "line": 2} == bad
    assert (code, f"line 2: {text}") == (error["code"], error["message"])
    assert (3, True) == (exit_code, good["ok"])


def test_line_of_maximum_length_runs() -> None:
    """A line of exactly 16 MiB is accepted."""
    call = json.dumps(ECHO).encode()

    _, results = executed(call + b" " * (16 * 2**20 - len(call)))

    assert [True] == [result["ok"] for result in results]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_last_line_may_have_any_ending(end: bytes, tmp_path: Path) -> None:
    """The file may begin with a byte order mark."""
    file = tmp_path / "calls.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(ECHO).encode() + end)

    result = command("execute", str(file))

    assert (0, "ä") == (result.code, json.loads(result.out)["value"])


def test_non_printable_characters_are_escaped() -> None:
    """A result is one line for every program and cannot control a terminal; parsing it restores the string."""
    text = "\x7f\x9b2J\u2028\u202e\U000e0041 ä日本"

    result = command("execute", "-", stdin=json.dumps({**ECHO, "arguments": [text]}).encode())

    assert text == json.loads(result.out)["value"]
    assert '"\\u007f\\u009b2J\\u2028\\u202e\\udb40\\udc41 ä日本"' in result.out


def test_lone_surrogates_in_an_id_are_preserved() -> None:
    """They are written as JSON escapes."""
    code, (result,) = executed({**ECHO, "id": "\ud800"})

    assert (0, "\ud800") == (code, result["id"])


def test_tool_output_goes_to_stderr() -> None:
    result = command("execute", "-", stdin=b'{"name": "probe.said", "arguments": ["hello"]}')

    assert ("hello\n", 1) == (result.err, len(result.out.splitlines()))


def test_strict_converts_nothing() -> None:
    """A number in a string is refused, and so is a list as JSON text."""
    call = {"name": "probe.tags", "arguments": {"names": "[]"}}

    lax, _ = executed(call)
    strict, _ = executed(call, words=("--strict",))

    assert (0, 3) == (lax, strict)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["nowhere.jsonl"], "cannot read nowhere.jsonl: no such file or directory", id="no file"),
        pytest.param(["."], "cannot read .: is a directory", id="a directory"),
        pytest.param(
            ["-", "--json", "--report"], "--report and --json cannot be used together; omit one of them", id="both"
        ),
    ],
)
def test_unreadable_input_is_a_usage_error(words: list[str], text: str) -> None:
    """The exit code is 2."""
    result = command("execute", *words)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == result


REPORT = """\
standard input: calls, repairs, results and refusals

 1  probe.tags                OpenAI Chat
    repaired  names: str -> list, limit: str -> int
    result    {"names": ["a"], "sep": "-", "limit": 5}
 2  probe.tags                Gemini
    refused   names: expected list of string, got nothing; nams: expected only names, sep, limit,
              got an unknown name of type list (did you mean names?)
    retry     with corrected arguments
 3  probe.fails               Anthropic
    failed    it failed
              with \\x1b[31mx
    retry     later, with the same call
 4  line 5, not a tool call
    refused   line 5: expected a tool call as JSON, got invalid JSON (column 1 is not JSON)
    retry     with corrected arguments
 5  probe.trusted             plain
    refused   requires a trusted host
    retry     after the host changes its settings
    remedy    pass --trusted
 6  probe.echo                plain
    result    wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
              wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww
              wwwwwwwwwwwwwwwwwwwwwwwwwwww… (300 characters)

   6  calls
   2  ran
   1  of these with repairs, 2 in total
   3  refused before the tool ran
   1  failed in the tool

Errors, and when to retry
   1  arg.invalid   with corrected arguments
   1  probe.failed  later, with the same call
   1  arg.not_json  with corrected arguments
   1  policy.trust  after the host changes its settings

2 of 6 calls ran, 1 of these with repaired arguments; 3 were refused before the tool ran, and 1
failed in the tool.
"""


def test_report_shows_the_outcome_of_each_call() -> None:
    """It contains repairs, results, refusals and when to retry; the exit code is 0."""
    chat = {"function": {"name": "probe__tags", "arguments": '{"names": "[\\"a\\"]", "limit": "5"}'}}
    gemini = {"functionCall": {"name": "probe__tags", "args": {"nams": []}}}
    anthropic = {"type": "tool_use", "id": "1", "name": "probe__fails", "input": {"code": "x"}}
    calls = (chat, gemini, anthropic, None, {**ECHO, "name": "probe.trusted"}, {**ECHO, "arguments": ["w" * 300]})
    lines = "\n".join(json.dumps(call) if call else "\noh" for call in calls)

    result = command("execute", "-", "--report", stdin=lines.encode())

    assert CommandResult(0, REPORT) == result


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        pytest.param(b"", "   0  calls\n   0  ran\n", id="none"),
        pytest.param(b'{"name": "probe.nothing"}', "   1  call\n   1  ran\n", id="all well"),
    ],
)
def test_report_omits_empty_sections(lines: bytes, numbers: str) -> None:
    result = command("execute", "-", "--report", stdin=lines)

    assert result.out.endswith(f"\n\n{numbers}")


def test_demo_report_shows_every_kind_of_outcome(calls: bytes) -> None:
    """The demo file contains repairs and refusals of each kind, in every format."""
    result = command("execute", "-", "--report", stdin=calls, make_engine=None)

    words = ["OpenAI Chat", "OpenAI Responses", "Anthropic", "Gemini", "plain", "repaired", "refused", "failed"]
    assert (0, "", []) == (result.code, result.err, [word for word in words if word not in result.out])
    assert max(map(len, result.out.splitlines())) <= 100
