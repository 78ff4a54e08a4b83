"""Fixtures of the file tool tests: the sandbox of the examples, and engines with grants for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host
from neuroscript.testing import Setup

MOMENT: Final = 1_700_000_000
"""When everything in the sandbox was changed last, in seconds since 1970-01-01 UTC."""

FILES: Final = {
    "data/a.txt": b"one\ntwo\nthree\n",
    "data/old/b.txt": b"old\n",
    "notes.txt": b"first line\nno line feed behind this one",
    "photo.jpg": b"\xff\xd8\xff\xe0",
    "SHA256SUMS": (
        b"b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2  a.txt\n"
        b"ba4f25bf16ba4be6bc7d3276fafeb67f9eb3c5df042bc3a405e1af15b921eed7  old/b.txt\n"
        b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  nothing.txt\n"
    ),
}
EMPTY: Final = "empty"

EngineWith = Callable[..., Engine]


@pytest.hookimpl(optionalhook=True)
def pytest_neuroscript_setup(distribution: str) -> Setup | None:
    """Return the sandbox that the examples use."""
    return Setup(files={**FILES, EMPTY: None}) if distribution == "neuroscript-fs" else None


@pytest.fixture
def setup() -> Setup | None:
    """The environment of the examples."""
    return pytest_neuroscript_setup("neuroscript-fs")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sandbox directory, with the files of the examples."""
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / EMPTY).mkdir()
    for path in tmp_path.rglob("*"):
        os.utime(path, (MOMENT, MOMENT))
    return tmp_path


@pytest.fixture
def engine_with(root: Path) -> Iterator[EngineWith]:
    """Takes grants and returns an engine over the sandbox, which found this distribution through its entry points."""
    with ExitStack() as stack:

        def made(*grants: str) -> Engine:
            policy = ExecutionPolicy(grants=grants)
            return stack.enter_context(Engine(plugins=["neuroscript-fs"], host=Host(sandbox_dir=root), policy=policy))

        yield made


@pytest.fixture
def engine(engine_with: EngineWith) -> Engine:
    """An engine with all grants for files."""
    return engine_with("fs:*:*")
