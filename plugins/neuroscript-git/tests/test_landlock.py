"""The second line of defence: under Landlock, git can execute only itself and the programs that come with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine, Host, Runtime, Toolset
from neuroscript_git import landlock, program
from neuroscript_git.executables import executables

Git = Callable[..., str]
Run = Callable[[Callable[[], Any]], Any]

FILTERED: Final = ("status", "--porcelain")


@pytest.fixture
def git_path(tmp_path: Path) -> str:
    """The path of git."""
    return program.find_git(str(tmp_path))


@pytest.fixture
def allowed(git_path: str) -> tuple[str, ...]:
    """The files that git has to execute."""
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    return executables(git_path)


@pytest.fixture
def marker(root: Path, tmp_path: Path, git: Git) -> Path:
    """The file that the repository's filter creates; git has to run the filter to see what has changed."""
    work, marker = root / "work", tmp_path / "marker"
    git(work, "reset", "--quiet", "--hard")
    git(work, "config", "filter.x.clean", f"touch {marker}; cat")
    (work / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (work / "a.txt").write_text("two\n")
    return marker


def popen(words: list[str], folder: Path, env: dict[str, str]) -> Callable[[], subprocess.Popen[bytes]]:
    return lambda: subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_git_under_landlock_runs_no_filter(
    root: Path, marker: Path, git_path: str, allowed: tuple[str, ...], alone: dict[str, str]
) -> None:
    """Landlock alone stops a filter that git runs without it, and git itself still works."""
    start = popen([git_path, *FILTERED], root / "work", alone)

    restricted = landlock.start(allowed, start)
    output, errors = restricted.communicate()
    ran_under_landlock = marker.exists()
    start().communicate()

    assert not ran_under_landlock
    assert b"Permission denied" in errors
    assert b" M a.txt\n" in output
    assert marker.exists()


def test_the_tools_start_git_under_landlock(
    root: Path, marker: Path, git_path: str, allowed: tuple[str, ...], without_landlock: Run
) -> None:
    """A tool that ran plain git in a hostile repository would run no filter either."""
    tools = Toolset("plain")

    @tools.tool()
    def status(rt: Runtime) -> None:
        """Run git status as a repository configures it."""
        words, env = [git_path, *FILTERED], program.environment(rt.sandbox_dir, str(root), {})
        program.run(rt, words, folder=str(root / "work"), env=env, keep=(), given=b"", seconds=60)

    with Engine(toolsets=[tools], plugins="none", host=Host(sandbox_dir=root)) as engine:
        engine.call("plain.status")
        ran_under_landlock = marker.exists()
        without_landlock(lambda: engine.call("plain.status"))

    assert not ran_under_landlock
    assert marker.exists()


@pytest.mark.parametrize("words", [["/bin/sh", "-c", "true"], ["/usr/bin/env", "true"], ["{folder}/script"]])
def test_other_programs_do_not_start(
    tmp_path: Path, allowed: tuple[str, ...], alone: dict[str, str], words: list[str]
) -> None:
    """Not a shell, not another program of the system, not a script in the sandbox."""
    (tmp_path / "script").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "script").chmod(0o755)
    words = [word.format(folder=tmp_path) for word in words]

    with pytest.raises(PermissionError):
        landlock.start(allowed, popen(words, tmp_path, alone))
    with popen(words, tmp_path, alone)() as process:
        process.communicate()
    assert process.returncode == 0


def test_the_host_is_not_restricted(tmp_path: Path, git_path: str, allowed: tuple[str, ...]) -> None:
    """The calling thread can execute other programs, and the thread that started git has ended."""
    before = threading.active_count()
    process = landlock.start(allowed, popen([git_path, "version"], tmp_path, dict(os.environ)))
    process.communicate()

    assert process.returncode == 0
    assert subprocess.run(["/bin/sh", "-c", "true"]).returncode == 0
    assert threading.active_count() <= before
    assert "NoNewPrivs:\t0\n" in Path("/proc/thread-self/status").read_text()


def test_files_can_be_renamed_between_directories(tmp_path: Path) -> None:
    """Landlock denies that unless a rule allows it."""
    if landlock.version() < landlock.REFER_VERSION:
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "file").write_text("")

    def move() -> subprocess.Popen[bytes]:
        (tmp_path / "a" / "file").rename(tmp_path / "b" / "file")
        return subprocess.Popen(["/bin/true"])

    landlock.start(["/"], move).wait()

    assert (tmp_path / "b" / "file").exists()


def test_no_descriptor_is_left_open(tmp_path: Path, git_path: str, allowed: tuple[str, ...]) -> None:
    """Those of the rules are closed, even if the program does not start."""
    start = popen([git_path, "version"], tmp_path, dict(os.environ))
    landlock.start(allowed, start).communicate()
    before = len([*Path("/proc/self/fd").iterdir()])

    landlock.start(allowed, start).communicate()
    with pytest.raises(PermissionError):
        landlock.start(allowed, popen(["/bin/sh"], tmp_path, dict(os.environ)))

    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_missing_executables_are_skipped(tmp_path: Path, git_path: str, allowed: tuple[str, ...]) -> None:
    """git starts if one of its files is missing."""
    process = landlock.start((*allowed, str(tmp_path / "none")), popen([git_path, "version"], tmp_path, {}))
    process.communicate()

    assert process.returncode == 0


def test_a_kernel_without_landlock_runs_git_as_before(
    engine: Engine, git_path: str, tmp_path: Path, without_landlock: Run, allowed: tuple[str, ...]
) -> None:
    """Programs start without restrictions, and the tools work."""
    assert without_landlock(landlock.version) == 0
    assert without_landlock(lambda: executables(git_path)) == ()
    assert without_landlock(lambda: landlock.start(allowed, popen(["/bin/echo"], tmp_path, {})).communicate()) == (
        b"\n",
        b"",
    )
    assert without_landlock(lambda: engine.call("git.status", ["work"]))["branch"] == "main"


def test_a_git_that_is_a_script_is_not_restricted(tmp_path: Path, git_path: str, allowed: tuple[str, ...]) -> None:
    """It could not start, because its interpreter is another program."""
    script = tmp_path / "git"
    script.write_text(f'#!/bin/sh\nexec {git_path} "$@"\n')
    script.chmod(0o755)

    assert executables(str(script)) == ()


def test_git_needs_itself_its_programs_and_its_loader(git_path: str, allowed: tuple[str, ...]) -> None:
    """The list has git, the directory of its programs and the loader."""
    directory = subprocess.run([git_path, "--exec-path"], capture_output=True, text=True).stdout.strip()

    assert allowed[:2] == (git_path, directory)
    assert all(Path(path).name.startswith("ld") for path in allowed[2:])


def test_an_interrupt_leaves_no_program_behind(tmp_path: Path, allowed: tuple[str, ...]) -> None:
    """A program that starts while the user interrupts the call is killed."""
    started: list[subprocess.Popen[bytes]] = []
    main = threading.main_thread().ident or 0

    def interrupt() -> subprocess.Popen[bytes]:
        while "result" not in {frame.name for frame in traceback.extract_stack(sys._current_frames()[main])}:
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)
        started.append(popen(["/bin/sleep", "600"], tmp_path, {})())
        return started[0]

    with pytest.raises(KeyboardInterrupt):
        landlock.start(["/"], interrupt)

    assert started[0].returncode == -signal.SIGKILL
