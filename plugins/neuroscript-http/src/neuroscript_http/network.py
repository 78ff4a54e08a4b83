"""How names become addresses, and addresses connections: the one seam between these tools and the network.

A test, or a host with name servers and certificates of its own, gives other functions to
`neuroscript_http.toolset.made`. What an address has to be is decided by none of them.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence

import attrs


def addresses_of(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, as the system finds them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def connected(address: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to an address, which is resolved no further."""
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((address, port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def certified() -> ssl.SSLContext:
    """Return what certificates are held to: those that come with ``certifi``, whatever the environment says."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


@attrs.frozen
class Network:
    """What reaches the network.

    Attributes:
        resolve: Takes a name and a port, and returns addresses or raises OSError. It may wait: nobody waits for it
            longer than for the request.
        connect: Takes an address, a port and seconds, and returns a connection or raises OSError.
        tls: Returns what certificates are held to; asked once for each request.
    """

    resolve: Callable[[str, int], Sequence[str]] = addresses_of
    connect: Callable[[str, int, float], socket.socket] = connected
    tls: Callable[[], ssl.SSLContext] = certified
