"""A sandbox and its surroundings: layouts of the test vectors, operations by name, and files that must not change.

The head of ``vectors/paths.json`` explains the names.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from neuroscript import CallError, NeuroScriptError, SandboxError
from neuroscript.sandbox import Sandbox
from neuroscript.sandbox.files import Files

SECRET = "SECRET"
BACKENDS: tuple[Literal["openat2", "walk"], ...] = ("openat2", "walk")


def free(*args: Any) -> None:
    """Permit everything and count nothing."""


@attrs.frozen
class World:
    """A directory with the sandbox ``ROOT`` and, next to it, the targets of possible escapes."""

    base: Path

    @property
    def root(self) -> Path:
        return self.base / "ROOT"

    @property
    def out(self) -> Path:
        return self.base / "OUT"

    def expanded(self, text: str) -> str:
        return text.replace("$ROOT", str(self.root)).replace("$OUT", str(self.out)).replace("$BASE", str(self.base))

    def outside(self) -> dict[str, Any]:
        """Return everything outside the sandbox: content, times, permissions."""
        found: dict[str, Any] = {}
        for path in sorted(self.base.rglob("*")):
            if path == self.root or self.root in path.parents:
                continue
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            found[str(path)] = (content, status.st_mtime_ns, status.st_mode, status.st_ino)
        return found

    def sandbox(self, backend: Literal["openat2", "walk"]) -> Sandbox:
        return Sandbox(str(self.root), backend=backend)


def build(base: Path, setup: list[str]) -> World:
    """Create a world in an empty directory, with those parts of *setup* that exist before the sandbox opens."""
    world = World(base)
    for directory in ("ROOT", "OUT/sub", "ROOT2"):
        (base / directory).mkdir(parents=True)
    for file in ("OUT/secret", "ROOT2/secret", "secret"):
        (base / file).write_text(SECRET)
    for line in setup:
        word, *words = line.split(" ")
        if word in MAKERS:
            MAKERS[word](world, " ".join(words))
    return world


def _file(world: World, rest: str) -> None:
    name, _, text = rest.rpartition(" ")
    path = world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _link(world: World, rest: str) -> None:
    name, _, target = rest.partition(" ")
    path = world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(world.expanded(target))


def _hard_link(world: World, rest: str) -> None:
    name, _, target = rest.partition(" ")
    os.link(world.expanded(target), world.root / name)


def _socket(world: World, rest: str) -> None:
    with socket.socket(socket.AF_UNIX) as each:
        here = os.getcwd()
        os.chdir(world.root)  # the path of a socket has at most 107 bytes
        try:
            each.bind(rest)
        finally:
            os.chdir(here)


def _device(world: World, rest: str) -> None:
    name, major, minor = rest.split(" ")
    os.mknod(world.root / name, 0o020666, os.makedev(int(major), int(minor)))


def _sparse(world: World, rest: str) -> None:
    name, size = rest.split(" ")
    with (world.root / name).open("wb") as file:
        file.truncate(int(size))


MAKERS: dict[str, Callable[[World, str], Any]] = {
    "file": _file,
    "dir": lambda world, rest: (world.root / rest).mkdir(parents=True, exist_ok=True),
    "symlink": _link,
    "hardlink": _hard_link,
    "fifo": lambda world, rest: os.mkfifo(world.root / rest),
    "sock": _socket,
    "char": _device,
    "sparse": _sparse,
    "chmod": lambda world, rest: (world.root / rest.split(" ")[0]).chmod(int(rest.split(" ")[1], 8)),
}
"""The steps of a setup; ``swap`` and ``removeroot`` run after the sandbox is open."""


OPERATIONS: dict[str, Callable[[Files, str, str], Any]] = {
    "read": lambda files, path, other: files.read_bytes(path, limit=2**20),
    "text": lambda files, path, other: files.read_text(path),
    "open": lambda files, path, other: _all_of(files, path),
    "hash": lambda files, path, other: files.hash(path),
    "stat": lambda files, path, other: files.stat(path).kind,
    "exists": lambda files, path, other: files.exists(path),
    "list": lambda files, path, other: [each.path for each in files.list(path)],
    "walk": lambda files, path, other: [each.path for each in files.walk(path)],
    "glob": lambda files, path, other: [each.path for each in files.glob(path)],
    "pinned": lambda files, path, other: _pinned(files, path),
    "resolve": lambda files, path, other: os.path.basename(files.resolve(path)) and "somewhere below",
    "write": lambda files, path, other: files.write_bytes(path, b"NEW"),
    "append": lambda files, path, other: files.append(path, b"NEW"),
    "mkdir": lambda files, path, other: files.mkdir(path),
    "delete": lambda files, path, other: files.delete(path),
    "rename": lambda files, path, other: files.move(path, other),
    "move_here": lambda files, path, other: files.move("mine", path),
}


def _all_of(files: Files, path: str) -> bytes:
    with files.open(path) as file:
        return file.read()


def _pinned(files: Files, path: str) -> Any:
    with files.pinned(path) as name:
        return sorted(os.listdir(name)) if os.path.isdir(name) else Path(name).read_bytes()


RETRIES = {
    **dict.fromkeys(("sandbox.permission", "sandbox.readonly", "sandbox.full", "sandbox.io"), "host"),
    **dict.fromkeys(("sandbox.gone", "sandbox.missing", "sandbox.backend"), "host"),
    "sandbox.raced": "later",
}
"""Who can make the operation succeed, by code; for other codes it is the model, and for limits and grants the host."""


def outcome(run: Callable[[], Any]) -> Any:
    """Return the result of *run*, or a colon and the code of the project's error that it raises."""
    try:
        return run()
    except (SandboxError, CallError) as error:
        assert isinstance(error, NeuroScriptError)
        assert error.retry == RETRIES.get(error.code, "model" if isinstance(error, SandboxError) else "host")
        return f":{error.code}"


@contextmanager
def swapping(directory: Path, first: str, second: str) -> Iterator[None]:
    """Have another process exchange two names continuously."""
    command = [sys.executable, "-c", EXCHANGE, str(directory), first, second]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


EXCHANGE = """
import ctypes, os, random, sys, time
os.chdir(sys.argv[1])
rename = ctypes.CDLL(None).renameat2
first, second = (os.fsencode(each) for each in sys.argv[2:])
chance = random.Random(1)
print(flush=True)
while True:
    for _ in range(chance.randrange(400)):
        assert rename(-100, first, -100, second, 2) == 0
    until = time.perf_counter() + chance.uniform(0, 0.0006)
    while time.perf_counter() < until:
        pass
"""
"""Alternate between many exchanges and pauses, so operations of several steps meet only one of the two states."""


def can_swap() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "renameat2")


def remove_root(world: World) -> None:
    shutil.rmtree(world.root)
