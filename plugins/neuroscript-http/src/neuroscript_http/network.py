"""Name resolution, connections and TLS: the only interface between these tools and the network.

A test, or a host with its own name servers or certificates, passes other functions to
`neuroscript_http.toolset.make_toolset`. These functions do not decide which addresses are allowed.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence

import attrs


def addresses_of(host: str, port: int) -> Sequence[str]:
    """Resolve a name with the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """Connect to an address, without name resolution."""
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((address, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def certifi_context() -> ssl.SSLContext:
    """Return an SSL context that trusts the certificates of ``certifi`` and ignores the environment."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


@attrs.frozen
class Network:
    """Functions that access the network.

    Attributes:
        resolve: Takes a name and a port, and returns addresses or raises OSError. It can block; the timeout of the
            request still applies.
        connect: Takes an address, a port and seconds, and returns a connection or raises OSError.
        tls: Returns the SSL context; called once per request.
    """

    resolve: Callable[[str, int], Sequence[str]] = addresses_of
    connect: Callable[[str, int, float], socket.socket] = connect
    tls: Callable[[], ssl.SSLContext] = certifi_context
