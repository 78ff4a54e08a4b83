"""Files held to the digests that a list names for them.

Source: the lists that ``sha256sum`` and its like write and check.
"""

from __future__ import annotations

import re
from typing import Any, Final

from neuroscript import Capability, Example, Runtime, SandboxError, ToolFailed, ToolPolicy, Toolset

VERIFYING: Final = ToolPolicy(
    capabilities=("fs:read:{filepath}", "fs:read:{directory}/**"), effects=("reads", "idempotent")
)

ALGORITHMS: Final = {32: "md5", 64: "sha256", 128: "sha512"}
"""By the number of hexadecimal digits."""

LINE: Final = re.compile(r"([0-9A-Fa-f]{32}|[0-9A-Fa-f]{64}|[0-9A-Fa-f]{128}) [ *]([^/].*)")
NO_FILE: Final = {"sandbox.notfound", "sandbox.notdir", "sandbox.type", "sandbox.symlink"}

toolset = Toolset("fs")


@toolset.tool(
    policy=VERIFYING,
    when_to_use="To see which of many files have changed; fs.hash gives the digest of one.",
    examples=(
        Example(("SHA256SUMS", "data"), {"ok": ["a.txt"], "changed": ["old/b.txt"], "missing": ["nothing.txt"]}),
        Example(
            {"filepath": "SHA256SUMS"},
            {"ok": [], "changed": [], "missing": ["a.txt", "old/b.txt", "nothing.txt"]},
            note="the names mean files below the directory, which is the sandbox here",
        ),
        Example(("notes.txt",), error="fs.bad_list"),
    ),
)
def verify(rt: Runtime, filepath: str, directory: str = ".") -> dict[str, Any]:
    """Hold files to a list of their digests, as sha256sum, sha512sum or md5sum wrote it.

    Args:
        filepath: The list, below the sandbox. Each of its lines is a digest in hexadecimal digits, whose length tells
            the algorithm, two blanks (or a blank and an asterisk) and a name.
        directory: Where the names begin, below the sandbox; the sandbox itself unless it is said.

    Returns:
        The names, in the order of the list: ok (the digest holds), changed (it does not) and missing (there is no file
        of that name; a link and a directory are none).

    Raises:
        ToolFailed: fs.bad_list, before any file is read; sandbox.notfound, where the list itself is missing, and
            others that begin with sandbox.
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
        text = f"line {number}: expected 32, 64 or 128 hexadecimal digits, two blanks and a name, got something else"
        raise ToolFailed(text, code="fs.bad_list", retry="model")
    return found[1].lower(), found[2]


def _state(rt: Runtime, path: str, digest: str) -> str:
    rt.require(Capability.literal("fs", "read", path))
    try:
        came = rt.fs.hash(path, ALGORITHMS[len(digest)])
    except SandboxError as error:
        if error.code not in NO_FILE:
            raise
        return "missing"
    return "ok" if came == digest else "changed"
