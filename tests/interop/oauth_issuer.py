"""An OAuth 2.1 authorization server on loopback: the endpoints are Authlib's, the keys are real, the user says yes.

It implements RFC 8414 and OpenID discovery, RFC 7591 registration, RFC 7636, RFC 8707 resources as audiences, RFC 9068
tokens, RFC 9207, RFC 7662, and refresh tokens that are valid once.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs
import joserfc.errors
import uvicorn
from authlib.common.security import generate_token
from authlib.integrations.sqla_oauth2.client_mixin import OAuth2ClientMixin
from authlib.oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import InvalidGrantError, JsonPayload, JsonRequest, OAuth2Request, TokenMixin, grants
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwt
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.interop.mcp_place import bound, until

SCOPES = ("notes:read", "notes:write")
KINDS: dict[str, Callable[[], Key]] = {
    "RS256": lambda: RSAKey.generate_key(2048, auto_kid=True),
    "PS256": lambda: RSAKey.generate_key(2048, auto_kid=True),
    "ES256": lambda: ECKey.generate_key("P-256", auto_kid=True),
    "EdDSA": lambda: OKPKey.generate_key("Ed25519", auto_kid=True),
}
KEYS: dict[str, Key] = {}


def signing_key(alg: str) -> Key:
    """Return the key of an algorithm, which all issuers of a test run share: RSA keys take long to make."""
    if alg not in KEYS:
        KEYS[alg] = KINDS[alg]()
    return KEYS[alg]


class User:
    """The user, who approves everything."""

    def __init__(self, id: str) -> None:
        self.id = id

    def get_user_id(self) -> str:
        return self.id


class RegisteredClient(OAuth2ClientMixin):
    """A client, with the rules of Authlib about what it may do."""

    def __init__(self, id: str, secret: str, metadata: dict[str, Any]) -> None:
        self.client_id, self.client_secret = id, secret
        self.__dict__["client_metadata"] = metadata


@attrs.define(kw_only=True)
class Code:
    """An authorization code that was not used yet."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    user: User
    resource: str
    code_challenge: str | None
    code_challenge_method: str | None
    made: float = attrs.field(factory=time.time)

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@attrs.define(kw_only=True, eq=False)
class Token(TokenMixin):
    """The tokens of one response."""

    access_token: str
    refresh_token: str
    client_id: str
    scope: str
    user: User | None
    resource: str
    expires: float
    is_revoked_: bool = False

    def check_client(self, client: Any) -> bool:
        return bool(client.client_id == self.client_id)

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return time.time() > self.expires

    def is_revoked(self) -> bool:
        return self.is_revoked_


class Payload(BasicOAuth2Payload):
    """The parameters of a request; a repeated one stays visible."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        super().__init__(dict(pairs))
        self._datalist = {}
        for name, value in pairs:
            self._datalist.setdefault(name, []).append(value)


class FormRequest(OAuth2Request):
    """A request as Authlib reads it. It requires TLS, which a proxy would add."""

    def __init__(self, request: Request, pairs: list[tuple[str, str]]) -> None:
        super().__init__(request.method, f"https{str(request.url).removeprefix('http')}", headers=request.headers)
        self.payload = Payload(pairs)

    @property
    def args(self) -> Any:
        return self.payload.data

    @property
    def form(self) -> Any:
        return self.payload.data


class Registration(ClientRegistrationEndpoint):
    """Registration that is open to everyone."""

    def authenticate_token(self, request: Any) -> str:
        return "anyone"

    def get_server_metadata(self) -> Any:
        return self.server.issuer.metadata()

    def generate_client_secret(self, request: Any) -> str:
        is_public = request.payload.data.get("token_endpoint_auth_method") == "none"
        return "" if is_public else super().generate_client_secret(request)

    def save_client(self, info: Any, metadata: Any, request: Any) -> RegisteredClient:
        found = {**metadata, "scope": metadata.get("scope") or " ".join(SCOPES)}
        client = RegisteredClient(info["client_id"], info["client_secret"], found)
        self.server.issuer.clients[client.client_id] = client
        return client


class CodeGrant(grants.AuthorizationCodeGrant):
    """Authorization codes that are valid once, for 60 seconds."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        self.server.issuer.codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.scope or "",
            user=request.user,
            resource=data.get("resource", ""),
            code_challenge=data.get("code_challenge"),
            code_challenge_method=data.get("code_challenge_method"),
        )

    def query_authorization_code(self, code: str, client: Any) -> Code | None:
        found = self.server.issuer.codes.get(code)
        if found is None or found.client_id != client.client_id or time.time() - found.made > 60:
            return None
        self.server.issuer.resource = found.resource
        return found  # type: ignore[no-any-return]

    def delete_authorization_code(self, code: Code) -> None:
        del self.server.issuer.codes[code.code]

    def authenticate_user(self, code: Code) -> User:
        return code.user


class RefreshGrant(grants.RefreshTokenGrant):
    """Refresh tokens that are valid once; the second use revokes what was issued since."""

    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        issuer = self.server.issuer
        found = next((each for each in issuer.tokens if each.refresh_token == refresh_token), None)
        if found is not None and found.is_revoked_:
            issuer.reused += 1
            for each in issuer.tokens:
                each.is_revoked_ = True
            raise InvalidGrantError
        if found is not None:
            issuer.resource = found.resource
        return found

    def authenticate_user(self, refresh_token: Token) -> User | None:
        return refresh_token.user

    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.is_revoked_ = True


class MachineGrant(grants.ClientCredentialsGrant):
    """Tokens of clients without a user."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def create_token_response(self) -> Any:
        self.server.issuer.resource = self.request.payload.data.get("resource", "")
        return super().create_token_response()


class Introspection(IntrospectionEndpoint):
    """RFC 7662, for clients with a secret."""

    CLIENT_AUTH_METHODS = ("client_secret_basic",)

    def check_permission(self, token: Any, client: Any, request: Any) -> bool:
        return True

    def query_token(self, token_string: str, token_type_hint: str | None) -> Token | None:
        return next((each for each in self.server.issuer.tokens if each.access_token == token_string), None)

    def introspect_token(self, token: Token) -> dict[str, Any]:
        who = token.user.id if token.user else token.client_id
        return {
            "client_id": token.client_id,
            "scope": token.scope,
            "sub": who,
            "aud": token.resource,
            "iss": self.server.issuer.url,
            "exp": int(token.expires),
        }


class Tokens(JWTBearerTokenGenerator):
    """Access tokens for the resource of the request."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__(issuer.url, issuer.alg, lambda **_: generate_token(48), lambda *_: issuer.seconds)
        self._issuer = issuer

    def get_jwks(self) -> Key:
        return self._issuer.key

    def get_audiences(self, client: Any, user: Any, scope: str) -> str:
        return self._issuer.resource or str(client.client_id)


class Server(AuthorizationServer):
    """Authlib's server with the requests and responses of Starlette."""

    def __init__(self, issuer: Issuer) -> None:
        super().__init__()
        self.issuer = issuer
        self.register_token_generator("default", Tokens(issuer))
        self.register_grant(CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(RefreshGrant)
        self.register_grant(MachineGrant)
        self.register_endpoint(Registration)
        self.register_endpoint(Introspection)

    def query_client(self, client_id: str) -> RegisteredClient | None:
        return self.issuer.clients.get(client_id)

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.issuer.tokens.append(
            Token(
                access_token=token["access_token"],
                refresh_token=token.get("refresh_token", ""),
                client_id=request.client.client_id,
                scope=token.get("scope", ""),
                user=request.user,
                resource=self.issuer.resource,
                expires=time.time() + token["expires_in"],
            )
        )

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Report nothing."""

    def create_oauth2_request(self, request: Any) -> Any:
        return request

    def create_json_request(self, request: Any) -> Any:
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> Response:
        found = JSONResponse(body, status) if isinstance(body, dict) else Response(body, status)
        for name, value in headers:
            found.headers[name] = value
        return found


class Issuer:
    """The state of an issuer, and its HTTP endpoints.

    Args:
        port: Where it is served.
        path: The path of its identifier, such as ``/tenant``.
        alg: The algorithm of its tokens.

    Attributes:
        key: The key that signs tokens.
        published: The keys that its JWKS contains.
        asked: How often each endpoint was requested, by path.
        redirected: Changes the parameters of the redirect to a client.
        changed: Changes to its metadata.
        resource: The resource of the current token request.
        user: The user who approves.
        seconds: How long access tokens are valid.
        reused: How often a refresh token was used twice.
        seen: Every value that a client has sent in a form, and every Authorization header.
    """

    def __init__(self, port: int, path: str, alg: str) -> None:
        self.url = f"http://127.0.0.1:{port}{path}"
        self.path = path
        self.alg = alg
        self.key = signing_key(alg)
        self.published: list[Any] = [self.key]
        self.clients: dict[str, RegisteredClient] = {}
        self.codes: dict[str, Code] = {}
        self.tokens: list[Token] = []
        self.asked: Counter[str] = Counter()
        self.redirected: Callable[[dict[str, str]], dict[str, str]] = lambda params: params
        self.changed: dict[str, Any] = {}
        self.jwks_body: bytes | None = None
        self.resource = ""
        self.user = User("ada")
        self.seconds = 3600
        self.reused = 0
        self.seen: list[str] = []
        self.server = Server(self)

    def add_client(self, id: str, secret: str, **metadata: Any) -> None:
        """Register a client in advance."""
        facts = {"grant_types": ["client_credentials"], "token_endpoint_auth_method": "client_secret_basic"}
        self.clients[id] = RegisteredClient(id, secret, {**facts, "scope": " ".join(SCOPES), **metadata})

    def metadata(self) -> dict[str, Any]:
        """Return its metadata, as in RFC 8414."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "introspection_endpoint": f"{self.url}/introspect",
            "jwks_uri": f"{self.url}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": [*SCOPES],
            "authorization_response_iss_parameter_supported": True,
            **self.changed,
        }

    def token(
        self,
        audience: Any,
        *,
        key: Key | None = None,
        header: dict[str, Any] | None = None,
        without: tuple[str, ...] = (),
        **claims: Any,
    ) -> str:
        """Return an access token that was not requested, with any claims; ``header`` overrides parts of the header."""
        now = int(time.time())
        base = {"iss": self.url, "aud": audience, "sub": "ada", "client_id": "cli", "iat": now, "exp": now + 600}
        found = {**base, "scope": "notes:read", **claims}
        for name in without:
            found.pop(name, None)
        key = key or self.key
        head = {"alg": self.alg, "typ": "at+jwt", "kid": key.kid, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", joserfc.errors.SecurityWarning)  # EdDSA has a new name
            return jwt.encode(head, found, key, algorithms=[str(head["alg"])])

    def app(self) -> Starlette:
        """Return its endpoints."""
        path = self.path
        routes = [
            Route(f"/.well-known/oauth-authorization-server{path}", self._metadata),
            Route(f"{path}/.well-known/openid-configuration", self._metadata),
            Route(f"{path}/jwks", self._jwks),
            Route(f"{path}/register", self._register, methods=["POST"]),
            Route(f"{path}/authorize", self._authorize),
            Route(f"{path}/token", self._token, methods=["POST"]),
            Route(f"{path}/introspect", self._introspect, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    def _count(self, request: Request) -> None:
        self.asked[request.url.path.removeprefix(self.path)] += 1
        self.seen.extend(request.headers.getlist("authorization"))

    async def _metadata(self, request: Request) -> Response:
        self._count(request)
        return JSONResponse(self.metadata())

    async def _jwks(self, request: Request) -> Response:
        self._count(request)
        if self.jwks_body is not None:
            return Response(self.jwks_body, media_type="application/json")
        keys = [each.as_dict(private=False) if hasattr(each, "as_dict") else each for each in self.published]
        return JSONResponse({"keys": keys})

    async def _register(self, request: Request) -> Any:
        self._count(request)
        asked = JsonRequest("POST", str(request.url), request.headers)
        asked.payload = JsonBody(await request.json())
        return self.server.create_endpoint_response("client_registration", asked)

    async def _authorize(self, request: Request) -> Any:
        self._count(request)
        asked = FormRequest(request, request.query_params.multi_items())
        grant = self.server.get_consent_grant(asked, self.user)
        answer = self.server.create_authorization_response(asked, self.user, grant)
        where, _, query = answer.headers["location"].partition("?")
        params = self.redirected({**dict(parse_qsl(query)), "iss": self.url})
        answer.headers["location"] = f"{where}?{urlencode(params)}"
        return answer

    async def _token(self, request: Request) -> Any:
        return await self._form(request, self.server.create_token_response)

    async def _introspect(self, request: Request) -> Any:
        return await self._form(request, lambda asked: self.server.create_endpoint_response("introspection", asked))

    async def _form(self, request: Request, answer: Callable[[Any], Any]) -> Any:
        self._count(request)
        pairs = parse_qsl((await request.body()).decode())
        self.seen.extend(value for _, value in pairs)
        return answer(FormRequest(request, pairs))


class JsonBody(JsonPayload):
    """The JSON body of a request."""

    def __init__(self, data: Any) -> None:
        self._data = data

    @property
    def data(self) -> Any:
        return self._data


@contextlib.contextmanager
def issuing(path: str = "", alg: str = "ES256") -> Iterator[Issuer]:
    """Run an issuer on a free port of this machine."""
    with bound() as (listening, port):
        issuer = Issuer(port, path, alg)
        with serving(issuer.app(), listening):
            yield issuer


@contextlib.contextmanager
def serving(application: Any, listening: Any) -> Iterator[None]:
    """Serve an ASGI application in a thread, on a socket that is bound."""
    config = uvicorn.Config(application, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    with serving_with(uvicorn.Server(config), listening):
        yield


@contextlib.contextmanager
def serving_with(server: uvicorn.Server, listening: Any) -> Iterator[None]:
    """Run a server in a thread, on a socket that is bound."""
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    try:
        until(lambda: server.started)
        yield
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def approve(url: str) -> tuple[int, str]:
    """Do what a browser does: open the URL, follow the redirect to the client, and return its status and URL."""
    import httpx2

    with httpx2.Client(follow_redirects=False, trust_env=False) as browser:
        answer = browser.get(url)
        assert answer.status_code == 302, answer.text
        where = answer.headers["location"]
        return browser.get(where).status_code, where


def origin(url: str) -> str:
    """Return the scheme and the authority of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
