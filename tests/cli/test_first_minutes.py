"""The first ten minutes of a new user: wrong commands, and the messages about them."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, process
from tests.core_only import alone, installed

from neuroscript import Engine, ExecutionPolicy
from neuroscript._imports import install_hint
from neuroscript.discovery.bundles import EXTRAS
from neuroscript.discovery.catalog import FIRST_PARTY

CLI = "import sys\nfrom neuroscript.cli import main\nsys.exit(main(sys.argv[1:]))"


def failure(*lines: str, code: int = 2) -> CommandResult:
    """Return a command that only printed these messages."""
    return CommandResult(code, "", "".join(f"neuroscript: {line}\n" for line in lines))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Help


def test_help_is_a_command() -> None:
    """It prints the same as --help, and exits with 0."""
    whole, call, check = (command(*words, "--help") for words in ((), ("call",), ("policy", "check")))

    assert whole.out.startswith("usage: neuroscript ") and "\n    help " in whole.out
    assert command("help") == whole
    assert command("help", "call") == call
    assert command("help", "call", "math.add") == call
    assert command("help", "--traceback", "--", "call") == call
    assert command("help", "policy", "check") == check
    assert command("help", "--help").out.startswith("usage: neuroscript help ")
    assert [each.code for each in (whole, call, check)] == [0, 0, 0]


def test_no_arguments_print_help_to_stderr() -> None:
    """The exit code is 2, and stdout is empty, so that a script with an empty variable fails."""
    assert command() == CommandResult(2, "", command("--help").out)


@pytest.mark.parametrize("name", ["math.add", "math__add"])
def test_help_about_a_tool_suggests_show(name: str) -> None:
    assert command("help", name) == failure(
        f"{name} is not a command; to show a tool: neuroscript show {name} (see neuroscript --help)"
    )


# Names of commands, actions and options


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["lst"], "unknown command lst; did you mean list? (see neuroscript --help)"),
        (["describe", "math.add"], "unknown command describe; did you mean show? (see neuroscript --help)"),
        (["ls"], "unknown command ls; did you mean list? (see neuroscript --help)"),
        (["exec", "-"], "unknown command exec; did you mean execute? (see neuroscript --help)"),
        (["version"], "unknown command version; did you mean --version? (see neuroscript --help)"),
        (["nonsense"], "unknown command nonsense (see neuroscript --help)"),
        (
            ["math.add", "1", "2"],
            "math.add is not a command; to call a tool: neuroscript call math.add (see neuroscript --help)",
        ),
        (["help", "lst"], "unknown command lst; did you mean list? (see neuroscript --help)"),
        (["policy", "chek"], "unknown action chek; did you mean check? (see neuroscript policy --help)"),
        (["policy", "what"], "unknown action what; choose from check, explain (see neuroscript policy --help)"),
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
            "--json must follow the command: neuroscript list --json (see neuroscript list --help)",
        ),
        (
            ["call", "--timeot", "5", "probe.echo", "a"],
            "unknown option --timeot; did you mean --timeout? (see neuroscript call --help)",
        ),
        (
            ["ask", "--api", "openai", "hi"],
            "argument --api: expected one of openai-chat, openai-responses, anthropic; "
            "did you mean openai-chat? (see neuroscript ask --help)",
        ),
    ],
)
def test_misspelled_argument_gets_a_suggestion(words: list[str], text: str) -> None:
    """Each message refers to the help, and none repeats the value of an option."""
    assert command(*words) == failure(text)


# Names of tools


@pytest.mark.parametrize("before", [("call",), ("show",), ("policy", "explain")])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("add", ("unknown tool add; did you mean math.add or git.add?",)),
        ("math.plus", ("unknown tool math.plus; did you mean math.add?",)),
        (
            "math",
            (
                "unknown tool math; did you mean math.add or math.abs or math.min?",
                "math is a group of tools: neuroscript list 'math.*'",
            ),
        ),
    ],
)
def test_similar_tools_match_by_last_part(before: tuple[str, ...], name: str, lines: tuple[str, ...]) -> None:
    """This holds for every command that takes a tool; the most similar one is first."""
    assert command(*before, name, make_engine=None) == failure(*lines)


def test_group_and_tool_as_two_words_get_a_hint() -> None:
    """Users of other command lines write them that way."""
    assert command("call", "math", "add", "1", "2", make_engine=None) == failure(
        "unknown tool math; did you mean math.add or math.abs or math.min?",
        "write the group and the name as one word: neuroscript call math.add",
    )


def test_pattern_without_stars_gets_a_suggestion() -> None:
    """A group gets its star, and a name its group."""
    assert command("list", "add", make_engine=None) == failure(
        "no tool matches add; did you mean math.add or git.add?", code=0
    )
    assert command("list", "mth.*", make_engine=None) == failure(
        "no tool matches mth.*; did you mean 'math.*'?", code=0
    )
    assert command("list", "mth", make_engine=None) == failure("no tool matches mth; did you mean 'math.*'?", code=0)
    assert command("list", "math", make_engine=None) == failure("no tool matches math; did you mean 'math.*'?", code=0)


# Only the core is installed


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with only the core and its libraries installed."""
    return installed(tmp_path_factory.mktemp("core"))


def in_core(core: Path, *words: str) -> CommandResult:
    """Run the command with only the core installed."""
    done = alone(core, CLI, *words, env=dict(os.environ))
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("before", "name", "extra"),
    [
        (("call",), "math.add", "std"),
        (("call",), "os.getenv", "shell"),
        (("show",), "math__add", "std"),
        (("policy", "explain"), "git.status", "git"),
    ],
)
def test_missing_distribution_of_a_tool_is_named(core: Path, before: tuple[str, ...], name: str, extra: str) -> None:
    """Each command that takes a tool prints the install command."""
    tool = name.replace("__", ".")
    group = tool.partition(".")[0]

    assert in_core(core, *before, name) == failure(
        f"unknown tool {tool}",
        f"neuroscript-{extra} provides the {group} tools and is not installed: {install_hint(extra)}",
    )


def test_empty_list_says_what_to_install(core: Path) -> None:
    """With or without a pattern."""
    first = f"install neuroscript-std to get started: {install_hint('std')}"

    assert in_core(core, "list") == failure(f"no tools are available; {first}", code=0)
    assert in_core(core, "list", "git.*") == failure(
        f"no tool matches git.*; neuroscript-git provides the git tools and is not installed: {install_hint('git')}",
        code=0,
    )
    assert in_core(core, "call", "add") == failure("unknown tool add", f"no tools are available; {first}")


def test_disabled_distribution_of_a_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment disables it."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "neuroscript-fs")

    assert command("call", "math.add", "1", "2", make_engine=None) == failure(
        "unknown tool math.add",
        "neuroscript-std provides the math tools and is installed but not loaded: neuroscript plugins list",
    )


def test_table_of_groups_matches_the_distributions() -> None:
    """It has all registered groups, and each distribution has an extra."""
    found: dict[str, set[str]] = {}
    with Engine(policy=ExecutionPolicy(trusted=True)) as engine:
        for tool in engine.infos.values():
            found.setdefault(tool.origin.partition(" ")[0], set()).add(tool.spec.full_name.partition(".")[0])
    projects = [tomllib.loads(file.read_text())["project"]["name"] for file in ROOT.glob("plugins/*/pyproject.toml")]

    assert {name: found[name] for name in projects} == FIRST_PARTY
    assert {*EXTRAS.values()} == {*projects}


# Arguments of a call


def test_timeout_may_come_before_or_after_the_name() -> None:
    """It ends the call with exit code 124."""
    text = "probe.waits: did not end within 0.05 s and was abandoned and may still run"
    late = CommandResult(124, "waiting\n", f"neuroscript: {text}\n")

    assert command("call", "--timeout", "0.05", "probe.waits", "1") == late
    assert command("call", "probe.waits", "1", "--timeout", "0.05") == late
    assert command("call", "probe.waits", "1", "--timeout=0.05") == late
    assert command("call", "probe.echo", "a", "--timeout", "20") == CommandResult(0, "a\n")
    assert command("call", "probe.echo", "a", "--timeout", "soon") == failure(
        "argument --timeout: expected a number of seconds above 0 (see neuroscript call --help)"
    )


def test_timeout_applies_to_each_call_of_a_file() -> None:
    """A call that times out does not stop the others."""
    lines = [
        {"id": "1", "name": "probe.waits", "arguments": [1]},
        {"id": "2", "name": "probe.echo", "arguments": ["a"]},
    ]
    result = command("execute", "-", "--timeout", "0.05", stdin="\n".join(map(json.dumps, lines)).encode())

    first, second = map(json.loads, result.out.splitlines())
    error = first["error"]
    assert (result.code, error["code"], error["retry"], second["value"]) == (124, "call.timeout", "later", "a")


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ["math.add", "1", "2", "--jsno"],
            "math.add: expected at most 2 arguments, got 3",
            "--jsno is not an option of call, so it was passed as a value; did you mean --json?",
        ),
        (
            ["math.add", "1", "--num2", "2"],
            "math.add: num2: expected float, got str (a string must be a decimal number, such as -1.5e3); "
            "expected at most 2 arguments, got 3",
            "--num2 is not an option of call, so it was passed as a value; write num2=VALUE",
        ),
        (
            ["math.add", "1", "--num2=2"],
            "math.add: num2: expected float, got str (a string must be a decimal number, such as -1.5e3)",
            "--num2 is not an option of call, so it was passed as a value; write num2=VALUE",
        ),
        (
            ["math.add", '{"num1": 1, "num2": 2}'],
            "math.add: num1: expected float, got str (a string must be a decimal number, such as -1.5e3); "
            "num2: expected float, got nothing",
            "to pass all arguments as JSON: neuroscript call math.add --input-json '{...}'",
        ),
        (
            ["math.add", "{'num1': 1, 'num2': 2}"],
            "math.add: num1: expected float, got str (a string must be a decimal number, such as -1.5e3); "
            "num2: expected float, got nothing",
            "to pass all arguments as JSON: neuroscript call math.add --input-json '{...}'; "
            'JSON requires double quotes: \'{"name": "value"}\'',
        ),
        (
            ["math.add", "--input-json", "{'num1': 1, 'num2': 2}"],
            "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
            'JSON requires double quotes around keys and strings: \'{"name": "value"}\'',
        ),
        (
            ["math.add", "--input-json", "{num1: 1, num2: 2}"],
            "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
            'JSON requires double quotes around keys and strings: \'{"name": "value"}\'',
        ),
        (
            ["math.max", "numbers=['1', '2']"],
            None,
            'JSON requires double quotes around keys and strings: \'{"name": "value"}\'',
        ),
    ],
    ids=["option", "argument", "argument with =", "JSON", "quoted", "file", "bare names", "key"],
)
def test_misread_argument_gets_a_hint(words: list[str], error: str | None, hint: str) -> None:
    """The hint is a second line after the error."""
    result = command("call", *words, make_engine=None)

    first, second = result.err.splitlines()
    assert (result.code, result.out, second) == (3, "", f"neuroscript: {hint}")
    assert error is None or first == f"neuroscript: {error}"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        (
            "num3=2",
            "argument 2 looks like key=value, but math.add has no argument with that name; did you mean num1 or num2?",
        ),
        (
            "b=2",
            "argument 2 looks like key=value, but math.add has no argument with that name; its arguments are num1, num2",
        ),
    ],
)
def test_unknown_key_gets_a_hint(word: str, hint: str) -> None:
    """It lists the valid keys, and does not repeat the argument, which may be a value."""
    result = command("call", "math.add", "1", word, make_engine=None)

    assert result == failure(
        "math.add: num2: expected float, got str (a string must be a decimal number, such as -1.5e3)", hint, code=3
    )


def test_input_json_accepts_json_or_a_file(here: Path) -> None:
    """A value that begins with a brace or a bracket is JSON."""
    (here / "args.json").write_text('{"num1": 1, "num2": 2}')

    for value in ('{"num1": 1, "num2": 2}', " [1, 2]", "args.json"):
        assert command("call", "math.add", "--input-json", value, make_engine=None) == CommandResult(0, "3.0\n")
    assert command("call", "math.add", "--input-json", "none.json", make_engine=None) == failure(
        "cannot read none.json: no such file or directory"
    )


def test_single_quotes_in_a_file_get_a_hint(here: Path) -> None:
    (here / "args.json").write_text("{'num1': 1}")

    assert command("call", "math.add", "--input-json", "args.json", make_engine=None) == failure(
        "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
        'JSON requires double quotes around keys and strings: \'{"name": "value"}\'',
        code=3,
    )


@pytest.mark.parametrize(
    "words", [["x"], ["-5", "y"], ["aGVsbG8=", "1"], ["aGVsbA==", "1"], ["[1, 2"], ["--", "--jsno", "1", "2"]]
)
def test_other_wrong_arguments_get_no_hint(words: list[str]) -> None:
    """Only arguments that finding like an option or like JSON get one."""
    result = command("call", "math.add", *words, make_engine=None)

    assert (result.code, len(result.err.splitlines())) == (3, 1)


def test_json_output_has_no_hint() -> None:
    """stderr remains empty."""
    result = command("call", "--json", "math.add", "1", "2", "--jsno", make_engine=None)

    assert (result.code, result.err) == (3, "")


# A sandbox


@pytest.mark.parametrize("before", [("call",), ("call", "--dry-run"), ("execute",), ("run",)])
def test_missing_sandbox_is_an_error(before: tuple[str, ...], here: Path) -> None:
    """The message says how to create it."""
    (here / "plan.toml").write_text('[[nodes]]\nname = "a"\ntool = "probe.nothing"\n')
    last = {"call": "probe.nothing", "execute": "-", "run": "plan.toml"}[before[0]]

    assert command(*before, "--sandbox", "bxo", last) == failure(
        "--sandbox: bxo does not exist; correct the path, or add --create-sandbox to create it"
    )
    assert not (here / "bxo").exists()


def test_create_option_creates_the_sandbox(here: Path) -> None:
    """Parent directories are created too; an existing directory is used as it is."""
    for _ in range(2):
        assert command("call", "--sandbox", "a/box", "--create-sandbox", "probe.nothing") == CommandResult(0, "null\n")
        assert (here / "a" / "box").is_dir()
    assert command("call", "--sandbox", "a/box", "probe.nothing") == CommandResult(0, "null\n")


def test_dry_run_creates_nothing(here: Path) -> None:
    result = command("call", "--dry-run", "--sandbox", "box", "--create-sandbox", "probe.nothing")

    assert (result.code, result.err) == (0, "")
    assert not (here / "box").exists()


def test_create_option_needs_a_sandbox() -> None:
    """The default sandbox is always created."""
    assert command("call", "--create-sandbox", "probe.nothing") == failure(
        "--create-sandbox creates the directory of --sandbox; add --sandbox DIR"
    )


# Tables


def test_piped_list_is_not_padded_to_its_longest_row() -> None:
    """A long signature shifts only its own row."""
    result = process("list")

    rows = result.out.splitlines()
    tools = {each["name"]: each for each in json.loads(process("list", "--json").out)}
    assert (result.code, len(rows)) == (0, len(tools))
    for row in rows:
        tool = tools[row.split()[0]]
        columns = (max(map(len, tools)), max(len(tool["signature"]), 48))
        text = row.partition(tool["signature"])[2].strip()
        assert len(row) <= sum(columns) + len("    ") + len(text)
        assert " " * 49 not in row
    assert len({row.index(" (") for row in rows}) == 1


def test_wide_cell_shifts_only_its_own_row() -> None:
    """This holds for every table that a program may read."""
    from neuroscript.cli.terminal.output import Cell, Rows, align_rows

    rows = Rows((tuple(map(Cell, ("a", "b" * 60, "c"))), tuple(map(Cell, ("aa", "b", "c")))), wrapped=False)

    assert [*align_rows(rows)] == [f"a   {'b' * 60}  c", f"aa  b{' ' * 49}c"]


# The doctor


def test_named_sandbox_that_does_not_exist_is_broken(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do not create it without --create-sandbox."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "")
    result = command("doctor", "--json", "--sandbox", str(here / "bxo"))

    [finding] = [each for each in json.loads(result.out)["checks"] if each["subject"] == "directory"]
    assert (finding["state"], finding["text"].rpartition("/")[2]) == ("broken", "bxo does not exist")
    assert finding["fix"].startswith("mkdir -p ")
    assert not (here / "bxo").exists()


def test_short_name_of_a_distribution_gets_a_suggestion() -> None:
    """The short name is that of the extra."""
    assert command("plugins", "show", "std", make_engine=None) == failure(
        "unknown plugin std; did you mean neuroscript-std?"
    )


def test_optional_parts_are_not_problems(core: Path) -> None:
    """A working core says so, and counts the optional parts."""
    result = in_core(core, "doctor")

    assert result.code == 0
    assert "missing" not in result.out
    assert result.out.count(" optional ") >= 17
    assert result.out.splitlines()[-1].startswith("everything in use works; 1 warning; ")
    assert result.out.splitlines()[-1].endswith(" optional parts are not set up")
