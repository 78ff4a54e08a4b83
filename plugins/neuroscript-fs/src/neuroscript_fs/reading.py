"""What is in a file: its text or a part of it, the number of its lines, its digest.

Source: upstream ``pkg/tool/fs``; text that is no UTF-8 is refused where upstream hands it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import IO, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

READING: Final = ToolPolicy(capabilities=("fs:read:{filepath}",), effects=("reads", "idempotent"))

MOST: Final = 8 * 1024 * 1024
"""Bytes that one call reads: as many as the arguments of another may have, so that they can be written again."""

CHUNK: Final = 256 * 1024
"""Bytes."""

toolset = Toolset("fs")


def _read(rt: Runtime, filepath: str, offset: int, limit: int | None) -> str:
    with rt.fs.open(filepath) as file:
        data = b"".join(_within(MOST, islice(_lines(file), offset, None if limit is None else offset + limit)))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = f"the file is no text in UTF-8: of {len(data)} bytes, number {error.start + 1} does not fit"
        raise ToolFailed(text, code="fs.not_text", retry="model") from None


toolset.add(
    ToolSpec(
        "read",
        "fs",
        (
            ArgSpec("filepath", ArgType.STRING, description="The file, below the sandbox."),
            ArgSpec("offset", ArgType.INT, default=0, minimum=0, description="How many lines to leave out before."),
            ArgSpec(
                "limit",
                ArgType.INT,
                default=None,
                minimum=0,
                description="How many lines to give, at most; all that follow unless it is said.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Read a file as a text, or some lines of it.",
        when_to_use="For what a file says; fs.linecount tells how long it is, and fs.hash whether it has changed.",
        return_help="The text, with the ends of its lines as they are; '' behind the last line.",
        examples=(
            Example(("data/a.txt",), "one\ntwo\nthree\n"),
            Example({"filepath": "data/a.txt", "offset": 1, "limit": 1}, "two\n"),
            Example(("data/nothing.txt",), error="sandbox.notfound"),
            Example(("photo.jpg",), error="fs.not_text"),
        ),
        error_conditions=(
            "fs.not_text, for bytes that are no UTF-8; fs.too_large, above 8 MiB; sandbox.notfound, sandbox.type, "
            "sandbox.symlink."
        ),
    ),
    _read,
    READING,
)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; one that is longer than may be read comes in pieces, so that none fills the memory."""
    return iter(partial(file.readline, MOST + 1), b"")


def _within(limit: int, lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        limit -= len(line)
        if limit < 0:
            text = f"there are more than {MOST} bytes to read; ask for fewer lines, with offset and limit"
            raise ToolFailed(text, code="fs.too_large", retry="model")
        yield line


@toolset.tool(
    policy=READING,
    when_to_use="For the length of a file before it is read in parts; fs.read gives the lines, fs.stat its bytes.",
    examples=(
        Example(("data/a.txt",), 3),
        Example(("notes.txt",), 2, note="the last line counts even if nothing ends it"),
        Example(("data",), error="sandbox.type"),
    ),
)
def linecount(rt: Runtime, filepath: str) -> int:
    """Count the lines of a file.

    Args:
        filepath: The file, below the sandbox.

    Returns:
        The number of line feeds, and one more for a last line that none ends.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.type, sandbox.symlink.
    """
    count, last = 0, b"\n"
    with rt.fs.open(filepath) as file:
        while chunk := file.read(CHUNK):
            count, last = count + chunk.count(b"\n"), chunk[-1:]
    return count + (last != b"\n")


@toolset.tool(
    name="hash",
    policy=READING,
    when_to_use="To see whether two files are the same, or one has changed; fs.read gives what is in it.",
    examples=(
        Example(("data/a.txt",), "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2"),
        Example(("photo.jpg",), "ba4f25bf16ba4be6bc7d3276fafeb67f9eb3c5df042bc3a405e1af15b921eed7"),
        Example(("empty",), error="sandbox.type"),
    ),
)
def digest(rt: Runtime, filepath: str) -> str:
    """Give the SHA-256 digest of a file.

    Args:
        filepath: The file, below the sandbox.

    Returns:
        The digest in hexadecimal digits, in lower case.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.type, sandbox.symlink.
    """
    return rt.fs.hash(filepath)
