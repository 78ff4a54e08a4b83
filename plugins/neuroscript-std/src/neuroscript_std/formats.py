"""Format checks for strings: email address, URL, date and time. All run in linear time."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

MAX_LOCAL_CHARS: Final = 64
MAX_DOMAIN_CHARS: Final = 253

LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*+")
LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
URL_TEXT: Final = re.compile(r"(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})*+")
AUTHORITY_END: Final = re.compile(r"[/?#]")
PORT: Final = re.compile(r"(?::([0-9]{0,5}))?")
TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]++)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
SECONDS: Final = len("2026-11-20T13:27:46")


def is_email(text: str) -> bool:
    """Return whether a string is an email address: an unquoted local part, ``@``, a domain of two or more labels.

    The lengths and characters are those of RFC 5321.
    """
    local, _, domain = text.partition("@")
    if len(local) > MAX_LOCAL_CHARS or LOCAL.fullmatch(local) is None:
        return False
    labels = domain.split(".") if _is_domain(domain) and "_" not in domain else []
    return len(labels) > 1 and not labels[-1].isdigit()


def is_url(text: str) -> bool:
    """Return whether a string is an http or https URL with a host, by RFC 3986."""
    scheme, _, rest = text.partition("://")
    authority = AUTHORITY_END.split(rest, maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    if scheme.lower() not in ("http", "https") or not _is_host(host):
        return False
    return URL_TEXT.fullmatch(user) is not None and URL_TEXT.fullmatch(rest[len(authority) :]) is not None


def is_iso_datetime(text: str) -> bool:
    """Return whether a string is a date and time with an offset, such as ``2026-11-20T13:27:46.5Z``.

    The format is that of RFC 3339, with uppercase letters and without leap seconds.
    """
    if TIME.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text[:SECONDS])
    except ValueError:
        return False
    return True


def _is_domain(text: str) -> bool:
    return len(text) <= MAX_DOMAIN_CHARS and all(LABEL.fullmatch(label) for label in text.split("."))


def _is_host(text: str) -> bool:
    """Return whether a string is a domain or an IPv6 address in brackets, optionally with a port."""
    end = text.find("]") + 1 if text.startswith("[") else text.find(":")
    name, port = (text[:end], text[end:]) if end > 0 else (text, "")
    found = PORT.fullmatch(port)
    return found is not None and int(found[1] or 0) < 65536 and (_is_ipv6(name) or _is_domain(name))


def _is_ipv6(text: str) -> bool:
    if not (text.startswith("[") and text.endswith("]")):
        return False
    from ipaddress import IPv6Address

    try:
        IPv6Address(text[1:-1])
    except ValueError:
        return False
    return True
