"""Settings for large results that are written to a file of the sandbox, and what a result says about the file."""

from __future__ import annotations

from typing import Final

import attrs

from neuroscript.coercion.parameters import STRING, WHOLE, Form, optional, require_fields
from neuroscript.errors import SandboxError, SpecError
from neuroscript.policy.paths import relative


@attrs.frozen(kw_only=True)
class Spill:
    """Which results of `Session.execute` are written to a file. The model then receives the beginning and the path.

    Attributes:
        threshold_bytes: Maximum size in bytes of a result, as a model reads it, that is not written to a file.
        folder: The directory of the sandbox for such files; it is created if it is missing.
        preview_chars: Number of characters of the beginning that the model receives.
        max_bytes: Maximum size of one file in bytes.

    Raises:
        SpecError: A value is wrong; each problem is listed.
    """

    threshold_bytes: int = 100_000
    folder: str = "results"
    preview_chars: int = 2_000
    max_bytes: int = 1024 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        require_fields("spill", self, threshold_bytes=SIZE, folder=FOLDER, preview_chars=CHARS, max_bytes=SIZE)
        if self.max_bytes < self.threshold_bytes:
            raise SpecError("spill", ["max_bytes must be an integer (bytes) of at least threshold_bytes"])


@attrs.frozen
class SpilledResult:
    """A file of the sandbox that contains a whole result.

    Attributes:
        path: Its path, relative to the sandbox.
        size: Its size in bytes.
        items: The number of lines of JSON, one for each item of a stream; None for other results.
    """

    path: str
    size: int
    items: int | None = None

    def __attrs_post_init__(self) -> None:
        require_fields("spilled result", self, path=STRING, size=SIZE, items=optional(WHOLE))


def _is_below(folder: str) -> bool:
    try:
        return bool(relative(folder))
    except SandboxError:
        return False


SIZE: Final = Form("a non-negative integer (bytes)", WHOLE.accepts, WHOLE.fits)
CHARS: Final = Form("a non-negative integer (characters)", WHOLE.accepts, WHOLE.fits)
FOLDER: Final = Form("a path below the sandbox", STRING.accepts, _is_below)
