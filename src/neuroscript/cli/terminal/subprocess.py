"""Run a program with a time limit, and kill it together with the processes that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress


def run_with_timeout(words: Sequence[str], seconds: float, settings: Mapping[str, str]) -> tuple[int | None, str, str]:
    """Run a program and return its exit code and its output.

    Args:
        seconds: The time limit.
        settings: Additional environment variables.

    Returns:
        The exit code, or None after a timeout, and the contents of stdout and stderr.
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
