"""Log messages of tools, sent to the client whose call is running.

See MCP 2025-11-25, "Logging", and the severities of RFC 5424.
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
"""The log levels of MCP, from lowest to highest."""

FORWARDED: Final = "neuroscript_forwarded"
"""The attribute of a record with the handler that sends it to the client."""

WORDS: Final = ((logging.CRITICAL, "critical"), (logging.ERROR, "error"), (logging.WARNING, "warning"))


class ClientHandler(logging.Handler):
    """Sends each message to the client whose call it belongs to, except tracebacks and hints about grants.

    Args:
        logger: The host's logger, whose child loggers for these two are excluded.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._for_the_host = {logger.getChild(name).name for name in (tracebacks.LOGGER, refusals.LOGGER)}

    def emit(self, record: logging.LogRecord) -> None:
        """Send a message if it belongs to the call of a client."""
        current = CURRENT.get()
        if current is None or record.name in self._for_the_host:
            return
        if record.__dict__.setdefault(FORWARDED, self) is self:  # each service of a process has such a handler
            current.log(word_of(record.levelno), record.name, record.getMessage())


def word_of(level: int) -> str:
    """Return the MCP level for a level of `logging`."""
    if level >= logging.WARNING:
        return next(word for least, word in WORDS if level >= least)
    return "info" if level >= logging.INFO else "debug"


@contextmanager
def forward_logs(logger: Any) -> Iterator[None]:
    """Forward the messages of a logger to clients; a logger without a level is set to INFO meanwhile.

    Args:
        logger: The host's logger; a logger that is not from `logging` is left unchanged.
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
