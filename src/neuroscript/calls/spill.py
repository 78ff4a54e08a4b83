"""When a result is so large that it goes to a file of the sandbox, and what is told of it then.

Source: issue "neurosurfer and Smith run here", streams to their ends; docs/decisions/0027-streams-to-their-ends.md.
"""

from __future__ import annotations

from typing import Final

import attrs

from neuroscript.coercion.parameters import STRING, WHOLE, Form, optional, require_fields
from neuroscript.errors import SandboxError, SpecError
from neuroscript.policy.paths import relative


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
        require_fields("spill", self, over=SIZE, folder=FOLDER, shown=CHARS, most=SIZE)
        if self.most < self.over:
            raise SpecError("spill", ["most must be a whole number of bytes, no less than over"])


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

    def __attrs_post_init__(self) -> None:
        require_fields("spilled", self, path=STRING, size=SIZE, items=optional(WHOLE))


def _is_below(folder: str) -> bool:
    try:
        return bool(relative(folder))
    except SandboxError:
        return False


SIZE: Final = Form("a whole number of bytes, 0 or more", WHOLE.accepts, WHOLE.fits)
CHARS: Final = Form("a whole number of characters, 0 or more", WHOLE.accepts, WHOLE.fits)
FOLDER: Final = Form("a path below the sandbox", STRING.accepts, _is_below)
