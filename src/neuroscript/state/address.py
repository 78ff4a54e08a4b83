"""The address of a database: ``sqlite:///FILE``, or ``postgresql://USER@HOST/NAME``."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import attrs

from neuroscript.errors import SpecError
from neuroscript.io.text import quote_path

FORM: Final = "the address must be sqlite:///FILE or postgresql://USER@HOST/NAME"

PASSWORDS: Final = ("password", "sslpassword")
"""The parameters of an address that must not be shown."""


@attrs.frozen
class Address:
    """A valid address.

    Attributes:
        kind: ``sqlite`` or ``postgresql``.
        url: The address as it was given.
        name: The address without passwords, for messages.
        path: The absolute path of an SQLite file, or None.
    """

    kind: Literal["sqlite", "postgresql"]
    url: str = attrs.field(repr=False)
    name: str
    path: Path | None = None


def parse_address(url: str, subject: str = "SharedState") -> Address:
    """Return the parts of an address.

    Args:
        subject: What the address belongs to, for the error.

    Raises:
        SpecError: If the address is invalid.

    >>> parse_address("postgresql://app:secret@db.example/agents").name
    'postgresql://app@db.example/agents'
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise SpecError(subject, [FORM]) from None
    if parts.scheme == "sqlite":
        path = unquote(parts.path[1:])
        if parts.netloc or parts.query or parts.fragment or not path or path == ":memory:" or "\0" in path:
            raise SpecError(subject, [FORM])
        return Address("sqlite", url, quote_path(f"sqlite:///{path}"), Path(path).absolute())
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise SpecError(subject, [FORM])
    if parts.netloc.count("@") > 1 or "@" in host:  # the end of a password, which must not appear in messages
        raise SpecError(subject, ["an @ in the password of an address must be written as %40"])
    login, _, place = parts.netloc.rpartition("@")
    user = login.partition(":")[0]
    shown = [(key, value) for key, value in parse_qsl(parts.query) if key.lower() not in PASSWORDS]
    netloc = f"{user}@{place}" if user else place
    name = urlunsplit(("postgresql", netloc, parts.path, urlencode(shown, safe="/"), ""))
    return Address("postgresql", url, quote_path(name))
