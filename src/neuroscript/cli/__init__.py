"""The ``neuroscript`` command: the only code that prints or exits."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from threading import active_count
from typing import Any, Final

__all__ = ["main"]

GC_THRESHOLD_ALLOCATIONS: Final = 50_000
"""Allocations between two garbage collections when the command owns its process."""

INTERRUPTED: Final = 130
"""The same value as in `neuroscript.cli.terminal.exit_codes`, which is imported only when it is needed."""


def main(argv: list[str] | None = None, make_engine: Callable[..., Any] | None = None) -> int:
    """Run the command and return its exit code; errors are printed as one line each, never as a traceback.

    Args:
        argv: The arguments after the command's name; None means those of this process.
        make_engine: A factory for the engine, called with ``mode`` when an engine is needed; None means
            `neuroscript.Engine`.

    Returns:
        One of the codes in `neuroscript.cli.terminal.exit_codes`.
    """
    try:
        return _alone(make_engine) if argv is None else _run(argv, make_engine)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: list[str], make_engine: Callable[..., Any] | None) -> int:
    from neuroscript.cli.dispatch import run

    return run(argv, make_engine)


def _alone(make_engine: Callable[..., Any] | None) -> int:
    """Run the command in a process that it owns, with few garbage collections and none at exit.

    This saves an eighth of the time of ``neuroscript list``. In an application's process the settings stay as they are.
    """
    gc.set_threshold(GC_THRESHOLD_ALLOCATIONS)
    try:
        code = _run(sys.argv[1:], make_engine)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED and active_count() > 1:
        os._exit(code)  # executor threads, daemons or not, would block the exit until their work is done
    gc.freeze()
    return code
