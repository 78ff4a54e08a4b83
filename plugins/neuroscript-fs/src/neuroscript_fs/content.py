"""``fs`` tools that read the content of a file: its text, its number of lines, its digest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import IO, Final

from neuroscript import ArgSpec, ArgType, Example, Runtime, ToolFailed, ToolPolicy, Toolset, ToolSpec

READING: Final = ToolPolicy(
    capabilities=("fs:read:{filepath}",), effects=("reads", "idempotent"), sources=("private",), sinks=()
)

MAX_READ_BYTES: Final = 8 * 1024 * 1024
"""Maximum bytes per call: the same as for arguments, so that the content can be written again."""

CHUNK: Final = 256 * 1024
"""Bytes."""

toolset = Toolset("fs")


def _read(rt: Runtime, filepath: str, offset: int, limit: int | None) -> str:
    with rt.fs.open(filepath) as file:
        data = b"".join(
            _limit_bytes(MAX_READ_BYTES, islice(_lines(file), offset, None if limit is None else offset + limit))
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = f"the file is not UTF-8 text: byte {error.start + 1} of {len(data)} is invalid"
        raise ToolFailed(text, code="fs.not_text", retry="model") from None


toolset.add(
    ToolSpec(
        "read",
        "fs",
        (
            ArgSpec("filepath", ArgType.STRING, description="The file, relative to the sandbox."),
            ArgSpec("offset", ArgType.INT, default=0, minimum=0, description="Number of lines to skip at the start."),
            ArgSpec(
                "limit",
                ArgType.INT,
                default=None,
                minimum=0,
                description="Maximum number of lines to return; all by default.",
            ),
        ),
        return_type=ArgType.STRING,
        description="Read the contents of a text file, or a range of its lines.",
        when_to_use="Use it for UTF-8 text; for the number of lines, use fs.linecount, to detect changes, fs.hash.",
        return_help="The text, with its original line endings; '' if offset is past the last line.",
        examples=(
            Example(("data/a.txt",), "one\ntwo\nthree\n"),
            Example({"filepath": "data/a.txt", "offset": 1, "limit": 1}, "two\n"),
            Example(("data/nothing.txt",), error="sandbox.notfound"),
            Example(("photo.jpg",), error="fs.not_text"),
        ),
        error_conditions=(
            "fs.not_text, if the file is not UTF-8; fs.too_large, above 8 MiB; sandbox.notfound, sandbox.type, "
            "sandbox.symlink."
        ),
    ),
    _read,
    READING,
)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; a line above the limit comes in pieces, so that it cannot exhaust memory."""
    return iter(partial(file.readline, MAX_READ_BYTES + 1), b"")


def _limit_bytes(limit: int, lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        limit -= len(line)
        if limit < 0:
            text = f"there are more than {MAX_READ_BYTES} bytes to read; read fewer lines with offset and limit"
            raise ToolFailed(text, code="fs.too_large", retry="model")
        yield line


@toolset.tool(
    policy=READING,
    when_to_use=(
        "Use it before you read a file in parts; for its size in bytes, use fs.stat, for a string, str.linecount."
    ),
    examples=(
        Example(("data/a.txt",), 3),
        Example(("notes.txt",), 2, note="a last line without a newline counts"),
        Example(("data",), error="sandbox.type"),
    ),
)
def linecount(rt: Runtime, filepath: str) -> int:
    """Count the number of lines in a file.

    Args:
        filepath: The file, relative to the sandbox.

    Returns:
        The number of lines, including a last line without a newline.

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
    when_to_use="Use it to compare files or detect changes; for many files, use fs.verify, for a string, crypto.hash.",
    examples=(
        Example(("data/a.txt",), "b6285c57e8797db5d4c51c80d6f11938afda9b11c6a003549709189e9b4b92a2"),
        Example(("photo.jpg",), "ba4f25bf16ba4be6bc7d3276fafeb67f9eb3c5df042bc3a405e1af15b921eed7"),
        Example(("empty",), error="sandbox.type"),
    ),
)
def digest(rt: Runtime, filepath: str) -> str:
    """Compute the SHA-256 hash (checksum) of a file, like sha256sum.

    Args:
        filepath: The file, relative to the sandbox.

    Returns:
        The digest as lowercase hexadecimal digits.

    Raises:
        ToolFailed: sandbox.notfound, sandbox.type, sandbox.symlink.
    """
    return rt.fs.hash(filepath)
