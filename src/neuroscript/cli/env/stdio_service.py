"""An MCP service of one command over the standard streams, and how it ends."""

from __future__ import annotations

import asyncio
from threading import Timer
from typing import Any

from neuroscript.cli.env.http_service import CLOSE_TIMEOUT_SECONDS, Closing, exit_on_signals, exit_process
from neuroscript.cli.terminal.exit_codes import OK


def serve_stdio(service: Any, closing: Closing) -> None:
    """Serve the client at the other end of the standard streams until it disconnects or a signal arrives.

    Args:
        service: The `Service` of MCP.
        closing: What is closed before the process ends: the engine, or what has one.
    """
    exit_on_signals(closing)
    overdue = Timer(CLOSE_TIMEOUT_SECONDS, exit_process, (closing, OK))
    overdue.daemon = True

    async def served() -> None:
        await service.stdio()
        overdue.start()  # the loop does not end before each coroutine, and a tool can ignore its cancellation

    asyncio.run(served())
    overdue.cancel()
