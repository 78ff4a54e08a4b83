"""What a new user meets in the first ten minutes: wrong commands, and what the command says about them."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, Ran, command, process
from tests.core_only import alone, installed

from neuroscript import Engine, ExecutionPolicy
from neuroscript.discovery.bundles import EXTRAS
from neuroscript.discovery.catalog import FIRST_PARTY

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
def test_a_wrong_word_gets_the_nearest_right_one(words: list[str], text: str) -> None:
    """Each says where to read on, and none repeats the value of an option."""
    assert command(*words) == said(text)


# Names of tools


@pytest.mark.parametrize("before", [("call",), ("show",), ("policy", "explain")])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("add", ("no tool is called add; did you mean math.add or git.add?",)),
        ("math.plus", ("no tool is called math.plus; did you mean math.add?",)),
        (
            "math",
            (
                "no tool is called math; did you mean math.add or math.abs or math.min?",
                "math is a group of tools: neuroscript list 'math.*'",
            ),
        ),
    ],
)
def test_near_tools_match_by_last_word(before: tuple[str, ...], name: str, lines: tuple[str, ...]) -> None:
    """In every command that takes a tool; the nearest is the first."""
    assert command(*before, name, make_engine=None) == said(*lines)


def test_a_group_and_a_tool_are_one_word() -> None:
    """As a user of other command lines writes them."""
    assert command("call", "math", "add", "1", "2", make_engine=None) == said(
        "no tool is called math; did you mean math.add or math.abs or math.min?",
        "write the group and the name as one word: neuroscript call math.add",
    )


def test_a_pattern_without_stars_is_near_too() -> None:
    """A group has its stars, and a name its group."""
    assert command("list", "add", make_engine=None) == said(
        "no tool matches add; did you mean math.add or git.add?", code=0
    )
    assert command("list", "mth.*", make_engine=None) == said("no tool matches mth.*; did you mean 'math.*'?", code=0)
    assert command("list", "mth", make_engine=None) == said("no tool matches mth; did you mean 'math.*'?", code=0)
    assert command("list", "math", make_engine=None) == said("no tool matches math; did you mean 'math.*'?", code=0)


# An installation of the core alone


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the core and its libraries are installed, and nothing else."""
    return installed(tmp_path_factory.mktemp("core"))


def in_core(core: Path, *words: str) -> Ran:
    """Run the command where nothing but the core is installed."""
    done = alone(core, CLI, *words, env=dict(os.environ))
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("name", "extra"), [("math.add", "std"), ("math__add", "std"), ("git.status", "git"), ("os.getenv", "shell")]
)
@pytest.mark.parametrize("before", [("call",), ("show",), ("policy", "explain")])
def test_a_core_says_which_distribution_brings_a_tool(
    core: Path, before: tuple[str, ...], name: str, extra: str
) -> None:
    """With the line that installs it."""
    tool = name.replace("__", ".")
    group = tool.partition(".")[0]

    assert in_core(core, *before, name) == said(
        f"no tool is called {tool}",
        f'neuroscript-{extra} brings the tools of {group} and is not installed: pip install "neuroscript[{extra}]"',
    )


def test_a_core_lists_nothing_and_says_what_to_install(core: Path) -> None:
    """Whether there is a pattern or not."""
    first = 'neuroscript-std brings the first ones: pip install "neuroscript[std]"'

    assert in_core(core, "list") == said(f"there are no tools; {first}", code=0)
    assert in_core(core, "list", "git.*") == said(
        "no tool matches git.*; neuroscript-git brings the tools of git and is not installed: "
        'pip install "neuroscript[git]"',
        code=0,
    )
    assert in_core(core, "call", "add") == said("no tool is called add", f"there are no tools; {first}")


def test_an_installed_distribution_that_is_not_chosen_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the environment that leaves it out."""
    monkeypatch.setenv("NEUROSCRIPT_PLUGINS", "neuroscript-fs")

    assert command("call", "math.add", "1", "2", make_engine=None) == said(
        "no tool is called math.add",
        "neuroscript-std brings the tools of math and is installed, but it is not loaded: neuroscript plugins list",
    )


def test_the_table_of_groups_is_that_of_our_distributions() -> None:
    """As their tools are registered; each distribution has an extra that installs it."""
    found: dict[str, set[str]] = {}
    with Engine(policy=ExecutionPolicy(trusted=True)) as engine:
        for tool in engine.infos.values():
            found.setdefault(tool.origin.partition(" ")[0], set()).add(tool.spec.full_name.partition(".")[0])
    projects = [tomllib.loads(file.read_text())["project"]["name"] for file in ROOT.glob("plugins/*/pyproject.toml")]

    assert {name: found[name] for name in projects} == FIRST_PARTY
    assert {*EXTRAS.values()} == {*projects}


# Words of a call


def test_a_timeout_stands_before_or_behind_the_name() -> None:
    """It ends the call, with the code of timeouts."""
    text = "probe.waits: did not end within 0.05 s and was abandoned and may still run"
    late = Ran(124, "waiting\n", f"neuroscript: {text}\n")

    assert command("call", "--timeout", "0.05", "probe.waits", "1") == late
    assert command("call", "probe.waits", "1", "--timeout", "0.05") == late
    assert command("call", "probe.waits", "1", "--timeout=0.05") == late
    assert command("call", "probe.echo", "a", "--timeout", "20") == Ran(0, "a\n")
    assert command("call", "probe.echo", "a", "--timeout", "soon") == said(
        "argument --timeout: expected a number of seconds above 0 (see neuroscript call --help)"
    )


def test_calls_of_a_file_have_a_timeout_each() -> None:
    """One that takes too long stops no other."""
    lines = [
        {"id": "1", "name": "probe.waits", "arguments": [1]},
        {"id": "2", "name": "probe.echo", "arguments": ["a"]},
    ]
    ran = command("execute", "-", "--timeout", "0.05", stdin="\n".join(map(json.dumps, lines)).encode())

    first, second = map(json.loads, ran.out.splitlines())
    error = first["error"]
    assert (ran.code, error["code"], error["retry"], second["value"]) == (124, "call.timeout", "later", "a")


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
            "math.add: num2: expected float, got str (a text must be a decimal number, such as -1.5e3); "
            "expected at most 2 arguments, got 3",
            "--num2 is not an option of call, so it was passed as a value; write num2=VALUE",
        ),
        (
            ["math.add", "1", "--num2=2"],
            "math.add: num2: expected float, got str (a text must be a decimal number, such as -1.5e3)",
            "--num2 is not an option of call, so it was passed as a value; write num2=VALUE",
        ),
        (
            ["math.add", '{"num1": 1, "num2": 2}'],
            "math.add: num1: expected float, got str (a text must be a decimal number, such as -1.5e3); "
            "num2: expected float, got nothing",
            "to pass all arguments as JSON: neuroscript call math.add --input-json '{...}'",
        ),
        (
            ["math.add", "{'num1': 1, 'num2': 2}"],
            "math.add: num1: expected float, got str (a text must be a decimal number, such as -1.5e3); "
            "num2: expected float, got nothing",
            "to pass all arguments as JSON: neuroscript call math.add --input-json '{...}'; "
            'JSON needs double quotes: \'{"name": "value"}\'',
        ),
        (
            ["math.add", "--input-json", "{'num1': 1, 'num2': 2}"],
            "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
            'JSON needs double quotes around names and strings: \'{"name": "value"}\'',
        ),
        (
            ["math.add", "--input-json", "{num1: 1, num2: 2}"],
            "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
            'JSON needs double quotes around names and strings: \'{"name": "value"}\'',
        ),
        (
            ["math.max", "numbers=['1', '2']"],
            None,
            'JSON needs double quotes around names and strings: \'{"name": "value"}\'',
        ),
    ],
    ids=["option", "argument", "argument with =", "JSON", "quoted", "file", "bare names", "key"],
)
def test_a_misread_word_is_explained(words: list[str], error: str | None, hint: str) -> None:
    """In a second line, below the error of the call."""
    ran = command("call", *words, make_engine=None)

    first, second = ran.err.splitlines()
    assert (ran.code, ran.out, second) == (3, "", f"neuroscript: {hint}")
    assert error is None or first == f"neuroscript: {error}"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        (
            "num3=2",
            "word 2 looks like key=value, but math.add has no argument with that key; did you mean num1 or num2?",
        ),
        (
            "b=2",
            "word 2 looks like key=value, but math.add has no argument with that key; its arguments are num1, num2",
        ),
    ],
)
def test_an_unknown_key_is_explained(word: str, hint: str) -> None:
    """With the keys that there are; the word itself may be a value."""
    ran = command("call", "math.add", "1", word, make_engine=None)

    assert ran == said(
        "math.add: num2: expected float, got str (a text must be a decimal number, such as -1.5e3)", hint, code=3
    )


def test_json_stands_in_a_word_as_in_a_file(here: Path) -> None:
    """A value of --input-json that begins with a brace or a bracket is JSON itself."""
    (here / "args.json").write_text('{"num1": 1, "num2": 2}')

    for value in ('{"num1": 1, "num2": 2}', " [1, 2]", "args.json"):
        assert command("call", "math.add", "--input-json", value, make_engine=None) == Ran(0, "3.0\n")
    assert command("call", "math.add", "--input-json", "none.json", make_engine=None) == said(
        "can not read none.json: no such file or directory"
    )


def test_single_quotes_in_a_file_are_explained(here: Path) -> None:
    """As in a word."""
    (here / "args.json").write_text("{'num1': 1}")

    assert command("call", "math.add", "--input-json", "args.json", make_engine=None) == said(
        "math.add: expected arguments as JSON, got str (line 1, column 2 is not JSON)",
        'JSON needs double quotes around names and strings: \'{"name": "value"}\'',
        code=3,
    )


@pytest.mark.parametrize(
    "words", [["x"], ["-5", "y"], ["aGVsbG8=", "1"], ["aGVsbA==", "1"], ["[1, 2"], ["--", "--jsno", "1", "2"]]
)
def test_other_wrong_words_have_no_hint(words: list[str]) -> None:
    """Only what looks like an option, or like JSON."""
    ran = command("call", "math.add", *words, make_engine=None)

    assert (ran.code, len(ran.err.splitlines())) == (3, 1)


def test_results_for_programs_have_no_hint() -> None:
    """With --json, stderr stays empty as it was."""
    ran = command("call", "--json", "math.add", "1", "2", "--jsno", make_engine=None)

    assert (ran.code, ran.err) == (3, "")


# A sandbox


@pytest.mark.parametrize("before", [("call",), ("call", "--dry-run"), ("execute",), ("run",)])
def test_a_missing_sandbox_is_not_made_by_accident(before: tuple[str, ...], here: Path) -> None:
    """A misspelled directory is an error that says how to create it."""
    (here / "plan.toml").write_text('[[nodes]]\nname = "a"\ntool = "probe.nothing"\n')
    last = {"call": "probe.nothing", "execute": "-", "run": "plan.toml"}[before[0]]

    assert command(*before, "--sandbox", "bxo", last) == said(
        "--sandbox: bxo does not exist; correct the path, or add --create to create it"
    )
    assert not (here / "bxo").exists()


def test_a_sandbox_is_created_when_that_is_asked_for(here: Path) -> None:
    """With the directories above it; one that exists is taken as it is."""
    for _ in range(2):
        assert command("call", "--sandbox", "a/box", "--create", "probe.nothing") == Ran(0, "null\n")
        assert (here / "a" / "box").is_dir()
    assert command("call", "--sandbox", "a/box", "probe.nothing") == Ran(0, "null\n")


def test_a_dry_run_creates_nothing(here: Path) -> None:
    """It says what would be."""
    ran = command("call", "--dry-run", "--sandbox", "box", "--create", "probe.nothing")

    assert (ran.code, ran.err) == (0, "")
    assert not (here / "box").exists()


def test_create_needs_a_sandbox() -> None:
    """The default one is always made."""
    assert command("call", "--create", "probe.nothing") == said(
        "--create creates the directory of --sandbox; add --sandbox DIR"
    )


# Tables


def test_a_piped_list_is_not_padded_to_its_longest_row() -> None:
    """A long signature pushes its own row alone; those that fit stand in line."""
    ran = process("list")

    rows = ran.out.splitlines()
    tools = {each["name"]: each for each in json.loads(process("list", "--json").out)}
    assert (ran.code, len(rows)) == (0, len(tools))
    for row in rows:
        tool = tools[row.split()[0]]
        columns = (max(map(len, tools)), max(len(tool["signature"]), 48))
        text = row.partition(tool["signature"])[2].strip()
        assert len(row) <= sum(columns) + len("    ") + len(text)
        assert " " * 49 not in row
    assert len({row.index(" (") for row in rows}) == 1


def test_a_wide_cell_pushes_its_own_row_alone() -> None:
    """For every table that a program may read."""
    from neuroscript.cli.terminal.output import Cell, Rows, aligned

    rows = Rows((tuple(map(Cell, ("a", "b" * 60, "c"))), tuple(map(Cell, ("aa", "b", "c")))), wrapped=False)

    assert [*aligned(rows)] == [f"a   {'b' * 60}  c", f"aa  b{' ' * 49}c"]


# The doctor


def test_a_named_sandbox_that_does_not_exist_is_broken(here: Path) -> None:
    """No command would create it without --create."""
    ran = command("doctor", "--json", "--sandbox", str(here / "bxo"))

    [look] = [each for each in json.loads(ran.out)["looks"] if each["subject"] == "directory"]
    assert (look["state"], look["text"].rpartition("/")[2]) == ("broken", "bxo does not exist")
    assert look["mend"].startswith("mkdir -p ")
    assert not (here / "bxo").exists()


def test_the_short_name_of_a_distribution_is_near() -> None:
    """As extras call it."""
    assert command("plugins", "show", "std", make_engine=None) == said(
        "no plugin is called std; did you mean neuroscript-std?"
    )


def test_what_is_optional_is_not_missing(core: Path) -> None:
    """A core that works says so, and counts what may be added."""
    ran = in_core(core, "doctor")

    assert ran.code == 0
    assert "missing" not in ran.out
    assert ran.out.count(" optional ") >= 17
    assert ran.out.splitlines()[-1].startswith("everything that is chosen works; 1 warning; ")
    assert ran.out.splitlines()[-1].endswith(" optional parts are not set up")
