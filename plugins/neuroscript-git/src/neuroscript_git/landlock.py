"""Landlock: programs that can execute only the files that are listed.

Landlock is part of Linux 5.13 and later. A thread can restrict itself without privileges. It cannot undo that, and the
processes that it starts inherit it. So each program is started on a short-lived thread: the host's other threads stay
unrestricted, and no Python code runs between fork and exec.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Final

CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
"""Numbers of Linux system calls, the same on all common architectures."""

ASK_VERSION: Final = 1
BENEATH_PATH: Final = 1
NO_NEW_PRIVILEGES: Final = 38

EXECUTE: Final = 1 << 0
REFER: Final = 1 << 13
"""The right to move files between directories. Landlock denies it unless a rule allows it."""

REFER_VERSION: Final = 2
"""The first version with rules for REFER. Version 1 always denies it, which git does not notice."""


def version() -> int:
    """Return the version of Landlock that the kernel offers, or 0 if it has none or a filter hides it."""
    return max(_syscall(CREATE_RULESET, None, 0, ASK_VERSION), 0) if _libc() else 0


def start(executables: Sequence[str], popen: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a program that, like every program it starts, can execute only some files.

    Without Landlock, or without a list of files, the program starts unrestricted.

    Args:
        executables: Files, and directories with all the files below them. Missing ones are skipped.
        popen: Starts the program.

    Raises:
        OSError: The kernel has Landlock, but the restriction failed; nothing was started.
    """
    if not executables or not version():
        return popen()
    with ThreadPoolExecutor(1, "neuroscript-git-start") as thread:
        started = thread.submit(_start, executables, popen)
        try:
            return started.result()
        except KeyboardInterrupt:
            _discard(started)
            raise


def _start(executables: Sequence[str], popen: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    _restrict(executables)
    return popen()


def _discard(started: Future[subprocess.Popen[bytes]]) -> None:
    """Wait until the program has started, and kill it."""
    if started.exception() is None:
        process = started.result()
        process.kill()
        process.communicate()


def _restrict(executables: Sequence[str]) -> None:
    """Restrict this thread to executing these files."""
    refer = REFER if version() >= REFER_VERSION else 0
    ruleset = _require(_syscall(CREATE_RULESET, struct.pack("=Q", EXECUTE | refer), 8, 0))
    try:
        for path in executables:
            _allow(ruleset, path, EXECUTE)
        if refer:
            _allow(ruleset, "/", refer)
        _require(_libc().prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        _require(_syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _require(_syscall(ADD_RULE, ruleset, BENEATH_PATH, struct.pack("=Qi", rights, descriptor), 0))
    finally:
        os.close(descriptor)


@cache
def _libc() -> Any:
    """Return the C library, or None if this is not Linux or Python cannot call it."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None


def _syscall(number: int, *args: int | bytes | None) -> int:
    """Return the result of a system call, which is negative if it failed."""
    import ctypes

    words = [ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each) for each in (number, *args)]
    return int(_libc().syscall(*words))


def _require(result: int) -> int:
    """Return the result of a call into the C library.

    Raises:
        OSError: The call failed.
    """
    if result < 0:
        import ctypes

        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
