"""Serving from the command line: the address, a client over standard streams, and the end on a signal."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import ExitStack
from threading import Thread, Timer, current_thread, main_thread
from types import FrameType
from typing import Any, Final, Protocol

from neuroscript.cli.terminal.exit_codes import OK, UsageError

CLOSE_TIMEOUT_SECONDS: Final = 10.0
"""Seconds for the engine and its MCP servers to close when the process receives a signal, and for the calls of a client
over stdio to end when it has disconnected."""


class Closing(Protocol):
    """What is closed before the process ends: an engine, or what has one."""

    def close(self) -> object:
        """Close it."""


def serve_streams(service: Any, closing: Closing) -> None:
    """Serve the client at the other end of the standard streams until it disconnects or a signal arrives.

    Args:
        service: The `Service` of MCP.
        closing: What is closed before the process ends.
    """
    exit_on_signals(closing)
    overdue = Timer(CLOSE_TIMEOUT_SECONDS, exit_process, (closing, OK))
    overdue.daemon = True

    async def served() -> None:
        await service.stdio()
        overdue.start()  # the loop does not end before each coroutine, and a tool can ignore its cancellation

    asyncio.run(served())
    overdue.cancel()


def exit_on_signals(closing: Closing) -> None:
    """Close *closing* and exit the process when it receives a signal, whatever its tools do."""
    leaving: list[Thread] = []

    def ended(number: int, frame: FrameType | None) -> None:
        if leaving:  # a second signal: exit without waiting
            os._exit(128 + number)
        leaving.append(Thread(target=exit_process, args=(closing, 128 + number)))
        leaving[0].start()

    if current_thread() is main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, ended)


def exit_process(closing: Closing, code: int) -> None:
    """Close *closing* and exit the process, because some tools, and the thread that reads stdin, cannot be stopped."""
    thread = Thread(target=closing.close, daemon=True)
    thread.start()
    thread.join(CLOSE_TIMEOUT_SECONDS)
    sys.stderr.flush()
    os._exit(code)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        UsageError: The address cannot be used.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as opened:
            bound = opened.enter_context(socket.socket(family, kind))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen()  # clients that connect before the server runs wait instead of being refused
            opened.pop_all()
    except OSError as error:
        raise UsageError(f"cannot serve at that address ({type(error).__name__})") from None
    return bound


def http_url(host: str, bound: socket.socket) -> str:
    """Return the URL of a server, without a path."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{bound.getsockname()[1]}"
