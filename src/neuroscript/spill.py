"""When a result is so large that it goes to a file of the sandbox, and what is told of it then.

Source: issue "neurosurfer and Smith run here", streams to their ends; docs/decisions/0027-streams-to-their-ends.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from neuroscript.errors import SandboxError, SpecError
from neuroscript.paths import relative


@attrs.frozen(kw_only=True)
class Spill:
    """Which results of `Session.execute` are written to a file; what a model gets is the beginning, and where all is.

    Attributes:
        over: How many bytes a result may have, as a model reads it, before it is written to a file.
        folder: The directory of the sandbox for such files; it is made where it is missing.
        shown: How many characters of the beginning are told.
        most: How many bytes one file may have.

    Raises:
        SpecError: With everything that is wrong with it.
    """

    over: int = 100_000
    folder: str = "results"
    shown: int = 2_000
    most: int = 1024 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        faults = [*_faults(self)]
        if faults:
            raise SpecError("spill", faults)


@attrs.frozen
class Spilled:
    """A file of the sandbox with a whole result.

    Attributes:
        path: Where it is, below the sandbox.
        size: How many bytes it has.
        items: How many lines of JSON stand in it, one for each item of a stream; None of any other result.
    """

    path: str
    size: int
    items: int | None = None


def _faults(spill: Spill) -> Iterator[str]:
    if not _counts(spill.over):
        yield "over must be a whole number of bytes, 0 or more"
    elif not _counts(spill.most) or spill.most < spill.over:
        yield "most must be a whole number of bytes, no less than over"
    if not _counts(spill.shown):
        yield "shown must be a whole number of characters, 0 or more"
    try:
        is_below = bool(relative(spill.folder))
    except SandboxError:
        is_below = False
    if not is_below:
        yield "folder must be a path below the sandbox"


def _counts(number: Any) -> bool:
    return type(number) is int and number >= 0
