"""The files that git has to execute: itself, the programs that come with it, and the loader that starts them."""

from __future__ import annotations

import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from neuroscript_git import landlock

SECONDS: Final = 30.0
"""Maximum time for git to print the directory of its programs."""

INTERPRETER: Final = 3
"""The kind of an ELF program header that holds the path of the loader."""


def executables(program: str) -> tuple[str, ...]:
    """Return the files and directories that git has to execute, or nothing if Landlock cannot be used.

    Args:
        program: The absolute path of git.
    """
    return _tried(program) if landlock.version() else ()


@cache
def _tried(program: str) -> tuple[str, ...]:
    """Return the executables, or nothing if git does not run with these alone: it may be a script or a wrapper."""
    found = _git_executables(program)
    try:
        output = _run_output(landlock.start(found, lambda: _popen(program, "version")))
    except PermissionError:
        return ()
    return found if output.startswith("git version") else ()


def _git_executables(program: str) -> tuple[str, ...]:
    directory = _run_output(_popen(program, "--exec-path"))
    loaders = {_loader(Path(each)) for each in (program, f"{directory}/git-remote-http")}
    return (program, directory, *sorted(each for each in loaders if each))


def _popen(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(words, env={}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603


def _run_output(process: subprocess.Popen[bytes]) -> str:
    """Return what a program prints.

    Raises:
        TimeoutError: It took longer than SECONDS.
    """
    with process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise TimeoutError("git did not end in time") from None
    return output.decode(errors="surrogateescape").strip()


def _loader(path: Path) -> str:
    """Return the path of the loader that an ELF file names, or ``""``."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ""
    if data[:4] != b"\x7fELF":
        return ""
    order = "<" if data[5] == 1 else ">"
    table, fields = ((32, "Q"), "I4xQ16xQ") if data[4] == 2 else ((28, "I"), "II8xI")
    (start,) = struct.unpack_from(f"{order}{table[1]}", data, table[0])
    size, count = struct.unpack_from(f"{order}HH", data, 54 if data[4] == 2 else 42)
    headers = (struct.unpack_from(f"{order}{fields}", data, start + size * number) for number in range(count))
    paths = (data[offset : offset + length] for kind, offset, length in headers if kind == INTERPRETER)
    return next(paths, b"").rstrip(b"\0").decode()
