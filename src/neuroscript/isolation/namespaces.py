"""Namespaces, and the other attributes that separate a process from those around it."""

from __future__ import annotations

import os
import select
import signal
import stat
import struct
from contextlib import suppress

from neuroscript.isolation.system_calls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    call,
    prctl,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Final

FLAGS: Final = {
    "mountns": 0x20000,
    "utsns": 0x4000000,
    "ipcns": 0x8000000,
    "pidns": 0x20000000,
    "netns": 0x40000000,
}
"""The flag of each namespace of `enter`."""

CLONE_NEWUSER: Final = 0x10000000

OPEN_TREE: Final = 428
MOVE_MOUNT: Final = 429
CLOSE_RANGE: Final = 436
MOUNT_SETATTR: Final = 442
"""Numbers of system calls, the same on all processors."""

MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
AT_FDCWD: Final = -100
AT_RECURSIVE: Final = 0x8000
OPEN_TREE_CLONE: Final = 1
MOVE_MOUNT_F_EMPTY_PATH: Final = 4
MOUNT_ATTR_RDONLY: Final = 1

CHANGED: Final = "mount: the path has changed meanwhile"

CAPABILITY_VERSION: Final = 0x20080522
CAP_DAC_OVERRIDE: Final = 1 << 1

MAX_DESCRIPTOR: Final = 2**31 - 1

MAX_INODES: Final = 10_000
"""How many files and directories a file system in memory may have; each takes about 1 KiB of the kernel's memory."""


def enter(names: Collection[str]) -> tuple[str, ...]:
    """Enter new namespaces, and return their names.

    A process with privileges needs no user namespace for that. Any other process enters one first, in which it has the
    same user id and group id; then the result begins with ``userns``.

    Args:
        names: Names from `FLAGS`. ``pidns`` is for the next children of this process, not for itself.

    Raises:
        OSError: The system does not permit it. The process may have lost its user id, and must end.
    """
    if not names:
        return ()
    flags = sum(FLAGS[name] for name in names)
    try:
        call("unshare", flags)
    except PermissionError:
        enter_user_namespace(flags)
        return "userns", *names
    return tuple(names)


def enter_user_namespace(flags: int = 0) -> None:
    """Enter a user namespace with the same user id and group id, and other namespaces with it.

    Raises:
        OSError: The system does not permit it, or this process has more than one thread.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWUSER | flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def fork_into_pid_namespace() -> int:
    """Fork like `os.fork`; the child is process 1 of a PID namespace of its own.

    When process 1 ends, the kernel kills all processes of its namespace. Signals without a handler do not reach it,
    except SIGKILL from outside. This process stays in its namespace and may call this function again.

    Raises:
        OSError: The system does not permit it, and nothing was forked. A process without privileges has to be in a PID
            namespace that it entered together with a user namespace, or it could not come back.
    """
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    pid = -1
    try:
        call("setns", own, FLAGS["pidns"])
        call("unshare", FLAGS["pidns"])
        try:
            pid = os.fork()
        finally:
            if pid:
                call("setns", own, FLAGS["pidns"])
    finally:
        os.close(own)
    return pid


def make_read_only(writable: Iterable[int | str]) -> None:
    """Mount everything read-only in this mount namespace, except some files and directories.

    Landlock does not protect modes, owners and times of files; a read-only mount does. What is mounted read-only within
    such a directory remains read-only.

    Args:
        writable: Paths, or open descriptors of them.

    Raises:
        OSError: The system does not permit it, or a path has changed meanwhile.
    """
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    places = {_path_of(each): each for each in writable}
    # What is below another place is writable with it. A mount of its own could not be deleted or replaced.
    outermost = [path for path in places if not any(_is_below(path, other) for other in places)]
    if outermost != [b"/"]:
        copies = [(path, *_copied_mount(path, places[path])) for path in outermost]
        attributes = struct.pack("=QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
        call("syscall", MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes))
        for path, copy, status in copies:
            call("syscall", MOVE_MOUNT, copy, b"", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH)
            os.close(copy)
            if not os.path.samestat(status, os.stat(path)):
                raise OSError(CHANGED)
        os.chdir(os.getcwd())  # into the new mount, if the directory is in one
    _reopen_devices()


def _path_of(place: int | str) -> bytes:
    return os.fsencode(os.path.realpath(f"/proc/self/fd/{place}" if isinstance(place, int) else place))


def _is_below(path: bytes, directory: bytes) -> bool:
    return path != directory and path.startswith(directory.rstrip(b"/") + b"/")


def _copied_mount(path: bytes, place: int | str) -> tuple[int, os.stat_result]:
    """Copy the mount of a file or directory, and return a descriptor of the copy, and the status of the file.

    Args:
        path: Its path.
        place: How the caller has named it.
    """
    status = os.stat(place)
    copy = call("syscall", OPEN_TREE, AT_FDCWD, path, OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)
    if not os.path.samestat(status, os.fstat(copy)):
        raise OSError(CHANGED)
    return copy, status


def _reopen_devices() -> None:
    """Open the devices among the standard descriptors again, in this mount namespace.

    Through a descriptor that was opened before, their modes and times can be changed: its mount is not read-only.
    """
    import fcntl  # which Windows lacks

    for descriptor in range(3):
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISCHR(status.st_mode):
                continue
            access = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
            again = os.open(os.readlink(f"/proc/self/fd/{descriptor}"), access | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # the descriptor is closed, or a terminal of another container
            continue
        if os.path.samestat(status, os.fstat(again)):
            os.dup2(again, descriptor)
        os.close(again)


def mount_memory(path: str, size: int) -> None:
    """Mount an empty file system in memory on a directory, in this mount namespace.

    Args:
        size: How many bytes its files may have.

    Raises:
        OSError: The system does not permit it, or there is no such directory.
    """
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    options = f"size={size},nr_inodes={MAX_INODES},mode=700".encode()
    call("mount", b"tmpfs", os.fsencode(path), b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options)


def drop_capabilities() -> None:
    """Give up all privileges of the superuser but one: files are readable and writable whatever their modes say.

    Without that one, a superuser could not use files of other users, such as those of a volume of a container.

    Raises:
        OSError: The kernel refuses it.
    """
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    for kept in (CAP_DAC_OVERRIDE, 0):
        try:
            call("capset", header, struct.pack("=6I", kept, kept, 0, 0, 0, 0))  # effective, permitted, inheritable
            return
        except PermissionError:
            if not kept:
                raise


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends, which may have happened already.

    Args:
        parent: A pidfd of the parent, opened before the fork. In another PID namespace, ``getppid()`` is 0 whether the
            parent lives or not.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    poll = select.poll()
    poll.register(parent, select.POLLIN)
    if poll.poll(0):
        os._exit(1)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants whose parent ends, so that it can find and kill them."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_children(kept: Collection[int] = ()) -> bool:
    """Kill the children of this process, except some, and return whether there were others.

    A process that adopts orphans has children that it did not start. They are all that is left of processes that have
    ended, where no PID namespace ends with them.
    """
    found = [each for each in _children() if each not in kept]
    for each in found:
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)
    return bool(found)


def _children() -> list[int]:
    own = os.getpid()
    try:
        if os.readlink("/proc/self") != str(own):  # its numbers are those of another PID namespace
            return []
    except OSError:
        return []
    try:
        with open(f"/proc/{own}/task/{own}/children") as file:
            return [int(each) for each in file.read().split()]
    except FileNotFoundError:  # the kernel has no such list
        return [each for each in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent_of(each) == own]


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def forbid_inspection() -> None:
    """Forbid other processes of the user to trace this process, and to read its files in ``/proc``."""
    prctl(PR_SET_DUMPABLE, 0)


def close_all_but(kept: Collection[int]) -> None:
    """Close all descriptors except some."""
    first = 0
    for number in sorted(kept):
        _close(first, number - 1)
        first = number + 1
    _close(first, MAX_DESCRIPTOR)


def _close(first: int, last: int) -> None:
    if first > last:
        return
    try:
        call("syscall", CLOSE_RANGE, first, last, 0)
    except OSError:  # before Linux 5.9, and on other systems
        os.closerange(first, min(last, os.sysconf("SC_OPEN_MAX")) + 1)
