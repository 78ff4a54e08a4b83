"""``neuroscript call``: command-line values become arguments, results become output, errors become exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import CommandResult, command

FLOAT_HINT = "a string must be a decimal number, such as -1.5e3"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["math.add", "2", " 3 "], CommandResult(0, "5.0\n"), id="two values"),
        pytest.param(
            ["math.add", "-1.5e3", "2"], CommandResult(0, "-1498.0\n"), id="a negative number is not an option"
        ),
        pytest.param(["tool.Math.Add", "num2=2", "num1=1"], CommandResult(0, "3.0\n"), id="by name, in any spelling"),
        pytest.param(
            ["math__add", "1", "num2=2"], CommandResult(0, "3.0\n"), id="in order and by name, spelt for the wire"
        ),
        pytest.param(
            ["math.add", "1"], CommandResult(3, err="math.add: num2: expected float, got nothing\n"), id="missing"
        ),
        pytest.param(
            ["math.add", "x"],
            CommandResult(
                3, err=f"math.add: num1: expected float, got str ({FLOAT_HINT}); num2: expected float, got nothing\n"
            ),
            id="both problems",
        ),
        pytest.param(
            ["math.add", "1", "2", "3"],
            CommandResult(3, err="math.add: expected at most 2 arguments, got 3\n"),
            id="too many",
        ),
        pytest.param(["math.modulo", "7.0", "4"], CommandResult(0, "3\n"), id="a whole number"),
        pytest.param(["math.max", "3", "1", "2"], CommandResult(0, "3.0\n"), id="any number of values"),
        pytest.param(["math.max", "numbers=[1, 2]"], CommandResult(0, "2.0\n"), id="any number by name is a list"),
        pytest.param(
            ["math.divide", "1", "0"], CommandResult(1, err="math.divide: division by zero\n"), id="the tool fails"
        ),
        pytest.param(
            ["maths.add", "1"],
            CommandResult(2, err="unknown tool maths.add; did you mean math.add?\n"),
            id="no such tool",
        ),
    ],
)
def test_standard_tool_is_called(words: list[str], expected: CommandResult) -> None:
    """The engine converts the values; results go to stdout, errors to stderr with their exit codes."""
    result = command("call", *words, make_engine=None)

    assert CommandResult(expected.code, expected.out, expected.err and f"neuroscript: {expected.err}") == result


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["probe.echo", "text"], "text\n", id="a string is printed plain"),
        pytest.param(["probe.echo", "5"], "5\n", id="a string that looks like a number stays a string"),
        pytest.param(["probe.echo", ""], "\n", id="an empty text"),
        pytest.param(
            ["probe.echo", "ä\x1b[1m日本\u202e"], "ä\x1b[1m日本\u202e\n", id="a string is unchanged in a pipe"
        ),
        pytest.param(["probe.echo", "a=b"], "a=b\n", id="no argument has that key"),
        pytest.param(["probe.echo", "text=a=b"], "a=b\n", id="the rest may hold = too"),
        pytest.param(["probe.echo", "--", "text=a"], "text=a\n", id="a value behind --"),
        pytest.param(["probe.echo", "--", "--json"], "--json\n", id="an option behind --"),
        pytest.param(["probe.echo", "--", "--"], "--\n", id="a second -- is a value"),
        pytest.param(["--", "probe.echo", "a"], "a\n", id="-- before the name"),
        pytest.param(["probe.echo", "-x"], "-x\n", id="no option"),
        pytest.param(["probe.echo", "--jso"], "--jso\n", id="no option is cut short"),
        pytest.param(["probe.echo", "-"], "-\n", id="a dash"),
        pytest.param(["probe.tags", '["b","a"]'], '{"names": ["b", "a"], "sep": "-", "limit": null}\n', id="a list"),
        pytest.param(["probe.tags", "[]", "sep=", "limit="], '{"names": [], "sep": "", "limit": null}\n', id="empty"),
        pytest.param(["probe.tags", "[]", "é", "null"], '{"names": [], "sep": "é", "limit": null}\n', id="null"),
        pytest.param(["probe.nothing"], "null\n", id="nothing"),
        pytest.param(["probe.data"], '{"$base64": "AP8="}\n', id="bytes"),
        pytest.param(["probe.joined", ",", "a", "b"], "a,b\n", id="variadic"),
        pytest.param(["probe.joined", "sep=,", 'parts=["a", "b"]'], "a,b\n", id="variadic by name"),
        pytest.param(["probe.odd", "a=1", "a=b=2", "-c=3"], '["1", "2", "3", null]\n', id="keys that look like others"),
        pytest.param(["probe.odd", "--json=4"], '[null, null, null, "4"]\n', id="a key that looks like an option"),
        pytest.param(["probe.said", "hello"], "hello\nhello\n", id="what a tool prints comes first"),
        pytest.param(["--strict", "probe.echo", "a"], "a\n", id="strict, before the name"),
        pytest.param(["probe.echo", "a", "--strict"], "a\n", id="strict, behind the words"),
    ],
)
def test_result_is_printed(words: list[str], expected: str) -> None:
    """A string is printed unchanged, anything else as one line of JSON."""
    result = command("call", *words)

    assert CommandResult(0, expected) == result


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        pytest.param(
            ["probe.fails", "x"], 1, "probe.fails: it failed\\nwith \\x1b[31mx", id="a message of the tool is escaped"
        ),
        pytest.param(
            ["probe.fails", "bug"],
            1,
            "probe.fails: the tool failed (ValueError); add --traceback to see where",
            id="a bug",
        ),
        pytest.param(
            ["probe.fails", "return"], 1, "probe.fails: result: expected string, got int", id="a wrong result"
        ),
        pytest.param(["other.tool\x1b[2J"], 2, "unknown tool other.tool\\x1b[2j", id="not found"),
        pytest.param([""], 2, "unknown tool ", id="an empty name"),
        pytest.param([], 2, "expected the name of a tool (see neuroscript call --help)", id="no name"),
        pytest.param(["--json"], 2, "expected the name of a tool (see neuroscript call --help)", id="an option alone"),
        pytest.param(
            ["probe.echo", "--input-json"],
            2,
            "argument --input-json: expected one argument (see neuroscript call --help)",
            id="half an option",
        ),
        pytest.param(
            ["probe.echo", "text=a", "b", "text=c"],
            3,
            "probe.echo: text: expected one value, got 3 values",
            id="given three times",
        ),
        pytest.param(
            ["probe.tags", "[1]", "a", "1", "2", "sep=b"],
            3,
            "probe.tags: expected at most 3 arguments, got 5; sep: expected one value, got 2 values; "
            "names[0]: expected string, got int",
            id="all problems at once",
        ),
        pytest.param(
            ["probe.joined", ",", "a", "parts=[]"],
            3,
            "probe.joined: parts: expected one value, got 2 values; parts: expected at least one string, got nothing",
            id="variadic both ways",
        ),
        pytest.param(
            ["probe.trusted"],
            4,
            "probe.trusted: requires a trusted host; pass --trusted",
            id="refused before its arguments are looked at",
        ),
        pytest.param(
            ["probe.trusted", "a", "text=b"],
            4,
            "probe.trusted: requires a trusted host; pass --trusted",
            id="refused before its words are looked at",
        ),
        pytest.param(["probe.deep"], 4, "probe.deep: nested calls may be at most 16 deep", id="a limit"),
        pytest.param(
            ["--strict", "probe.tags", "[]"],
            3,
            "probe.tags: names: expected list of string, got str",
            id="strict takes no text for a list",
        ),
        pytest.param(
            ["probe.slow"],
            124,
            "probe.slow: did not end within 0.01 s and was abandoned and may still run",
            id="a timeout",
        ),
    ],
)
def test_error_is_one_line(words: list[str], code: int, text: str) -> None:
    """The exit code depends on the kind of error; values and control characters are not printed."""
    result = command("call", *words)

    assert CommandResult(code, "", f"neuroscript: {text}\n") == result


def test_json_prints_the_full_result() -> None:
    """It contains value and repairs in one line."""
    result = command("call", "--json", "probe.tags", '["a"]', "limit=5")

    data = json.loads(result.out)
    assert 0 <= data.pop("seconds") < 5
    assert {
        "id": "",
        "tool": "probe.tags",
        "ok": True,
        "value": {"names": ["a"], "sep": "-", "limit": 5},
        "repairs": [
            {"where": "names", "got": "str", "became": "list"},
            {"where": "limit", "got": "str", "became": "int"},
        ],
    } == data
    assert (0, "", 1) == (result.code, result.err, result.out.count("\n"))


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        pytest.param(["probe.fails", "x"], 1, ("probe.failed", "later"), id="failed"),
        pytest.param(["probe.nope"], 2, ("tool.not_found", "model"), id="not found"),
        pytest.param(["probe.echo", "a", "text=b"], 3, ("arg.duplicate", "model"), id="arguments"),
        pytest.param(["probe.trusted"], 4, ("policy.trust", "host"), id="refused"),
    ],
)
def test_json_prints_errors(words: list[str], code: int, error: tuple[str, str]) -> None:
    """The error is in the result, and the exit code is the same."""
    result = command("call", *words, "--json")

    found = json.loads(result.out)["error"]
    assert (code, error, "") == (result.code, (found["code"], found["retry"]), result.err)


def test_json_sends_tool_output_to_stderr() -> None:
    """A program cannot mistake it for the result."""
    result = command("call", "--json", "probe.said", "hello")

    assert ("hello", "hello\n") == (json.loads(result.out)["value"], result.err)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"text": "ä"}', CommandResult(0, "ä\n"), id="by name"),
        pytest.param('\ufeff["a"]\r\n', CommandResult(0, "a\n"), id="in order, as an editor of Windows saves it"),
        pytest.param(
            "", CommandResult(3, err="neuroscript: probe.echo: text: expected string, got nothing\n"), id="nothing"
        ),
        pytest.param(
            '{"text": ',
            CommandResult(
                3, err="neuroscript: probe.echo: expected arguments as JSON, got str (line 1, column 10 is not JSON)\n"
            ),
            id="cut off",
        ),
        pytest.param(
            "5",
            CommandResult(3, err="neuroscript: probe.echo: expected a JSON object or array of arguments, got int\n"),
            id="a number",
        ),
    ],
)
def test_arguments_are_read_from_a_file_or_stdin(text: str, expected: CommandResult, tmp_path: Path) -> None:
    """``--input-json`` accepts a JSON object or array from both."""
    file = tmp_path / "arguments.json"
    file.write_text(text, encoding="utf-8", newline="")

    from_file = command("call", "probe.echo", "--input-json", str(file))
    from_stdin = command("call", "--input-json=-", "probe.echo", stdin=text.encode())

    assert (expected, expected) == (from_file, from_stdin)


@pytest.mark.parametrize(
    ("words", "stdin", "text"),
    [
        pytest.param(
            ["--input-json", "nowhere.json"], b"", "cannot read nowhere.json: no such file or directory", id="no file"
        ),
        pytest.param(["--input-json", "/"], b"", "cannot read /: is a directory", id="a directory"),
        pytest.param(["--input-json", "a\0b"], b"", "cannot read a\\x00b: valueerror", id="no path"),
        pytest.param(["--input-json", "-"], b"\xff\xfe", "standard input is not UTF-8 text", id="not UTF-8"),
        pytest.param(
            ["--input-json", "-"],
            b" " * (16 * 2**20 + 1),
            "standard input has more than 16777216 bytes",
            id="too long",
        ),
        pytest.param(
            ["--input-json", "-", "text=a"],
            b"{}",
            "pass the arguments on the command line or with --input-json, not both",
            id="words and a file",
        ),
    ],
)
def test_unreadable_arguments_are_a_usage_error(words: list[str], stdin: bytes, text: str) -> None:
    """The tool is not called."""
    result = command("call", "probe.echo", *words, stdin=stdin)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == result


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["lst"], "unknown command lst; did you mean list? (see neuroscript --help)", id="a near command"),
        pytest.param(["\x1b[2J"], "unknown command \\x1b[2J (see neuroscript --help)", id="control characters"),
        pytest.param(
            ["list", "a", "b\x1b"], "unexpected argument b\\x1b (see neuroscript list --help)", id="a word too many"
        ),
        pytest.param(
            ["list", "x", "y" * 500],
            f"unexpected argument {'y' * 180}… (see neuroscript list --help)",
            id="a long word",
        ),
        pytest.param(
            ["show"], "the following arguments are required: NAME (see neuroscript show --help)", id="no name"
        ),
        pytest.param(["completion", "csh"], "unknown shell csh; choose from bash, zsh, fish", id="another shell"),
    ],
)
def test_invalid_arguments_are_a_usage_error(words: list[str], text: str) -> None:
    """There is one message with a reference to the help."""
    result = command(*words)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == result


def test_broken_plugin_only_produces_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that loads tools names the broken distribution; the exit code does not change."""
    info = tmp_path / "broken_tools-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-tools\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[neuroscript.toolsets]\nbroken = nowhere_to_be_found:toolset\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "neuroscript-std,broken-tools")

    result = command("call", "math.add", "1", "2", make_engine=None)

    reason = "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    warning = f"warning: broken-tools 1.2: entry point broken cannot be loaded: {reason}"
    assert CommandResult(0, "3.0\n", f"neuroscript: {warning}\n") == result


def test_internal_error_is_one_line() -> None:
    """It has an exit code and a location, and no traceback."""

    def broken(**_: Any) -> Any:
        raise ZeroDivisionError("a secret value")

    result = command("list", make_engine=broken)

    assert (5, "") == (result.code, result.out)
    assert result.err.startswith("neuroscript: internal error: ZeroDivisionError at test_call.py:")
    assert result.err.endswith("; please report it\n")
