"""``fs`` tools that list files and directories.

A tool that lists the content of a directory needs access to everything below it. A grant of ``fs:read:data/**``
therefore lets it list ``data``, but not the whole sandbox.
"""

from __future__ import annotations

import re
from typing import Any, Final

from neuroscript import DirEntry, Example, Runtime, ToolFailed, ToolPolicy, Toolset
from neuroscript_fs.entries import as_map, by_path

ONE: Final = ToolPolicy(
    capabilities=("fs:read:{path}",), effects=("reads", "idempotent"), sources=("private",), sinks=()
)
SANDBOX: Final = ToolPolicy(capabilities=("fs:read:.",), effects=("reads",), sources=(), sinks=())
"""The sandbox directory itself, without its content."""

ALL_BELOW: Final = ToolPolicy(
    capabilities=("fs:read:{path}/**",), effects=("reads", "idempotent"), sources=("private",), sinks=()
)

MAGIC: Final = re.compile(r"[*?\[]")

A: Final = as_map(DirEntry("data/a.txt", "file", 14, 1700000000.0))
B: Final = as_map(DirEntry("data/old/b.txt", "file", 4, 1700000000.0))
OLD: Final = as_map(DirEntry("data/old", "dir", 0, 1700000000.0))

toolset = Toolset("fs")


@toolset.tool(
    policy=ONE,
    when_to_use="Use it for one known path; for the entries of a directory, use fs.list.",
    examples=(
        Example(("data/a.txt",), A),
        Example({"path": "data/old"}, OLD),
        Example(("data/nothing.txt",), error="sandbox.notfound"),
    ),
)
def stat(rt: Runtime, path: str) -> dict[str, Any]:
    """Get the metadata of a file, such as its size and modification time, or check whether the file exists.

    Args:
        path: The file or directory, relative to the sandbox.

    Returns:
        name, path, is_dir, kind (file, dir, symlink or other), size_bytes, modified_unix (seconds since 1970-01-01 UTC)
        and modified_rfc3339. Links are not followed: for a link, the result describes the link itself.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir.
    """
    return as_map(rt.fs.stat(path))


@toolset.tool(
    name="list",
    policy=ALL_BELOW,
    when_to_use="Use it for one directory; to include subdirectories, use fs.walk, to match a pattern, fs.glob.",
    examples=(
        Example(("data",), [A, OLD]),
        Example(("data", True), [A, OLD, B]),
        Example(("empty",), []),
        Example(("notes.txt",), error="sandbox.notdir"),
    ),
)
def list_directory(rt: Runtime, path: str = ".", recursive: bool = False) -> list[dict[str, Any]]:
    """Return a directory listing: the files and subdirectories in a directory, like ls.

    Args:
        path: The directory, relative to the sandbox; the sandbox itself by default.
        recursive: True to include the content of subdirectories.

    Returns:
        One map for each entry, sorted by path, in the shape of fs.stat.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir, sandbox.symlink.
        LimitError: limit.fs_entries.
    """
    return by_path(rt.fs.walk(path) if recursive else rt.fs.list(path))


@toolset.tool(
    policy=ALL_BELOW,
    when_to_use="Use it for a whole directory tree; for one level, use fs.list, to match a pattern, fs.glob.",
    examples=(
        Example(("data",), [A, OLD, B]),
        Example({"path": "data/old"}, [B]),
        Example(("../data",), error="policy.capability", note="no grant covers paths outside the sandbox"),
    ),
)
def walk(rt: Runtime, path: str = ".") -> list[dict[str, Any]]:
    """Walk a directory tree: list all files in a directory and its subdirectories recursively.

    Args:
        path: The directory, relative to the sandbox; the sandbox itself by default.

    Returns:
        One map for each entry, sorted by path, in the shape of fs.stat. Links are listed, but not followed.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.notdir, sandbox.symlink.
        LimitError: limit.fs_entries.
    """
    return by_path(rt.fs.walk(path))


@toolset.tool(
    policy=ALL_BELOW,
    when_to_use="Use it if you know part of the name; for all files, use fs.walk, for a known path, fs.stat.",
    examples=(
        Example(("**/*.txt", "data"), [A, B]),
        Example({"pattern": "data/?.txt"}, [A]),
        Example(("*.pdf", "data"), []),
        Example(("*.txt", "data/*"), error="fs.bad_path"),
    ),
)
def glob(rt: Runtime, pattern: str, path: str = ".") -> list[dict[str, Any]]:
    """Find files and directories that match a glob pattern with wildcards, such as *.py.

    Args:
        pattern: Glob pattern relative to path; * and ? match characters within one name, ** matches any number of
            directories.
        path: The directory to search, relative to the sandbox, without wildcards; the sandbox itself by default.

    Returns:
        One map for each entry, sorted by path, in the shape of fs.stat.

    Raises:
        ToolFailed: fs.bad_path.
        LimitError: limit.fs_entries.
    """
    if MAGIC.search(path):
        text = "path: expected a directory without *, ? and [ in its name, got another string"
        raise ToolFailed(text, code="fs.bad_path", retry="model")
    return by_path(rt.fs.glob(f"{path}/{pattern}"))


@toolset.tool(
    policy=SANDBOX,
    when_to_use="Use it before you write large files; for the size of a file, use fs.stat.",
    examples=(
        Example(()),
        Example({}),
        Example((".",), error="arg.count"),
    ),
)
def free(rt: Runtime) -> dict[str, int]:
    """Return the free and the total disk space of the sandbox, in bytes.

    Returns:
        total_bytes and free_bytes.
    """
    from shutil import disk_usage

    usage = disk_usage(rt.sandbox_dir)
    return {"total_bytes": usage.total, "free_bytes": usage.free}
