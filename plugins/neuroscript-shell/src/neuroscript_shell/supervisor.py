"""Runs one program, and ends with everything that came of it.

This file is a program of its own, between the host and the program that is run:
``python -I -S -X utf8 supervisor.py CONTROL REPORT FILE_BYTES PROCESSES PROGRAM NAME [ARG …]``.

CONTROL is a descriptor to read from: a byte asks for the end, first by SIGTERM and after `GRACE` seconds by SIGKILL.
Its end, as when the host has died, is SIGKILL at once. REPORT is one to write lines to: ``pid N``, ``exec ERRNO``,
``crowd``, ``exit N`` or ``signal N``.

On Linux it adopts whatever its program leaves behind, so that what begins a session of its own is found and ended too.
It gains no rights by running a file, so that nothing below it is out of reach of its signals. Elsewhere the session of
the program is all that is ended. Limits are set here and not between fork and exec in the host, which has threads.

Source: reliability.md T13 and part 4; prctl(2), proc(5).
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""

PATIENCE: Final = 5.0
"""Seconds in which what was killed has to be gone."""

LOOK: Final = 0.05
"""Seconds after which the processes are counted again."""

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38


def main() -> None:
    """Run what the command line says."""
    control, report, file_bytes, most = map(int, sys.argv[1:5])
    for descriptor in (control, report):
        os.set_inheritable(descriptor, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    woken = wakes()
    pid = os.fork()
    if not pid:
        become(sys.argv[5], sys.argv[6:], file_bytes, report)
    let_go_of_streams()
    tell(report, f"pid {pid}")
    watch(pid, control, woken, report, most)
    end(pid, report)


def prctl(option: int, value: int) -> None:
    """Tell the kernel something about this process, where it is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def wakes() -> int:
    """Return a descriptor that can be read when a child has ended."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    return woken


def become(program: str, argv: list[str], file_bytes: int, report: int) -> None:
    """Turn this process into the program, in a session of its own; never returns."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, file_bytes)):
            hard = resource.getrlimit(kind)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (least, least))
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(program, argv, os.environ)  # noqa: S606
    except OSError as error:
        tell(report, f"exec {error.errno}")
    finally:
        os._exit(127)


def let_go_of_streams() -> None:
    """Leave the streams to the program alone, so that they end with it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def tell(report: int, line: str) -> None:
    """Write one line to the host, if it is still there."""
    with suppress(OSError):
        os.write(report, f"{line}\n".encode())


def watch(pid: int, control: int, woken: int, report: int, most: int) -> None:
    """Return when the program has ended, or when it and all others have to."""
    over: float | None = None
    while over is None or time.monotonic() < over:
        if reaped(pid, report):
            return
        ready, _, _ = select.select([control, woken], [], [], LOOK)
        if woken in ready:
            os.read(woken, 4096)
        if control in ready:
            if not os.read(control, 1):
                return
            if over is None:
                over = time.monotonic() + GRACE
                send(pid, signal.SIGTERM)
        if len(descendants()) > most:
            tell(report, "crowd")
            return


def reaped(pid: int, report: int) -> bool:
    """Collect the children that have ended, report the program, and tell whether it was among them."""
    was = False
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return was
        if not ended:
            return was
        if ended == pid:
            was = True
            code = os.waitstatus_to_exitcode(status)
            tell(report, f"exit {code}" if code >= 0 else f"signal {-code}")


def end(pid: int, report: int) -> None:
    """Kill all there are, and whatever these began meanwhile, until none is left."""
    over = time.monotonic() + PATIENCE
    while time.monotonic() < over:
        send(pid, signal.SIGKILL)
        reaped(pid, report)
        if not has_children():
            return
        time.sleep(0.002)


def has_children() -> bool:
    """Tell whether a child is left, dead or alive."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def send(pid: int, number: int) -> None:
    """Send a signal to the group of the program and to the groups of its descendants, to each process once.

    A group is reached as a whole: what is being forked in it meanwhile gets the signal too. In our own there is the
    supervisor, so there each descendant is reached by itself.
    """
    groups = {pid}
    for each in descendants():
        with suppress(OSError):
            group = os.getpgid(each)
            if group == os.getpgrp():
                os.kill(each, number)
            else:
                groups.add(group)
    for group in groups:
        with suppress(OSError):
            os.killpg(group, number)


def descendants() -> list[int]:
    """Return the processes below this one, as far as the system tells."""
    seen, ahead = [], [os.getpid()]
    while ahead:
        born = list(children(ahead.pop()))
        seen += born
        ahead += born
    return seen


def children(parent: int) -> Iterator[int]:
    """Yield the children of all threads of a process."""
    try:
        for task in os.listdir(f"/proc/{parent}/task"):
            with open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                yield from map(int, file.read().split())
    except OSError:
        return


if __name__ == "__main__":
    main()
