"""The directory of a sandbox: how it is opened, replaced and closed."""

from __future__ import annotations

import gc
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox_layouts import (
    OPERATIONS,
    build,
    can_swap,
    free,
    outcome,
)

from neuroscript import SandboxError
from neuroscript.sandbox import Sandbox
from neuroscript.sandbox.by_path import PathFolder


def test_the_directory_is_created_empty(tmp_path: Path) -> None:
    """Its path is absolute, and the best strategy is used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        sandbox = Sandbox("a/b")

    assert sandbox.directory == str(tmp_path / "a/b")
    assert sandbox.backend == ("openat2" if sys.platform == "linux" else "walk")
    assert os.listdir(sandbox.directory) == []


@pytest.mark.parametrize(
    ("directory", "code"),
    [
        ("", "sandbox.missing"),
        ("a\0b", "sandbox.missing"),
        ("file", "sandbox.type"),
        ("file/below", "sandbox.type"),
        ("dangling", "sandbox.type"),
        ("/proc/self/fd", "sandbox.type"),
        ("/sys/kernel", "sandbox.type"),
        ("/proc/nothing/here", "sandbox.missing"),
    ],
)
def test_an_unusable_directory_is_refused_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, code: str
) -> None:
    """The error does not contain its path, and no descriptor stays open."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    gc.collect()
    before = os.listdir("/proc/self/fd")

    with pytest.raises(SandboxError) as raised:
        Sandbox(directory)

    assert raised.value.code == code
    assert raised.value.retry == "host"
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_closed_sandbox_is_unusable(root: Path, backend: Any) -> None:
    """It can be closed twice."""
    sandbox = Sandbox(str(root), backend=backend)
    files = sandbox.files(free, free)
    files.write_bytes("f", b"1")
    sandbox.close()
    sandbox.close()

    for word in OPERATIONS:
        assert outcome(lambda: OPERATIONS[word](files, "f", "other")) == ":sandbox.gone", word


@pytest.mark.parametrize("change", ["removed", "moved", "replaced"])
def test_a_removed_directory_is_reported(root: Path, backend: Any, change: str) -> None:
    """Even if another directory has its name."""
    sandbox = Sandbox(str(root), backend=backend)
    root.rename(root.with_name("elsewhere"))
    if change == "removed":
        os.rmdir(root.with_name("elsewhere"))
    if change == "replaced":
        root.mkdir()
        (root / "f").write_text("other")
    files = sandbox.files(free, free)

    for word in OPERATIONS:
        assert outcome(lambda: OPERATIONS[word](files, "f", "other")) == ":sandbox.gone", word


def test_a_sandbox_is_closed_after_its_last_operation(root: Path, backend: Any) -> None:
    """Its descriptor is not reused during an operation."""
    sandbox = Sandbox(str(root), backend=backend)
    started, closed = threading.Event(), threading.Event()

    def spend(what: str, count: int) -> None:
        started.set()
        closed.wait()

    sandbox.files(free, free).write_bytes("f", b"1")
    results: list[bytes] = []
    reader = threading.Thread(target=lambda: results.append(sandbox.files(free, spend).read_bytes("f")))
    reader.start()
    started.wait()
    sandbox.close()
    descriptor = sandbox._root.descriptor  # type: ignore[attr-defined]
    assert os.fstat(descriptor)
    closed.set()
    reader.join()

    assert results == [b"1"]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_an_unreferenced_sandbox_is_closed(root: Path) -> None:
    """With its last reference."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    Sandbox(str(root)).files(free, free).write_bytes("f", b"")

    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(not can_swap(), reason="names cannot be exchanged here")
def test_a_descriptor_opened_outside_is_closed(tmp_path: Path) -> None:
    """The last check of resolution by names: where the file really is."""
    world = build(tmp_path, [])
    folder = PathFolder(str(world.root), str(world.root))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="Too many levels"):
        folder._kept_below(os.open(world.out / "secret", os.O_RDONLY))

    assert len(os.listdir("/proc/self/fd")) == before
