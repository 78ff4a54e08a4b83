"""A forked child that runs one function, which may confine or end the process, and reports what it returns."""

from __future__ import annotations

import gc
import os
import select
import signal
import warnings
from contextlib import suppress
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


END = b"\0"
"""The last byte of a report."""

MAX_READ_BYTES = 1 << 16

MAX_SECONDS = 60.0
"""Seconds after which a child is killed; a lock of another thread, which a fork copies, may hold it up for ever."""


def in_child(function: Callable[[], str]) -> str:
    """Return what a function returns in a forked child, the reason if it raises, or how the child ended before that.

    The other threads of this process do not exist in the child, so the function should do little but system calls.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn about other threads
        pid = os.fork()
    if not pid:
        gc.disable()  # a finalizer could wait for a thread that does not exist here
        try:
            os.write(writing, _attempt(function).encode(errors="replace") + END)
        finally:
            os._exit(0)
    os.close(writing)
    report = _read_report(reading)
    is_whole = report.endswith(END)
    if not is_whole:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ended = _end_of(pid)
    return report.removesuffix(END).decode() if is_whole else f"the process ended {ended}"


def _read_report(reading: int) -> bytes:
    """Return what a child has reported, or the begin of it if it ends or takes too long; close the descriptor.

    A fork of the child, or of another thread, may hold the other end of the pipe, so the end of the file may not come.
    """
    report = b""
    end = monotonic() + MAX_SECONDS
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    try:
        while not report.endswith(END) and poll.poll(max(end - monotonic(), 0) * 1000):
            part = os.read(reading, MAX_READ_BYTES)
            if not part:
                break
            report += part
    finally:
        os.close(reading)
    return report


def _attempt(function: Callable[[], str]) -> str:
    try:
        return function()
    except OSError as error:
        return error.strerror or str(error)
    except BaseException as error:
        return str(error) or type(error).__name__


def _end_of(pid: int) -> str:
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # this process ignores SIGCHLD
        return "early"
    return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
