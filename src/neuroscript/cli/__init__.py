"""The ``neuroscript`` command: the only code that prints or exits.

Source: issue "The contract runs", command line; ecosystem.md parts 2 and 19.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from threading import active_count
from typing import Any, Final

__all__ = ["main"]

ALLOCATIONS: Final = 50_000
"""How many new objects a process of our own waits for before it looks for garbage; of its start-up it keeps all."""

INTERRUPTED: Final = 130
"""As `neuroscript.cli.terminal.exit_codes` has it, which is not loaded before it is needed."""


def main(argv: list[str] | None = None, make_engine: Callable[..., Any] | None = None) -> int:
    """Run the command and return its exit code; whatever happens is said in a line, never in a traceback.

    Args:
        argv: The words behind the command's name; None means those of this process.
        make_engine: What makes the engine when one is needed, called with ``mode``; None means `neuroscript.Engine`.

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
    """Run the command as a process of our own, which looks for garbage seldom and not when it ends.

    That is an eighth of the time of ``neuroscript list``; a process that belongs to others is left as it is.
    """
    gc.set_threshold(ALLOCATIONS)
    try:
        code = _run(sys.argv[1:], make_engine)
    except KeyboardInterrupt:
        code = INTERRUPTED
    if code == INTERRUPTED and active_count() > 1:
        os._exit(code)  # those of an executor keep a process, daemons or not, until what they do has ended
    gc.freeze()
    return code
