"""A real terminal with a process in it, as its user sees it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path


def read_until(descriptor: int, end: bytes) -> bytes:
    """Return the output of a descriptor until it ends with *end*, or until no more arrives."""
    result = b""
    while not result.endswith(end):
        try:
            part = os.read(descriptor, 1024)
        except OSError:  # Linux reports this when the other side of a terminal has closed
            part = b""
        if not part:
            raise AssertionError(f"{end!r} did not come, but {result!r}")
        result += part
    return result


def wait_until_asleep(process: int) -> None:
    """Wait until each thread of a process is blocked, or the process has ended."""
    tasks = Path(f"/proc/{process}/task")
    with contextlib.suppress(OSError):
        while any(") R " in (task / "stat").read_text() for task in tasks.iterdir()):
            time.sleep(0.001)


PATIENCE = 30
"""Seconds until the simulated user gives up."""

READS = re.compile(r"(0|63) 0x[0-9a-f]{1,2} 0x[0-9a-f]+ 0x1 ")
"""A one-byte read system call of a descriptor, as Linux shows it on x86 and ARM."""


def wait_until_it_reads(process: int) -> None:
    """Wait until a thread of a process reads a byte of an input, or the process has ended."""
    tasks = Path(f"/proc/{process}/task")
    with contextlib.suppress(OSError):
        while not any(READS.match((task / "syscall").read_text()) or _has_ended(task) for task in tasks.iterdir()):
            time.sleep(0.001)


def _has_ended(task: Path) -> bool:
    return ") Z " in (task / "stat").read_text()


class Terminal:
    """A terminal with a process in it, as its user sees it."""

    def __init__(self, code: str) -> None:
        self.ours, self.theirs = pty.openpty()
        begin = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        self.child = subprocess.Popen(
            [sys.executable, "-c", f"{begin}{code}"],
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            start_new_session=True,
        )

    def see(self, end: str) -> str:
        """Wait for a string, and return the output up to it."""
        result = b""
        latest = time.monotonic() + PATIENCE
        while not result.endswith(end.encode()):
            ended = self.child.poll() is not None or time.monotonic() > latest
            if select.select([self.ours], [], [], 0.05)[0]:
                result += os.read(self.ours, 1024)
            elif ended:
                raise AssertionError(f"{end!r} did not come, but {result!r}")
        return result.decode()

    def type(self, keys: str) -> None:
        """Press keys when the process waits for them; no user is faster."""
        wait_until_it_reads(self.child.pid)
        os.write(self.ours, keys.encode())

    @property
    def echoes(self) -> bool:
        """Whether typed characters are shown."""
        return bool(termios.tcgetattr(self.theirs)[3] & termios.ECHO)

    def mute(self) -> None:
        """Turn echo off, because the echo of unread input may arrive at any time."""
        settings = termios.tcgetattr(self.theirs)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.theirs, termios.TCSANOW, settings)

    def interrupt(self) -> None:
        """Press Ctrl-C when the process waits for keys."""
        self.type("\x03")

    def rest(self) -> str:
        """Return the output until the process has ended."""
        os.close(self.theirs)
        self.theirs = -1
        result = b""
        with contextlib.suppress(OSError):  # Linux reports this when the other side of a terminal has closed
            while part := os.read(self.ours, 1024):
                result += part
        return result.decode()

    def close(self, code: int = 0) -> None:
        """Wait for the process, and assert its exit code."""
        try:
            assert code == self.child.wait(10)
        finally:
            self.child.kill()
            os.close(self.ours)
            if self.theirs >= 0:
                os.close(self.theirs)
