"""The ``fs.verify`` tool: check files against a checksum list, as written by ``sha256sum``."""

from __future__ import annotations

import re
from typing import Any, Final

from neuroscript import Capability, Example, Runtime, SandboxError, ToolFailed, ToolPolicy, Toolset

VERIFYING: Final = ToolPolicy(
    capabilities=("fs:read:{filepath}", "fs:read:{directory}/**"),
    effects=("reads", "idempotent"),
    sources=("private",),
    sinks=(),
)

ALGORITHMS: Final = {32: "md5", 64: "sha256", 128: "sha512"}
"""Algorithms by the number of hexadecimal digits."""

LINE: Final = re.compile(r"([0-9A-Fa-f]{32}|[0-9A-Fa-f]{64}|[0-9A-Fa-f]{128}) [ *]([^/].*)")
NO_FILE: Final = {"sandbox.notfound", "sandbox.notdir", "sandbox.type", "sandbox.symlink"}

toolset = Toolset("fs")


@toolset.tool(
    policy=VERIFYING,
    when_to_use="Use it to check many files at once; for the checksum of a single file, use fs.hash.",
    examples=(
        Example(("SHA256SUMS", "data"), {"ok": ["a.txt"], "changed": ["old/b.txt"], "missing": ["nothing.txt"]}),
        Example(
            {"filepath": "SHA256SUMS"},
            {"ok": [], "changed": [], "missing": ["a.txt", "old/b.txt", "nothing.txt"]},
            note="names are relative to the directory, here the sandbox",
        ),
        Example(("notes.txt",), error="fs.bad_list"),
    ),
)
def verify(rt: Runtime, filepath: str, directory: str = ".") -> dict[str, Any]:
    """Verify files against a list of checksums that sha256sum, sha512sum or md5sum wrote.

    Args:
        filepath: The list, relative to the sandbox. Each line has a hexadecimal digest, whose length determines the
            algorithm, two spaces (or a space and an asterisk) and a file name.
        directory: The directory that the names are relative to; the sandbox itself by default.

    Returns:
        The names, in the order of the list: ok (the digest matches), changed (it does not) and missing (there is no
        such file; links and directories count as missing).

    Raises:
        ToolFailed: fs.bad_list, before any file is read; sandbox.notfound, if the list itself is missing, and
            other codes that start with sandbox.
    """
    found: dict[str, list[str]] = {"ok": [], "changed": [], "missing": []}
    for digest, name in _listed(rt.fs.read_text(filepath)):
        found[_state(rt, f"{directory or '.'}/{name}", digest)].append(name)
    return found


def _listed(text: str) -> list[tuple[str, str]]:
    lines = [(number, line.removesuffix("\r")) for number, line in enumerate(text.split("\n"), 1)]
    return [_parsed(number, line) for number, line in lines if line]


def _parsed(number: int, line: str) -> tuple[str, str]:
    found = LINE.fullmatch(line)
    if found is None:
        text = f"line {number}: expected 32, 64 or 128 hexadecimal digits, two spaces and a name, got something else"
        raise ToolFailed(text, code="fs.bad_list", retry="model")
    return found[1].lower(), found[2]


def _state(rt: Runtime, path: str, digest: str) -> str:
    rt.require(Capability.literal("fs", "read", path))
    try:
        digest_found = rt.fs.hash(path, ALGORITHMS[len(digest)])
    except SandboxError as error:
        if error.code not in NO_FILE:
            raise
        return "missing"
    return "ok" if digest_found == digest else "changed"
