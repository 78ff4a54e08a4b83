"""A command in a process of its own that has a time limit, and then is ended with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress


def ended(words: Sequence[str], seconds: float, settings: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Return how a command ended, and what it wrote to its two streams.

    Args:
        seconds: How long it may take.
        settings: Further variables of its environment.

    Returns:
        Its exit code, or None where it had its time; and two texts.
    """
    nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(  # noqa: S603
        words,
        env={**os.environ, **settings},
        stdin=nothing,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, "", ""
        finally:
            _end(process)
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg") and process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
