"""A name into the one file that is run: found on the host's PATH, outside the sandbox on every step of the way.

Whoever can write into the sandbox must not choose what runs. So no directory, no link, no interpreter and no further
name of the file may lie there.

Source: reliability.md T13; deno#2846, where the right to write and the right to run added up to every right.
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
"""What a program may be called: no path, no option, nothing that a shell would read in another way."""

SHELLS: Final = frozenset(
    ("ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "pwsh", "rbash", "sash")
    + ("sh", "tcsh", "toybox", "xonsh", "yash", "zsh")
)
"""What is refused whoever grants it: its arguments would be a program that nobody looked at."""

MOST_LINKS: Final = 40
"""How many links a path may lead through, as on Linux."""

MOST_INTERPRETERS: Final = 4
"""How many scripts may be run by scripts, as on Linux."""

MOST_LOOKED_AT: Final = 100_000
"""How many names of the sandbox are compared with a program that has several names."""


Retry = Literal["model", "later", "host", "never"]
"""Who can mend a failure."""


class Inside(Exception):
    """A path leads through the sandbox."""


@attrs.frozen
class Fence:
    """The sandbox, as the place that no program comes from.

    Attributes:
        root: Its absolute path.
        identity: Its device and inode, so that it is known by any name.
    """

    root: str
    identity: tuple[int, int]

    @classmethod
    def around(cls, root: str) -> Fence:
        """Return the fence around the directory *root*."""
        return cls(root, _identity(os.stat(root)))

    def resolved(self, path: str) -> str:
        """Return an absolute path without its links, none of whose steps lies in the sandbox.

        Raises:
            Inside: A directory or a link on the way does.
            OSError: There is nothing there.
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
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, "too many links")
            target = os.readlink(step)
            at = "/" if target.startswith("/") else at
            ahead += target.split("/")[::-1]
        return at

    def has_name_of(self, status: os.stat_result) -> bool:
        """Tell whether a file has one of its names in the sandbox, so that it could be written there."""
        if status.st_nlink < 2:
            return False
        for count, (path, inode) in enumerate(_below(self.root)):
            if count >= MOST_LOOKED_AT:
                return True
            if inode == status.st_ino and _identity(os.lstat(path)) == _identity(status):
                return True
        return False

    def _require_other(self, status: os.stat_result) -> None:
        if _identity(status) == self.identity:
            raise Inside


def searched(path: str, fence: Fence) -> tuple[str, ...]:
    """Return the directories of a PATH in which programs are looked for: absolute, without links, outside the sandbox.

    An empty or relative one means the working directory, which lies in the sandbox.
    """
    return tuple(dict.fromkeys(_directories(path, fence)))


def found(name: str, directories: tuple[str, ...], fence: Fence) -> str:
    """Return the path of a program, absolute and without links.

    Raises:
        ToolFailed: shell.bad_program, shell.is_shell, shell.not_found; shell.in_sandbox where somebody who can write
            into the sandbox could choose what runs.
    """
    if not NAME.fullmatch(name):
        raise failure("shell.bad_program", "command: expected the bare name of a program, such as ls, got another text")
    for directory in directories:
        try:
            path = fence.resolved(f"{directory}/{name}")
            status = os.stat(path)
        except Inside:
            raise unsafe() from None
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
    """Return the failure of a call, which names no value."""
    return ToolFailed(text, code=code, retry=retry)


def unsafe() -> ToolFailed:
    """Return the failure of a program that the sandbox has a hand in."""
    return failure("shell.in_sandbox", "command: expected a program that nobody can change through the sandbox", "host")


def _require_no_shell(*names: str) -> None:
    if not SHELLS.isdisjoint(name.lower() for name in names):
        raise failure(
            "shell.is_shell", "command: expected a program that is no shell; name what the shell would have run"
        )


def _require_safe(path: str, fence: Fence) -> None:
    """Refuse a file that can be written through the sandbox, or whose interpreter can."""
    for _ in range(MOST_INTERPRETERS):
        try:
            if fence.has_name_of(os.stat(path)):
                raise Inside
            interpreter = _interpreter(path)
            if interpreter is None:
                return
            if not interpreter.startswith("/"):
                raise Inside
            path = fence.resolved(interpreter)
        except Inside:
            raise unsafe() from None
        except OSError:
            raise failure("shell.not_runnable", "command: its file or its interpreter can not be run", "host") from None
    raise failure("shell.not_runnable", "command: expected a program, got scripts that run each other", "host")


def _interpreter(path: str) -> str | None:
    """Return what a script names behind ``#!``, or None for what is no script, or may be run and not read."""
    try:
        with open(path, "rb") as file:
            head = file.read(4096)
    except PermissionError:
        return None
    if not head.startswith(b"#!"):
        return None
    words = head[2:].partition(b"\n")[0].split()
    return os.fsdecode(words[0]) if words else ""


def _directories(path: str, fence: Fence) -> Iterator[str]:
    for directory in path.split(os.pathsep):
        if not directory.startswith("/"):
            continue
        try:
            resolved = fence.resolved(directory)
        except (Inside, OSError):
            continue
        if os.path.isdir(resolved):
            yield resolved


def _below(root: str) -> Iterator[tuple[str, int]]:
    """Yield the path and the inode of each name below a directory; links are not entered."""
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
