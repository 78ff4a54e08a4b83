"""Checks of network addresses: which are local to this machine, and which may receive a secret.

See MCP 2025-11-25, "Transports", security warning; RFC 6750, section 5.3; RFC 9110, sections 4.2 and 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final

from neuroscript.config.mcp_servers import URL
from neuroscript.io.text import quote_untrusted

HOST: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
"""A host with an optional port, and nothing else that another parser could read differently."""

SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that always contain a secret."""


def is_loopback(host: str | None) -> bool:
    """Return whether a name or an address refers to this machine only.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host is None or host == "localhost":
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(host: str | None) -> bool:
    """Return whether a name or an address may refer to a machine that the internet cannot reach.

    Names are not resolved. A name whose last part is a number is an address in a form that resolvers accept.

    >>> is_private("10.0.0.1"), is_private("2130706433"), is_private("id.example.com")
    (True, True, False)
    """
    if host is None or not host.strip("."):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        return last == "localhost" or bool(re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last, re.IGNORECASE))


def host_of(authority: str) -> str | None:
    """Return the host of a Host header, or of the authority of a URL; None if it is invalid.

    >>> host_of("[::1]:8000"), host_of("evil.example@localhost")
    ('::1', None)
    """
    found = HOST.fullmatch(authority)
    return (found[1] or found[2]).lower() if found else None


def is_local_url(url: str) -> bool:
    """Return whether unencrypted requests to an absolute URL never leave this machine.

    >>> is_local_url("http://localhost:8000/mcp"), is_local_url("http://example.org/mcp")
    (True, False)
    """
    found = URL.fullmatch(url)
    return found is not None and found[1].lower() == "http" and is_loopback(host_of(found[2]))


def url_faults(url: str, secrets: Iterable[str]) -> Iterator[str]:
    """Yield the problems of a server's URL, which receives the headers named in *secrets*."""
    found = URL.fullmatch(url)
    if found is None:
        yield "url: expected a URL such as http://127.0.0.1:8000/mcp, without a password"
    elif found[1].lower() == "http" and not is_loopback(host_of(found[2])):
        for name in secrets:
            yield f"headers: {quote_untrusted(name)} would be sent unencrypted; use https, or pass plain_http=True"
