"""What tools log, told to the client whose call they carry out.

Source: MCP 2025-11-25, "Logging"; RFC 5424, severities.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from neuroscript.interop.mcp.requests import CURRENT

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of MCP, the least first."""

WORDS: Final = ((logging.CRITICAL, "critical"), (logging.ERROR, "error"), (logging.WARNING, "warning"))


class ClientHandler(logging.Handler):
    """Tells each message to the client whose call it belongs to; of a traceback it tells nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one message, unless no client's call is carried out here."""
        current = CURRENT.get()
        if current is not None:
            current.log(word_of(record.levelno), record.name, record.getMessage())


def word_of(level: int) -> str:
    """Return the level of MCP for one of `logging`."""
    if level >= logging.WARNING:
        return next(word for least, word in WORDS if level >= least)
    return "info" if level >= logging.INFO else "debug"


@contextmanager
def told(logger: Any) -> Iterator[None]:
    """Tell clients what a logger gets, from INFO on where nobody has set its level; others than `logging`'s are left.

    Args:
        logger: A host's.
    """
    if not isinstance(logger, logging.Logger):
        yield
        return
    handler, level = ClientHandler(), logger.level
    logger.addHandler(handler)
    if level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
