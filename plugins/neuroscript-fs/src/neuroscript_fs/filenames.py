"""The ``fs.sanitizefilename`` tool: turn any string into a name that every file system accepts."""

from __future__ import annotations

import re
from typing import Final

from neuroscript import Example, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

MAX_NAME_CHARS: Final = 100
"""Characters, which are all ASCII."""

NOTHING_LEFT: Final = "default_sanitized_name"
WITH_NUL: Final = "invalid_null_byte_name"

REPLACED: Final = re.compile(r'[ /\\:*?"<>|]')
DROPPED: Final = re.compile(r"[^A-Za-z0-9._-]")
DOTS: Final = re.compile(r"\.{2,}")
RUN: Final = re.compile(r"([_-])\1+")
EDGE: Final = "._-"
DEVICE: Final = re.compile(r"\A(con|prn|aux|nul|(?:com|lpt)[0-9])(\.|\Z)", re.IGNORECASE)
"""Device names on Windows, with any extension."""

toolset = Toolset("fs")


@toolset.tool(
    policy=PURE,
    when_to_use=(
        "Use it to make a name for fs.write from a title or user input; the result is a single name, not a path."
    ),
    examples=(
        Example(("My Report Final?.docx",), "My_Report_Final_.docx"),
        Example(("../../etc/passwd",), "etc_passwd"),
        Example(("LPT1.foo.bar",), "LPT1_.foo.bar"),
        Example(("....",), "default_sanitized_name"),
        Example((7,), error="coercion.type"),
    ),
)
def sanitizefilename(name: str) -> str:
    """Turn a string into a safe file name (filename) by removing invalid characters.

    Args:
        name: The string to convert.

    Returns:
        1 to 100 characters of A-Z, a-z, 0-9, dot, underscore and hyphen, starting and ending with a letter or digit;
        only a Windows device name gets an underscore at its end.
    """
    if "\0" in name:
        return WITH_NUL
    known = DOTS.sub("_", DROPPED.sub("", REPLACED.sub("_", name)))
    plain = RUN.sub(r"\1", known).strip(EDGE) or NOTHING_LEFT
    if DEVICE.match(plain):
        return DEVICE.sub(r"\1_\2", _truncate(plain, MAX_NAME_CHARS - 1))
    return _truncate(plain, MAX_NAME_CHARS)


def _truncate(name: str, length: int) -> str:
    return name[:length].rstrip(EDGE)
