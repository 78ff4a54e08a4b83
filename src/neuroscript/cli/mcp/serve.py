"""``neuroscript mcp serve``: tools for clients of MCP, over the standard streams or over HTTP.

Source: issue "MCP", serving; MCP 2025-11-25, "Transports".
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from argparse import Namespace
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final

from neuroscript.cli.env.engine import MakeEngine, opened
from neuroscript.cli.terminal.exit_codes import OK, UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.engine.engine import Engine
from neuroscript.interop.mcp.addresses import is_loopback

LEAVING: Final = 10.0
"""Seconds that the engine has to close, with the servers whose tools it has, when somebody ends the process."""


def run(options: Namespace, output: Output, make_engine: MakeEngine | None) -> int:
    """Serve the tools until the client goes, or somebody ends it.

    Raises:
        UsageError: The SDK is not installed, an address can not be used, or a token is missing.
    """
    try:
        from neuroscript.interop.mcp import ask_client, serve
        from neuroscript.interop.mcp.server.serve import Service  # noqa: F401
    except ModuleNotFoundError as error:
        raise UsageError(str(error)) from None
    token = _token(options)
    asking = ask_client if options.suspend is None else None
    output.serve()
    with opened(make_engine, output, options, asking) as engine:
        service = serve(engine, tools=options.tools or "*", name=options.name)
        if options.http is None:
            _over_streams(service, engine)
        else:
            _over_http(service, options, token, output)
    return OK


def _token(options: Namespace) -> str:
    """Return the token that clients have to say, or ``""``."""
    if options.http is None:
        if options.token_from is not None or options.origin:
            raise UsageError("--token-from and --origin are for HTTP; give --http too")
        return ""
    from neuroscript.interop.mcp.server.http import TOKEN, UNFIT

    token = os.environ.get(options.token_from, "").strip() if options.token_from is not None else ""
    if options.token_from is not None and not token:
        raise UsageError("the variable that --token-from names is not set, or empty")
    if token and not TOKEN.fullmatch(token):
        raise UsageError(UNFIT)
    if not token and not is_loopback(options.http[0]):
        raise UsageError("an address that others can reach needs a token; name its variable with --token-from")
    return token


def _over_streams(service: Any, engine: Engine) -> None:
    leaving: list[Thread] = []

    def ended(number: int, frame: FrameType | None) -> None:
        if leaving:  # who tells it again does not want to wait
            os._exit(128 + number)
        leaving.append(Thread(target=_left, args=(engine, number)))
        leaving[0].start()

    if current_thread() is main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, ended)
    asyncio.run(service.stdio())


def _left(engine: Engine, number: int) -> None:
    """Close the engine, and end the process: the thread that reads the standard input can not be stopped."""
    closing = Thread(target=engine.close, daemon=True)
    closing.start()
    closing.join(LEAVING)
    sys.stderr.flush()
    os._exit(128 + number)


def _over_http(service: Any, options: Namespace, token: str, output: Output) -> None:
    from neuroscript.interop.mcp.server.http import PATH, app
    from neuroscript.interop.mcp.server.listener import server

    host = options.http[0]
    bound = _bound(host, options.http[1])
    application = app(service, token=token, origins=options.origin, is_local=is_loopback(host))
    shown_host = f"[{host}]" if ":" in host else host
    output.say(f"serving at http://{shown_host}:{bound.getsockname()[1]}{PATH}")
    server(application).run(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()  # from now on clients are not refused, but wait
    except OSError as error:
        raise UsageError(f"can not serve at that address ({type(error).__name__})") from None
    return bound
