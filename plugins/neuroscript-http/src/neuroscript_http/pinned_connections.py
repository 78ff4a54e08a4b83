"""Connections to addresses that were already checked, with byte counts and timeouts.

httpcore asks for a host and is connected to a checked address. It still uses the host name for TLS and headers.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import attrs
import httpcore

from neuroscript import Runtime
from neuroscript_http.faults import fault
from neuroscript_http.network import Network
from neuroscript_http.timeouts import CONNECT_TIMEOUT_SECONDS, RequestTimeout


@attrs.frozen(eq=False)
class Stream(httpcore.NetworkStream):
    """One connection; sent and received bytes count as ``net_bytes``."""

    rt: Runtime
    request_timeout: RequestTimeout
    connection: socket.socket
    place: str

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        def attempt(seconds: float) -> bytes:
            self.connection.settimeout(seconds)
            return self.connection.recv(max_bytes)

        try:
            data = self.request_timeout.waited(attempt)
        except OSError as error:
            raise httpcore.ReadError(type(error).__name__) from None
        if data:
            self.rt.spend("net_bytes", len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.rt.spend("net_bytes", len(buffer))
        rest = memoryview(buffer)

        def attempt(seconds: float) -> int:
            self.connection.settimeout(seconds)
            return self.connection.send(rest)

        try:
            while rest:
                rest = rest[self.request_timeout.waited(attempt) :]
        except OSError as error:
            raise httpcore.WriteError(type(error).__name__) from None

    def close(self) -> None:
        with suppress(OSError):
            self.connection.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self.connection.settimeout(self.request_timeout.left(CONNECT_TIMEOUT_SECONDS))
        try:
            wrapped = ssl_context.wrap_socket(self.connection, server_hostname=server_hostname)
        except TimeoutError:
            self.close()
            raise fault("timeout", f"{self.place} did not complete the TLS handshake in time") from None
        except (OSError, ValueError):
            self.close()
            text = f"{self.place} does not support TLS, or its certificate is not valid for that host"
            raise fault("tls", text) from None
        return Stream(self.rt, self.request_timeout, wrapped, self.place)

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object" and isinstance(self.connection, ssl.SSLSocket):
            return self.connection
        return None


@attrs.frozen(eq=False)
class Pinned(httpcore.NetworkBackend):
    """Connects to the first of *addresses* that accepts, regardless of the requested host."""

    rt: Runtime
    network: Network
    request_timeout: RequestTimeout
    addresses: Sequence[str]
    place: str

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        for address in self.addresses:
            with suppress(OSError):
                connection = self.network.connect(address, port, self.request_timeout.left(CONNECT_TIMEOUT_SECONDS))
                return Stream(self.rt, self.request_timeout, connection, self.place)
        self.request_timeout.left()
        raise fault("connect", f"no connection could be made to {self.place}")
