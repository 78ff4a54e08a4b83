"""Fixtures of the program tests: a sandbox, programs outside it, and engines that can run them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.testing import Setup

SHOW: Final = "import json, sys; print(json.dumps(sys.argv[1:]))"
"""What the program `show` does: it prints its arguments."""

EngineWith = Callable[..., Engine]
Program = Callable[[str, str], Path]


FILES: Final = {"data/-n.txt": "a name like an option\n"}


@pytest.hookimpl(optionalhook=True)
def pytest_neuroscript_setup(distribution: str) -> Setup | None:
    """Return what the examples use: a file, and a trusted host with grants."""
    return Setup(files=FILES, trusted=True) if distribution == "neuroscript-shell" else None


@pytest.fixture
def setup() -> Setup | None:
    """The environment of the examples."""
    return pytest_neuroscript_setup("neuroscript-shell")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sandbox directory."""
    path = tmp_path / "sandbox"
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text(text)
    return path


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory outside the sandbox, first on the PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")
    return path


@pytest.fixture
def program(bin: Path) -> Program:
    """Takes a name and Python source, and adds a program of that name to the PATH."""

    def made(name: str, text: str) -> Path:
        return script(bin / name, text)

    made("show", SHOW)
    return made


def script(path: Path, text: str, interpreter: str = f"{sys.executable} -IS") -> Path:
    """Write an executable file, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{interpreter}\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def engine_with(root: Path) -> Iterator[EngineWith]:
    """Takes grants, and returns an engine over that sandbox which has found this distribution by its entry points."""
    with ExitStack() as stack:

        def made(*grants: str, trusted: bool = True) -> Engine:
            policy = ExecutionPolicy(grants=grants, trusted=trusted)
            host = Host(sandbox_dir=root)
            return stack.enter_context(Engine(plugins=["neuroscript-shell"], host=host, policy=policy))

        yield made


@pytest.fixture
def engine(engine_with: EngineWith) -> Engine:
    """An engine with all grants for these tools."""
    return engine_with("shell:exec:*", "fs:*:**", "env:read:*")


@pytest.fixture
def confined(request: pytest.FixtureRequest) -> bool:
    """Whether programs are confined: ``--neuroscript-isolated=programs``."""
    return bool(request.config.getoption("--neuroscript-isolated") == "programs")


@pytest.fixture
def living() -> Callable[[Path], list[int]]:
    """Takes a directory; returns the processes that work in it or below it.

    Programs cannot write down their own process ids for that: in a PID namespace they have others.
    """

    def living(directory: Path) -> list[int]:
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and (process / "cwd").readlink().is_relative_to(directory):
                    found.append(int(process.name))
        return found

    return living


@pytest.fixture
def pids_in(living: Callable[[Path], list[int]]) -> Callable[[Path, int], list[int]]:
    """Takes a directory and a number; returns the processes that work there, once that many have written a file."""

    def found(folder: Path, count: int) -> list[int]:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if len([*folder.glob("*.pid")]) >= count:
                return living(folder)
            time.sleep(0.01)
        raise AssertionError(f"fewer than {count} processes have begun")

    return found


@pytest.fixture
def alive() -> Callable[..., list[int]]:
    """Takes process ids and seconds; returns those that still run afterwards, or none as soon as all have ended."""

    def running(pids: Iterable[int], within: float = 0.0) -> list[int]:
        end = time.monotonic() + within
        while (left := [pid for pid in pids if runs(pid)]) and time.monotonic() < end:
            time.sleep(0.01)
        return left

    return running


def runs(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
