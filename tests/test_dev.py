"""The script that runs the tests: where their temporary files are."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

Seen = list[str | None]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Seen]:
    """Takes arguments of dev.py and other globals for it, and returns the TMPDIR of each program that it starts."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setenv("NEUROSCRIPT_TEST_ALL", "")
    script = runpy.run_path(str(ROOT / "dev.py"))

    def run(words: list[str], **others: Any) -> Seen:
        seen: Seen = []

        def record(*command: str) -> int:
            seen.append(os.environ.get("TMPDIR"))
            return 0

        given = {"MEMORY": tmp_path, "MIN_MEMORY_BYTES": 0, "run": record, **others}
        for name, value in given.items():
            monkeypatch.setitem(script["main"].__globals__, name, value)
        assert script["main"](words) == 0
        return seen

    return run


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a directory")
def test_whole_suite_has_its_temporary_files_in_memory(runs: Callable[..., Seen], tmp_path: Path) -> None:
    """The directory is new, and is removed after the run."""
    (directory,) = runs(["test", "--durations=20"])

    assert directory is not None
    assert tmp_path == Path(directory).parent
    assert [] == [*tmp_path.iterdir()]
    assert "TMPDIR" not in os.environ


@pytest.mark.parametrize(
    "words",
    [["test", "tests/test_dev.py"], ["test", "-k", "dev"], ["test", "--all"]],
    ids=["a-path", "a-choice", "full-counts"],
)
def test_other_runs_have_their_temporary_files_on_the_disk(runs: Callable[..., Seen], words: list[str]) -> None:
    """The full counts cover the file system of the disk, and the files of selected tests remain."""
    assert {None} == {*runs(words)}


@pytest.mark.parametrize(
    "others",
    [{"MIN_MEMORY_BYTES": 2**80}, {"MEMORY": Path("/proc/version")}, {"MEMORY": Path("/missing")}],
    ids=["too-little-space", "no-directory", "missing"],
)
def test_unusable_memory_is_not_used(runs: Callable[..., Seen], others: dict[str, Any]) -> None:
    """Containers often have 64 MB there, and other systems have no such directory."""
    assert [None] == runs(["test"], **others)


def test_explicit_directory_stays(monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Seen], tmp_path: Path) -> None:
    """The user chooses another place for the files with TMPDIR."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert [str(tmp_path)] == runs(["test"])
    assert str(tmp_path) == os.environ["TMPDIR"]
