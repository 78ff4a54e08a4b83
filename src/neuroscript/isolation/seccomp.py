"""Seccomp: a filter that refuses the system calls that no tool needs.

The filter applies to this thread and to everything that it starts, and cannot be removed. It sees numbers and plain
arguments, but not the memory that arguments point to. So it cannot judge paths and addresses: Landlock decides about
files, and here sockets that could reach another process are not created at all.

Refused calls fail with EPERM. A call of another architecture ends the process, because its numbers mean something else.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

from neuroscript.isolation.system_calls import LIBC, MISSING, PR_SET_SECCOMP, call, forbid_new_privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    Instruction = tuple[int, int, int, int]
    """Code, jump if true, jump if false, operand. A jump is a number of instructions to skip."""

MACHINES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""The architecture in the data of a call, and the column of the tables below."""

# fmt: off
REFUSED: Final = {
    # processes and their memory
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "migrate_pages": (256, 238), "move_pages": (279, 239), "memfd_secret": (447, 447), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241), "personality": (135, 92), "modify_ldt": (154, None),
    "memfd_create": (319, 279),  # no limit of this process would count such memory
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "swapon": (167, 224), "swapoff": (168, 225),
    # files that are named by a handle, and reports of what happens to files
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18),
    # calls that would bypass this filter, and parts of the kernel that are often attacked
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "acct": (163, 89), "syslog": (103, 116),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "sethostname": (170, 161),
    "setdomainname": (171, 162), "settimeofday": (164, 170), "adjtimex": (159, 171), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    # users
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setfsuid": (122, 151), "setfsgid": (123, 152),
    "setgroups": (116, 159), "capset": (126, 91),
    # memory, semaphores and messages that are shared by number
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}
# fmt: on
"""System calls that are always refused, with their numbers."""

# fmt: off
METADATA: Final = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "truncate": (76, 45),
}
# fmt: on
"""Calls that change modes, owners, times or sizes by path. Landlock permits them, sizes before version 3."""

# fmt: off
ATTRIBUTES: Final = {
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "getxattr": (191, 8), "lgetxattr": (192, 9),
    "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
}
# fmt: on
"""Calls for extended attributes, which Landlock permits too. They fail as on a file system that has none."""

# fmt: off
SIGNALS: Final = {
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
# fmt: on
"""Calls that send signals, beside kill and tgkill, whose first argument is a process."""

ADDRESSES: Final = {"connect": (42, 203), "bind": (49, 200), "listen": (50, 201)}
EXEC: Final = {"execve": (59, 221), "execveat": (322, 281)}
FORK: Final = {"fork": (57, None), "vfork": (58, None)}

# fmt: off
CHECKED: Final = {
    "kill": (62, 129), "tgkill": (234, 131), "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198),
    "socketpair": (53, 199), "sendto": (44, 206), "ioctl": (16, 29), "fcntl": (72, 25), "prctl": (157, 167),
    "prlimit64": (302, 261), "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    "open": (2, None), "creat": (85, None), "openat": (257, 56), "openat2": (437, 437), "mknod": (133, None),
    "mknodat": (259, 33),
}
# fmt: on
"""Calls whose arguments decide."""

NEWEST: Final = 462
"""The last system call that this filter knows (mseal). Later ones do not exist for the process."""

IOCTLS: Final = (
    *(0x5401, 0x802C542A, 0x5413, 0x540F),  # is it a terminal, of which size, and who reads it
    *(0x541B, 0x5421, 0x5450, 0x5451),  # bytes to read, blocking, inheritable or not
    *(0x40049409, 0x4020940D, 0xC020660B, 0x80086601),  # share blocks with another file, find blocks, get flags
)
"""The only permitted ioctls. TIOCSTI would type into a terminal, and others change files without opening them."""

FCNTLS: Final = (8, 10, 15, 1024)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX send signals. F_SETLEASE delays other processes that open the file."""

PRCTLS: Final = (1, 4, 8, 28, 35, 53, 0x59616D61)
"""PDEATHSIG, DUMPABLE, KEEPCAPS, SECUREBITS, MM, SPECULATION_CTRL and PTRACER would loosen the confinement."""

MODES: Final = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
"""The argument that is a mode."""

OPENED: Final = {"open": 1, "openat": 2}
"""The argument with the flags; the next one is the mode of a new file."""

NEW_FILE: Final = 0x400040
"""O_CREAT and O_TMPFILE."""

SET_ID: Final = 0o6000
"""A program with this mode runs as the user of the host, also if another user starts it."""

CLONE_THREAD: Final = 0x10000
CLONE_NEW_NAMESPACES: Final = 0x7E020000
AF_UNIX: Final = 1
INTERNET: Final = (2, 10, 16)
"""AF_INET and AF_INET6, and AF_NETLINK, with which the C library lists the addresses of the machine."""

PROTOCOLS: Final = (0, 6, 17)
"""The default, TCP and UDP."""

SOCK_STREAM: Final = 1
SOCKET_TYPE: Final = 0xF
PRIO_PROCESS: Final = 0
IOPRIO_WHO_PROCESS: Final = 1
X32: Final = 0x40000000

LOAD, JUMP, EQUAL, GREATER, ANY_BIT, MASK, RETURN = 0x20, 0x05, 0x15, 0x25, 0x45, 0x54, 0x06
"""Codes of instructions: load a word, skip some, compare the word, test its bits, select bits of it, end."""

KILL: Final = (RETURN, 0, 0, 0x80000000)
PERMIT: Final = (RETURN, 0, 0, 0x7FFF0000)

MODE_FILTER: Final = 2

NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16
"""Offsets in the data of a call."""

LOWER: Final = 0
UPPER: Final = 4
"""Offsets in an argument. The kernel ignores the upper half of an integer, but not of an address."""


def _fail(error: int) -> Instruction:
    return RETURN, 0, 0, 0x00050000 | error


REFUSE: Final = _fail(errno.EPERM)


def unsupported() -> str:
    """Return why this module cannot filter the calls of this process, or ``""``."""
    if LIBC is None:
        return MISSING
    if os.uname().machine not in MACHINES or struct.calcsize("P") != 8 or sys.byteorder != "little":
        return f"there is no filter for this processor ({os.uname().machine})"
    return ""


def restrict(*, network: bool, execute: bool, signals: bool = False, metadata: bool = False) -> None:
    """Restrict the system calls of this thread, and of everything that it starts.

    Args:
        network: Whether it may use the internet. Sockets of other kinds, and so local servers, are always refused.
        execute: Whether it may start processes and programs. Threads are always permitted.
        signals: Whether it may send signals to processes other than itself.
        metadata: Whether it may change modes, owners, times and extended attributes of files.

    Raises:
        OSError: There is no filter for this processor, or the kernel refuses it; the process is not restricted.
    """
    reason = unsupported()
    if reason:
        raise OSError(reason)
    program = assemble(
        os.uname().machine,
        network=network,
        execute=execute,
        signals=signals,
        metadata=metadata,
        pid=os.getpid(),
    )
    _install(b"".join(struct.pack("=HBBI", *each) for each in program))


def _install(code: bytes) -> None:
    import ctypes

    memory = ctypes.create_string_buffer(code, len(code))
    filter = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(memory))
    forbid_new_privileges()
    call("prctl", PR_SET_SECCOMP, MODE_FILTER, filter, 0, 0)


def assemble(
    machine: str, *, network: bool, execute: bool, signals: bool, metadata: bool, pid: int
) -> list[Instruction]:
    """Return the instructions of the filter for a processor; see `restrict`.

    Args:
        pid: The process that may signal itself, so that ``abort()`` works.
    """
    architecture, column = MACHINES[machine]
    refused = dict(REFUSED)
    failing = {} if metadata else ATTRIBUTES
    for group, is_permitted in ((METADATA, metadata), (SIGNALS, signals), (ADDRESSES, network)):
        refused.update({} if is_permitted else group)
    refused.update({} if execute else {**EXEC, **FORK})
    program = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), KILL, (LOAD, 0, 0, NUMBER)]
    program += [(ANY_BIT, 0, 1, X32), KILL] if machine == "x86_64" else []
    program += [(GREATER, 0, 1, NEWEST), _fail(errno.ENOSYS)]
    for names, result in ((refused, REFUSE), (failing, _fail(errno.ENOTSUP))):
        numbers = [number for each in names.values() if (number := each[column]) is not None]
        program += [(EQUAL, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]
        program += [(JUMP, 0, 0, 1), result]
    checks = _checks(network=network, execute=execute, signals=signals, pid=pid)
    for name, check in checks.items():
        number = {**METADATA, **CHECKED}[name][column]
        if number is not None:
            program += [(EQUAL, 0, len(check) + 1, number), *check, PERMIT]
    return [*program, PERMIT]


def _checks(*, network: bool, execute: bool, signals: bool, pid: int) -> dict[str, list[Instruction]]:
    """Return what the arguments of each call in `CHECKED` must fulfil."""
    own = (0,) if execute else (0, pid)  # a process that is started later has an id of its own
    checks = {
        "clone": [_load(0), (ANY_BIT, 0, 1, CLONE_NEW_NAMESPACES), REFUSE],
        "clone3": [_fail(errno.ENOSYS)],  # its flags are in memory; the C library then calls clone
        "openat2": [_fail(errno.ENOSYS)],  # as is its mode; programs then call openat
        "socket": [*_must(0, INTERNET), *_must(2, PROTOCOLS)] if network else [REFUSE],
        "socketpair": [*_must(0, (AF_UNIX,)), *_must(1, (SOCK_STREAM,), SOCKET_TYPE)],  # others send to any address
        "ioctl": _must(1, IOCTLS),
        "fcntl": _must_not(1, FCNTLS),
        "prctl": _must_not(0, PRCTLS),
        "setpriority": [*_must(0, (PRIO_PROCESS,)), *_must(1, own)],
        "ioprio_set": [*_must(0, (IOPRIO_WHO_PROCESS,)), *_must(1, own)],
    }
    set_id = [(ANY_BIT, 0, 1, SET_ID), REFUSE]
    checks.update({name: [_load(mode), *set_id] for name, mode in MODES.items()})
    checks.update(
        {name: [_load(flags), (ANY_BIT, 0, 3, NEW_FILE), _load(flags + 1), *set_id] for name, flags in OPENED.items()}
    )
    for name in ("prlimit64", "sched_setaffinity", "sched_setparam", "sched_setscheduler", "sched_setattr"):
        checks[name] = _must(0, own)
    if not execute:
        checks["clone"] += [(ANY_BIT, 1, 0, CLONE_THREAD), REFUSE]
    if not network:
        checks["sendto"] = [*_must(4, (0,)), *_must(4, (0,), half=UPPER)]
    if not signals:
        checks["kill"] = checks["tgkill"] = [REFUSE] if execute else _must(0, (pid,))
    return checks


def _must(argument: int, values: tuple[int, ...], mask: int = 0, half: int = LOWER) -> list[Instruction]:
    """Return instructions that refuse the call unless an argument has one of the values.

    Args:
        mask: The bits to compare; 0 means all.
    """
    selection = [(MASK, 0, 0, mask)] if mask else []
    tests = [(EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [_load(argument, half), *selection, *tests, REFUSE]


def _must_not(argument: int, values: tuple[int, ...]) -> list[Instruction]:
    """Return instructions that refuse the call if an argument has one of the values."""
    return [_load(argument), *(each for value in values for each in ((EQUAL, 0, 1, value), REFUSE))]


def _load(argument: int, half: int = LOWER) -> Instruction:
    return LOAD, 0, 0, ARGUMENTS + 8 * argument + half
