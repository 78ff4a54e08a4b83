"""What a new user meets in the first ten minutes: wrong commands, and what the command says about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Ran, command

CLI = "import sys\nfrom neuroscript.cli import main\nsys.exit(main(sys.argv[1:]))"


def said(*lines: str, code: int = 2) -> Ran:
    """Return a command that only wrote these sentences."""
    return Ran(code, "", "".join(f"neuroscript: {line}\n" for line in lines))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Help


def test_help_is_a_command() -> None:
    """It prints what --help prints, and succeeds."""
    whole, call, check = (command(*words, "--help") for words in ((), ("call",), ("policy", "check")))

    assert whole.out.startswith("usage: neuroscript ") and "\n    help " in whole.out
    assert command("help") == whole
    assert command("help", "call") == call
    assert command("help", "call", "math.add") == call
    assert command("help", "--traceback", "--", "call") == call
    assert command("help", "policy", "check") == check
    assert command("help", "--help").out.startswith("usage: neuroscript help ")
    assert [each.code for each in (whole, call, check)] == [0, 0, 0]


def test_no_words_show_help_on_stderr() -> None:
    """With 2: a script whose variable is empty has run nothing, and its results stay empty."""
    assert command() == Ran(2, "", command("--help").out)


@pytest.mark.parametrize("name", ["math.add", "math__add"])
def test_help_about_a_tool_names_show(name: str) -> None:
    """Tools have a command of their own for that."""
    assert command("help", name) == said(
        f"{name} is not a command; to show a tool: neuroscript show {name} (see neuroscript --help)"
    )


# Names of commands, actions and options


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lst"], "no command is called lst; did you mean list? (see neuroscript --help)"),
        (["describe", "math.add"], "no command is called describe; did you mean show? (see neuroscript --help)"),
        (["ls"], "no command is called ls; did you mean list? (see neuroscript --help)"),
        (["exec", "-"], "no command is called exec; did you mean execute? (see neuroscript --help)"),
        (["version"], "no command is called version; did you mean --version? (see neuroscript --help)"),
        (["nonsense"], "no command is called nonsense (see neuroscript --help)"),
        (
            ["math.add", "1", "2"],
            "math.add is not a command; to call a tool: neuroscript call math.add (see neuroscript --help)",
        ),
        (["help", "lst"], "no command is called lst; did you mean list? (see neuroscript --help)"),
        (["policy", "chek"], "unknown question chek; did you mean check? (see neuroscript policy --help)"),
        (["policy", "what"], "unknown question what; there are check, explain (see neuroscript policy --help)"),
        (["mcp", "srve"], "unknown action srve; did you mean serve? (see neuroscript mcp --help)"),
        (["runs", "lst"], "unknown action lst; did you mean list? (see neuroscript runs --help)"),
        (["audit", "shw", "x"], "unknown action shw; did you mean show? (see neuroscript audit --help)"),
        (["plugins", "chek"], "unknown action chek; did you mean check? (see neuroscript plugins --help)"),
        (["trace", "dif"], "unknown action dif; did you mean diff? (see neuroscript trace --help)"),
        (["models", "lst"], "unknown action lst; did you mean list? (see neuroscript models --help)"),
        (["list", "--jsn"], "unknown option --jsn; did you mean --json? (see neuroscript list --help)"),
        (["show", "--jsn=x", "a.b"], "unknown option --jsn; did you mean --json? (see neuroscript show --help)"),
        (["ask", "--key", "secret", "hi"], "unknown option --key (see neuroscript ask --help)"),
        (["ask", "--key=secret", "hi"], "unknown option --key (see neuroscript ask --help)"),
        (
            ["policy", "check", "--jsn"],
            "unknown option --jsn; did you mean --json? (see neuroscript policy check --help)",
        ),
        (["list", "a", "b"], "unexpected argument b (see neuroscript list --help)"),
        (["--verson"], "unknown option --verson; did you mean --version? (see neuroscript --help)"),
        (
            ["--json", "list"],
            "--json stands before the command; write it after: neuroscript list --json (see neuroscript list --help)",
        ),
        (
            ["ask", "--api", "openai", "hi"],
            "argument --api: expected one of openai-chat, openai-responses, anthropic; "
            "did you mean openai-chat? (see neuroscript ask --help)",
        ),
    ],
)
def test_a_wrong_word_gets_the_nearest_right_one(words: list[str], text: str) -> None:
    """Each says where to read on, and none repeats the value of an option."""
    assert command(*words) == said(text)
