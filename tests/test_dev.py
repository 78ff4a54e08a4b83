"""The script that runs the tests: how many run at once, and where their temporary files are."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent

Runs = list[tuple[list[str], str | None]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Runs]:
    """Takes arguments of dev.py and other globals for it, and returns the words and the TMPDIR of each program that it
    starts."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setenv("NEUROSCRIPT_TEST_ALL", "")
    script = runpy.run_path(str(ROOT / "dev.py"))

    def run(words: list[str], **others: Any) -> Runs:
        seen: Runs = []

        def record(level: str, module: str, *command: str) -> int:
            seen.append(([module, *command], os.environ.get("TMPDIR")))
            return 0

        given = {"MEMORY": tmp_path, "MIN_MEMORY_BYTES": 0, "run": record, "script": record, **others}
        for name, value in given.items():
            monkeypatch.setitem(script["main"].__globals__, name, value)
        assert script["main"](words) == 0
        return seen

    return run


@pytest.mark.parametrize(
    ("cores", "count"), [(1, "2"), (2, "4"), (64, "8")], ids=["one-core", "two-cores", "many-cores"]
)
def test_tests_that_measure_run_after_the_others(
    runs: Callable[..., Runs], monkeypatch: pytest.MonkeyPatch, cores: int, count: str
) -> None:
    """One after the other; all others run in two processes per core, and those that fork in own ones."""
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    ((together, _), (forks, _), (alone, _)) = runs(["test", "--durations=20"])

    start, end = ["pytest", "-n", count, "--dist", "worksteal"], " and not slow and not full"
    assert together == [*start, "-m", f"not alone and not forks{end}", "--durations=20"]
    assert (forks[:5], forks[-3:]) == (start, ["-m", f"forks and not alone{end}", "--durations=20"])
    assert "tests/isolation/test_namespaces.py" in forks[5:-3]
    assert all("mark.forks" in Path(ROOT, file).read_text() for file in forks[5:-3])
    assert (alone[0], alone[-3:]) == ("pytest", ["-m", "alone and not slow and not full", "--durations=20"])
    assert {"tests/test_benchmarks.py", "plugins/neuroscript-std/tests/test_time.py"} <= {*alone[1:-3]}
    assert all("mark.alone" in Path(ROOT, file).read_text() for file in alone[1:-3])


@pytest.mark.parametrize("option", ["--slow", "--all"])
def test_slow_tests_run_on_demand(runs: Callable[..., Runs], option: str) -> None:
    """And with --all the benchmarks and the newcomer, too."""
    (together, _), (forks, _), (alone, _), *others = runs(["test", option])

    also = "" if option == "--all" else " and not full"
    assert (together[-1], forks[-1]) == (f"not alone and not forks{also}", f"forks and not alone{also}")
    assert alone[-1] == f"alone{also}"
    assert others == ([(["tests.benchmarks"], None), (["newcomer.py"], None)] if option == "--all" else [])


REPEATED_SUITE = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range({count}))
def test_fails(number):
    marker = pathlib.Path({marker!r}, str(number))
    if {always} or not marker.exists():
        marker.write_text("")
        raise AssertionError

def test_passes():
    with pathlib.Path({marker!r}, "passed").open("a") as file:
        file.write("x")
"""


@pytest.mark.parametrize(
    ("count", "always", "code"),
    [(0, False, 0), (1, False, 0), (3, False, 0), (3, True, 1), (4, False, 1)],
    ids=["none-fails", "one-fails-once", "three-fail-once", "three-fail-always", "four-fail-once"],
)
def test_few_failed_tests_are_repeated(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    count: int,
    always: bool,
    code: int,
) -> None:
    """Once, and no others; the run succeeds only if they pass then."""
    suite, marker = tmp_path / "suite", tmp_path / "marker"
    suite.mkdir()
    marker.mkdir()
    suite.joinpath("pytest.ini").write_text("[pytest]")
    source = REPEATED_SUITE.format(count=count, always=always, marker=str(marker))
    suite.joinpath("test_repeated.py").write_text(source)
    script = runpy.run_path(str(ROOT / "dev.py"))
    scope = script["phase"].__globals__
    monkeypatch.setitem(scope, "ROOT", suite)
    monkeypatch.setitem(scope, "FAILED", suite / ".pytest_cache/v/cache/lastfailed")
    monkeypatch.setitem(scope, "made", lambda level: sys.executable)
    monkeypatch.setitem(scope, "PLUGINS", [])
    suite.joinpath("src").mkdir()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it loads many plugins of other packages
    monkeypatch.setenv("PYTEST_ADDOPTS", "")

    assert script["phase"]("test", ["-p", "xdist", "-n", "2"] if count == 3 else [], []) == code

    assert marker.joinpath("passed").read_text() == "x"
    repeated = [line for line in capfd.readouterr().out.splitlines() if line.startswith("repeated")]
    names = ", ".join(f"test_repeated.py::test_fails[{number}]" for number in range(count))
    assert repeated == ([f"repeated, because few tests failed: {names}"] if 0 < count < 4 else [])


def test_skip_that_is_not_expected_is_no_reason_to_repeat(tmp_path: Path) -> None:
    """It has an exit code of its own."""
    listed = tmp_path / "expected"
    listed.write_text("# none\n")
    command = [sys.executable, "-m", "pytest", "-q", "--expected-skips", str(listed), "tests/test_dev.py"]
    environment = {**os.environ, "NEUROSCRIPT_TEST_SKIP": "1"}
    done = subprocess.run([*command, "-k", "skipped_on_demand"], cwd=ROOT, env=environment, capture_output=True)
    assert done.returncode == 6, done.stdout


def test_skipped_on_demand() -> None:
    """The test above skips it."""
    if os.environ.get("NEUROSCRIPT_TEST_SKIP"):
        pytest.skip("on demand")


def test_wheels_are_built_without_the_tools_of_developers(runs: Callable[..., Runs]) -> None:
    """A new user needs only what the demo needs, and can choose the directory."""
    assert runs(["wheels", "elsewhere"]) == [(["distributions.py", "elsewhere"], None)]
    assert runs(["release-check"]) == [(["release_check.py"], None)]


def test_demos_of_agents_have_names(runs: Callable[..., Runs]) -> None:
    """The attack runs without rules, with them, or both."""
    assert runs(["demo", "agent"]) == [(["docs.examples.demo_agent"], None)]
    assert runs(["demo", "injection"]) == [(["docs.examples.mail_agent"], None)]
    assert runs(["demo", "injection", "with"]) == [(["docs.examples.mail_agent", "with"], None)]


@pytest.mark.parametrize("words", [["tests/test_dev.py"], ["-k", "dev"]], ids=["a-path", "a-choice"])
def test_selected_tests_run_in_one_process(runs: Callable[..., Runs], words: list[str]) -> None:
    """Their temporary files remain on the disk."""
    assert runs(["test", *words]) == [(["pytest", *words], None)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a directory")
def test_whole_suite_has_its_temporary_files_in_memory(runs: Callable[..., Runs], tmp_path: Path) -> None:
    """The directory is new, and is removed after the run."""
    (_, directory), (_, other), (_, third) = runs(["test"])

    assert directory is not None
    assert third == other
    assert (other, Path(directory).parent) == (directory, tmp_path)
    assert [] == [*tmp_path.iterdir()]
    assert "TMPDIR" not in os.environ


@pytest.mark.parametrize(
    "others",
    [{"MIN_MEMORY_BYTES": 2**80}, {"MEMORY": Path("/proc/version")}, {"MEMORY": Path("/missing")}],
    ids=["too-little-space", "no-directory", "missing"],
)
def test_unusable_memory_is_not_used(runs: Callable[..., Runs], others: dict[str, Any]) -> None:
    """Containers often have 64 MB there, and other systems have no such directory."""
    assert [None] * 3 == [directory for _, directory in runs(["test"], **others)]


def test_explicit_directory_stays(monkeypatch: pytest.MonkeyPatch, runs: Callable[..., Runs], tmp_path: Path) -> None:
    """The user chooses another place for the files with TMPDIR."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    assert [str(tmp_path)] * 3 == [directory for _, directory in runs(["test"])]
    assert str(tmp_path) == os.environ["TMPDIR"]


def test_docs_builds_the_site(runs: Callable[..., Runs]) -> None:
    """Options are those of sphinx-build."""
    assert runs(["docs", "-v"]) == [(["docs._ext.build", "-v"], None)]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no process groups with signals")
def test_interrupt_ends_without_a_traceback(tmp_path: Path) -> None:
    """Ctrl-C interrupts the script and the program that it runs, as at a terminal."""
    for name in ("dev.py", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    script = runpy.run_path(str(tmp_path / "dev.py"))
    program = script["interpreter"]()
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho ready\nexec sleep 60\n")
    program.chmod(0o755)
    (script["ENVIRONMENT"] / f"made-for-{script['fingerprint']()}").write_text("demo")
    command = [sys.executable, str(tmp_path / "dev.py"), "demo", "agent"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (130, "")
