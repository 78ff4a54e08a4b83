"""Authentication of clients by access tokens that an issuer has signed.

See RFC 9068, RFC 8725, RFC 6750, and "Access Token Usage" in MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import STRINGS, Form, is_number, require
from neuroscript.errors import SpecError
from neuroscript.interop.http_server.issuer_keys import KINDS, IssuerKeys, KeysUnavailable
from neuroscript.interop.http_server.principals import Principal, Refusal
from neuroscript.interop.http_server.protected_resource import (
    RESOURCE_URL,
    SCOPE,
    ProtectedResource,
    scope_problems,
    secure_url_problems,
)
from neuroscript.io.text import quote_untrusted

try:
    import jwt
    from jwt.exceptions import (
        ExpiredSignatureError,
        ImmatureSignatureError,
        InvalidAudienceError,
        InvalidIssuerError,
        InvalidSignatureError,
        MissingRequiredClaimError,
        PyJWTError,
    )
except ImportError as error:
    raise missing_extra("verifying access tokens needs PyJWT", "mcp", error) from None

MAX_TOKEN_CHARS: Final = 16 * 1024
"""Maximum length of a token, in characters."""

MAX_NAME_CHARS: Final = 256
"""Maximum length of a key id, a subject and a client id, in characters."""

MAX_TIME: Final = 1e12
"""Maximum time in a claim, in seconds since 1970."""

MAX_SCOPES: Final = 200
"""Maximum number of scopes of a token."""

LEEWAY_SECONDS: Final = 30.0
"""How much the clocks of the issuer and of this machine may differ, in seconds."""

ALGORITHMS: Final = tuple(KINDS)
"""The algorithms that can be accepted."""

TOKEN_TYPES: Final = ("at+jwt", "jwt", "")
"""The values of the header ``typ`` that access tokens have; many issuers do not use ``at+jwt``."""

LEEWAY: Final = Form("a number of seconds from 0 to 300", is_number, lambda value: 0 <= value <= 300)

BEARER: Final = re.compile(r"bearer +([A-Za-z0-9_~+/=.-]+) *", re.IGNORECASE)
"""An Authorization header with a token."""

REASONS: Final[Mapping[type[Exception], str]] = {
    ExpiredSignatureError: "the access token has expired",
    ImmatureSignatureError: "the access token is not valid yet",
    InvalidAudienceError: "the access token was issued for another resource",
    InvalidIssuerError: "the access token is from another issuer",
    InvalidSignatureError: "the signature of the access token is invalid",
    MissingRequiredClaimError: "the access token lacks a claim that is required",
}
"""What a client learns about a token that is not accepted; messages of PyJWT can contain parts of the token."""


class JWTAuthenticator:
    """Accepts the access tokens that an issuer has signed for one audience.

    The keys of the issuer are found through its metadata, fetched when the first token arrives, and fetched again when
    a token has an unknown key. The principal of a token is named ``ISSUER#SUBJECT``.

    Args:
        issuer: The identifier of the issuer, exactly as in its tokens.
        audience: The audience of the tokens: in MCP, the URL of the server as its clients know it.
        required_scopes: Scopes that each token must have.
        scopes: Other scopes that tokens can have, for the metadata of the server.
        resource: The URL of the server, if the audience is not this URL.
        algorithms: The accepted signature algorithms, of `ALGORITHMS`.
        jwks_url: The URL of the issuer's keys, if the metadata of the issuer does not contain it.
        leeway: How much the clocks of the issuer and of this machine may differ, in seconds.

    Attributes:
        protected_resource: What clients learn about authorization.

    Raises:
        SpecError: A parameter is invalid; each problem is listed.
    """

    def __init__(
        self,
        *,
        issuer: str,
        audience: str,
        required_scopes: Collection[str] = (),
        scopes: Collection[str] = (),
        resource: str = "",
        algorithms: Collection[str] = ALGORITHMS,
        jwks_url: str = "",
        leeway: float = LEEWAY_SECONDS,
    ) -> None:
        lists = {"required_scopes": required_scopes, "scopes": scopes, "algorithms": algorithms}
        require("access tokens", leeway=(leeway, LEEWAY), **{name: (each, STRINGS) for name, each in lists.items()})
        required, others, names = tuple(required_scopes), tuple(scopes), tuple(algorithms)
        faults = [*secure_url_problems("issuer", issuer), *audience_problems(audience, resource)]
        faults += [*secure_url_problems("jwks_url", jwks_url)] if jwks_url else []
        faults += [f"algorithms: {quote_untrusted(str(each))} is not accepted" for each in names if each not in KINDS]
        faults += [] if names else ["algorithms: expected at least one"]
        faults += scope_problems((*required, *others))
        if faults:
            raise SpecError("access tokens", faults)
        self.protected_resource = ProtectedResource(
            resource or audience, (issuer,), tuple(dict.fromkeys((*required, *others)))
        )
        self._issuer = issuer
        self._audience = audience
        self._required = frozenset(required)
        self._algorithms = names
        self._leeway = leeway
        self._keys = IssuerKeys(issuer, jwks_url)

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return the principal of the token in the only header, or why it is not accepted."""
        token = bearer_token(authorization, self.protected_resource)
        if isinstance(token, Refusal):
            return token
        try:
            claims = await self._claims(token)
        except KeysUnavailable as error:
            return Refusal(503, str(error))
        except Unacceptable as error:
            return self.protected_resource.invalid_token(str(error))
        except (PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
            return self.protected_resource.invalid_token(REASONS.get(type(error), "the access token is malformed"))
        return principal_of_claims(claims, self._issuer, self._required, self.protected_resource, self._leeway)

    async def _claims(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token after verifying it."""
        header = jwt.get_unverified_header(token)
        algorithm, id = header.get("alg"), header.get("kid", "")
        if algorithm not in self._algorithms:
            raise Unacceptable("the access token has an algorithm that is not accepted")
        kind = header.get("typ", "")
        if not isinstance(kind, str) or kind.lower().removeprefix("application/") not in TOKEN_TYPES:
            raise Unacceptable("the token is not an access token")
        if "crit" in header or "b64" in header:
            raise Unacceptable("the access token has an extension that is not supported")
        if not isinstance(id, str) or len(id) > MAX_NAME_CHARS:
            raise Unacceptable("the access token has an invalid key id")
        keys = await self._keys.find(id, algorithm)
        if not keys:
            raise Unacceptable("the access token is signed with an unknown key")
        return self._decode(token, algorithm, [each.value for each in keys])

    def _decode(self, token: str, algorithm: str, keys: list[Any]) -> Mapping[str, Any]:
        for number, key in enumerate(keys, 1):
            try:
                found: Mapping[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[algorithm],
                    issuer=self._issuer,
                    audience=self._audience,
                    leeway=self._leeway,
                    options={"require": ["exp", "iss", "aud"]},
                )
            except InvalidSignatureError:
                if number == len(keys):
                    raise
            else:
                return found
        raise Unacceptable("the access token is signed with an unknown key")


class Unacceptable(Exception):
    """A token is not accepted; the message says why, without any part of the token."""


def bearer_token(authorization: list[str], resource: ProtectedResource) -> str | Refusal:
    """Return the token in the only Authorization header of a request, or the response that refuses it."""
    if not authorization:
        return resource.no_token()
    if len(authorization) > 1:
        return resource.bad_request("the header Authorization must be sent once")
    found = BEARER.fullmatch(authorization[0])
    if found is None:
        return resource.no_token()
    if len(found[1]) > MAX_TOKEN_CHARS:
        return resource.invalid_token(f"the access token has more than {MAX_TOKEN_CHARS} characters")
    return found[1]


def principal_of_claims(
    claims: Mapping[str, Any],
    issuer: str,
    required: Collection[str],
    resource: ProtectedResource,
    leeway: float = 0.0,
) -> Principal | Refusal:
    """Return the principal that verified claims describe, or why they are not accepted.

    Args:
        required: The scopes that they must have.
        leeway: How long they are accepted after they have expired, in seconds.
    """
    client = claims.get("client_id", claims.get("azp", ""))
    subject = claims.get("sub", client)
    scopes = _scopes(claims)
    if not subject or not all(map(_is_name, (client, subject))):
        return resource.invalid_token("the access token has no valid subject")
    if scopes is None:
        return resource.invalid_token("the access token has invalid scopes")
    expires = claims.get("exp")
    if not isinstance(expires, (int, float)) or not abs(expires) < MAX_TIME:  # NaN is not less
        return resource.invalid_token("the access token has no valid time at which it expires")
    if not scopes.issuperset(required):
        return resource.insufficient_scope(sorted(required))
    return Principal(f"{issuer}#{subject}", scopes, client=client, expires=expires + leeway)


def _is_name(value: object) -> bool:
    """Return whether a value can be part of a principal's name, which audit records and logs contain."""
    return isinstance(value, str) and len(value) <= MAX_NAME_CHARS and value.isprintable()


def _scopes(claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the scopes of a token: a string with spaces or a list, in ``scope`` or ``scp``; None if invalid.

    Strings that cannot be a scope are left out: one with a line break could otherwise pass for two scopes.
    """
    given = claims.get("scope", claims.get("scp", ""))
    found = given.split(" ") if isinstance(given, str) else given
    if not isinstance(found, list) or len(found) > MAX_SCOPES or not all(isinstance(each, str) for each in found):
        return None
    return frozenset(filter(SCOPE.fullmatch, found))


def audience_problems(audience: object, resource: object) -> Iterable[str]:
    """Yield the problems of an audience, and of the URL of the server if the audience is not this URL."""
    if not isinstance(audience, str) or not audience:
        yield "audience: expected the URL of this server, as its clients know it"
    elif resource or not RESOURCE_URL.fullmatch(audience):
        yield from secure_url_problems("resource", resource or audience)
