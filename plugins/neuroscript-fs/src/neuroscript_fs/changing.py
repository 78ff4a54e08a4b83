"""What is changed in the sandbox: files written, added to, moved and deleted, directories made.

Source: upstream ``pkg/tool/fs``; nothing is left half done, and no file is replaced unless it is asked for.
"""

from __future__ import annotations

from posixpath import normpath
from typing import Any, Final

from neuroscript import Example, Runtime, ToolPolicy, Toolset

WRITES: Final = "fs:write:{filepath}"
REPLACING: Final = ToolPolicy(capabilities=(WRITES,), effects=("writes", "idempotent"))
ADDING: Final = ToolPolicy(capabilities=(WRITES,), effects=("writes",))
MAKING: Final = ToolPolicy(capabilities=("fs:write:{path}",), effects=("writes", "idempotent"))
DELETING: Final = ToolPolicy(capabilities=("fs:delete:{path}",), effects=("deletes", "idempotent"))
MOVING: Final = ToolPolicy(
    capabilities=("fs:delete:{source_path}/**", "fs:write:{destination_path}/**"), effects=("writes", "deletes")
)
"""A directory takes with it all that is below it."""

DONE: Final = "OK"

toolset = Toolset("fs")


@toolset.tool(
    policy=REPLACING,
    when_to_use="For a new file, or one whose content is replaced as a whole; fs.append adds to what it has.",
    examples=(
        Example(("data/a.txt", "four\n"), "OK"),
        Example({"filepath": "new/deep/c.txt", "content": ""}, "OK", note="missing directories are made"),
        Example(("data", "text"), error="sandbox.type"),
    ),
)
def write(rt: Runtime, filepath: str, content: str) -> str:
    """Make a text the content of a file: the whole of it, or nothing changes.

    Args:
        filepath: The file, below the sandbox; one that is there is replaced.
        content: The text, which is written as UTF-8.

    Returns:
        OK.

    Raises:
        ToolFailed: sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.full.
    """
    rt.fs.write_text(filepath, content)
    return DONE


@toolset.tool(
    policy=ADDING,
    when_to_use="For more text at the end of a file; fs.write replaces what it has.",
    examples=(
        Example(("data/a.txt", "four\n"), "OK"),
        Example(("data/log.txt", "started\n"), "OK", note="a missing file is made"),
        Example(("empty", "text"), error="sandbox.type"),
    ),
)
def append(rt: Runtime, filepath: str, content: str) -> str:
    """Add a text to the end of a file.

    Args:
        filepath: The file, below the sandbox; it is made where it is missing, with its directories.
        content: The text, which is written as UTF-8; no end of a line is added to it.

    Returns:
        OK.

    Raises:
        ToolFailed: sandbox.type, sandbox.notdir, sandbox.symlink, sandbox.hardlink, sandbox.full.
    """
    rt.fs.append(filepath, content)
    return DONE


@toolset.tool(
    policy=MAKING,
    when_to_use="For an empty directory; fs.write makes the directories of a file by itself.",
    examples=(
        Example(
            ("new/deep",), {"status": "success", "path": "new/deep", "message": "the directory new/deep is there now"}
        ),
        Example(
            {"path": "data/"},
            {"status": "success", "path": "data", "message": "the directory data is there now"},
            note="one that is there already stays as it is",
        ),
        Example(("notes.txt",), error="sandbox.exists"),
    ),
)
def mkdir(rt: Runtime, path: str) -> dict[str, Any]:
    """Make a directory, and those above it that are missing.

    Args:
        path: The directory, below the sandbox.

    Returns:
        status ("success"), path (of the directory, in its shortest form) and message.

    Raises:
        ToolFailed: sandbox.exists, where a file has that name; sandbox.notdir, sandbox.symlink.
    """
    rt.fs.mkdir(path)
    plain = normpath(path)
    return {"status": "success", "path": plain, "message": f"the directory {plain} is there now"}


@toolset.tool(
    policy=DELETING,
    when_to_use="For a file or an empty directory that is no longer needed; fs.move puts it elsewhere.",
    examples=(
        Example(("data/a.txt",), "OK"),
        Example({"path": "data/nothing.txt"}, "OK", note="what is not there need not be deleted"),
        Example(("data",), error="sandbox.notempty"),
    ),
)
def delete(rt: Runtime, path: str) -> str:
    """Delete a file or an empty directory.

    Args:
        path: Where it is, below the sandbox. Of a link the link itself is deleted.

    Returns:
        OK, also where there was nothing of that name.

    Raises:
        ToolFailed: sandbox.notempty, sandbox.isroot.
    """
    rt.fs.delete(path)
    return DONE


@toolset.tool(
    policy=MOVING,
    when_to_use="For another name or directory; fs.read and fs.write make a copy, and what is moved is never replaced.",
    examples=(
        Example(
            ("notes.txt", "data/notes.txt"),
            {
                "message": "notes.txt is now data/notes.txt",
                "error": None,
                "source_path": "notes.txt",
                "destination_path": "data/notes.txt",
            },
        ),
        Example(
            {"source_path": "data", "destination_path": "archive"},
            {"message": "data is now archive", "error": None, "source_path": "data", "destination_path": "archive"},
        ),
        Example(("notes.txt", "data/a.txt"), error="sandbox.exists"),
    ),
)
def move(rt: Runtime, source_path: str, destination_path: str) -> dict[str, Any]:
    """Give a file or a directory another path.

    Args:
        source_path: Where it is, below the sandbox; a directory is moved with all that it holds.
        destination_path: Where it is to be, below the sandbox: its new name too, and in a directory that exists.

    Returns:
        message, source_path and destination_path (in their shortest form), and error, which is always None.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.exists, sandbox.name, sandbox.isroot, sandbox.symlink.
    """
    rt.fs.move(source_path, destination_path)
    source, destination = normpath(source_path), normpath(destination_path)
    return {
        "message": f"{source} is now {destination}",
        "error": None,
        "source_path": source,
        "destination_path": destination,
    }
