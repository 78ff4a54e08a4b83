"""Kernel rules for one call, compiled from its needs: never more than the needs permit, sometimes less.

The kernel knows files and hierarchies, and neither globs within a name nor files that do not exist yet. What it cannot
express is reachable through the Runtime alone.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from typing import Any, Final

import attrs

from neuroscript.errors import SandboxError
from neuroscript.policy.capabilities import Capability, scope_key, split_need
from neuroscript.policy.paths import canonical_path
from neuroscript.policy.scopes import MANY, SURROGATE, WHOLE

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "read": ("read", "list"),
    "write": ("write",),
    "delete": ("delete",),
}
"""What each verb of ``fs`` lets a worker do."""

LOADERS: Final = ("/lib/ld-*", "/lib64/ld-*", "/usr/lib/ld-*", "/usr/lib64/ld-*", "/lib/*/ld-linux*", "/lib/ld-musl*")
"""Where the programs are that load other programs."""

MAX_RULES: Final = 200
"""Maximum number of files and directories in the rules of one call; the others are reachable through the Runtime."""

MAX_SCRIPT_BYTES: Final = 256
"""How many bytes of a script the kernel reads to find its interpreter."""


@attrs.frozen
class FileRule:
    """A file or a directory that a worker may use.

    Attributes:
        identity: Its device and inode.
        words: How it may be used: ``read``, ``list``, ``write``, ``delete``, ``execute``.
        descriptor: Refers to it, and cannot be used to read it.
    """

    identity: tuple[int, int]
    words: tuple[str, ...]
    descriptor: int = attrs.field(eq=False, repr=False)


@contextmanager
def file_rules(needs: Sequence[Capability], sandbox: Any, *, raw_files: bool) -> Iterator[tuple[FileRule, ...]]:
    """Provide the rules of a call; their descriptors are closed afterwards.

    Args:
        needs: What the call needs, filled in from its arguments.
        sandbox: Returns the `Sandbox`; it is opened only if it is needed.
        raw_files: Whether the tool opens files of the sandbox by path.
    """
    if sys.platform != "linux":
        yield ()  # nothing confines files there
        return
    found: dict[tuple[int, int], tuple[set[str], int]] = {}
    try:
        for descriptor, words in _opened(needs, sandbox, raw_files):
            status = os.fstat(descriptor)
            identity = (status.st_dev, status.st_ino)
            if identity in found:
                os.close(descriptor)
            elif len(found) >= MAX_RULES:
                os.close(descriptor)
                break
            known, _ = found.setdefault(identity, (set(), descriptor))
            known.update(words)
        yield tuple(
            FileRule(identity, tuple(sorted(words)), descriptor)
            for identity, (words, descriptor) in sorted(found.items())
        )
    finally:
        for _, descriptor in found.values():
            os.close(descriptor)


def _opened(needs: Sequence[Capability], sandbox: Any, raw_files: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield a descriptor of each file that the needs permit, and how it may be used."""
    for need in needs:
        for each in split_need(need):
            if each.resource == "shell" and each.verbs[0] == "exec" and each.scopes:
                for path in program_files(each.scopes[0]):
                    with suppress(OSError):
                        yield os.open(path, os.O_PATH | os.O_CLOEXEC), ("execute", "read")
            elif raw_files and each.resource == "fs" and each.verbs[0] in WORDS:
                descriptor = _entry(scope_key(each), sandbox())
                if descriptor is not None:
                    yield descriptor, WORDS[each.verbs[0]]


def _entry(key: str | None, sandbox: Any) -> int | None:
    """Return a descriptor of the file, or of the whole directory, that a scope means; None if it means other things."""
    if key is None:
        return None
    segments = () if key == WHOLE else tuple(key.split("/")[:-1])
    is_tree = key == WHOLE or segments[-1:] == (MANY,)
    if segments[-1:] == (MANY,):
        segments = segments[:-1]
    if any(SURROGATE.search(each) for each in segments):
        return None
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_DIRECTORY if is_tree else 0)
    try:
        with sandbox.open_root(canonical_path(segments)) as root:
            descriptor: int = root.opener(root.descriptor, segments, flags) if segments else os.dup(root.descriptor)
    except SandboxError:
        return None
    if not is_tree and not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a rule means all below
        os.close(descriptor)
        return None
    return descriptor


def program_files(name: str) -> Iterator[str]:
    """Yield the files that must be executed to run the program with a name."""
    path = shutil.which(name) if "/" not in name and not SURROGATE.search(name) else None
    if path is not None and os.path.isabs(path):
        yield from executable_files(path)


def executable_files(path: str) -> Iterator[str]:
    """Yield the files that must be executed to run a program: itself, its interpreter, and the loader."""
    yield from dict.fromkeys(os.path.realpath(each) for each in (path, *interpreters(path)))
    for pattern in LOADERS:
        yield from map(os.path.realpath, glob(pattern))


def interpreters(path: str) -> Iterator[str]:
    """Yield the interpreter of a script, and the one that ``env`` looks up for it."""
    with suppress(OSError), open(path, "rb") as file:
        head = file.read(MAX_SCRIPT_BYTES)
        words = list(map(os.fsdecode, head[2:].partition(b"\n")[0].split())) if head.startswith(b"#!") else []
        yield from words[:1]
        if words and os.path.basename(words[0]) == "env":
            names = (each for each in words[1:] if not each.startswith("-") and "=" not in each)
            found = shutil.which(next(names, ""))
            if found is not None:
                yield found
