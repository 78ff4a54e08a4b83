"""What the SDK of MCP logs while it speaks to a server, which is kept out of every log.

It tells what the server wrote, with tracebacks, and addresses; and what was wrong is told by the error of the call.

Source: issue "MCP", text from outside; contract section 6.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Final

ROOTS: Final = ("client", "httpcore2", "httpx2", "mcp")
"""How the names of its loggers begin, and those of what it uses."""

LATE: Final = tuple(f"httpcore2.{each}" for each in ("connection", "http11", "http2", "proxy", "socks"))
"""Loggers that are made when the first connection is opened."""

HUSHED: Final[ContextVar[bool]] = ContextVar("neuroscript.interop.mcp.client.log_filter", default=False)
"""Whether it speaks to a server of ours here; others who use the SDK in this process read what it logs."""


def hush() -> None:
    """Keep out of every log what is logged from here on, in this context and in those that it begins."""
    HUSHED.set(True)
    for name in [*logging.Logger.manager.loggerDict, *LATE]:
        if name.partition(".")[0] in ROOTS:
            logging.getLogger(name).addFilter(_is_told)


def _is_told(record: logging.LogRecord) -> bool:
    return not HUSHED.get()
