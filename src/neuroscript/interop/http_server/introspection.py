"""Authentication of clients by opaque access tokens, about which the server asks their issuer.

See RFC 7662.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping
from hashlib import sha256
from time import monotonic, time
from typing import Any, Final
from urllib.parse import quote

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import STRINGS, require
from neuroscript.errors import SpecError
from neuroscript.interop.http_server.access_tokens import audience_problems, bearer_token, principal_of_claims
from neuroscript.interop.http_server.issuer_keys import IssuerDocuments, KeysUnavailable
from neuroscript.interop.http_server.principals import Principal, Refusal
from neuroscript.interop.http_server.protected_resource import ProtectedResource, scope_problems, secure_url_problems
from neuroscript.io.text import type_name

try:
    import httpx2
except ImportError as error:
    raise missing_extra("asking an issuer about tokens needs HTTPX", "mcp", error) from None

REMEMBER_SECONDS: Final = 30.0
"""Time for which the answer about a token is used, in seconds. A token that is revoked is accepted until then."""

MAX_REMEMBERED: Final = 1_000
"""Maximum number of accepted tokens whose answers are stored, and of refused ones."""

MAX_QUESTIONS: Final = 20
"""Maximum number of requests to the issuer at the same time."""

MAX_WAITING: Final = 200
"""Maximum number of requests that ask the issuer or wait to ask it; further ones are refused with the status 503."""

Answers = OrderedDict[bytes, tuple[float, Principal | Refusal]]
"""When the issuer was asked about a token, and its answer, by the digest of the token."""

LOST: Final = Refusal(503, "the issuer cannot be asked about the access token")
"""The response if the issuer does not answer."""


class IntrospectionAuthenticator:
    """Accepts the access tokens that an issuer calls active.

    Args:
        issuer: The identifier of the issuer, which its metadata contains.
        audience: The audience of the tokens: in MCP, the URL of the server as its clients know it.
        client_id: The id of this server at the issuer.
        client_secret: Its secret.
        required_scopes: Scopes that each token must have.
        scopes: Other scopes that tokens can have, for the metadata of the server.
        resource: The URL of the server, if the audience is not this URL.

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
        client_id: str,
        client_secret: str,
        required_scopes: Collection[str] = (),
        scopes: Collection[str] = (),
        resource: str = "",
    ) -> None:
        require("access tokens", required_scopes=(required_scopes, STRINGS), scopes=(scopes, STRINGS))
        required, others = tuple(required_scopes), tuple(scopes)
        faults = [*secure_url_problems("issuer", issuer), *audience_problems(audience, resource)]
        faults += [] if client_id and client_secret else ["client_id and client_secret: expected both"]
        faults += scope_problems((*required, *others))
        if faults:
            raise SpecError("access tokens", faults)
        self.protected_resource = ProtectedResource(
            resource or audience, (issuer,), tuple(dict.fromkeys((*required, *others)))
        )
        self._issuer = issuer
        self._audience = audience
        self._required = frozenset(required)
        self._credentials = (quote(client_id, safe=""), quote(client_secret, safe=""))  # RFC 6749, section 2.3.1
        self._documents = IssuerDocuments(issuer)
        self._endpoint = ""
        self._accepted: Answers = OrderedDict()
        self._refused: Answers = OrderedDict()  # anyone can send such tokens, so they displace no other answers
        self._asking = asyncio.Semaphore(MAX_QUESTIONS)
        self._waiting = 0

    async def authenticate(self, authorization: list[str]) -> Principal | Refusal:
        """Return the principal of the token in the only header, or why it is not accepted."""
        token = bearer_token(authorization, self.protected_resource)
        if isinstance(token, Refusal):
            return token
        key = sha256(token.encode()).digest()  # the token itself is not stored
        asked, answer = self._accepted.get(key) or self._refused.get(key, (0.0, LOST))
        if answer is LOST or monotonic() - asked > REMEMBER_SECONDS or _has_expired(answer):
            answer = await self._ask(token)
            self._remember(key, answer)
        return answer

    async def _ask(self, token: str) -> Principal | Refusal:
        """Ask the issuer about a token, unless too many requests wait for it."""
        if self._waiting >= MAX_WAITING:
            return LOST
        self._waiting += 1
        try:
            async with self._asking:
                self._endpoint = self._endpoint or await self._documents.endpoint("introspection_endpoint")
                form = {"token": token, "token_type_hint": "access_token"}
                auth = httpx2.BasicAuth(*self._credentials)
                claims = await self._documents.fetch(self._endpoint, form, auth)
        except KeysUnavailable as error:
            self._documents.warn(str(error))
            return LOST
        except Exception as error:  # of the network, of TLS, or of the parser
            self._documents.warn(type_name(error))
            return LOST
        finally:
            self._waiting -= 1
        return self._answer(claims)

    def _answer(self, claims: Mapping[str, Any]) -> Principal | Refusal:
        resource = self.protected_resource
        if claims.get("active") is not True:
            return resource.invalid_token("the access token is not active")
        if claims.get("iss", self._issuer) != self._issuer:
            return resource.invalid_token("the access token is from another issuer")
        audiences = claims.get("aud")
        if self._audience not in (audiences if isinstance(audiences, list) else [audiences]):
            return resource.invalid_token("the access token was issued for another resource")
        answer = principal_of_claims(claims, self._issuer, self._required, resource)
        return resource.invalid_token("the access token has expired") if _has_expired(answer) else answer

    def _remember(self, key: bytes, answer: Principal | Refusal) -> None:
        if answer is LOST:
            return
        for each in (self._accepted, self._refused):
            each.pop(key, None)
        answers = self._accepted if isinstance(answer, Principal) else self._refused
        answers[key] = monotonic(), answer
        while len(answers) > MAX_REMEMBERED:
            answers.popitem(last=False)


def _has_expired(answer: Principal | Refusal) -> bool:
    return isinstance(answer, Principal) and answer.expires is not None and answer.expires < time()
