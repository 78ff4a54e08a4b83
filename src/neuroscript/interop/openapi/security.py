"""What a request proves itself with: secrets that the host lends by name, and no caller sees or sets.

Source: OpenAPI Specification 3.1.1, "Security Scheme Object" and "Security Requirement Object"; RFC 6750, RFC 7617.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.display import shown
from neuroscript.interop.openapi.documents import Document, Unfit, at

SCHEMES: Final = at("components", "securitySchemes")

CLIENTS: Final = frozenset(
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
"""Headers that only the http toolset says, and the one that cookies stand in."""

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
"""The name of a header or a cookie."""


@attrs.frozen
class Credential:
    """One secret, and where it stands in a request.

    Attributes:
        secret: The name of the host's secret.
        where: What part of the request.
        name: That of the header, of the query's parameter or of the cookie.
        manner: How it is written: as it is, or as the header ``Authorization`` has it. That of ``basic`` is
            ``user:password``.
    """

    secret: str
    where: Literal["header", "query", "cookie"]
    name: str
    manner: Literal["plain", "bearer", "basic"] = "plain"

    def written(self, secret: str) -> str:
        """Return what is sent of a secret."""
        match self.manner:
            case "bearer":
                return f"Bearer {secret}"
            case "basic":
                return f"Basic {b64encode(secret.encode()).decode('ascii')}"
            case _:
                return secret


def credentials_of(
    document: Document, operation: dict[str, Any], path: str, secrets: Mapping[str, str]
) -> tuple[Credential, ...]:
    """Return what an operation asks for: the first of its alternatives for which the host has named all secrets.

    Raises:
        Unfit: There is no such alternative.
    """
    where = at(path, "security") if "security" in operation else "security"
    ways = operation.get("security", document.root.get("security", []))
    if not isinstance(ways, list) or not all(isinstance(way, dict) for way in ways):
        raise Unfit(where, "expected a list of schemes by name")
    if not ways:
        return ()
    for way in sorted(ways, key=lambda way: not way):
        if all(name in secrets for name in way):
            found = tuple(_credential(document, name, secrets[name]) for name in way)
            if len({(each.where, each.name.lower()) for each in found}) < len(found):
                raise Unfit(where, "asks for two secrets in the same place")
            return found
    asked = " or ".join(" and ".join(map(shown, way)) for way in ways)
    raise Unfit(where, f"asks for {asked}; name a secret of the host for each, as in secrets={{'scheme': 'name'}}")


def _credential(document: Document, name: str, secret: str) -> Credential:
    path = at(SCHEMES, name)
    schemes = document.root.get("components", {})
    schemes = schemes.get("securitySchemes", {}) if isinstance(schemes, dict) else {}
    if not isinstance(schemes, dict) or name not in schemes:
        raise Unfit(path, "there is no such scheme")
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
            raise Unfit(path, "expected a name, and in: header, query or cookie; some headers only the client says")
    raise Unfit(path, "only apiKey, http basic and bearer, oauth2 and openIdConnect are understood")


def _is_fit(where: str, name: str) -> bool:
    return bool(name) if where == "query" else TOKEN.fullmatch(name) is not None and name.lower() not in CLIENTS


def scheme_faults(document: Document, secrets: Mapping[str, str]) -> list[str]:
    """Return why the host's names of secrets do not fit the description."""
    components = document.root.get("components", {})
    known = components.get("securitySchemes") if isinstance(components, dict) else None
    names = known if isinstance(known, dict) else {}
    faults = [f"secrets: the description has no scheme {shown(name)}" for name in secrets if name not in names]
    bad = [name for name, secret in secrets.items() if type(secret) is not str or not secret]
    return [*faults, *(f"secrets: expected the name of a secret for {shown(name)}" for name in bad)]
