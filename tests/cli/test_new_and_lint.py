"""``neuroscript new`` and ``neuroscript lint``, the commands for toolset authors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import command, process

PRINTING = '''
from neuroscript import Toolset
toolset = Toolset("acme")

@toolset.tool()
def greet(name: str) -> None:
    """Greet a person.

    Args:
        name: Who.
    """
    print(name)
'''


NO_POLICY = "greet has no policy, so it counts as reading and sending anything; declare effects, or sources and sinks"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_new_prints_the_next_step(here: Path) -> None:
    """The distribution is in the working directory, under its own name."""
    result = command("new", "toolset", "Acme.Weather")

    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "acme-weather: 8 files, with the package acme_weather and the tools acme_weather.*\n"
        "next: cd acme-weather && pip install hatchling editables && "
        "pip install --no-build-isolation -e '.[test]' && pytest\n"
    )
    assert (here / "acme-weather" / "src" / "acme_weather" / "__init__.py").exists()


def test_new_json_contains_names_and_files(here: Path) -> None:
    result = command("new", "toolset", "acme-weather", "--directory", "a/b", "--group", "Weather", "--json")
    data = json.loads(result.out)

    assert (result.code, result.err) == (0, "")
    assert data.pop("files")[0] == ".github/workflows/test.yml"
    assert data == {
        "directory": str(here / "a" / "b"),
        "distribution": "acme-weather",
        "module": "acme_weather",
        "group": "weather",
    }


def test_new_reports_every_problem_and_writes_nothing(here: Path) -> None:
    """The exit code is 2."""
    result = command("new", "toolset", "class", "--group", "fs", "--author", "a@b")

    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "neuroscript: new toolset: the module would be called class, which is a Python keyword; "
        "the group fs belongs to neuroscript-fs; choose another one with --group\n"
    )
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new",), "expected a kind: toolset (see neuroscript new --help)"),
        (("new", "toolset"), "the following arguments are required: NAME (see neuroscript new toolset --help)"),
        (("new", "toolset", "acme", "--directory", "file/new"), "cannot write file/new: file exists"),
        (("new", "toolset", "acme", "--directory", "a\0b"), "cannot write a\\x00b: valueerror"),
        (("lint",), "the following arguments are required: PATH (see neuroscript lint --help)"),
        (("lint", "nothing"), "nothing: no Python file found"),
        (("lint", "empty"), "empty: no Python file found"),
    ],
)
def test_usage_errors_are_reported(words: tuple[str, ...], message: str, here: Path) -> None:
    """There is one line."""
    (here / "file").write_text("")
    (here / "empty").mkdir()
    result = command(*words)

    assert (result.code, result.out, result.err) == (2, "", f"neuroscript: {message}\n")


def test_lint_prints_file_line_and_code(here: Path) -> None:
    """The exit code is 1."""
    (here / "acme.py").write_text(PRINTING)
    result = command("lint", "acme.py")

    assert (result.code, result.err) == (1, "")
    assert result.out == (
        "acme.py:12: lint.print print prints without the Runtime; use rt.println(…)\n"
        f"acme.py:6: lint.no-labels {NO_POLICY}\n"
        "1 file, 1 tool, 1 finding, 1 suggestion\n"
    )


def test_lint_json_contains_the_findings(here: Path) -> None:
    (here / "acme.py").write_text(PRINTING)
    result = command("lint", "--json", ".")

    assert (result.code, result.err) == (1, "")
    assert json.loads(result.out) == {
        "ok": False,
        "files": 1,
        "tools": 1,
        "findings": [
            {
                "file": "acme.py",
                "line": 12,
                "code": "lint.print",
                "message": "print prints without the Runtime; use rt.println(…)",
            }
        ],
        "suggestions": [{"file": "acme.py", "line": 6, "code": "lint.no-labels", "message": NO_POLICY}],
    }


def test_lint_without_findings_exits_with_0(here: Path) -> None:
    """It prints the counts; suggestions do not change the exit code."""
    quiet = PRINTING.replace("print(name)", "return None")
    (here / "acme.py").write_text(quiet)
    (here / "pure.py").write_text(quiet.replace("tool()", 'tool(policy=ToolPolicy(effects=("pure",)))'))
    suggested, result = command("lint", "acme.py"), command("lint", "pure.py", "--json")

    assert (suggested.code, suggested.out.splitlines()[-1]) == (0, "1 file, 1 tool, 0 findings, 1 suggestion")
    assert command("lint", "pure.py").out == "1 file, 1 tool, 0 findings\n"
    assert json.loads(result.out) == {"ok": True, "files": 1, "tools": 1, "findings": [], "suggestions": []}


def test_file_names_cannot_control_the_terminal(here: Path) -> None:
    """Control characters are escaped."""
    (here / "a\x1b[2J.py").write_text(PRINTING)
    result = command("lint", ".")

    assert result.out.startswith("a\\x1b[2J.py:12: lint.print ")


@pytest.mark.parametrize("words", [("new", "--help"), ("new", "toolset", "--help"), ("lint", "--help")])
def test_help_describes_both_commands(words: tuple[str, ...]) -> None:
    result = process(*words)

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"usage: neuroscript {' '.join(words[:-1])} ")
