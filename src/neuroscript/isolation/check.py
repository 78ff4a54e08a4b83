"""Prove each layer of the confinement on this machine, by trying to break it. Works on Linux alone."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final, Literal, NamedTuple

import attrs

from neuroscript.isolation import landlock, namespaces, seccomp
from neuroscript.isolation.child import in_child
from neuroscript.isolation.confinement import Rules, available, confine, limit_resources
from neuroscript.isolation.system_calls import call

Outcome = Literal["blocked", "not blocked", "not provable here", "not available"]

TOGETHER: Final = "all together"
"""The name of the confinement with every layer, as workers have it."""

MEMORY_BYTES: Final = 1 << 30
FILE_BYTES: Final = 1 << 20
OPEN_FILES: Final = 128
"""The limits under which the attacks run."""

MAX_PLACE_BYTES: Final = 60


class Proof(NamedTuple):
    """What one attack achieved against one layer.

    Attributes:
        layer: The only layer that was in force, or `TOGETHER`.
        attack: What was tried.
        outcome: ``not provable here`` if the attack fails without the layer too.
        reason: Why it is not provable or not available, or ``""``.
    """

    layer: str
    attack: str
    outcome: Outcome
    reason: str = ""


@attrs.frozen
class Target:
    """What the attacks try to reach.

    Attributes:
        folder: A directory with a file that the confinement does not permit.
        victim: A process of the same user.
        tcp: The address of a server.
        udp: The address of a server.
        abstract: The abstract name of a local server.
        path: The path of a local server.
        memory: The number of a segment of shared memory, or -1.
    """

    folder: Path
    victim: int
    tcp: tuple[str, int]
    udp: tuple[str, int]
    abstract: str
    path: str
    memory: int

    @property
    def file(self) -> Path:
        """The file in the folder."""
        return self.folder / "file"


def prove() -> list[Proof]:
    """Try to break each layer alone, and all of them together, and return what each attack achieved.

    Each attack runs in two forked children: once without confinement, where it has to succeed, and once confined.
    """
    missing = available()
    with _target() as target:
        free = {name: _attempt(partial(attack, target), lambda: None) for name, attack in ATTACKS.items()}
        return [
            *(
                _proof(layer, name, free[name], missing[layer] or _too_old(layer, name), target)
                for layer, names in PROOFS.items()
                for name in names
            ),
            *(_proof(TOGETHER, name, free[name], "", target) for name in ATTACKS),
        ]


def _proof(layer: str, name: str, free: str, missing: str, target: Target) -> Proof:
    if missing:
        return Proof(layer, name, "not available", missing)
    if free != SUCCEEDED:
        return Proof(layer, name, "not provable here", f"without confinement, {free}")
    found = _attempt(partial(ATTACKS[name], target), CONFINEMENTS[layer])
    if found == SUCCEEDED:
        return Proof(layer, name, "not blocked")
    if found.startswith(REFUSED):
        return Proof(layer, name, "blocked")
    return Proof(layer, name, "not available", found)


SUCCEEDED: Final = "it succeeds"
REFUSED: Final = "it fails: "
"""What an attack achieved; after the second, the reason."""


def _attempt(attack: Callable[[], object], confine: Callable[[], object]) -> str:
    """Run an attack in a child, and return `SUCCEEDED`, a reason after `REFUSED`, or why the child was not confined."""

    def run() -> str:
        confine()
        try:
            attack()
        except OSError as error:
            return f"{REFUSED}{error.strerror}"
        return SUCCEEDED

    return in_child(run)


def _too_old(layer: str, name: str) -> str:
    """Return why the kernel's Landlock cannot refuse an attack, or ``""``."""
    needed = LANDLOCK_VERSIONS.get(name, 0)
    if layer != "landlock" or landlock.version() >= needed:
        return ""
    return f"needs version {needed} of Landlock, found {landlock.version()}"


LANDLOCK_VERSIONS: Final = {
    "connect by TCP": landlock.NETWORK_VERSION,
    "connect to an abstract socket": landlock.SCOPE_VERSION,
    "signal a process": landlock.SCOPE_VERSION,
}
"""The first version of Landlock that can refuse an attack, where it is not the first of all."""


# Targets


def _short_place() -> str:
    """Return a directory for a socket, whose path may have 107 bytes."""
    place = gettempdir()
    return place if len(os.fsencode(place)) < MAX_PLACE_BYTES else "/tmp"  # noqa: S108


@contextmanager
def _target() -> Iterator[Target]:
    """Provide servers, files and a process to attack, until the block ends."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="neuroscript-check-", dir=_short_place())))
        (folder / "file").write_text("secret")
        servers = [stack.enter_context(socket.socket(*kind)) for kind in SERVERS]
        tcp, udp, abstract, path = servers
        for inet in (tcp, udp):
            inet.bind(("127.0.0.1", 0))
        abstract.bind(f"\0neuroscript-{os.getpid()}")
        path.bind(str(folder / "socket"))
        for server in (tcp, abstract, path):
            server.listen(100)
        yield Target(
            folder,
            stack.enter_context(_victim()),
            tcp.getsockname(),
            udp.getsockname(),
            abstract.getsockname().decode(),
            path.getsockname(),
            stack.enter_context(_shared_memory()),
        )


SERVERS: Final = (
    (socket.AF_INET, socket.SOCK_STREAM),
    (socket.AF_INET, socket.SOCK_DGRAM),
    (socket.AF_UNIX, socket.SOCK_STREAM),
    (socket.AF_UNIX, socket.SOCK_STREAM),
)


@contextmanager
def _victim() -> Iterator[int]:
    """Provide a process that waits."""
    parent = os.pidfd_open(os.getpid())
    pid = os.fork()
    if not pid:
        namespaces.end_with_parent(parent)
        while True:
            signal.pause()
    os.close(parent)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextmanager
def _shared_memory() -> Iterator[int]:
    try:
        number = call("shmget", 0, mmap.PAGESIZE, 0o600)
    except OSError:
        yield -1
        return
    try:
        yield number
    finally:
        call("shmctl", number, IPC_RMID, None)


# Attacks


def _create(target: Target) -> None:
    new = target.folder / f"new-{os.getpid()}"
    new.touch()
    new.unlink()


def _own(target: Target) -> None:
    os.chown(target.file, ANOTHER_USER, -1)
    os.chown(target.file, os.getuid(), -1)


def _watch(target: Target) -> None:
    call("inotify_add_watch", call("inotify_init1", 0), os.fsencode(target.folder), IN_CREATE)


def _connect(kind: tuple[int, int], address: object) -> None:
    with socket.socket(*kind) as client:
        client.connect(address)  # type: ignore[arg-type]
        client.send(b"x")


def _fork(target: Target) -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def _mount(target: Target) -> None:
    namespaces.enter(("mountns",))
    call("mount", b"tmpfs", os.fsencode(target.folder), b"tmpfs", 0, None)


def _attach(target: Target) -> None:
    attach = ctypes.CDLL(None, use_errno=True).shmat
    attach.restype = ctypes.c_ssize_t
    if attach(target.memory, None, SHM_RDONLY) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _set_up_io_uring(target: Target) -> None:
    call("syscall", seccomp.REFUSED["io_uring_setup"][0] or 0, 1, bytes(IO_URING_BYTES))


def _ask_for_keys(target: Target) -> None:
    column = seccomp.MACHINES[os.uname().machine][1]
    call("syscall", seccomp.REFUSED["keyctl"][column] or 0, 0, SESSION_KEYRING, 0)


ANOTHER_USER: Final = 65533
IN_CREATE: Final = 0x100
IPC_RMID: Final = 0
SHM_RDONLY: Final = 0o10000
PTRACE_SEIZE: Final = 0x4206
IO_URING_BYTES: Final = 120
SESSION_KEYRING: Final = -3

TCP, UDP, ABSTRACT, PATH = SERVERS

ATTACKS: Final[dict[str, Callable[[Target], object]]] = {
    "read a file": lambda target: target.file.read_text(),
    "list a directory": lambda target: os.listdir(target.folder),
    "overwrite a file": lambda target: target.file.write_text("changed"),
    "create a file": _create,
    "change the mode of a file": lambda target: target.file.chmod(0o600),
    "change the times of a file": lambda target: os.utime(target.file),
    "change the owner of a file": _own,
    "watch a directory": _watch,
    "connect by TCP": lambda target: _connect(TCP, target.tcp),
    "send by UDP": lambda target: _connect(UDP, target.udp),
    "connect to an abstract socket": lambda target: _connect(ABSTRACT, target.abstract),
    "connect to a socket in a directory": lambda target: _connect(PATH, target.path),
    "attach shared memory": _attach,
    "read the environment of a process": lambda target: Path(f"/proc/{target.victim}/environ").read_bytes(),
    "signal a process": lambda target: os.kill(target.victim, signal.SIGCONT),
    "trace a process": lambda target: call("ptrace", PTRACE_SEIZE, target.victim, 0, 0),
    "limit a process": lambda target: resource.prlimit(target.victim, resource.RLIMIT_CORE, (0, 0)),
    "start a process": _fork,
    "start a program": lambda target: subprocess.run(["/bin/sh", "-c", ":"], check=True),
    "mount a file system": _mount,
    "set up io_uring": _set_up_io_uring,
    "ask for keys of the kernel": _ask_for_keys,
    "allocate more memory": lambda target: mmap.mmap(-1, 2 * MEMORY_BYTES).close(),
    "open more files": lambda target: [os.dup(0) for _ in range(2 * OPEN_FILES)],
    "write a larger file": lambda target: os.posix_fallocate(os.memfd_create("large"), 0, 2 * FILE_BYTES),
}
"""What is tried, by its name; each raises OSError if it is refused."""

PROOFS: Final = {
    "rlimits": ("allocate more memory", "open more files", "write a larger file"),
    "pidns": ("signal a process", "trace a process", "limit a process"),
    "netns": ("connect by TCP", "send by UDP", "connect to an abstract socket"),
    "ipcns": ("attach shared memory",),
    "mountns": ("overwrite a file", "create a file", "change the mode of a file", "change the times of a file"),
    "landlock": (
        *("read a file", "list a directory", "overwrite a file", "create a file", "start a program"),
        *("read the environment of a process", "trace a process", "signal a process"),
        *("connect by TCP", "connect to an abstract socket"),
    ),
    "capabilities": ("change the owner of a file",),
    "seccomp": (
        *("change the mode of a file", "change the times of a file", "watch a directory"),
        *("connect by TCP", "send by UDP", "connect to an abstract socket", "connect to a socket in a directory"),
        *("attach shared memory", "signal a process", "trace a process", "limit a process"),
        *("start a process", "start a program", "mount a file system", "set up io_uring", "ask for keys of the kernel"),
    ),
}
"""The attacks that each layer has to block by itself."""

RULES: Final = Rules((), False, False, MEMORY_BYTES, None, OPEN_FILES, FILE_BYTES)


def _enter_pid_namespace() -> None:
    """Continue as process 1 of a new PID namespace; the calling process ends when it does."""
    namespaces.enter(("pidns",))
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        os._exit(0)


def _make_read_only() -> None:
    namespaces.enter(("mountns",))
    namespaces.make_read_only(())


def _confine() -> None:
    has_namespace = not available()["pidns"]
    if has_namespace:
        _enter_pid_namespace()
    confine(RULES, in_pid_namespace=has_namespace)


CONFINEMENTS: Final[dict[str, Callable[[], object]]] = {
    "rlimits": partial(limit_resources, RULES),
    "pidns": _enter_pid_namespace,
    "netns": partial(namespaces.enter, ("netns",)),
    "ipcns": partial(namespaces.enter, ("ipcns",)),
    "mountns": _make_read_only,
    "landlock": partial(landlock.restrict, ()),
    "capabilities": namespaces.drop_capabilities,
    "seccomp": partial(seccomp.restrict, network=False, execute=False),
    TOGETHER: _confine,
}
"""What puts each layer in force, alone."""
