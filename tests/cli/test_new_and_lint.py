"""``neuroscript new`` and ``neuroscript lint``: what publishers see of them."""

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
    """Greet somebody.

    Args:
        name: Who.
    """
    print(name)
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_distribution_says_what_comes_next(here: Path) -> None:
    """It lies in the working directory, under its own name."""
    ran = command("new", "toolset", "Acme.Weather")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "acme-weather: 8 files, with the package acme_weather and the tools acme_weather.*\n"
        "next: cd acme-weather && pip install -e '.[test]' && pytest\n"
    )
    assert (here / "acme-weather" / "src" / "acme_weather" / "__init__.py").exists()


def test_a_program_is_told_the_same(here: Path) -> None:
    """With the names, and every file."""
    ran = command("new", "toolset", "acme-weather", "--directory", "a/b", "--group", "Weather", "--json")
    data = json.loads(ran.out)

    assert (ran.code, ran.err) == (0, "")
    assert data.pop("files")[0] == ".github/workflows/test.yml"
    assert data == {
        "directory": str(here / "a" / "b"),
        "distribution": "acme-weather",
        "module": "acme_weather",
        "group": "weather",
    }


def test_what_can_not_be_is_said_at_once_and_nothing_is_written(here: Path) -> None:
    """Each reason, and the exit code of a usage."""
    ran = command("new", "toolset", "class", "--group", "fs", "--author", "a@b")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "neuroscript: new toolset: the module would be called class, which is a word of Python; "
        "the group fs belongs to neuroscript-fs; give another one with --group\n"
    )
    assert [*here.iterdir()] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("new",), "a kind is missing: toolset (see neuroscript new --help)"),
        (("new", "toolset"), "the following arguments are required: NAME (see neuroscript new toolset --help)"),
        (("new", "toolset", "acme", "--directory", "file/new"), "file/new can not be written: file exists"),
        (("new", "toolset", "acme", "--directory", "a\0b"), "a\\x00b can not be written: valueerror"),
        (("lint",), "the following arguments are required: PATH (see neuroscript lint --help)"),
        (("lint", "nothing"), "nothing: there is no file of Python"),
        (("lint", "empty"), "empty: there is no file of Python"),
    ],
)
def test_what_is_missing_is_said(words: tuple[str, ...], told: str, here: Path) -> None:
    """In one line."""
    (here / "file").write_text("")
    (here / "empty").mkdir()
    ran = command(*words)

    assert (ran.code, ran.out, ran.err) == (2, "", f"neuroscript: {told}\n")


def test_a_finding_names_its_file_its_line_and_its_code(here: Path) -> None:
    """And the command ends with 1."""
    (here / "acme.py").write_text(PRINTING)
    ran = command("lint", "acme.py")

    assert (ran.code, ran.err) == (1, "")
    assert ran.out == (
        "acme.py:12: lint.print print prints past the Runtime; write rt.println(…)\n1 file, 1 tool, 1 finding\n"
    )


def test_a_program_is_told_of_findings(here: Path) -> None:
    """As data."""
    (here / "acme.py").write_text(PRINTING)
    ran = command("lint", "--json", ".")

    assert (ran.code, ran.err) == (1, "")
    assert json.loads(ran.out) == {
        "ok": False,
        "files": 1,
        "tools": 1,
        "findings": [
            {
                "file": "acme.py",
                "line": 12,
                "code": "lint.print",
                "sentence": "print prints past the Runtime; write rt.println(…)",
            }
        ],
    }


def test_nothing_found_is_said_too(here: Path) -> None:
    """The exit code is 0."""
    (here / "acme.py").write_text(PRINTING.replace("print(name)", "return None"))

    assert command("lint", "acme.py").out == "1 file, 1 tool, 0 findings\n"
    assert json.loads(command("lint", "acme.py", "--json").out) == {"ok": True, "files": 1, "tools": 1, "findings": []}


def test_a_name_of_a_file_can_do_nothing_to_a_terminal(here: Path) -> None:
    """Its control characters are escaped."""
    (here / "a\x1b[2J.py").write_text(PRINTING)
    ran = command("lint", ".")

    assert ran.out.startswith("a\\x1b[2J.py:12: lint.print ")


@pytest.mark.parametrize("words", [("new", "--help"), ("new", "toolset", "--help"), ("lint", "--help")])
def test_help_tells_of_each(words: tuple[str, ...]) -> None:
    """With what it takes."""
    ran = process(*words)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"usage: neuroscript {' '.join(words[:-1])} ")
