"""Who sends requests to an HTTP service, and how it finds out.

See RFC 6750.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Protocol

import attrs

TOKEN: Final = re.compile(r"[!-~]+")
"""A token: visible ASCII characters, because clients encode others differently."""

BEARER_RULE: Final = "expected a token of visible ASCII characters without spaces"


@attrs.frozen
class Principal:
    """Who sent a request.

    Attributes:
        name: A stable name that is not a secret, because audit records and request states contain it.
        scopes: What the credentials permit.
        client: The program that the credentials were issued to, or ``""``.
        expires: When the credentials are no longer accepted, in seconds since 1970, or None.
    """

    name: str
    scopes: frozenset[str] = frozenset()
    client: str = ""
    expires: float | None = None


@attrs.frozen
class Refusal:
    """The response to a request whose sender is not accepted.

    Attributes:
        status: The status code, such as 401 or 403.
        text: Why, without any part of the credentials.
        www_authenticate: The value of the header ``WWW-Authenticate``; ``""`` sends none.
    """

    status: int
    text: str
    www_authenticate: str = ""

    @property
    def headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None."""
        return {"www-authenticate": self.www_authenticate} if self.www_authenticate else None


def principal_key(principal: Principal) -> str:
    """Return a string that differs for each user, and for each program that has credentials of a user."""
    return f"{principal.name}\n{principal.client}"


TOKEN_REQUIRED: Final = Refusal(401, "a token is required", "Bearer")
"""The response to a request without a known token."""


class Authenticator(Protocol):
    """Finds out who sent a request. Its method must not block the event loop."""

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return who sent a request, or the response that refuses it.

        Args:
            authorization: The values of all ``Authorization`` headers of the request, often one.
        """


class StaticTokens:
    """Accepts the tokens of a mapping.

    Args:
        principals: The principal of each token.

    Raises:
        ValueError: There is no token, or one of them is invalid; the message does not contain it.
    """

    def __init__(self, principals: Mapping[str, Principal]) -> None:
        if not principals:
            raise ValueError("expected at least one token")
        if not all(map(TOKEN.fullmatch, principals)):
            raise ValueError(BEARER_RULE)
        self._principals = [(token.encode(), principal) for token, principal in principals.items()]

    @classmethod
    def anonymous(cls, token: str) -> StaticTokens:
        """Return an authenticator for one token, whose principal is named by the SHA-256 digest of the token.

        Raises:
            ValueError: The token is invalid.
        """
        return cls({token: Principal(sha256(token.encode("utf-8", "replace")).hexdigest())})

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return the principal of the token in the only header; the time depends on the number of tokens alone."""
        scheme, _, text = authorization[0].partition(" ") if len(authorization) == 1 else ("", "", "")
        sent = text.strip().encode("latin-1", "replace")
        found: Principal | None = None
        for token, principal in self._principals:
            if hmac.compare_digest(sent, token):
                found = principal
        return TOKEN_REQUIRED if found is None or scheme.lower() != "bearer" else found


class FirstOf:
    """Accepts what one of several authenticators accepts; otherwise, the response is that of the last one.

    Args:
        authenticators: The authenticators, in order.
    """

    def __init__(self, *authenticators: Authenticator) -> None:
        self._authenticators = authenticators

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return the principal that the first of them finds."""
        answer: Principal | Refusal = TOKEN_REQUIRED
        for each in self._authenticators:
            answer = await each.authenticate(authorization)
            if isinstance(answer, Principal):
                break
        return answer
