"""What tools log, told to the client whose call they carry out.

Source: MCP 2025-11-25, "Logging"; RFC 5424, severities.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from neuroscript.interop.mcp.server.request import CURRENT
from neuroscript.io import tracebacks
from neuroscript.policy import refusals

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of MCP, the least first."""

WORDS: Final = ((logging.CRITICAL, "critical"), (logging.ERROR, "error"), (logging.WARNING, "warning"))


class ClientHandler(logging.Handler):
    """Sends each message to the client whose call it belongs to, except tracebacks and what to grant.

    Args:
        logger: The host's logger, whose children for these two are left out.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._for_the_host = {logger.getChild(name).name for name in (tracebacks.LOGGER, refusals.LOGGER)}

    def emit(self, record: logging.LogRecord) -> None:
        """Send one message, if it belongs to the call of a client."""
        current = CURRENT.get()
        if current is not None and record.name not in self._for_the_host:
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
    handler, level = ClientHandler(logger), logger.level
    logger.addHandler(handler)
    if level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
