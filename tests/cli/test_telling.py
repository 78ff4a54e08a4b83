"""``neuroscript export``, ``stubs`` and ``docs``, and the files that they write."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import ROOT, CommandResult, command, environment, run_installed
from tests.cli.probe import probe

from neuroscript import ToolInfo, to_prompt
from neuroscript.cli.tools.options import FORMATS
from neuroscript.formats.markdown import MARK, page
from neuroscript.formats.stubs import stub

SPECS = [tool.spec for tool in probe]
INFOS = [ToolInfo(tool.spec, tool.policy, "") for tool in probe]


# export


def test_export_prompt_equals_the_python_api() -> None:
    """For all tools, and for those that match."""
    assert CommandResult(0, f"{to_prompt(SPECS)}\n") == command("export", "prompt")
    some = [spec for spec in SPECS if spec.full_name.startswith("probe.s")]
    assert CommandResult(0, f"{to_prompt(some)}\n") == command("export", "prompt", "probe.s*")


def test_export_prompt_prints_json() -> None:
    """The output is one JSON string."""
    result = command("export", "prompt", "--json")

    assert (0, to_prompt(SPECS)) == (result.code, json.loads(result.out))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_function(name: str) -> None:
    result = command("export", name)

    assert (0, "") == (result.code, result.err)
    assert "probe" in result.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(
            ["export", "nonsense\x1b"],
            f"unknown format nonsense\\x1b; choose from {', '.join(FORMATS)} (see neuroscript export --help)",
            id="no such format",
        ),
        pytest.param(["export", "prompt", "probe"], "no tool matches probe; did you mean 'probe.*'?", id="a group"),
        pytest.param(["stubs", "nonsense"], "no tool matches nonsense", id="no such tool"),
        pytest.param(["docs", "nonsense"], "no tool matches nonsense", id="no such tool either"),
        pytest.param(
            ["stubs", "--check"],
            "--check needs the stub file; add --output FILE",
            id="nothing to look at",
        ),
        pytest.param(
            ["docs", "--check"],
            "--check needs the directory of the pages; add --output DIR",
            id="nothing to look at either",
        ),
        pytest.param(
            ["stubs", "--output", "tools.py"],
            "tools.py is not a valid stub file name; use a name such as tools.pyi",
            id="no stub",
        ),
        pytest.param(
            ["stubs", "--output", "my-tools.pyi"],
            "my-tools.pyi is not a valid stub file name; use a name such as tools.pyi",
            id="no name of a module",
        ),
        pytest.param(
            ["stubs", "--output", "README.md/tools.pyi"],
            "cannot read README.md/tools.pyi: not a directory",
            id="a file",
        ),
        pytest.param(
            ["docs", "--output", ""], "--output: expected the name of a directory, got an empty string", id="no name"
        ),
        pytest.param(
            ["docs", "--output", "README.md"], "cannot read README.md/probe.md: not a directory", id="no directory"
        ),
        pytest.param(["docs", "--output", "a\0b"], "cannot read a\\x00b/probe.md: valueerror", id="no path"),
    ],
)
def test_usage_errors_are_reported(words: list[str], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 2, and nothing is written."""
    monkeypatch.chdir(ROOT)

    assert CommandResult(2, "", f"neuroscript: {text}\n") == command(*words)


# stubs


def test_stubs_writes_a_current_file(tmp_path: Path) -> None:
    """If the file is missing or outdated, --check exits with 1 and writes nothing."""
    file = tmp_path / "typings" / "tools.pyi"
    words = ["stubs", "--output", str(file)]

    assert CommandResult(1, f"{file} is not current\n") == command(*words, "--check")
    assert not file.exists()
    assert CommandResult(0, f"{file}: {len(SPECS)} tools\n") == command(*words)
    assert file.read_text("utf-8") == stub(SPECS)
    assert CommandResult(0, f"{file} is current\n") == command(*words, "--check")
    file.write_bytes(b"\xff")
    assert {"file": str(file), "tools": len(SPECS), "was_current": False} == json.loads(
        command(*words, "--check", "--json").out
    )
    assert file.read_bytes() == b"\xff"
    assert [*file.parent.iterdir()] == [file]


def test_stubs_prints_matching_tools_to_stdout() -> None:
    """With --json, the output contains the text."""
    some = stub(spec for spec in SPECS if spec.full_name == "probe.echo")

    assert CommandResult(0, some) == command("stubs", "probe.echo") == command("stubs", "--output", "-", "probe.echo")
    assert {"file": "-", "tools": 1, "text": some} == json.loads(command("stubs", "probe.echo", "--json").out)


# docs


def test_docs_writes_a_page_for_each_group(tmp_path: Path) -> None:
    """It reports outdated pages."""
    words = ["docs", "--output", str(tmp_path / "pages")]
    file = tmp_path / "pages" / "probe.md"

    assert CommandResult(1, f"{file} is not current\n") == command(*words, "--check")
    assert not file.parent.exists()
    assert CommandResult(0, f"{file.parent}: 1 page, 1 written\n") == command(*words)
    assert file.read_text("utf-8") == page("probe", INFOS)
    assert CommandResult(0, f"{file.parent}: 1 page, 0 written\n") == command(*words)
    assert CommandResult(0, f"{file.parent}: 1 page, all current\n") == command(*words, "--check")
    file.write_text(f"{MARK}\n\n# probe\n")
    assert CommandResult(1, f"{file} is not current\n") == command(*words, "--check")
    document = json.loads(command(*words, "--check", "--json").out)
    assert document == {"directory": str(file.parent), "files": ["probe.md"], "stale": ["probe.md"], "obsolete": []}
    assert CommandResult(0, f"{file.parent}: 1 page, 1 written\n") == command(*words)


def test_docs_reports_obsolete_pages(tmp_path: Path) -> None:
    """They are not deleted; files that docs did not write are ignored."""
    words = ["docs", "--output", str(tmp_path)]
    command(*words)
    (tmp_path / "old.md").write_text(f"{MARK}\n\n# old\n")
    (tmp_path / "guide.md").write_text("# A guide\n")
    sentence = f"neuroscript: {tmp_path / 'old.md'} is obsolete, because its group has no tools; delete it\n"

    assert CommandResult(1, "", sentence) == command(*words, "--check")
    assert CommandResult(0, f"{tmp_path}: 1 page, 0 written\n", sentence) == command(*words)
    assert CommandResult(0, f"{tmp_path}: 1 page, all current\n") == command(*words, "--check", "probe.*")


@pytest.mark.parametrize("kind", ["a page of the user", "a link"])
def test_docs_replaces_only_its_own_files(tmp_path: Path, kind: str) -> None:
    """It refuses other files and symbolic links."""
    mine = tmp_path / "mine.md"
    mine.write_text("# mine\n" if kind == "a page of the user" else f"{MARK}\n")
    before = mine.read_text()
    place = tmp_path / "pages"
    place.mkdir()
    file = place / "probe.md"
    mine.rename(file) if kind == "a page of the user" else file.symlink_to(mine)
    sentence = f"neuroscript: {file} was not written by neuroscript docs; move it, or choose another directory\n"

    assert CommandResult(2, "", sentence) == command("docs", "--output", str(place))
    assert file.read_text() == before


def test_docs_uses_a_unique_temporary_file(tmp_path: Path) -> None:
    """A file of the user with a similar name is neither replaced nor deleted."""
    file = tmp_path / f".probe.md.{os.getpid()}"
    file.write_text("a user's own")

    command("docs", "--output", str(tmp_path))

    assert (file.read_text(), (tmp_path / "probe.md").exists()) == ("a user's own", True)


def test_docs_without_a_directory_prints_all_pages() -> None:
    assert CommandResult(0, page("probe", INFOS)) == command("docs")
    assert json.loads(command("docs", "--json").out) == {"pages": [{"file": "probe.md", "text": page("probe", INFOS)}]}


# The installed tools


@pytest.mark.parametrize("words", [("export", "prompt"), ("stubs",), ("docs",)], ids=" ".join)
def test_output_is_the_same_with_and_without_an_engine(words: tuple[str, ...], tmp_path: Path) -> None:
    """Indexes avoid imports; an additional plugin file needs an engine."""
    file = tmp_path / "mine.py"
    file.write_text("def register(registrar):\n    pass\n")
    by_index, by_engine = run_installed(*words, "math.*"), run_installed(*words, "math.*", "-p", str(file))

    assert (0, "") == (by_index.code, by_index.err)
    assert by_index == by_engine
    assert "round" in by_index.out


def test_tools_are_not_imported_to_describe_them() -> None:
    """The test checks the loaded modules of a process after all commands."""
    commands = (["export", "prompt"], ["stubs"], ["docs"])
    for words in commands:
        run_installed(*words)  # so that there are indexes
    code = (
        f"import io, sys; sys.path[:] = {sys.path!r}; from neuroscript.cli import main; "
        "out, sys.stdout = sys.stdout, io.StringIO(); "
        f"assert [main(words) for words in {commands!r}] == [0, 0, 0]; "
        "print([name for name in sys.modules if name.startswith('neuroscript_') or name == 'neuroscript.engine'], file=out)"
    )

    assert ast.literal_eval(_python(code)) == []


def _python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    ).stdout
