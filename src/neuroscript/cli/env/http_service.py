"""An HTTP service of one command: its address, its token, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
from argparse import Namespace
from contextlib import ExitStack
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, Final, Protocol

from neuroscript.cli.terminal.exit_codes import UsageError
from neuroscript.cli.terminal.output import Output
from neuroscript.interop.http_server.addresses import is_loopback

CLOSE_TIMEOUT_SECONDS: Final = 10.0
"""Seconds for the engine and its MCP servers to close when the process receives a signal, and for the calls of a client
over stdio to end when it has disconnected."""


class Closing(Protocol):
    """What is closed before the process ends: an engine, or what has one."""

    def close(self) -> object:
        """Close it."""


def token_of(options: Namespace) -> str:
    """Return the token that clients must send, or ``""``.

    Raises:
        UsageError: The token is missing, empty or invalid, or an option needs ``--http``.
    """
    if options.http is None:
        if options.token_env is not None or options.origin:
            raise UsageError("--token-env and --origin need HTTP; add --http")
        return ""
    from neuroscript.interop.http_server.principals import BEARER_RULE, TOKEN

    token = os.environ.get(options.token_env, "").strip() if options.token_env is not None else ""
    if options.token_env is not None and not token:
        raise UsageError("the variable in --token-env is not set, or is empty")
    if token and not TOKEN.fullmatch(token):
        raise UsageError(BEARER_RULE)
    if not token and getattr(options, "issuer", None) is None and not is_loopback(options.http[0]):
        raise UsageError("an address that other machines can reach requires a token; add --token-env VARIABLE")
    return token


def serve_http(
    application: Any,
    closing: Closing,
    address: tuple[str, int],
    output: Output,
    path: str,
    certificate: tuple[str, str | None] | None = None,
) -> None:
    """Serve an application until the process receives a signal.

    Args:
        application: An ASGI application behind a guard.
        closing: What is closed before the process ends.
        address: A host and a port; 0 chooses a free one.
        path: The path to print with the address.
        certificate: The files of a certificate chain and of its private key, to serve HTTPS; the key may be in the
            first file.

    Raises:
        UsageError: The address or the certificate cannot be used.
    """
    from neuroscript.interop.http_server.listener import server

    host, port = address
    chain, key = certificate or (None, None)
    serving = server(application, certificate=chain, key=key)
    try:
        serving.config.load()
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(f"the certificate or its key cannot be used ({type(error).__name__})") from None
    scheme = "http" if certificate is None else "https"
    with _bound(host, port) as bound:
        shown_host = f"[{host}]" if ":" in host else host
        exit_on_signals(closing)  # before the address is printed, because the process may then be ended
        output.say(f"serving at {scheme}://{shown_host}:{bound.getsockname()[1]}{path}")
        serving.run(sockets=[bound])  # on a signal, it stops, and raises the signal again


def _bound(host: str, port: int) -> socket.socket:
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


def interrupt_on_sigterm() -> None:
    """Let SIGTERM interrupt like Ctrl-C, so that what was opened is closed; until `exit_on_signals` is called."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)


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
