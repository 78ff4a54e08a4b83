"""Authentication of requests: secrets that the host provides by name, and that callers never see or set.

A secret belongs to one server, identified by scheme, host and port. A description can declare a different server for
any operation; that server does not receive the secret.

See the OpenAPI Specification 3.1.1, "Security Scheme Object" and "Security Requirement Object"; RFC 6750; RFC 7617.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.interop.openapi.document import Document, InvalidPart, Problems, at, try_call
from neuroscript.interop.openapi.servers import Server, server_at, server_of
from neuroscript.io.text import first, quote_untrusted

SCHEMES: Final = at("components", "securitySchemes")

CLIENT_HEADERS: Final = frozenset(
    {
        *(
            "accept-encoding",
            "connection",
            "content-length",
            "cookie",
            "expect",
            "host",
            "keep-alive",
            "proxy-authenticate",
        ),
        *("proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers that only the http toolset sets, and the header for cookies."""

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
"""A valid name of a header or a cookie."""

MAX_LISTED_SCHEMES: Final = 5
"""Maximum number of schemes that an error lists."""


SecretNames = Mapping[str, str | Mapping[str, str]]
"""The name of a secret by security scheme, or the names of its secrets by server URL."""

SecretsByServer = Mapping[str, Mapping[str, str]]
"""The name of a secret, by security scheme and by the origin of a server."""


@attrs.frozen
class Credential:
    """One secret and its place in a request.

    Attributes:
        secret: The name of the host's secret.
        where: The part of the request that contains it.
        name: The name of the header, query parameter or cookie.
        settings: How it is written: unchanged, or in the format of the header ``Authorization``. A secret for ``basic``
            has the format ``user:password``.
    """

    secret: str
    where: Literal["header", "query", "cookie"]
    name: str
    settings: Literal["plain", "bearer", "basic"] = "plain"

    def written(self, secret: str) -> str:
        """Return the value to send for a secret."""
        match self.settings:
            case "bearer":
                return f"Bearer {secret}"
            case "basic":
                return f"Basic {b64encode(secret.encode()).decode('ascii')}"
            case _:
                return secret


def bind_secrets(document: Document, secrets: SecretNames, base_url: str, notes: Problems) -> SecretsByServer:
    """Return the servers that may receive each secret; record problems with the names from the host.

    A secret that is named without a server is for *base_url*, or else for the first server of the whole document.
    """
    components = document.root.get("components", {})
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    known = schemes if isinstance(schemes, dict) else {}
    for name in secrets:
        if name not in known:
            notes.add("secrets", f"the description has no security scheme {quote_untrusted(name)}")
    levels = (("servers", document.root.get("servers")),)
    home = try_call(Problems(), server_of, document, levels, base_url)
    return {name: dict(_bound(name, secret, home, notes)) for name, secret in secrets.items()}


def _bound(name: str, secret: Any, home: Server | None, notes: Problems) -> Iterator[tuple[str, str]]:
    """Yield the origin of each server that may receive a secret, and the name of the secret."""
    path = f"secrets['{quote_untrusted(name)}']"
    if isinstance(secret, str) and secret:
        if home is not None:
            yield home.origin, secret
        return
    if not isinstance(secret, Mapping) or not secret:
        notes.add(path, "expected the name of a secret, or a mapping from server URLs to names of secrets")
        return
    for url, each in secret.items():
        place = f"{path}[{quote_untrusted(url)!r}]" if isinstance(url, str) else path
        server = try_call(notes, server_at, place, url)
        if not isinstance(each, str) or not each:
            notes.add(place, "expected the name of a secret")
        elif server is not None:
            yield server.origin, each


def credentials_of(
    document: Document, operation: dict[str, Any], path: str, secrets: SecretsByServer, server: Server | None
) -> tuple[Credential, ...]:
    """Return the credentials of an operation: the first alternative whose secrets are all for its server.

    Args:
        server: The server of the requests; None if it could not be read, so that only the names are checked.

    Raises:
        Unfit: No alternative has all its secrets.
    """
    where = at(path, "security") if "security" in operation else "security"
    ways = operation.get("security", document.root.get("security", []))
    if not isinstance(ways, list) or not all(isinstance(way, dict) for way in ways):
        raise InvalidPart(where, "expected a list of objects with security schemes as keys")
    if not ways:
        return ()
    for way in sorted(ways, key=lambda way: not way):
        if all(name in secrets and (server is None or server.origin in secrets[name]) for name in way):
            of = [
                next(iter(secrets[name].values()), "") if server is None else secrets[name][server.origin]
                for name in way
            ]
            found = tuple(_credential(document, name, secret) for name, secret in zip(way, of, strict=True))
            if len({(each.where, each.name.lower()) for each in found}) < len(found):
                raise InvalidPart(where, "requires two secrets in the same place")
            return found
    if server is not None:
        for way in ways:
            if all(name in secrets for name in way):
                raise _elsewhere(where, [name for name in way if server.origin not in secrets[name]], server)
    schemes = " or ".join(
        first(
            [" and ".join(first([*map(quote_untrusted, way)], MAX_LISTED_SCHEMES)) for way in ways], MAX_LISTED_SCHEMES
        )
    )
    raise InvalidPart(where, f"requires {schemes}; name a host secret for each, as in secrets={{'scheme': 'name'}}")


def _elsewhere(path: str, names: list[str], server: Server) -> InvalidPart:
    """Return the error for an operation whose server may not receive the secrets that the host has named."""
    listed = " and ".join(first([*map(quote_untrusted, names)], MAX_LISTED_SCHEMES))
    place = quote_untrusted(server.origin)
    text = f"requires {listed}, but no such secret is for {place}, the server of its requests; to allow that server"
    return InvalidPart(path, f"{text}, pass secrets={{'scheme': {{'{place}': 'name'}}}}")


def _credential(document: Document, name: str, secret: str) -> Credential:
    path = at("securityDefinitions" if "swagger" in document.root else SCHEMES, name)
    schemes = document.root.get("components", {})
    schemes = schemes.get("securitySchemes", {}) if isinstance(schemes, dict) else {}
    if not isinstance(schemes, dict) or name not in schemes:
        raise InvalidPart(path, "unknown security scheme")
    scheme = document.followed(schemes[name], path)
    match scheme:
        case {"type": "apiKey", "in": "header" | "query" | "cookie" as where, "name": str() as key} if _is_fit(
            where, key
        ):
            return Credential(secret, where, key)
        case {"type": "http", "scheme": str() as word} if word.lower() in ("bearer", "basic"):
            return Credential(secret, "header", "Authorization", "bearer" if word.lower() == "bearer" else "basic")
        case {"type": "oauth2" | "openIdConnect"}:
            return Credential(secret, "header", "Authorization", "bearer")
        case {"type": "apiKey"}:
            raise InvalidPart(
                path, "expected in: header, query or cookie, and a name that the HTTP client does not reserve"
            )
    raise InvalidPart(path, "expected apiKey, http basic or bearer, oauth2 or openIdConnect")


def _is_fit(where: str, name: str) -> bool:
    return bool(name) if where == "query" else TOKEN.fullmatch(name) is not None and name.lower() not in CLIENT_HEADERS
