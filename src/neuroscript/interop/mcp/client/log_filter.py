"""A filter for the log messages of the MCP SDK while it communicates with a server.

The messages contain data from the server, tracebacks and addresses. The error of the call reports what went wrong.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final

ROOTS: Final = ("client", "httpcore2", "httpx2", "mcp")
"""Prefixes of the logger names of the SDK and its dependencies."""

LATE: Final = tuple(f"httpcore2.{each}" for each in ("connection", "http11", "http2", "proxy", "socks"))
"""Loggers that are created when the first connection is opened."""

IS_FILTERED: Final[ContextVar[bool]] = ContextVar("neuroscript.interop.mcp.client.log_filter", default=False)
"""Whether the current context communicates with a server for this package; other users of the SDK are not filtered."""


def install_filter() -> None:
    """Filter log messages from now on, in this context and in contexts copied from it."""
    IS_FILTERED.set(True)
    for name in [*logging.Logger.manager.loggerDict, *LATE]:
        if name.partition(".")[0] in ROOTS:
            logging.getLogger(name).addFilter(_is_logged)


def _is_logged(record: logging.LogRecord) -> bool:
    return not IS_FILTERED.get()
