"""Classification of addresses: public, private (allowed on request) and never allowed.

An address is only public if it is known to be, by the special-purpose registries of IANA (RFC 6890). An address that
embeds another one (IPv4-mapped, 6to4, NAT64, Teredo) is never used: a legitimate host also has a plain address.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network


class AddressClass(Enum):
    """The class of an address."""

    PUBLIC = "public"
    PRIVATE = "private"
    """On this machine or in a private network."""
    NEVER = "never"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


METADATA: Final = _networks(
    "168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32", "fd00:c1::/32", "fd00:42::/32"
)
"""Metadata services of clouds, besides those in 169.254.0.0/16 and 192.0.0.0/24."""

PRIVATE: Final = _networks(
    "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"
)
"""Loopback, private use, carrier-grade NAT, unique local."""

NEVER: Final = _networks(
    "0.0.0.0/8",  # this network
    "169.254.0.0/16",  # link-local
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # 6to4 relays
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
"""The public IPv6 space; all other addresses are mapped, translated, local, multicast or reserved."""


def class_of(text: str) -> AddressClass:
    """Return the class of an address; a string that is not a plain address, or has a zone, is never allowed.

    >>> class_of("127.0.0.1"), class_of("::ffff:8.8.8.8")
    (<Reach.PRIVATE: 'private'>, <Reach.NEVER: 'never'>)
    """
    try:
        address = ip_address(text)
    except ValueError:
        return AddressClass.NEVER
    if "%" in text or _is_in_networks(address, (*METADATA, *NEVER)):
        return AddressClass.NEVER
    if _is_in_networks(address, PRIVATE):
        return AddressClass.PRIVATE
    return AddressClass.PUBLIC if isinstance(address, IPv4Address) or address in GLOBAL else AddressClass.NEVER


def _is_in_networks(address: IPv4Address | IPv6Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
