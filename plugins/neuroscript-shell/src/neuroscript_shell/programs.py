"""Lookup of programs: from a name to a file on the host's PATH that is outside the sandbox in every respect.

A caller that can write into the sandbox must not be able to choose what runs. Otherwise a grant to write and a grant to
run would together allow everything. So no directory, link, interpreter or hard link of the file can be in the sandbox.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from typing import Final, Literal

import attrs

from neuroscript import ToolFailed

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
"""Valid names of programs: no path, no option, nothing that is special in a shell."""

SHELLS: Final = frozenset(
    ("ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "rbash", "sash")
    + ("sh", "tcsh", "toybox", "xonsh", "yash", "zsh")
)
"""Programs that are refused even if granted, because their arguments are programs that no check has seen."""

MAX_LINKS: Final = 40
"""Maximum number of links in a path, as on Linux."""

MAX_INTERPRETERS: Final = 4
"""Maximum number of nested script interpreters, as on Linux."""

MAX_COMPARED_NAMES: Final = 100_000
"""Maximum number of sandbox entries to compare with a program that has hard links."""


Retry = Literal["model", "later", "host", "never"]
"""Who can fix a failure."""


class InsideSandbox(Exception):
    """A path leads through the sandbox."""


@attrs.frozen
class SandboxFence:
    """The sandbox, as a directory that programs must not come from.

    Attributes:
        root: The absolute path of the sandbox.
        identity: Device and inode, to recognize the sandbox by any path.
    """

    root: str
    identity: tuple[int, int]

    @classmethod
    def around(cls, root: str) -> SandboxFence:
        """Return the fence around the directory *root*."""
        return cls(root, _identity(os.stat(root)))

    def resolved(self, path: str) -> str:
        """Resolve the links of an absolute path, and check that no step is in the sandbox.

        Raises:
            Inside: A directory or a link on the way is in the sandbox.
            OSError: The path does not exist.
        """
        at, ahead, links = "/", path.split("/")[::-1], 0
        self._require_other(os.lstat(at))
        while ahead:
            name = ahead.pop()
            if name in ("", "."):
                continue
            step = os.path.normpath(f"{at.rstrip('/')}/{name}")
            status = os.lstat(step)
            self._require_other(status)
            if not stat.S_ISLNK(status.st_mode):
                at = step
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, "too many links")
            target = os.readlink(step)
            at = "/" if target.startswith("/") else at
            ahead += target.split("/")[::-1]
        return at

    def has_name_of(self, status: os.stat_result) -> bool:
        """Return whether a file has a hard link in the sandbox, through which it could be changed."""
        if status.st_nlink < 2:
            return False
        for count, (path, inode) in enumerate(_below(self.root)):
            if count >= MAX_COMPARED_NAMES:
                return True
            if inode == status.st_ino and _identity(os.lstat(path)) == _identity(status):
                return True
        return False

    def _require_other(self, status: os.stat_result) -> None:
        if _identity(status) == self.identity:
            raise InsideSandbox


def search_directories(path: str, fence: SandboxFence) -> tuple[str, ...]:
    """Return the directories of a PATH to search: absolute, without links, outside the sandbox.

    Empty and relative entries are dropped, because they refer to the working directory, which is in the sandbox.
    """
    return tuple(dict.fromkeys(_directories(path, fence)))


def find_program(name: str, directories: tuple[str, ...], fence: SandboxFence) -> str:
    """Return the path of a program, absolute and without links.

    Raises:
        ToolFailed: shell.bad_program, shell.is_shell, shell.not_found; shell.in_sandbox, if a caller that can write
            into the sandbox could choose what runs.
    """
    if not NAME.fullmatch(name):
        raise failure(
            "shell.bad_program",
            "command: expected the name of a program without a path, such as ls, got another string",
        )
    for directory in directories:
        try:
            path = fence.resolved(f"{directory}/{name}")
            status = os.stat(path)
        except InsideSandbox:
            raise unsafe_program_error() from None
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and os.access(path, os.X_OK):
            _require_no_shell(name, os.path.basename(path))
            _require_safe(path, fence)
            return path
    raise failure(
        "shell.not_found", "command: expected a program on the host's PATH outside the sandbox, got another name"
    )


def failure(code: str, text: str, retry: Retry = "model") -> ToolFailed:
    """Return the error for a call; its message contains no values."""
    return ToolFailed(text, code=code, retry=retry)


def unsafe_program_error() -> ToolFailed:
    """Return the error for a program that can be changed through the sandbox."""
    return failure("shell.in_sandbox", "command: expected a program that cannot be changed through the sandbox", "host")


def _require_no_shell(*names: str) -> None:
    if not SHELLS.isdisjoint(name.lower() for name in names):
        raise failure(
            "shell.is_shell",
            "command: expected a program that is not a shell; pass the program that the shell would run",
        )


def _require_safe(path: str, fence: SandboxFence) -> None:
    """Refuse a file that can be changed through the sandbox, or whose interpreter can."""
    for _ in range(MAX_INTERPRETERS):
        try:
            if fence.has_name_of(os.stat(path)):
                raise InsideSandbox
            interpreter = _interpreter(path)
            if interpreter is None:
                return
            if not interpreter.startswith("/"):
                raise InsideSandbox
            path = fence.resolved(interpreter)
        except InsideSandbox:
            raise unsafe_program_error() from None
        except OSError:
            raise failure("shell.not_runnable", "command: the file or its interpreter cannot be run", "host") from None
    raise failure("shell.not_runnable", "command: expected a program, got too many nested script interpreters", "host")


def _interpreter(path: str) -> str | None:
    """Return the interpreter after ``#!``, or None if the file is not a script or is not readable."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except PermissionError:
        return None
    if not head.startswith(b"#!"):
        return None
    words = head[2:].partition(b"\n")[0].split()
    return os.fsdecode(words[0]) if words else ""


def _directories(path: str, fence: SandboxFence) -> Iterator[str]:
    for directory in path.split(os.pathsep):
        if not directory.startswith("/"):
            continue
        try:
            resolved = fence.resolved(directory)
        except (InsideSandbox, OSError):
            continue
        if os.path.isdir(resolved):
            yield resolved


def _below(root: str) -> Iterator[tuple[str, int]]:
    """Yield the path and inode of each entry below a directory; links are not followed."""
    ahead = [root]
    while ahead:
        try:
            entries = list(os.scandir(ahead.pop()))
        except OSError:
            continue
        for entry in entries:
            yield entry.path, entry.inode()
            if entry.is_dir(follow_symlinks=False):
                ahead.append(entry.path)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
