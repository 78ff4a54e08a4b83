"""Run a command without privileges, and without kernel features that a machine may lack.

Usage: ``python restrict.py [--mask-proc] [--no-namespaces] [--no-landlock] COMMAND [ARG …]``. The limits are the
kernel's own: the number of user namespaces is set to 0, and as many Landlock domains are nested as the kernel allows.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

CLONE_NEWNS: Final = 0x20000
CLONE_NEWUSER: Final = 0x10000000
MS_BIND: Final = 0x1000
PR_SET_NO_NEW_PRIVS: Final = 38
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_RESTRICT_SELF: Final = 446
MAX_LANDLOCK_DOMAINS: Final = 16
SCOPE_ABSTRACT_SOCKETS: Final = 1

libc = ctypes.CDLL(None, use_errno=True)


def drop_privileges() -> None:
    """Become an ordinary user: in a new user namespace, with an id other than 0, execve drops all capabilities."""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid or 1000} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid or 1000} {gid} 1")


def forbid_namespaces() -> None:
    """Make every further user namespace fail with ENOSPC."""
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def exhaust_landlock() -> None:
    """Nest Landlock domains until the kernel refuses another one."""
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    attributes = (ctypes.c_uint64 * 3)(0, 0, SCOPE_ABSTRACT_SOCKETS)  # a kernel without scopes cannot confine signals
    ruleset = libc.syscall(LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(ctypes.sizeof(attributes)), 0)
    for _ in range(MAX_LANDLOCK_DOMAINS):
        libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)


def mask_proc() -> None:
    """Hide a file of /proc, as containers do; the kernel then refuses to mount another /proc."""
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"/dev/null", b"/proc/version", None, MS_BIND, None):
        raise OSError(ctypes.get_errno(), "mount")


def main(words: list[str]) -> None:
    """Apply what the command line says and run its command."""
    drop_privileges()
    while words[0].startswith("--"):
        OPTIONS[words.pop(0)]()
    os.execvp(words[0], words)


OPTIONS: Final = {
    "--mask-proc": mask_proc,
    "--no-namespaces": forbid_namespaces,
    "--no-landlock": exhaust_landlock,
}

if __name__ == "__main__":
    main(sys.argv[1:])
