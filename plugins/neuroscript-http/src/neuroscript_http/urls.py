"""Strict URL parsing: one normalized form, and nothing that two clients could parse differently."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from socket import AF_INET6, inet_ntop
from typing import Final
from urllib.parse import urljoin

import attrs

from neuroscript import ToolFailed
from neuroscript_http.faults import fault

MAX_URL_CHARS: Final = 8192
"""Maximum characters of a URL."""

MAX_HOST_CHARS: Final = 253
LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
URL: Final = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
PLACE: Final = re.compile(rf"(?:\[([0-9a-f:.]+)\]|({LABEL}(?:\.{LABEL})*)\.?)(?::([0-9]{{1,5}}))?", re.IGNORECASE)
NUMBER: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""A host that some clients parse as an IPv4 address: decimal, octal, hexadecimal, or fewer than four parts."""

UNFIT: Final = re.compile(r"[^!-~]|[\\<>\"{}|^`]")
"""Characters that are not valid in a URL, and that clients treat differently."""

PORTS: Final = {"http": 80, "https": 443}
EXPECTED: Final = "url: expected an http:// or https:// URL with an ASCII host and other characters as %XX"


@attrs.frozen
class Target:
    """The target of one request.

    Attributes:
        scheme: ``http`` or ``https``.
        host: Lowercase, without a trailing dot; an IPv6 address is compressed and has no brackets.
        port: From 1 to 65535.
        path: Path and query, starting with ``/``.
        is_address: Whether the host is an IP address.
    """

    scheme: str
    host: str
    port: int
    path: str
    is_address: bool

    @property
    def place(self) -> str:
        """``host:port``, as in the scope of a capability."""
        return f"{self._host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str]:
        """Scheme and place; credentials are only sent again to the same origin."""
        return self.scheme, self.place

    @property
    def url(self) -> str:
        """The normalized URL, without a default port."""
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self._host}{port}{self.path}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def target_of(url: str) -> Target:
    """Parse a URL.

    Raises:
        ToolFailed: ``http.bad_url``, for another scheme, user info, an address in another form than ``127.0.0.1`` or
            ``[::1]``, and anything that clients could parse differently.

    >>> target_of("HTTP://Example.com.:8080?a=b#top").url
    'http://example.com:8080/?a=b'
    """
    found = None if len(url) > MAX_URL_CHARS or UNFIT.search(url) else URL.fullmatch(url)
    if found is None:
        raise fault("bad_url", f"{EXPECTED}, at most {MAX_URL_CHARS} characters, got something else")
    scheme, authority, path = found[1].lower(), found[2], found[3]
    if "@" in authority:
        raise fault("bad_url", "url: expected no user and no password; send them in a header")
    host, port, is_address = _host_and_port(authority, PORTS[scheme])
    return Target(scheme, host, port, path if path.startswith("/") else f"/{path}", is_address)


def redirect_target(target: Target, location: str) -> Target:
    """Return the target of a redirect.

    Raises:
        ToolFailed: ``http.redirect``, if the URL is invalid or leads from https to http.
    """
    try:
        following = target_of(location if UNFIT.search(location) else urljoin(target.url, location))
    except (ToolFailed, ValueError):
        text = f"{target.place} redirects to an invalid or ambiguous URL"
        raise fault("redirect", text) from None
    if (target.scheme, following.scheme) == ("https", "http"):
        raise fault("redirect", f"{target.place} redirects from https to http, which is not allowed")
    return following


def _host_and_port(authority: str, known: int) -> tuple[str, int, bool]:
    found = PLACE.fullmatch(authority)
    port = int(found[3] or known) if found else 0
    if found is None or not 1 <= port <= 65535:
        raise fault("bad_url", f"{EXPECTED}, and a port from 1 to 65535 if any, got something else")
    if found[1]:
        return _ipv6(found[1]), port, True
    host = found[2].lower()
    if NUMBER.fullmatch(host):
        return _ipv4(host), port, True
    if len(host) > MAX_HOST_CHARS:
        raise fault("bad_url", f"url: expected a host of at most {MAX_HOST_CHARS} characters, got {len(host)}")
    return host, port, False


def _ipv6(text: str) -> str:
    try:
        return inet_ntop(AF_INET6, IPv6Address(text).packed)
    except AddressValueError:
        raise fault("bad_url", "url: expected an IPv6 address in brackets, got something else") from None


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        expected = "an address as four decimal numbers without leading zeros, such as 192.0.2.1"
        raise fault("bad_url", f"url: expected {expected}, got another form") from None
