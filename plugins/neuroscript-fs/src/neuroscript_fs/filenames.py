"""A text as a name that every file system takes.

Source: upstream ``security.SanitizeFilename``; names of devices are told by all that stands before their first dot.
"""

from __future__ import annotations

import re
from typing import Final

from neuroscript import Example, ToolPolicy, Toolset

PURE: Final = ToolPolicy(effects=("pure",))

LONGEST: Final = 100
"""Characters, which are bytes here."""

NOTHING_LEFT: Final = "default_sanitized_name"
WITH_NUL: Final = "invalid_null_byte_name"

REPLACED: Final = re.compile(r'[ /\\:*?"<>|]')
DROPPED: Final = re.compile(r"[^A-Za-z0-9._-]")
DOTS: Final = re.compile(r"\.{2,}")
RUN: Final = re.compile(r"([_-])\1+")
EDGE: Final = "._-"
DEVICE: Final = re.compile(r"\A(con|prn|aux|nul|(?:com|lpt)[0-9])(\.|\Z)", re.IGNORECASE)
"""What Windows takes for a device, whatever extension it has."""

toolset = Toolset("fs")


@toolset.tool(
    policy=PURE,
    when_to_use="To make a name for fs.write of a title or of what somebody typed; it is one name, never a path.",
    examples=(
        Example(("My Report Final?.docx",), "My_Report_Final_.docx"),
        Example(("../../etc/passwd",), "etc_passwd"),
        Example(("LPT1.foo.bar",), "LPT1_.foo.bar"),
        Example(("....",), "default_sanitized_name"),
        Example((7,), error="coercion.type"),
    ),
)
def sanitizefilename(name: str) -> str:
    """Make a file name of any text.

    Args:
        name: The text.

    Returns:
        1 to 100 characters out of A-Z, a-z, 0-9, dot, underscore and hyphen, with a letter or digit at both ends; only
        the name of a device ends in an underscore.
    """
    if "\0" in name:
        return WITH_NUL
    known = DOTS.sub("_", DROPPED.sub("", REPLACED.sub("_", name)))
    plain = RUN.sub(r"\1", known).strip(EDGE) or NOTHING_LEFT
    if DEVICE.match(plain):
        return DEVICE.sub(r"\1_\2", _cut(plain, LONGEST - 1))
    return _cut(plain, LONGEST)


def _cut(name: str, length: int) -> str:
    return name[:length].rstrip(EDGE)
