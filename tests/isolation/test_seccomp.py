"""Seccomp: which system calls fail, on both processors, and what a Python program can still do."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # an unprivileged child may not be able to import it
import ctypes
import ctypes.util
import errno
import faulthandler
import fcntl
import multiprocessing
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.isolation.children import libc_call, outcome

from neuroscript.isolation import seccomp
from neuroscript.isolation.child import in_child

pytestmark = pytest.mark.forks

works_here = pytest.mark.skipif(bool(seccomp.unsupported()), reason="there is no seccomp filter for this processor")

TABLES = ("REFUSED", "METADATA", "ATTRIBUTES", "SIGNALS", "ADDRESSES", "EXEC", "FORK", "CHECKED")
NUMBERS = {name: numbers for table in TABLES for name, numbers in getattr(seccomp, table).items()}

CLOSED = {"network": False, "execute": False, "signals": False, "metadata": False}
OPEN = dict.fromkeys(CLOSED, True)
closed = partial(seccomp.restrict, **CLOSED)

EPERM, ENOSYS, ENOTSUP = (0x50000 | each for each in (errno.EPERM, errno.ENOSYS, errno.ENOTSUP))
KILL, PERMIT = 0x80000000, 0x7FFF0000


def run(machine: str, number: int, *args: int, architecture: int | None = None, pid: int = 7, **how: bool) -> int:
    """Run a filter on one system call as the kernel does, and return its result."""
    call = [*args, *[0] * (6 - len(args))]
    data = struct.pack("<IIQ6Q", number, architecture or seccomp.MACHINES[machine][0], 0, *call)
    program = seccomp.assemble(machine, pid=pid, **{**CLOSED, **how})
    value = at = 0
    while True:
        code, jump_true, jump_false, operand = program[at]
        at += 1
        match code:
            case seccomp.LOAD:
                (value,) = struct.unpack_from("<I", data, operand)
            case seccomp.MASK:
                value &= operand
            case seccomp.RETURN:
                return operand
            case seccomp.JUMP:
                at += operand
            case seccomp.EQUAL:
                at += jump_true if value == operand else jump_false
            case seccomp.GREATER:
                at += jump_true if value > operand else jump_false
            case seccomp.ANY_BIT:
                at += jump_true if value & operand else jump_false
            case _:
                raise AssertionError(code)


MACHINES = pytest.mark.parametrize("machine", seccomp.MACHINES)


def number_of(machine: str, name: str) -> int | None:
    return NUMBERS[name][seccomp.MACHINES[machine][1]]


@MACHINES
def test_numbers_are_those_of_libseccomp(machine: str) -> None:
    """Another library has the same tables."""
    path = ctypes.util.find_library("seccomp")
    if path is None:
        pytest.skip("libseccomp is not installed")
    resolve = ctypes.CDLL(path).seccomp_syscall_resolve_name_arch
    architecture = seccomp.MACHINES[machine][0]
    found = {name: resolve(architecture, name.encode()) for name in NUMBERS}
    known = {name: number for name, number in found.items() if number >= 0}

    assert {name: number_of(machine, name) for name in known} == known
    assert {name for name in NUMBERS if number_of(machine, name) is not None} - {*known} <= {
        *("fchmodat2", "statmount", "listmount")  # newer than some versions of that library
    }


@MACHINES
def test_calls_of_another_architecture_end_the_process(machine: str) -> None:
    other = next(code for name, (code, _) in seccomp.MACHINES.items() if name != machine)

    assert run(machine, 0, architecture=other, **OPEN) == KILL
    assert run(machine, 1 << 30, **OPEN) == (KILL if machine == "x86_64" else ENOSYS)


@MACHINES
def test_tables_are_refused_unless_a_switch_permits_them(machine: str) -> None:
    switches = {"METADATA": "metadata", "ATTRIBUTES": "metadata", "SIGNALS": "signals", "ADDRESSES": "network"}
    switches |= {"EXEC": "execute", "FORK": "execute"}
    for table in TABLES[:-1]:
        for name in getattr(seccomp, table):
            number = number_of(machine, name)
            if number is None:
                continue
            result = ENOTSUP if table == "ATTRIBUTES" else EPERM
            assert run(machine, number) == result, name
            assert run(machine, number, **OPEN) == (result if table == "REFUSED" else PERMIT), name
            if table in switches:
                but_one = {**OPEN, switches[table]: False}
                assert run(machine, number, **but_one) == result, name
                assert run(machine, number, **{switches[table]: True}) == PERMIT, name


@MACHINES
def test_calls_that_are_not_listed_are_permitted(machine: str) -> None:
    """Later calls than those that the filter knows do not exist."""
    listed = {numbers[seccomp.MACHINES[machine][1]] for numbers in NUMBERS.values()}
    results = {number: run(machine, number) for number in range(seccomp.NEWEST + 20) if number not in listed}

    assert {each for number, each in results.items() if number <= seccomp.NEWEST} == {PERMIT}
    assert {each for number, each in results.items() if number > seccomp.NEWEST} == {ENOSYS}


THREAD = 0x10000
HIGH = 1 << 32
ARGUMENTS: list[tuple[str, tuple[int, ...], dict[str, bool], int]] = [
    ("clone", (THREAD,), {}, PERMIT),
    ("clone", (0x11,), {}, EPERM),
    ("clone", (0x4111,), {"execute": True}, PERMIT),
    *[("clone", (THREAD | 1 << bit,), OPEN, EPERM) for bit in (17, *range(25, 31))],
    ("clone3", (1, 88), OPEN, ENOSYS),
    ("openat2", (3, 1, 1, 24), OPEN, ENOSYS),
    *[("fchmod", (3, mode), OPEN, EPERM) for mode in (0o4755, 0o2755, 0o107777)],
    ("fchmod", (3, 0o1777), OPEN, PERMIT),
    ("fchmodat", (3, 1, 0o4700), OPEN, EPERM),
    ("fchmodat2", (3, 1, 0o4700, 0), OPEN, EPERM),
    ("mknodat", (3, 1, 0o104700, 0), OPEN, EPERM),
    ("mknodat", (3, 1, 0o100700, 0), OPEN, PERMIT),
    *[("openat", (3, 1, flags, 0o4755), OPEN, EPERM) for flags in (0x41, 0x400002, 0x410002)],
    ("openat", (3, 1, 0x41, 0o755), OPEN, PERMIT),
    ("openat", (3, 1, 0x80000, 0o4755), {}, PERMIT),
    ("kill", (7, 6), {}, PERMIT),
    ("kill", (8, 6), {}, EPERM),
    ("kill", (2**32 - 1, 9), {}, EPERM),
    ("kill", (0, 9), {}, EPERM),
    ("kill", (7, 6), {"execute": True}, EPERM),
    ("kill", (8, 6), {"execute": True, "signals": True}, PERMIT),
    ("tgkill", (7, 9, 6), {}, PERMIT),
    ("tgkill", (8, 9, 6), {}, EPERM),
    ("socket", (socket.AF_INET, 1, 6), {}, EPERM),
    ("socket", (socket.AF_INET, 1, 6), {"network": True}, PERMIT),
    ("socket", (socket.AF_INET6, 2, 17), {"network": True}, PERMIT),
    ("socket", (socket.AF_NETLINK, 3, 0), {"network": True}, PERMIT),
    ("socket", (socket.AF_NETLINK, 3, 9), {"network": True}, EPERM),
    ("socket", (socket.AF_INET, 1, 262), {"network": True}, EPERM),
    *[("socket", (family, 1, 0), OPEN, EPERM) for family in (1, 17, 29, 38, 40, 44)],
    ("socketpair", (1, 1, 0), {}, PERMIT),
    ("socketpair", (1, 1 | 0o2004000, 0), {}, PERMIT),
    ("socketpair", (1, 2, 0), OPEN, EPERM),
    ("socketpair", (30, 1, 0), OPEN, EPERM),
    ("sendto", (3, 1, 1, 0, 0, 0), {}, PERMIT),
    ("sendto", (3, 1, 1, 0, 16, 0), {}, EPERM),
    ("sendto", (3, 1, 1, 0, HIGH, 0), {}, EPERM),
    ("sendto", (3, 1, 1, 0, HIGH + 16, 0), {"network": True}, PERMIT),
    ("ioctl", (0, 0x5401), {}, PERMIT),
    ("ioctl", (0, 0x5412), OPEN, EPERM),
    ("ioctl", (0, HIGH + 0x5412), OPEN, EPERM),
    ("fcntl", (0, 3), {}, PERMIT),
    ("fcntl", (0, 8, 1), OPEN, EPERM),
    ("prctl", (15, 1), {}, PERMIT),
    ("prctl", (1, 0), OPEN, EPERM),
    ("prctl", (4, 1), OPEN, EPERM),
    ("prlimit64", (0, 1), {}, PERMIT),
    ("prlimit64", (7, 1), {}, PERMIT),
    ("prlimit64", (8, 1), {}, EPERM),
    ("prlimit64", (7, 1), {"execute": True}, EPERM),
    ("setpriority", (0, 0, 19), {}, PERMIT),
    ("setpriority", (0, 8, 19), OPEN, EPERM),
    ("setpriority", (2, 0, 19), OPEN, EPERM),
    ("ioprio_set", (1, 0, 0), {}, PERMIT),
    ("ioprio_set", (3, 0, 0), OPEN, EPERM),
    *[(f"sched_set{each}", (0,), {}, PERMIT) for each in ("affinity", "param", "scheduler", "attr")],
    *[(f"sched_set{each}", (8,), OPEN, EPERM) for each in ("affinity", "param", "scheduler", "attr")],
]


@MACHINES
@pytest.mark.parametrize(("name", "args", "how", "result"), ARGUMENTS, ids=str)
def test_arguments_decide(machine: str, name: str, args: tuple[int, ...], how: dict[str, bool], result: int) -> None:
    """An integer argument counts without its upper half, which the kernel ignores."""
    number = number_of(machine, name)
    assert number is not None

    assert run(machine, number, *args, **how) == result


# The real filter


def syscall(name: str, *args: Any) -> int:
    """Make a system call of this processor."""
    number = number_of(os.uname().machine, name)
    assert number is not None
    return libc_call("syscall", *(ctypes.c_long(each) if isinstance(each, int) else each for each in (number, *args)))


@works_here
def test_every_refused_call_fails(user: int) -> None:
    """The arguments are invalid, so that a call that is not refused fails with another error."""
    names = [name for name in seccomp.REFUSED if number_of(os.uname().machine, name) is not None]

    def attempt(name: str) -> str:
        try:
            return str(syscall(name, -1, -1, -1, -1, -1, -1))
        except OSError as error:
            return errno.errorcode[error.errno]

    found = outcome(lambda: {name: attempt(name) for name in names}, closed, user=user)

    assert found == repr(dict.fromkeys(names, "EPERM"))


PERMITTED_WITHOUT_FILTER: dict[str, Callable[[], object]] = {
    "ptrace": lambda: syscall("ptrace", 0),
    "memfd_secret": lambda: os.close(syscall("memfd_secret", 0)),
    "memfd_create": lambda: os.close(syscall("memfd_create", b"a", 0)),
    "io_uring": lambda: os.close(syscall("io_uring_setup", 1, ctypes.create_string_buffer(120))),
    "keyctl": lambda: syscall("keyctl", 0, -3, 0),
    "add_key": lambda: syscall("add_key", b"user", b"a", b"b", 1, -2),
    "personality": lambda: syscall("personality", 0xFFFFFFFF),
    "shmget": lambda: syscall("shmctl", syscall("shmget", 0, 4096, 0o600), 0, 0),
    "fork": lambda: os.waitpid(os.fork() or os._exit(0), 0)[1],
    "exec": lambda: subprocess.run(["/bin/true"]).returncode,
    "signal to the parent": lambda: os.kill(os.getppid(), 0),
    "signal to the group": lambda: os.kill(0, 0),
    "internet": lambda: socket.socket().close(),
    "local socket": lambda: socket.socket(socket.AF_UNIX).close(),
    "datagram pair": lambda: [each.close() for each in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)],
    "mode of a file": lambda: os.chmod(Path(sys.argv[1]) / "file", 0o666),
    "times of a file": lambda: os.utime(os.open(Path(sys.argv[1]) / "file", os.O_RDWR)),
    "limits of the parent": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
    "priority of the parent": lambda: os.setpriority(0, os.getppid(), os.getpriority(0, os.getppid())),
    "owner of a descriptor": lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid()),
    "dumpable": lambda: libc_call("prctl", 4, 1, 0, 0, 0),
    "inotify": lambda: libc_call("inotify_add_watch", libc_call("inotify_init1", 0), b"/", 0x100),
}


@works_here
@pytest.mark.parametrize("name", PERMITTED_WITHOUT_FILTER)
def test_attack_works_without_the_filter_alone(
    name: str, folder: Path, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(folder / "inside")])
    attack = PERMITTED_WITHOUT_FILTER[name]
    others = ("mode of a file", "signal to the parent", "limits of the parent", "priority of the parent")
    if name in (*others, "owner of a descriptor"):
        user = 0  # another user may not do that to the process and the file of this one

    free = outcome(attack, user=user)
    if free in ("ENOSYS", "ENOTSUP"):
        pytest.skip("this kernel has no such system call")
    assert not free.startswith("E")
    assert outcome(attack, closed, user=user) == "EPERM"


@works_here
def test_unknown_processor_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process never believes that it is restricted."""
    names = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*names[:4], "riscv64")))

    assert in_child(lambda: closed() or "") == "there is no filter for this processor (riscv64)"


# What Python can still do


def calculate() -> list[int]:
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        return [*threads.map(abs, range(-3, 0))]


def run_loop() -> str:
    async def answer() -> str:
        reader, writer = await asyncio.open_connection(sock=ours)
        theirs.sendall(b"hello\n")
        line = await reader.readline()
        writer.close()
        return line.decode().strip() + await asyncio.to_thread(str, 1)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        return asyncio.run(answer())


def deep_thread() -> list[int]:
    results: list[int] = []

    def start() -> None:
        inner = threading.Thread(target=results.append, args=(1,))
        inner.start()
        inner.join()

    outer = threading.Thread(target=start)
    outer.start()
    outer.join()
    return results


USUAL = {
    "threads": (calculate, "[3, 2, 1]"),
    "threads of threads": (deep_thread, "[1]"),
    "asyncio": (run_loop, "'hello1'"),
    "attributes of files": (lambda: os.listxattr("/"), "ENOTSUP"),
    "own limits": (lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)), "None"),
    "nice": (lambda: os.nice(0) >= -20, "True"),
    "processors": (lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)), "None"),
    "terminal": (lambda: os.isatty(os.pipe()[0]), "False"),
}


@works_here
@pytest.mark.parametrize("name", USUAL)
def test_usual_programs_work(name: str, user: int) -> None:
    attempt, expected = USUAL[name]

    assert outcome(attempt, closed, user=user) == expected


@works_here
def test_process_can_abort_and_signal_itself(user: int) -> None:
    """``abort()`` ends the process with its usual signal, also in a thread."""

    def alone() -> None:
        faulthandler.disable()  # it would print the stack of this expected end
        closed()

    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    def abort_in_thread() -> None:
        thread = threading.Thread(target=os.abort)
        thread.start()
        thread.join()

    assert outcome(os.abort, alone, user=user) == "the process ended by SIGABRT"
    assert outcome(abort_in_thread, alone, user=user) == "the process ended by SIGABRT"
    assert outcome(interrupt, alone, user=user) == "KeyboardInterrupt: "
    assert outcome(lambda: os.kill(os.getpid(), signal.SIGTERM), alone, user=user) == "the process ended by SIGTERM"


@works_here
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_fails_clearly(method: str) -> None:
    """No lock is created before, and no process is left."""

    def start() -> None:
        multiprocessing.get_context(method).Process(target=abs, args=(1,)).start()

    assert outcome(start, closed) == "EPERM"


@works_here
def test_programs_start_where_they_may_and_are_filtered_too() -> None:
    """A program of a process that may execute cannot send signals, unless that is permitted."""
    may_execute = partial(seccomp.restrict, network=False, execute=True)
    may_signal = partial(seccomp.restrict, network=False, execute=True, signals=True)

    def run(*argv: str) -> str:
        done = subprocess.run(argv, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr.strip()

    assert outcome(lambda: run("/bin/echo", "hello"), may_execute) == "'hello'"
    assert "ermitted" in outcome(lambda: run("/bin/sh", "-c", "kill -0 $PPID"), may_execute)
    assert outcome(lambda: run("/bin/sh", "-c", "kill -0 $PPID && echo sent"), may_signal) == "'sent'"
    assert outcome(lambda: run("/bin/sh", "-c", "true & wait; echo done"), may_execute) == "'done'"
    assert "Operation not permitted" in outcome(lambda: run("/usr/bin/unshare", "-r", "true"), may_signal)
