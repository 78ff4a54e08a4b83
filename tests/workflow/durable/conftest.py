"""Fixtures of the tests of durable runs: the databases, and the process whose children may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import attrs
import pytest
from tests.workflow.durable.databases import MISSING, MakeDatabase, binaries, postgresql, sqlite
from tests.workflow.durable.durable_plans import engine as engine

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def make_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeDatabase]:
    """Return a factory for SQLite files, by name."""
    with sqlite(tmp_path_factory.mktemp("sqlite")) as make:
        yield make


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def make_database(request: pytest.FixtureRequest, make_sqlite: MakeDatabase) -> Iterator[MakeDatabase]:
    """Return a factory for databases, by name."""
    if request.param == "sqlite":
        yield make_sqlite
        return
    programs = binaries()
    if programs is None:
        pytest.skip(MISSING)
    with postgresql(programs) as make:
        yield make


@attrs.define
class Child:
    """A child that runs a plan.

    Attributes:
        pid: Its process id.
        out: The file for its result.
    """

    pid: int
    out: Path

    def kill(self) -> None:
        """Kill the child at once, like a power failure."""
        os.kill(self.pid, signal.SIGKILL)

    def result(self) -> Any:
        """Return its result after it has ended."""
        while not self.out.exists():
            time.sleep(0.01)
        return json.loads(self.out.read_text())


class Parent:
    """The process that forks the children."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._count = 0
        self._lock = Lock()

    def child(self, do: str, url: str, marks: Path, **more: Any) -> Child:
        """Start a child."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._count += 1
            out = self._folder / f"{self._count}.json"
            request = {"do": do, "url": url, "marks": str(marks), "out": str(out), **more}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return Child(int(self._process.stdout.readline()), out)


@pytest.fixture(scope="session")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    """Return the process that forks the children; they end with it."""
    words = [sys.executable, "-m", "tests.workflow.durable.children"]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Parent(process, tmp_path_factory.mktemp("children"))
        assert process.stdin is not None
        process.stdin.close()
