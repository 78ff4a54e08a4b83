"""What an HTTP service tells its clients about authorization: its metadata, and the challenges of refused requests.

See RFC 9728, RFC 6750, and "Authorization" in MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import attrs

from neuroscript.interop.http_server.addresses import host_of, is_loopback
from neuroscript.interop.http_server.principals import Refusal
from neuroscript.io.text import quote_untrusted

RESOURCE_URL: Final = re.compile(r"(https?)://([^/?#@\\\s\"]+)((?:/[!$-;=@-Z_a-z~%]*)?)", re.IGNORECASE)
"""A URL without user name, query and fragment: its scheme, authority and path."""

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""The path of the metadata, before the path of the resource."""

SCOPE: Final = re.compile(r"[!#-\[\]-~]+")
"""One scope, as in RFC 6749, section 3.3."""


def secure_url_problems(name: str, url: object) -> Iterator[str]:
    """Yield why a URL is not one of an issuer or a resource: ``https``, or ``http`` on this machine.

    Args:
        name: The name of the parameter, for the message.
    """
    found = RESOURCE_URL.fullmatch(url) if isinstance(url, str) else None
    if found is None:
        yield f"{name}: expected a URL such as https://id.example.com, without a query and a fragment"
    elif found[1].lower() == "http" and not is_loopback(host_of(found[2])):
        yield f"{name}: expected https; http is accepted for this machine only"


@attrs.frozen
class ProtectedResource:
    """A service whose clients need access tokens.

    Attributes:
        url: Its URL, as its clients know it.
        issuers: The issuers whose tokens it accepts.
        scopes: The scopes that its tokens can have.
    """

    url: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()

    def with_scopes(self, scopes: Collection[str]) -> ProtectedResource:
        """Return a copy with further scopes."""
        return attrs.evolve(self, scopes=tuple(dict.fromkeys((*self.scopes, *scopes))))

    def held(self, scopes: Collection[str]) -> frozenset[str]:
        """Return those of the scopes of a token that this service knows."""
        return frozenset(scopes).intersection(self.scopes)

    @property
    def path(self) -> str:
        """The path at which its metadata is served."""
        found = RESOURCE_URL.fullmatch(self.url)
        path = "" if found is None else found[3]
        return f"{WELL_KNOWN}{'' if path == '/' else path}"

    @property
    def metadata_url(self) -> str:
        """The URL of its metadata."""
        found = RESOURCE_URL.fullmatch(self.url)
        return "" if found is None else f"{found[1]}://{found[2]}{self.path}"

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata."""
        scopes = {"scopes_supported": [*self.scopes]} if self.scopes else {}
        methods = {"bearer_methods_supported": ["header"]}
        return {"resource": self.url, "authorization_servers": [*self.issuers], **scopes, **methods}

    def no_token(self) -> Refusal:
        """Return the response to a request without a token."""
        return Refusal(401, "an access token is required", self._challenge(self.scopes))

    def bad_request(self, text: str) -> Refusal:
        """Return the response to a request whose headers are ambiguous."""
        return Refusal(400, text, self._challenge((), "invalid_request", text))

    def invalid_token(self, text: str) -> Refusal:
        """Return the response to a token that is not accepted.

        Args:
            text: Why, without any part of the token, and without quotation marks.
        """
        return Refusal(401, text, self._challenge(self.scopes, "invalid_token", text))

    def insufficient_scope(self, scopes: Collection[str]) -> Refusal:
        """Return the response to a token that lacks scopes.

        Args:
            scopes: The scopes that the request needs.
        """
        text = "the access token lacks a scope that is required"
        return Refusal(403, text, self._challenge(scopes, "insufficient_scope", text))

    def _challenge(self, scopes: Collection[str], error: str = "", text: str = "") -> str:
        parts = {
            "error": error,
            "error_description": text,
            "scope": " ".join(scopes),
            "resource_metadata": self.metadata_url,
        }
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)


def scope_problems(scopes: Iterable[object]) -> list[str]:
    """Return the problems of names of scopes."""
    invalid = (each for each in scopes if not isinstance(each, str) or not SCOPE.fullmatch(each))
    return [f"scopes: {quote_untrusted(str(each))} is not a scope" for each in invalid]
