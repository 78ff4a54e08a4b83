"""What there is in the sandbox: one entry, those of a directory, those below it, those that fit a pattern.

A tool that shows what is below a path asks for all of that, so a grant of ``fs:read:data/**`` lets it show ``data`` and
not the sandbox.

Source: upstream ``pkg/tool/fs``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from neuroscript import Entry, Example, Runtime, ToolFailed, ToolPolicy, Toolset
from neuroscript_fs.entries import as_map, by_path

ONE: Final = ToolPolicy(capabilities=("fs:read:{path}",), effects=("reads", "idempotent"))
SANDBOX: Final = ToolPolicy(capabilities=("fs:read:.",), effects=("reads",))
"""What the sandbox itself is, and nothing that it holds."""

ALL_BELOW: Final = ToolPolicy(capabilities=("fs:read:{path}/**",), effects=("reads", "idempotent"))

MAGIC: Final = re.compile(r"[*?\[]")

A: Final = as_map(Entry("data/a.txt", "file", 14, 1700000000.0))
B: Final = as_map(Entry("data/old/b.txt", "file", 4, 1700000000.0))
OLD: Final = as_map(Entry("data/old", "dir", 0, 1700000000.0))

toolset = Toolset("fs")


@toolset.tool(
    policy=ONE,
    when_to_use="For the size, time and kind of one file or directory; fs.list shows all that a directory holds.",
    examples=(
        Example(("data/a.txt",), A),
        Example({"path": "data/old"}, OLD),
        Example(("data/nothing.txt",), error="sandbox.notfound"),
    ),
)
def stat(rt: Runtime, path: str) -> dict[str, Any]:
    """Tell what a file or directory is.

    Args:
        path: Where it is, below the sandbox.

    Returns:
        name, path, is_dir, kind (file, dir, symlink or other), size_bytes, modified_unix (seconds since 1970-01-01 UTC)
        and modified_rfc3339. Of a link it is the link that is told of, for none is followed.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir.
    """
    return as_map(rt.fs.stat(path))


@toolset.tool(
    name="list",
    policy=ALL_BELOW,
    when_to_use="For what a directory holds; fs.walk shows what is below it too, fs.glob what fits a pattern.",
    examples=(
        Example(("data",), [A, OLD]),
        Example(("data", True), [A, OLD, B]),
        Example(("empty",), []),
        Example(("notes.txt",), error="sandbox.notdir"),
    ),
)
def listed(rt: Runtime, path: str = ".", recursive: bool = False) -> list[dict[str, Any]]:
    """Show what a directory holds.

    Args:
        path: The directory, below the sandbox; the sandbox itself unless it is said.
        recursive: Whether what is further below is shown too.

    Returns:
        One map for each entry, in the order of their paths; fs.stat says what is in it.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir, sandbox.symlink.
        LimitError: limit.fs_entries.
    """
    return by_path(rt.fs.walk(path) if recursive else rt.fs.list(path))


@toolset.tool(
    policy=ALL_BELOW,
    when_to_use="For all that is below a directory; fs.list shows one level, fs.glob only what fits a pattern.",
    examples=(
        Example(("data",), [A, OLD, B]),
        Example({"path": "data/old"}, [B]),
        Example(("../data",), error="policy.capability", note="nothing can be granted outside the sandbox"),
    ),
)
def walk(rt: Runtime, path: str = ".") -> list[dict[str, Any]]:
    """Show what is below a directory, at every depth.

    Args:
        path: The directory, below the sandbox; the sandbox itself unless it is said.

    Returns:
        One map for each entry, in the order of their paths; fs.stat says what is in it. Links are shown, not entered.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir, sandbox.symlink.
        LimitError: limit.fs_entries.
    """
    return by_path(rt.fs.walk(path))


@toolset.tool(
    policy=ALL_BELOW,
    when_to_use="For files whose names are known in part; fs.walk shows all there are, fs.stat one of a known name.",
    examples=(
        Example(("**/*.txt", "data"), [A, B]),
        Example({"pattern": "data/?.txt"}, [A]),
        Example(("*.pdf", "data"), []),
        Example(("*.txt", "data/*"), error="fs.bad_path"),
    ),
)
def glob(rt: Runtime, pattern: str, path: str = ".") -> list[dict[str, Any]]:
    """Show what fits a pattern.

    Args:
        pattern: Names with / between them, from path on: * and ? stand for characters of one name, ** for any number
            of names.
        path: The directory to begin in, below the sandbox, without such characters; the sandbox itself unless it is
            said.

    Returns:
        One map for each entry, in the order of their paths; fs.stat says what is in it.

    Raises:
        ToolFailed: fs.bad_path.
        LimitError: limit.fs_entries.
    """
    if MAGIC.search(path):
        text = "path: expected a directory without *, ? and [ in its name, got another text"
        raise ToolFailed(text, code="fs.bad_path", retry="model")
    return by_path(rt.fs.glob(f"{path}/{pattern}"))


@toolset.tool(
    policy=SANDBOX,
    when_to_use="Before much is written; fs.stat gives the size of one file.",
    examples=(
        Example(()),
        Example({}),
        Example((".",), error="arg.count"),
    ),
)
def free(rt: Runtime) -> dict[str, int]:
    """Tell how much room there is on the disk that the sandbox is on.

    Returns:
        total_bytes, and free_bytes, those that may still be written.
    """
    from shutil import disk_usage

    usage = disk_usage(rt.sandbox_dir)
    return {"total_bytes": usage.total, "free_bytes": usage.free}
