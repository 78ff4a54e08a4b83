"""``fs`` tools that write, move and delete files and create directories.

Every change is atomic, and only ``fs.write`` replaces a file.
"""

from __future__ import annotations

from posixpath import normpath
from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset

WRITES: Final = "fs:write:{filepath}"
REPLACING: Final = ToolPolicy(capabilities=(WRITES,), effects=("writes", "idempotent"), sources=(), sinks=("storage",))
ADDING: Final = ToolPolicy(capabilities=(WRITES,), effects=("writes",), sources=(), sinks=("storage",))
MAKING: Final = ToolPolicy(
    capabilities=("fs:write:{path}",), effects=("writes", "idempotent"), sources=(), sinks=("storage",)
)
DELETING: Final = ToolPolicy(
    capabilities=("fs:delete:{path}",), effects=("deletes", "idempotent"), sources=(), sinks=("storage",)
)
MOVING: Final = ToolPolicy(
    capabilities=("fs:delete:{source_path}/**", "fs:write:{destination_path}/**"),
    effects=("writes", "deletes"),
    sources=(),
    sinks=("storage",),
)
"""A directory is moved with everything below it."""

DONE: Final = "OK"

toolset = Toolset("fs")


@toolset.tool(
    policy=REPLACING,
    when_to_use="Use it to replace the whole content of a file; to add to the end of a file, use fs.append.",
    examples=(
        Example(("data/a.txt", "four\n"), "OK"),
        Example({"filepath": "new/deep/c.txt", "content": ""}, "OK", note="missing directories are created"),
        Example(("data", "text"), error="sandbox.type"),
    ),
)
def write(rt: Runtime, filepath: str, content: str) -> str:
    """Write content to a file: create the file, or overwrite it.

    Args:
        filepath: The file, relative to the sandbox; an existing file is replaced.
        content: The text to write, as UTF-8.

    Returns:
        OK.

    Raises:
        ToolFailed: sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.full.
    """
    rt.fs.write_text(filepath, content)
    return DONE


@toolset.tool(
    policy=ADDING,
    when_to_use="Use it to add to a file, such as a log; to replace the content, use fs.write.",
    examples=(
        Example(("data/a.txt", "four\n"), "OK"),
        Example(("data/log.txt", "started\n"), "OK", note="a missing file is created"),
        Example(("empty", "text"), error="sandbox.type"),
    ),
)
def append(rt: Runtime, filepath: str, content: str) -> str:
    """Append text to the end of a file.

    Args:
        filepath: The file, relative to the sandbox; created with its directories if missing.
        content: The text to append, as UTF-8; no newline is added.

    Returns:
        OK.

    Raises:
        ToolFailed: sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.hardlink, sandbox.full.
    """
    rt.fs.append(filepath, content)
    return DONE


@toolset.tool(
    policy=MAKING,
    when_to_use="Use it for an empty directory; fs.write creates the directories of a file automatically.",
    examples=(
        Example(("new/deep",), {"status": "success", "path": "new/deep", "message": "the directory new/deep exists"}),
        Example(
            {"path": "data/"},
            {"status": "success", "path": "data", "message": "the directory data exists"},
            note="an existing directory is left unchanged",
        ),
        Example(("notes.txt",), error="sandbox.exists"),
    ),
)
def mkdir(rt: Runtime, path: str) -> dict[str, Any]:
    """Create a directory (folder), including missing parent directories.

    Args:
        path: The directory, relative to the sandbox.

    Returns:
        status ("success"), path (the normalized path of the directory) and message.

    Raises:
        ToolFailed: sandbox.exists, if a file has that name; sandbox.notdir, sandbox.symlink.
    """
    rt.fs.mkdir(path)
    plain = normpath(path)
    return {"status": "success", "path": plain, "message": f"the directory {plain} exists"}


@toolset.tool(
    policy=DELETING,
    when_to_use="Use it to delete permanently; to move or rename, use fs.move.",
    examples=(
        Example(("data/a.txt",), "OK"),
        Example({"path": "data/nothing.txt"}, "OK", note="deleting a missing file is not an error"),
        Example(("data",), error="sandbox.notempty"),
    ),
)
def delete(rt: Runtime, path: str) -> str:
    """Delete a file or an empty directory.

    Args:
        path: The file or directory, relative to the sandbox. A link is deleted, but not its target.

    Returns:
        OK, even if it did not exist.

    Raises:
        ToolFailed: sandbox.notempty, sandbox.isroot.
    """
    rt.fs.delete(path)
    return DONE


@toolset.tool(
    policy=MOVING,
    when_to_use=(
        "Use it to move or rename; to copy, use fs.read and fs.write. An existing destination is never replaced."
    ),
    examples=(
        Example(
            ("notes.txt", "data/notes.txt"),
            {
                "message": "notes.txt moved to data/notes.txt",
                "error": None,
                "source_path": "notes.txt",
                "destination_path": "data/notes.txt",
            },
        ),
        Example(
            {"source_path": "data", "destination_path": "archive"},
            {"message": "data moved to archive", "error": None, "source_path": "data", "destination_path": "archive"},
        ),
        Example(("notes.txt", "data/a.txt"), error="sandbox.exists"),
    ),
)
def move(rt: Runtime, source_path: str, destination_path: str) -> dict[str, Any]:
    """Move or rename a file or directory.

    Args:
        source_path: The current path, relative to the sandbox; a directory is moved with its content.
        destination_path: The new path, including the name, in an existing directory of the sandbox.

    Returns:
        message, source_path and destination_path (normalized), and error, which is always None.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.exists, sandbox.name, sandbox.isroot, sandbox.symlink.
    """
    rt.fs.move(source_path, destination_path)
    source, destination = normpath(source_path), normpath(destination_path)
    return {
        "message": f"{source} moved to {destination}",
        "error": None,
        "source_path": source,
        "destination_path": destination,
    }
