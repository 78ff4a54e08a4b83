"""Which addresses a request may be sent to: public ones, private ones that are asked for, and those that never.

What is not known to be public is not. An address that carries another one in it (mapped, 6to4, NAT64, Teredo) is never
used, whatever it carries: the name that led to it has a plain one too, or is a trick.

Source: the special-purpose registries of IANA (RFC 6890); reliability.md T8.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network


class Reach(Enum):
    """How far an address reaches."""

    PUBLIC = "public"
    PRIVATE = "private"
    """Of this machine or of a network of one's own."""
    NEVER = "never"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


METADATA: Final = _networks(
    "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "fd00:42::/32"
)
"""Where clouds tell a machine its secrets, besides 169.254.0.0/16 and 192.0.0.0/24."""

PRIVATE: Final = _networks(
    "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"
)
"""Loopback, private use, shared between a provider and its customers, unique local."""

NEVER: Final = _networks(
    "0.0.0.0/8",  # this network
    "169.254.0.0/16",  # link-local
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "2001::/23",  # protocol assignments, Teredo
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4
    "3fff::/20",  # documentation
)

GLOBAL: Final = IPv6Network("2000::/3")
"""All that is assigned to be public of IPv6; what lies outside is mapped, translated, local, multicast or reserved."""


def reach_of(text: str) -> Reach:
    """Return how far an address reaches; a text that is no plain address, or has a zone, reaches nowhere.

    >>> reach_of("127.0.0.1"), reach_of("::ffff:8.8.8.8")
    (<Reach.PRIVATE: 'private'>, <Reach.NEVER: 'never'>)
    """
    try:
        address = ip_address(text)
    except ValueError:
        return Reach.NEVER
    if "%" in text or _within(address, (*METADATA, *NEVER)):
        return Reach.NEVER
    if _within(address, PRIVATE):
        return Reach.PRIVATE
    return Reach.PUBLIC if isinstance(address, IPv4Address) or address in GLOBAL else Reach.NEVER


def _within(address: IPv4Address | IPv6Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
