"""Run one program, and end it together with every process that it started.

This file is a program of its own, between the host and the program that it runs:
``python -I -S -X utf8 supervisor.py CONTROL REPORT FILE_BYTES PROCESSES PROGRAM NAME [ARG …]``.

CONTROL is a descriptor to read from. A byte asks for the end: SIGTERM, and SIGKILL after `GRACE_SECONDS`. End of file
means SIGKILL at once; it comes when the host closes the descriptor and when the host dies. REPORT is a descriptor to
write lines to: ``confinement WORD``, ``pid N``, ``exec ERRNO``, ``crowd``, ``exit N`` and ``signal N``.

The supervisor tries three means in this order, and uses the first one that the system offers:

1. ``namespace``: the program runs in a PID namespace, whose first process supervises it. The program cannot see any
   process outside the namespace. It cannot signal the first process either, and when that process ends, the kernel
   kills everything in the namespace. Where the kernel has Landlock too, it also keeps the superuser's program from
   tracing its supervisor.
2. ``landlock``: the program can send signals only to processes that it started itself (Linux 6.12). The supervisor
   adopts every orphan, and one system call reaches all of its descendants and no other process.
3. ``tree``: the supervisor adopts every orphan, and finds its descendants in /proc. A program can kill or stop this
   supervisor, and so outlive it. On systems other than Linux, only the program's own session is ended.

The limits are set here and not between fork and exec in the host, because the host has threads.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # at run time, typing would take as long to import as the rest of this program needs to start
    from collections.abc import Callable, Iterator
    from typing import Final, NoReturn

GRACE_SECONDS: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""

KILL_TIMEOUT_SECONDS: Final = 3.0
"""Seconds within which killed processes must be gone."""

POLL_SECONDS: Final = 0.05
"""Seconds after which the processes are counted again."""

NO_NAMESPACE: Final = 125
"""The exit code of a process that could not enter a PID namespace; it has started nothing."""

ASKING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
"""Signals that ask a process to end. The supervisor ignores them, because it ends when the host does."""

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

CLONE_NEWNS: Final = 0x20000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000

MS_NOSUID: Final = 0x2
MS_NODEV: Final = 0x4
MS_NOEXEC: Final = 0x8
MS_REC: Final = 0x4000
MS_SLAVE: Final = 0x80000

LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_RESTRICT_SELF: Final = 446
LANDLOCK_CREATE_RULESET_VERSION: Final = 1
LANDLOCK_SCOPE_SIGNAL: Final = 2
LANDLOCK_ABI_WITH_SIGNALS: Final = 6

LIBC = ctypes.CDLL(None, use_errno=True)


class Task:
    """The parsed command line.

    Attributes:
        control: The descriptor that asks for the end.
        report: The descriptor that lines are written to.
        file_bytes: How large a file of the program may become.
        processes: How many processes there may be at once.
        program: The path of the program.
        argv: Its name and its arguments.
    """

    def __init__(self, words: list[str]) -> None:
        self.control, self.report, self.file_bytes, self.processes = map(int, words[:4])
        self.program, self.argv = words[4], words[5:]

    def tell(self, line: str) -> None:
        """Write one line to the host, if it is still there."""
        with suppress(OSError):
            os.write(self.report, f"{line}\n".encode())


def main() -> None:
    """Run the program of the command line."""
    for number in ASKING:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the thread of the host may have blocked any signal
    task = Task(sys.argv[1:])
    for descriptor in (task.control, task.report):
        os.set_inheritable(descriptor, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_NO_NEW_PRIVS, 1)  # no descendant may gain rights that put it beyond our signals
    if not supervise_in_namespace(task):
        supervise(task, "landlock" if confine_own_signals() else "tree")


def supervise_in_namespace(task: Task) -> bool:
    """Have the program supervised in a PID namespace, and return whether the system allows that.

    A child enters the namespace, because a process that fails half-way has already lost its user id.
    """
    if sys.platform != "linux":
        return False
    woken = wake_on_child_exit()
    guard = os.fork()
    if not guard:
        enter_namespace(task)
    prctl(PR_SET_DUMPABLE, 0)
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(task.control, 0)  # only a hang-up is reported: the bytes are for the supervisor in the namespace
    while True:
        if any(descriptor == task.control for descriptor, _ in poll.poll()):
            os.kill(guard, signal.SIGKILL)  # which kills the first process of the namespace, and with it all others
            break
        os.read(woken, 4096)
        ended, status = os.waitpid(guard, os.WNOHANG)
        if ended:
            if os.waitstatus_to_exitcode(status) == NO_NAMESPACE:
                return False
            break
    wait_for_children()
    return True


def enter_namespace(task: Task) -> NoReturn:
    """Enter a PID namespace, run the supervisor as its first process, and end with it."""
    parent = os.getppid()
    try:
        unshare_namespaces()
        end_with_parent(parent)
        first = os.fork()
        if not first:
            supervise_as_first(task)
    except OSError:
        os._exit(NO_NAMESPACE)
    os.waitpid(first, 0)
    os._exit(0)


def unshare_namespaces() -> None:
    """Give this process new namespaces of mounts, and its children one of processes.

    The superuser needs no user namespace for that, and so keeps all user ids and privileges. Any other user is mapped
    to the same user id and group id.

    Raises:
        OSError: The system does not allow it.
    """
    if LIBC.unshare(CLONE_NEWPID | CLONE_NEWNS) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def supervise_as_first(task: Task) -> NoReturn:
    """Supervise the program as the first process of a PID namespace."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # where the parent died before this, the end of CONTROL remains
        if os.getpid() == 1:
            mount_proc()
            supervise(task, "namespace")
    finally:
        os._exit(0)


def mount_proc() -> None:
    """Show the program the processes of its own namespace, as far as the system allows.

    A container that hides parts of /proc refuses the mount. There the program sees the /proc of the host, whose process
    ids are not its own; it is confined all the same.
    """
    if LIBC.mount(None, b"/", None, MS_REC | MS_SLAVE, None) == 0:  # so that the host does not see the next mount
        LIBC.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)


def supervise(task: Task, confinement: str) -> None:
    """Run the program until it ends or has to end, and leave no process behind."""
    prctl(PR_SET_DUMPABLE, 0)  # the program could trace this process otherwise, and write to REPORT by /proc
    woken = wake_on_child_exit()
    task.tell(f"confinement {confinement}")
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        become(task, parent, confinement)
    release_streams()
    if confinement == "tree":
        task.tell(f"pid {pid}")

    def send(number: int) -> None:
        if confinement == "tree":
            send_to_tree(pid, number)
        else:
            send_to_all(number)

    watch(task, pid, woken, send)
    end(task, pid, send)


def confine_own_signals() -> bool:
    """Confine the signals of this process to its descendants, and return whether the kernel does so.

    After that, a signal to all processes reaches only the descendants. Without the confinement it would reach the whole
    system, so the host is tried too: this process must have been able to signal it, and must no longer be.
    """
    host = os.getppid()
    return can_signal(host) and confine_signals() and not can_signal(host)


def confine_signals() -> bool:
    """Put this process into a Landlock domain that no signal leaves, and return whether the kernel can do so."""
    if sys.platform != "linux":
        return False
    if LIBC.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION) < LANDLOCK_ABI_WITH_SIGNALS:
        return False
    attributes = (ctypes.c_uint64 * 3)(0, 0, LANDLOCK_SCOPE_SIGNAL)  # files, network, scopes
    ruleset = LIBC.syscall(LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    if ruleset < 0:
        return False
    is_confined: bool = LIBC.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return is_confined


def can_signal(pid: int) -> bool:
    """Return whether this process may signal another one."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def prctl(option: int, value: int) -> None:
    """Change an attribute of this process, where the system is Linux."""
    if sys.platform == "linux":
        LIBC.prctl(option, value, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, which may have happened already."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def wake_on_child_exit() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    return woken


def become(task: Task, parent: int, confinement: str) -> NoReturn:
    """Turn this process into the program, in a session of its own."""
    try:
        os.setsid()
        end_with_parent(parent)
        for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, task.file_bytes)):
            hard = resource.getrlimit(kind)[1]
            least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (least, least))
        for number in (*ASKING, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        is_confined = confinement != "tree" and confine_signals()  # in a domain that the supervisor is not in
        if confinement == "landlock" and not is_confined:
            task.tell("confinement tree")
        os.execve(task.program, task.argv, os.environ)  # noqa: S606
    except OSError as error:
        task.tell(f"exec {error.errno}")
    finally:
        os._exit(127)


def release_streams() -> None:
    """Leave the streams to the program alone, so that they end with it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nothing, descriptor)


def watch(task: Task, pid: int, woken: int, send: Callable[[int], None]) -> None:
    """Return when the program has ended, or when it has to end with all others."""
    over: float | None = None
    poll = select.poll()  # select() takes no descriptor above 1023, and these have the numbers of the host's
    for descriptor in (task.control, woken):
        poll.register(descriptor, select.POLLIN)
    while over is None or time.monotonic() < over:
        if reap(task, pid):
            return
        ready = {descriptor for descriptor, _ in poll.poll(POLL_SECONDS * 1000)}
        if woken in ready:
            os.read(woken, 4096)
        if task.control in ready:
            if not os.read(task.control, 1):
                return
            if over is None:
                over = time.monotonic() + GRACE_SECONDS
                send(signal.SIGTERM)
        if len(descendants()) > task.processes:
            if reap(task, pid):
                return
            if len(descendants()) > task.processes:  # without those that ended while this process had to wait
                task.tell("crowd")
                return


def reap(task: Task, pid: int) -> bool:
    """Reap the children that have ended, report the program, and return whether it was among them."""
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
            task.tell(f"exit {code}" if code >= 0 else f"signal {-code}")


def end(task: Task, pid: int, send: Callable[[int], None]) -> None:
    """Kill every process, and what it started meanwhile, until none is left."""
    over = time.monotonic() + KILL_TIMEOUT_SECONDS
    while time.monotonic() < over:
        send(signal.SIGKILL)
        reap(task, pid)
        if not has_children():
            return
        time.sleep(0.002)


def has_children() -> bool:
    """Return whether a child is left, dead or alive."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def wait_for_children() -> None:
    """Wait until no child is left."""
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return


def send_to_all(number: int) -> None:
    """Send a signal to every process that can be reached but this one: those of the namespace, or of the domain."""
    with suppress(OSError):  # no such process
        os.kill(-1, number)


def send_to_tree(pid: int, number: int) -> None:
    """Send a signal to the group of the program and to the groups of its descendants, to each process once.

    A signal to a group also reaches a process that is being forked in it. The supervisor is in a group with processes
    that have not left it, so they get the signal one by one.
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
    """Return the processes below this one, with the numbers that /proc gives them."""
    try:
        own = int(os.readlink("/proc/self"))  # not always getpid(): /proc may be that of another PID namespace
    except OSError:
        return []
    seen: list[int] = []
    ahead = [own]
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
