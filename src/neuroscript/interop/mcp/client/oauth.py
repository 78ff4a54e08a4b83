"""Authorization of requests to a server with OAuth, by the provider of the SDK, with tokens in a private file.

A token is used until it expires, then refreshed by one process for all. Only a login asks the user; a call never does.

See "Authorization" in MCP 2025-11-25 and 2026-07-28, RFC 8707, RFC 9207 and RFC 9728.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

from neuroscript._imports import missing_extra
from neuroscript.config.oauth import OAuth
from neuroscript.errors import SpecError, ToolFailed
from neuroscript.interop.http_server.addresses import host_of, is_loopback, is_private
from neuroscript.interop.http_server.principals import TOKEN
from neuroscript.interop.mcp.client.token_file import TokenFile

try:
    import httpx2
    from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
    from mcp.client.auth.utils import extract_field_from_www_auth, issuers_match
    from mcp.shared.auth import (
        OAuthClientInformationFull,
        OAuthClientMetadata,
        OAuthMetadata,
        OAuthToken,
        ProtectedResourceMetadata,
    )
    from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
    from pydantic import AnyUrl, ValidationError
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

EARLY_SECONDS: Final = 10.0
"""Time before its end at which a token counts as expired, in seconds."""

MAX_TOKEN_CHARS: Final = 64 * 1024
"""Maximum length of a token, in characters."""

PROTOCOL_VERSION: Final = "2025-11-25"
"""The protocol version of requests without one; since 2025-06-18, the resource is named in token requests."""

CLIENT_NAME: Final = "neuroscript"
"""The name with which this client registers."""

LOGIN: Final = "mcp.login"
"""The code of the error if there is no token."""


class LoginError(Exception):
    """No token was obtained; the message says why, and contains no part of a token or of a redirect."""


class Storage:
    """Stores what the provider of the SDK obtains, with what it needs to refresh tokens in another process.

    Args:
        file: The file.

    Attributes:
        has_new_tokens: Whether tokens have been stored.
    """

    def __init__(self, file: TokenFile) -> None:
        self.file = file
        self.context: Any = None
        self.has_new_tokens = False
        self._registered: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        found: OAuthToken | None = _parsed(OAuthToken, self.file.read().get("tokens"))
        return found

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the stored registration."""
        found: OAuthClientInformationFull | None = _parsed(OAuthClientInformationFull, self.file.read().get("client"))
        return found

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens, with the time of their end and the metadata of their issuer.

        Raises:
            LoginError: They cannot be stored, or cannot be sent: the error of such a request would contain them.
        """
        if not all(map(_is_sendable, (tokens.access_token, tokens.refresh_token or "x"))):
            self.context.clear_tokens()
            raise LoginError("the issuer sent a token with invalid characters, or one that is too long")
        lifetime = tokens.expires_in
        self.has_new_tokens = True
        self._update(
            **({} if self._registered is None else {"client": _data(self._registered)}),
            tokens=_data(tokens),
            expires=None if lifetime is None else time.time() + lifetime,
            issuer=_data(self.context.oauth_metadata),
            resource=_data(self.context.protected_resource_metadata),
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a registration together with its first tokens, so that a failed login changes nothing."""
        self._registered = client_info

    def forget_tokens(self) -> None:
        """Remove the tokens, and leave the registration."""
        if self.file.read():
            self._update(tokens=None)

    def _update(self, **changes: Any) -> None:
        try:
            self.file.write({**self.file.read(), **changes})
        except OSError as error:
            raise LoginError(f"the tokens cannot be stored ({type(error).__name__})") from None


def _is_sendable(token: str) -> bool:
    return len(token) <= MAX_TOKEN_CHARS and TOKEN.fullmatch(token) is not None


def _data(model: Any) -> Any:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _parsed(kind: Any, data: Any) -> Any:
    """Return a stored model, or None if it is not stored or was written by an incompatible version."""
    try:
        return None if data is None else kind.model_validate(data)
    except ValidationError:
        return None


class _Stored(OAuthClientProvider):
    """What both kinds of providers share: stored tokens, checked addresses, and no request without need.

    Attributes:
        problem: The error that a call without a token ends with, or None.
    """

    settings: OAuth
    storage: Storage
    is_interactive = False
    problem: ToolFailed | None = None
    _replacing: asyncio.Lock

    async def _initialize(self) -> None:
        """Load the registration, the tokens and the metadata that are stored."""
        stored = self.storage.file.read()
        context = self.context
        context.current_tokens = _parsed(OAuthToken, stored.get("tokens"))
        context.oauth_metadata = _parsed(OAuthMetadata, stored.get("issuer"))
        context.protected_resource_metadata = _parsed(ProtectedResourceMetadata, stored.get("resource"))
        if context.oauth_metadata is not None:
            context.auth_server_url = str(context.oauth_metadata.issuer)
        expires = stored.get("expires")
        context.token_expiry_time = expires - EARLY_SECONDS if isinstance(expires, (int, float)) else None
        context.client_info = self._fixed_client() or _parsed(OAuthClientInformationFull, stored.get("client"))
        self._initialized = True

    def _fixed_client(self) -> OAuthClientInformationFull | None:
        """Return the client that was registered in advance, or None."""
        settings = self.settings
        if not settings.client_id:
            return None
        secret = str(settings.client_secret) or None
        return OAuthClientInformationFull(
            client_id=settings.client_id,
            client_secret=secret,
            redirect_uris=self.context.client_metadata.redirect_uris,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            issuer=settings.issuer or None,
        )

    def _select_authorization_server(self, advertised: list[str]) -> str:
        wanted = self.settings.issuer
        if not wanted:
            return advertised[0]
        found = next((each for each in advertised if issuers_match(each, wanted)), None)
        if found is None:
            raise LoginError("the server names another issuer than the configured one")
        return found

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize a request; the SDK drives the flow, and the reason of a failure is stored for the call."""
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                outgoing = await flow.asend((yield outgoing))
        except StopAsyncIteration:
            return
        except (LoginError, SpecError) as error:
            self.problem = login_failed(error)
            raise
        finally:
            await flow.aclose()

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authorize a request; a token that is missing, expired or refused is replaced once, by one request for all."""
        if not self._initialized:
            await self._initialize()
        self.context.protocol_version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, PROTOCOL_VERSION)
        response: httpx2.Response | None = None
        used = self._authorize(request)
        if used or not self._can_refresh():
            response = yield request
            if not _is_refused(response):
                self.problem = None
                return
        async with self._replacing, self.storage.file.locked():
            await self._initialize()  # another request or process may have replaced the token
            may_help = response is None or response.status_code == 401  # a refresh adds no scopes
            if may_help and not self._may_use(used) and self._can_refresh():
                refresh = await self._refresh_token()
                self._check_address(refresh.url)
                await self._take_refreshed((yield refresh))
            if not self._may_use(used) and (self.settings.is_machine or self.is_interactive):
                if response is None:
                    response = yield self._without_token(request)
                async with aclosing(self._obtain(request, response)) as flow:  # also if the network fails
                    outgoing = await anext(flow, None)
                    while outgoing is not None:
                        try:
                            outgoing = await flow.asend((yield outgoing))
                        except StopAsyncIteration:
                            break
        if response is None or self._may_use(used):
            self._authorize(request)
            response = yield request
        self.problem = _login_needed(response) if _is_refused(response) else None

    async def _obtain(
        self, request: httpx2.Request, response: httpx2.Response
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Get a token as the SDK does after a refused request, without the repetition of the request itself.

        Raises:
            LoginError: There is no token.
        """
        self._check_metadata_address(response)
        if not self.context.is_token_valid():
            self.context.clear_tokens()  # otherwise the flow would refresh them
        flow = super()._auth_flow(request)
        try:
            await anext(flow)
            outgoing = await flow.asend(response)
            while outgoing is not request:
                self._check_address(outgoing.url)
                outgoing = await flow.asend((yield outgoing))
        except LoginError:
            raise
        except StopAsyncIteration:
            pass
        except Exception as error:
            raise LoginError(_reason(error)) from None
        finally:
            await flow.aclose()

    async def _take_refreshed(self, response: httpx2.Response) -> None:
        """Store the tokens of a refresh; forget tokens that the issuer no longer accepts."""
        is_rejected = response.status_code in (400, 401)
        await self._handle_refresh_response(response)
        if is_rejected:
            self.storage.forget_tokens()

    def _can_refresh(self) -> bool:
        """Return whether there is a refresh token, and an issuer to send it to; the SDK would guess one."""
        return self.context.can_refresh_token() and self.context.oauth_metadata is not None

    @property
    def _token(self) -> str:
        tokens = self.context.current_tokens
        return "" if tokens is None else str(tokens.access_token)

    def _may_use(self, refused: str) -> bool:
        return self.context.is_token_valid() and self._token != refused

    def _authorize(self, request: httpx2.Request) -> str:
        """Add the token to a request if it is valid, and return it, or ``""``."""
        self._without_token(request)
        if not self.context.is_token_valid():
            return ""
        self._add_auth_header(request)
        return self._token

    def _without_token(self, request: httpx2.Request) -> httpx2.Request:
        request.headers.pop("Authorization", None)
        return request

    def _check_metadata_address(self, response: httpx2.Response) -> None:
        """Check that a server names metadata of its own."""
        stated = extract_field_from_www_auth(response, "resource_metadata")
        if stated is not None and _origin(stated) != _origin(self.context.server_url):
            raise LoginError("the server names metadata on another host")

    def _check_address(self, url: object) -> None:
        """Check that a request for a token leads neither into another network nor over an unencrypted connection."""
        scheme, host = _origin(str(url))[:2]
        server = _origin(self.context.server_url)[1]
        is_local = is_loopback(server)
        known = (server, _origin(self.settings.issuer)[1])  # the user has chosen these
        is_elsewhere = is_private(host) and not is_local and (host is None or host not in known)
        if not ((scheme == "https" and not is_elsewhere) or (is_local and is_loopback(host))):
            raise LoginError("an address of the issuer is not https, or is in a private network")


class StoredTokens(_Stored):
    """Authorizes requests with the tokens of an earlier login.

    Args:
        server: The URL of the server.
        settings: How to get tokens.
        file: The file with the tokens.
    """

    def __init__(self, server: str, settings: OAuth, file: TokenFile, redirect_uri: str = "") -> None:
        self.settings = settings
        self.storage = Storage(file)
        self._replacing = asyncio.Lock()
        metadata = OAuthClientMetadata(
            client_name=CLIENT_NAME,
            redirect_uris=[AnyUrl(redirect_uri or "http://127.0.0.1/callback")],
            token_endpoint_auth_method="none",  # noqa: S106
            scope=" ".join(settings.scopes) or None,
        )
        document = settings.client_metadata_url or None
        super().__init__(server, metadata, self.storage, client_metadata_url=document)
        self.storage.context = self.context
        if settings.issuer:
            self.context.auth_server_url = settings.issuer

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        metadata = self.context.oauth_metadata
        if metadata is None or "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise LoginError("the issuer does not support PKCE with S256")
        self._check_address(metadata.authorization_endpoint)
        if self.settings.scopes:
            self.context.client_metadata.scope = " ".join(self.settings.scopes)
        return await super()._perform_authorization_code_grant()


class Login(StoredTokens):
    """Asks the user, and stores the tokens.

    Args:
        server: The URL of the server.
        settings: How to get tokens.
        file: The file for the tokens.
        redirect_uri: Where the issuer sends the browser.
        show: Shows a URL to the user.
        wait: Waits for the redirect.
    """

    is_interactive = True

    async def _initialize(self) -> None:
        """Load what is stored, without the tokens, and without a registration for another redirect."""
        await super()._initialize()
        self.context.clear_tokens()
        registered, wanted = self.context.client_info, self.context.client_metadata.redirect_uris
        if registered is not None and not self.settings.client_id and registered.redirect_uris != wanted:
            self.context.client_info = None

    def __init__(
        self,
        server: str,
        settings: OAuth,
        file: TokenFile,
        redirect_uri: str,
        show: Callable[[str], Awaitable[None]],
        wait: Callable[[], Awaitable[Any]],
    ) -> None:
        super().__init__(server, settings, file, redirect_uri)
        self.context.redirect_handler = show
        self.context.callback_handler = wait


class MachineTokens(_Stored, ClientCredentialsOAuthProvider):
    """Gets tokens for a machine, which needs no login.

    Args:
        server: The URL of the server.
        settings: How to get tokens.
        file: The file with the tokens.
    """

    def __init__(self, server: str, settings: OAuth, file: TokenFile) -> None:
        self.settings = settings
        self.storage = Storage(file)
        self._replacing = asyncio.Lock()
        ClientCredentialsOAuthProvider.__init__(
            self, server, self.storage, settings.client_id, str(settings.client_secret), issuer=settings.issuer
        )
        self.storage.context = self.context
        self.context.auth_server_url = settings.issuer

    async def _perform_authorization(self) -> httpx2.Request:
        if self.settings.scopes:
            self.context.client_metadata.scope = " ".join(self.settings.scopes)
        return await super()._perform_authorization()


def stored_tokens(server: str, settings: OAuth) -> StoredTokens | MachineTokens:
    """Return what authorizes the requests to a server without asking the user."""
    file = TokenFile.of(server, settings.issuer, settings.client_id)
    return (MachineTokens if settings.is_machine else StoredTokens)(server, settings, file)


def _is_refused(response: httpx2.Response) -> bool:
    """Return whether a server wants a token, or one with more scopes."""
    if response.status_code == 403:
        return extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401


def _login_needed(response: httpx2.Response) -> ToolFailed:
    what = "requires a login" if response.status_code == 401 else "requires a scope that its access token lacks"
    how = "log in with 'neuroscript mcp login NAME', or with neuroscript.interop.mcp.login"
    return ToolFailed(f"the server {what}; {how}", code=LOGIN, retry="host")


def login_failed(error: Exception) -> ToolFailed:
    """Return the error of a call that got no token."""
    return ToolFailed(f"there is no access token for the server: {error}", code=LOGIN, retry="host")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the scheme, the host and the port of a URL; the host of an invalid one is None."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", None, None
    return parts.scheme, host_of(parts.netloc), port


REASONS: Final = {
    "Protected resource ": "the metadata of the server names another resource",
    "Authorization server metadata issuer mismatch": "the metadata of the issuer names another issuer",
    "Authorization response": "the redirect is not from the issuer",
    "State parameter mismatch": "the redirect does not belong to this login",
    "No authorization code received": "the issuer sent no authorization code",
}
"""What a message of the SDK that starts with each text means; the messages contain values."""


def _reason(error: Exception) -> str:
    """Return why there is no token, without any value that the server or the issuer sent."""
    text = str(error)
    if isinstance(error, OAuthRegistrationError):
        return "the issuer does not register clients by itself; register one there, and set client_id"
    if isinstance(error, OAuthTokenError):
        return "the issuer does not accept the authorization code, or the credentials of the client"
    if isinstance(error, OAuthFlowError):
        return next((each for start, each in REASONS.items() if text.startswith(start)), "the issuer was not found")
    return f"it cannot be obtained ({type(error).__name__})"
