"""Landlock: files, TCP ports, abstract sockets and signals that a process can still reach.

A process restricts itself without privileges. It cannot undo that, and the processes that it starts inherit it.
Descriptors that are already open continue to work.
"""

from __future__ import annotations

import os
import stat
import struct

from neuroscript.isolation.system_calls import LIBC, call, forbid_new_privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set
    from typing import Final

CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
"""Numbers of system calls, the same on all processors."""

ASK_VERSION: Final = 1
BENEATH_PATH: Final = 1

RIGHTS: Final = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            *("execute", "write_file", "read_file", "read_dir", "remove_dir", "remove_file"),
            *("make_char", "make_dir", "make_reg", "make_sock", "make_fifo", "make_block", "make_sym"),
            *("refer", "truncate", "ioctl_dev"),
        )
    )
}
"""The rights that the kernel can refuse for a file or a directory."""

ACCESS: Final = {
    "read": ("read_file",),
    "list": ("read_dir",),
    "write": ("write_file", "truncate", "make_reg", "make_dir", "refer"),
    "delete": ("remove_file", "remove_dir", "refer"),
    "execute": ("execute",),
}
"""The rights of each access word. No word permits symbolic links, sockets, named pipes, or the ioctls of devices.

A program needs ``read`` and ``execute``, because the kernel reads it.
"""

FILE_RIGHTS: Final = sum(RIGHTS[name] for name in ("execute", "write_file", "read_file", "truncate"))
"""The rights of `ACCESS` that a rule for a file may contain; the kernel refuses the others."""

NEWEST_RIGHT: Final = ((1, "make_sym"), (2, "refer"), (3, "truncate"), (5, "ioctl_dev"))
"""The last right that each version knows. Seccomp refuses what later versions can: UDP, and sockets with a path."""

NETWORK_VERSION: Final = 4
SCOPE_VERSION: Final = 6
TCP: Final = 0b11
SCOPES: Final = 0b11
"""Binding and connecting TCP; abstract sockets and signals."""


def version() -> int:
    """Return the version of Landlock that the kernel offers, or 0 if it has none or a filter hides it."""
    return max(int(LIBC.syscall(CREATE_RULESET, None, 0, ASK_VERSION)), 0) if LIBC else 0


def confines_signals() -> bool:
    """Return whether the kernel's version of Landlock confines signals to the processes of a domain."""
    return version() >= SCOPE_VERSION


def restrict(files: Iterable[tuple[int | str, Set[str]]], *, network: bool = False) -> None:
    """Restrict this thread to some files, and to signals and abstract sockets of its own domain.

    Everything that the kernel's version of Landlock can refuse, and that no rule permits, is refused.

    Args:
        files: A path or an open descriptor, with words of `ACCESS`; a directory stands for all that is below it.
            Paths that do not exist, or that this process may not traverse, are skipped. Links are followed.
        network: Whether TCP remains permitted.

    Raises:
        OSError: The kernel has no Landlock, or refuses a rule; the process is not restricted.
    """
    abi = version()
    newest = max((RIGHTS[name] for since, name in NEWEST_RIGHT if since <= abi), default=0)
    handled = 2 * newest - 1 if newest else 0
    attributes = struct.pack("=QQQ", handled, 0 if network else TCP, SCOPES)
    size = 24 if abi >= SCOPE_VERSION else 16 if abi >= NETWORK_VERSION else 8
    ruleset = call("syscall", CREATE_RULESET, attributes[:size], size, 0)
    try:
        for place, words in files:
            names = {name for word in words for name in ACCESS[word]}
            _allow(ruleset, place, sum(RIGHTS[name] for name in names) & handled)
        forbid_new_privileges()
        call("syscall", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, place: int | str, rights: int) -> None:
    if isinstance(place, int):
        _add_rule(ruleset, place, rights)
        return
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        _add_rule(ruleset, descriptor, rights)
    finally:
        os.close(descriptor)


def _add_rule(ruleset: int, descriptor: int, rights: int) -> None:
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= FILE_RIGHTS
    if rights:
        call("syscall", ADD_RULE, ruleset, BENEATH_PATH, struct.pack("=Qi", rights, descriptor), 0)
