"""The login of a user at the issuer of a server, in a browser that this process sends to a loopback address.

See RFC 8252, sections 7.3 and 8.3.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from neuroscript._imports import missing_extra
from neuroscript.coercion.parameters import SECONDS, STRING, instance, optional, require
from neuroscript.config.oauth import OAuth
from neuroscript.errors import PluginError, SpecError, ToolFailed
from neuroscript.interop.http_server.addresses import is_local_url, url_faults
from neuroscript.interop.mcp.client import size_limits
from neuroscript.interop.mcp.client.log_filter import install_filter
from neuroscript.interop.mcp.client.oauth import PROTOCOL_VERSION, Login, LoginError
from neuroscript.interop.mcp.client.token_file import TokenFile

try:
    import httpx2
    from mcp.shared.auth import AuthorizationCodeResult
except ImportError as error:
    raise missing_extra("reaching an MCP server needs the SDK of MCP", "mcp", error) from None

CALLBACK: Final = "/callback"
"""The path to which the issuer sends the browser."""

LOGIN_SECONDS: Final = 300.0
"""Default time for the user to log in, in seconds."""

REQUEST_SECONDS: Final = 30.0
"""Maximum time for one request to the server or the issuer, in seconds."""

MAX_HEAD_BYTES: Final = 32 * 1024
"""Maximum size of the head of a request to the loopback address, in bytes."""

MAX_REQUESTS: Final = 100
"""Maximum number of requests to the loopback address before the login fails."""

HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "neuroscript", "version": "1"},
    },
}
"""The request that the server refuses, so that it names its issuer."""

HEADERS: Final = {
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "identity",
    "MCP-Protocol-Version": PROTOCOL_VERSION,
}

SUBJECT: Final = "mcp login"
"""The subject of errors."""

SETTINGS: Final = optional(instance(OAuth))

ERROR: Final = re.compile(r"[a-z_]{1,40}")
"""An error code of an issuer, which can be shown."""


def login(
    url: str,
    oauth: OAuth | None = None,
    *,
    show: Callable[[str], object] | None = None,
    timeout: float = LOGIN_SECONDS,
) -> None:
    """Log in at the issuer of a server, and store the tokens in a private file for `from_mcp`.

    Args:
        url: The URL of the server.
        oauth: How to get tokens; the default is ``OAuth()``.
        show: Shows the URL of the login page to the user; by default, it is opened in the browser.
        timeout: The time for the user, in seconds.

    Raises:
        SpecError: The URL is invalid, or *oauth* needs no login.
        PluginError: ``mcp.login``: there is no token. The message says why.
    """
    require(SUBJECT, url=(url, STRING), oauth=(oauth, SETTINGS), timeout=(timeout, SECONDS))
    asyncio.run(login_async(url, oauth or OAuth(), show or open_browser, timeout))


def logout(url: str, oauth: OAuth | None = None) -> bool:
    """Remove the tokens for a server, and the registration of this client, and return whether there were any.

    The tokens are not revoked at the issuer.

    Raises:
        SpecError: A parameter has the wrong type.
        PluginError: ``mcp.login``: another process is getting a token, and does not finish.
    """
    require("mcp logout", url=(url, STRING), oauth=(oauth, SETTINGS))
    settings = oauth or OAuth()
    deleting = _delete(TokenFile.of(url, settings.issuer, settings.client_id))
    with ThreadPoolExecutor(1) as thread:  # this thread may run a loop already, as in a notebook
        return thread.submit(asyncio.run, deleting).result()


async def _delete(file: TokenFile) -> bool:
    """Remove a file after any process that is about to store a new token in it."""
    if not file.path.exists():
        return False
    try:
        async with file.locked():
            return file.delete()
    except ToolFailed as error:
        raise _failed(error.text) from None


def open_browser(url: str) -> None:
    """Open a URL in the user's browser."""
    import webbrowser

    webbrowser.open(url)


async def login_async(url: str, settings: OAuth, show: Callable[[str], object], timeout: float) -> None:
    """Do what `login` does, on a running loop."""
    faults = [*url_faults(url, ["Authorization"])]
    if settings.is_machine:
        faults.append("oauth: client_credentials needs no login")
    if faults:
        raise SpecError(SUBJECT, faults)
    install_filter()
    file = TokenFile.of(url, settings.issuer, settings.client_id)
    try:
        is_fixed = settings.redirect_port != 0
        async with asyncio.timeout(timeout), listening(_port(file, settings), is_fixed) as redirects:
            await _log_in(url, settings, file, redirects, show)
    except LoginError as error:
        raise _failed(str(error)) from None
    except TimeoutError:
        raise _failed("the login was not finished in time") from None
    except httpx2.HTTPError as error:
        raise _failed(f"the server or the issuer cannot be reached ({type(error).__name__})") from None


def _failed(text: str) -> PluginError:
    return PluginError(SUBJECT, text, code="mcp.login")


def _port(file: TokenFile, settings: OAuth) -> int:
    """Return the port that is registered at the issuer, because some issuers compare it."""
    if settings.redirect_port or settings.client_id:
        return settings.redirect_port
    registered = file.read().get("client") or {}
    uris = registered.get("redirect_uris") or [""]
    return urlsplit(str(uris[0])).port or 0


async def _log_in(
    url: str, settings: OAuth, file: TokenFile, redirects: Redirects, show: Callable[[str], object]
) -> None:
    async def shown(page: str) -> None:
        metadata = auth.context.oauth_metadata
        redirects.issuer = "" if metadata is None else str(metadata.issuer)
        redirects.state = dict(parse_qsl(urlsplit(page).query)).get("state", "")
        await _call_apart(show, page)

    auth = Login(url, settings, file, redirects.uri, shown, redirects.wait)
    hooks = {"response": [size_limits.limit_response]}
    async with (
        httpx2.AsyncClient(
            auth=auth, event_hooks=hooks, timeout=REQUEST_SECONDS, trust_env=not is_local_url(url)
        ) as client,
        client.stream("POST", url, json=HELLO, headers=HEADERS) as response,
    ):
        status = response.status_code
    if status in (401, 403):
        raise LoginError("the server does not accept the new token")
    if not auth.storage.has_new_tokens:
        raise LoginError(f"the server requires no login; it responded with the status {status}")


async def _call_apart(show: Callable[[str], object], page: str) -> None:
    """Call *show* in a thread that the end of the login does not wait for, such as of a browser in the terminal."""
    loop = asyncio.get_running_loop()
    shown: asyncio.Future[None] = loop.create_future()

    def end(error: Exception | None) -> None:
        if shown.done():
            return
        if error is None:
            shown.set_result(None)
        else:
            shown.set_exception(error)

    def call() -> None:
        problem: Exception | None = None
        try:
            show(page)
        except Exception as error:
            problem = error
        with suppress(RuntimeError):  # the login has ended
            loop.call_soon_threadsafe(end, problem)

    Thread(target=call, name="neuroscript-login", daemon=True).start()
    await shown


class Redirects:
    """The loopback address to which the issuer sends the browser.

    Attributes:
        uri: The address.
        state: The state of the login; requests with another one are refused.
        issuer: The issuer of the login.
    """

    def __init__(self) -> None:
        self.uri = ""
        self.state = ""
        self.issuer = ""
        self._count = 0
        self._found: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def wait(self) -> AuthorizationCodeResult:
        """Return the parameters of the redirect."""
        return await self._found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
                body = text.encode()
                lines = (
                    f"HTTP/1.1 {status}",
                    "Content-Type: text/plain; charset=utf-8",
                    f"Content-Length: {len(body)}",
                    "Cache-Control: no-store",
                    "Referrer-Policy: no-referrer",
                    "Connection: close",
                )
                writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
                await writer.drain()
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not a browser
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        """Take the parameters of a request, and return the status and the text of the response."""
        self._count += 1
        method, _, target = line.partition(" ")
        parts = urlsplit(target.partition(" ")[0])
        if method != "GET" or parts.path != CALLBACK:
            return "404 Not Found", "This address is for the login only."
        pairs = parse_qsl(parts.query, max_num_fields=20)
        params = dict(pairs)
        if self._found.done():
            return "410 Gone", "The login has ended."
        if len(params) != len(pairs) or not self.state or params.get("state") != self.state:
            if self._count >= MAX_REQUESTS:
                self._found.set_exception(LoginError("the loopback address received too many other requests"))
            return "400 Bad Request", "This does not belong to the current login."
        if params.get("iss", self.issuer) != self.issuer:
            self._found.set_exception(LoginError("the redirect is not from the issuer"))
            return "400 Bad Request", "This is not from the issuer of the current login."
        if "error" in params:
            code = params["error"] if ERROR.fullmatch(params["error"]) else "error"
            self._found.set_exception(LoginError(f"the issuer refused the login: {code}"))
            return "200 OK", "The login was refused. You can close this window."
        self._found.set_result(
            AuthorizationCodeResult(code=params.get("code", ""), state=params["state"], iss=params.get("iss"))
        )
        return "200 OK", "Return to the terminal. You can close this window."


@asynccontextmanager
async def listening(port: int, is_fixed: bool = False) -> AsyncIterator[Redirects]:
    """Listen on a loopback port for the redirect.

    Args:
        port: The port; 0 is a free one.
        is_fixed: Whether no other port can be used; otherwise, a port that is in use is replaced by a free one.

    Raises:
        LoginError: The port is in use.
    """
    redirects = Redirects()
    server = await _server(redirects, port, is_fixed)
    redirects.uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{CALLBACK}"
    try:
        yield redirects
    finally:
        server.close()


async def _server(redirects: Redirects, port: int, is_fixed: bool) -> Any:
    serve: Callable[..., Awaitable[None]] = redirects.serve
    try:
        return await asyncio.start_server(serve, "127.0.0.1", port, limit=MAX_HEAD_BYTES)
    except OSError:
        if is_fixed:
            raise LoginError(f"the port {port} of redirect_port is in use") from None
        return await asyncio.start_server(serve, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
