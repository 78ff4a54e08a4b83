"""Access tokens for MCP servers: the login of a user, refreshing, machines, and attacks of servers and issuers."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import stat
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.interop.mcp_place import bound, served
from tests.interop.oauth_issuer import approve, serving
from tests.interop.oauth_place import MODERN_META, Protected, protected

from neuroscript import Engine, ExecutionPolicy, PluginError, SpecError, ToolFailed
from neuroscript.interop.mcp import McpServer, OAuth, from_mcp, login, logout
from neuroscript.interop.mcp.client import token_file
from neuroscript.interop.mcp.client.oauth import LoginError, stored_tokens
from neuroscript.interop.mcp.client.token_file import TokenFile

READING = OAuth(scopes=("notes:read",))


@pytest.fixture(autouse=True)
def data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's data, where the tokens are."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "neuroscript" / "oauth"


@pytest.fixture(scope="module")
def shared() -> Iterator[Protected]:
    with protected() as place:
        yield place


@pytest.fixture
def place(shared: Protected) -> Protected:
    """The server, whose issuer knows no client and no token yet."""
    issuer = shared.issuer
    for each in (issuer.clients, issuer.codes, issuer.tokens, issuer.asked, issuer.seen, issuer.changed):
        each.clear()
    issuer.redirected, issuer.seconds, issuer.reused, issuer.resource = (lambda params: params), 3600, 0, ""
    return shared


class Browser:
    """Opens each URL, and stores what it showed."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.shown: list[tuple[int, str]] = []
        self._threads: list[threading.Thread] = []

    def __call__(self, url: str) -> None:
        self.urls.append(url)
        self._threads.append(threading.Thread(target=self._open, args=(url,)))
        self._threads[-1].start()

    @property
    def pages(self) -> list[tuple[int, str]]:
        """What it showed; a login can end before its page is shown."""
        for each in self._threads:
            each.join(20)
        return self.shown

    def _open(self, url: str) -> None:
        self.shown.append(approve(url))


def read(server: McpServer) -> Any:
    """Call the tool that reads the note."""
    with Engine(plugins="none", policy=ExecutionPolicy(grants=("mcp:call:**",))) as engine:
        engine.add_hooks(server)
        return engine.session().call("notes.notes_read_note")


def opened(place: Protected, oauth: Any = True, **words: Any) -> McpServer:
    """Return the tools of the server."""
    return from_mcp(url=place.url, group="notes", oauth=oauth, trusted=True, **words)


def expire(place: Protected, data: Path) -> None:
    """Let the stored access token end."""
    (file,) = data.glob("*.json")
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "expires": time.time() - 1}))


def problem_of(action: Callable[[], object]) -> str:
    """Return the message of a failed login."""
    with pytest.raises(PluginError) as raised:
        action()
    assert (raised.value.code, raised.value.distribution) == ("mcp.login", "mcp login")
    return raised.value.reason


def test_a_user_logs_in_once(place: Protected, data: Path) -> None:
    """The client registers, asks for the token of this server with PKCE, and stores it for later processes."""
    browser = Browser()
    login(place.url, show=browser)

    (url,) = browser.urls
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert (asked["resource"], asked["code_challenge_method"]) == (place.url, "S256")
    assert asked["scope"] == "notes:read notes:write"
    assert urlsplit(asked["redirect_uri"]).hostname == "127.0.0.1"
    assert browser.pages[0][0] == 200
    with opened(place) as server:
        assert read(server) == "empty"
    assert place.issuer.asked["/token"] == place.issuer.asked["/register"] == 1


def test_the_tokens_are_private(place: Protected, data: Path) -> None:
    """Only the owner can read the file or list its directory; a file that others can read is not used."""
    login(place.url, show=Browser())
    (file,) = data.glob("*.json")

    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(data.stat().st_mode)) == (0o600, 0o700)
    file.chmod(0o640)
    with pytest.raises(PluginError) as raised:
        opened(place)
    assert raised.value.code == "mcp.login"
    assert "other users can access the file" in raised.value.reason


def test_a_call_without_a_token_names_the_command(place: Protected) -> None:
    """It asks no user, registers nothing and opens no browser."""
    with pytest.raises(PluginError) as raised:
        opened(place)

    assert raised.value.code == "mcp.login"
    assert raised.value.reason == (
        "the server requires a login; log in with 'neuroscript mcp login NAME', or with neuroscript.interop.mcp.login"
    )
    assert not place.issuer.asked["/register"]


def test_a_second_login_uses_the_same_registration(place: Protected) -> None:
    """And the same port, which is part of it."""
    first, second = Browser(), Browser()
    login(place.url, show=first)
    login(place.url, show=second)

    redirects = [parse_qs(urlsplit(each.urls[0]).query)["redirect_uri"] for each in (first, second)]
    assert redirects[0] == redirects[1]
    assert place.issuer.asked["/register"] == 1


@pytest.mark.parametrize("keeps_port", [True, False])
def test_a_failed_login_loses_nothing(place: Protected, data: Path, keeps_port: bool) -> None:
    """The tokens of the last one are still used, also after a new registration."""
    login(place.url, show=Browser())
    (file,) = data.glob("*.json")
    before = file.read_text()
    place.issuer.redirected = lambda params: {"error": "access_denied", "state": params["state"]}
    settings = OAuth() if keeps_port else OAuth(redirect_port=unused_port())
    problem_of(lambda: login(place.url, settings, show=Browser()))

    assert file.read_text() == before
    with opened(place) as server:
        assert read(server) == "empty"


def unused_port() -> int:
    """Return a port that is free now."""
    with bound() as (_, port):
        return port


def test_a_registered_client_needs_no_registration(place: Protected) -> None:
    """With a secret of the host, and on the port that is registered."""
    port = unused_port()
    place.issuer.add_client(
        "app",
        "s3cret",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        redirect_uris=[f"http://127.0.0.1:{port}/callback"],
    )
    settings = OAuth(client_id="app", client_secret="s3cret", redirect_port=port, issuer=place.issuer.url)
    login(place.url, settings, show=Browser())

    with opened(place, settings) as server:
        assert read(server) == "empty"
    assert not place.issuer.asked["/register"]


def test_a_metadata_document_replaces_the_registration(place: Protected) -> None:
    """The URL of the document is the client id, if the issuer supports that."""
    port = unused_port()
    document = "https://example.com/neuroscript.json"
    place.issuer.changed = {"client_id_metadata_document_supported": True}
    place.issuer.add_client(
        document,
        "",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        redirect_uris=[f"http://127.0.0.1:{port}/callback"],
        token_endpoint_auth_method="none",
    )
    browser = Browser()
    login(place.url, OAuth(client_metadata_url=document, redirect_port=port), show=browser)

    assert parse_qs(urlsplit(browser.urls[0]).query)["client_id"] == [document]
    assert not place.issuer.asked["/register"]


def test_a_server_without_authorization_needs_no_login() -> None:
    """And says so."""
    with served() as open_place:
        assert problem_of(lambda: login(open_place.url, show=Browser())) == (
            "the server requires no login; it responded with the status 200"
        )


def test_a_port_that_is_in_use_is_reported(place: Protected) -> None:
    """If no other port can be used."""
    with bound() as (listening, port):
        listening.listen()
        found = problem_of(lambda: login(place.url, OAuth(redirect_port=port), show=Browser()))

    assert found == f"the port {port} of redirect_port is in use"


def test_an_expired_token_is_refreshed(place: Protected, data: Path) -> None:
    """Without the user; the new refresh token is stored, because the old one is valid once."""
    login(place.url, show=Browser())
    for _ in range(3):
        expire(place, data)
        with opened(place) as server:
            assert read(server) == "empty"

    assert place.issuer.asked["/token"] == 4
    assert place.issuer.reused == 0


def test_a_revoked_token_is_refreshed(place: Protected, data: Path) -> None:
    """If the server refuses it before its end."""
    login(place.url, show=Browser())
    (file,) = data.glob("*.json")
    content = json.loads(file.read_text())
    content["tokens"]["access_token"] = place.token(exp=int(time.time()) - 100)
    file.write_text(json.dumps(content))

    with opened(place) as server:
        assert read(server) == "empty"


def test_one_process_refreshes_for_all(place: Protected, data: Path) -> None:
    """Otherwise the issuer would see a refresh token twice, and revoke all."""
    login(place.url, show=Browser())
    expire(place, data)

    def use(_: int) -> Any:
        with opened(place) as server:
            return read(server)

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(use, range(6))] == ["empty"] * 6
    assert (place.issuer.asked["/token"], place.issuer.reused) == (2, 0)


def test_a_token_that_ends_during_a_connection_is_refreshed(place: Protected) -> None:
    """Between two calls."""
    place.issuer.seconds = 11  # one second more than the time at which tokens count as expired
    login(place.url, show=Browser())
    with opened(place) as server, Engine(plugins="none", policy=ExecutionPolicy(grants=("mcp:call:**",))) as engine:
        engine.add_hooks(server)
        session = engine.session()
        assert session.call("notes.notes_read_note") == "empty"
        place.issuer.seconds = 3600
        time.sleep(1.1)
        assert session.call("notes.notes_read_note") == "empty"

    assert place.issuer.asked["/token"] == 2


def test_a_refused_refresh_token_requires_a_login(place: Protected, data: Path) -> None:
    """And is not sent again."""
    login(place.url, show=Browser())
    for token in place.issuer.tokens:
        token.is_revoked_ = True
    expire(place, data)

    for _ in range(2):
        with pytest.raises(PluginError, match="requires a login"):
            opened(place)
    assert place.issuer.asked["/token"] == 2


def test_a_call_that_loses_its_token_says_so(place: Protected, data: Path) -> None:
    """On an open connection, in the error of the call; the tool has not run."""
    place.issuer.seconds = 11  # one second more than the time at which tokens count as expired
    login(place.url, show=Browser())
    with opened(place) as server, Engine(plugins="none", policy=ExecutionPolicy(grants=("mcp:call:**",))) as engine:
        engine.add_hooks(server)
        session = engine.session()
        assert session.call("notes.notes_read_note") == "empty"
        logout(place.url)
        time.sleep(1.1)
        with pytest.raises(ToolFailed) as raised:
            session.call("notes.notes_read_note")

    assert (raised.value.code, raised.value.retry) == ("mcp.login", "host")
    assert raised.value.text.startswith("the server requires a login; ")


def test_logout_removes_everything(place: Protected, data: Path) -> None:
    """The tokens and the registration."""
    login(place.url, show=Browser())

    async def leave() -> bool:
        return logout(place.url)

    assert asyncio.run(leave())  # as in a notebook, where a loop runs
    assert not logout(place.url)
    assert not [*data.glob("*.json")]


def test_a_machine_needs_no_login(place: Protected) -> None:
    """It gets tokens with its secret, stores them, and gets new ones when they end."""
    place.issuer.add_client("robot", "s3cret")
    robot = OAuth(
        grant="client_credentials",
        client_id="robot",
        client_secret="s3cret",
        issuer=place.issuer.url,
        scopes=("notes:read",),
    )
    for _ in range(2):
        with opened(place, robot) as server:
            assert read(server) == "empty"
            assert [tool.name for tool in server.toolset] == ["notes.notes_read_note"]

    assert place.issuer.asked["/token"] == 1
    with pytest.raises(SpecError):
        login(place.url, robot)


def test_a_machine_with_a_wrong_secret_says_so(place: Protected) -> None:
    """Without the secret."""
    place.issuer.add_client("robot", "s3cret")
    robot = OAuth(grant="client_credentials", client_id="robot", client_secret="wr0ng", issuer=place.issuer.url)
    with pytest.raises(PluginError) as raised:
        opened(place, robot)

    assert raised.value.code == "mcp.login"
    assert raised.value.reason == (
        "there is no access token for the server: the issuer does not accept the authorization code, "
        "or the credentials of the client"
    )


# Attacks


def test_a_redirect_with_another_state_is_ignored(place: Protected) -> None:
    """A page that the user opens meanwhile cannot end the login, or put in a code of its own."""

    class Attacked(Browser):
        def _open(self, url: str) -> None:
            where = parse_qs(urlsplit(url).query)["redirect_uri"][0]
            for query in ("?code=evil&state=evil", "?code=evil", "", "?state=a&state=b&code=x"):
                self.shown.append((httpx2.get(where + query, trust_env=False).status_code, query))
            self.shown.append((httpx2.get(where.replace("/callback", "/"), trust_env=False).status_code, "/"))
            super()._open(url)

    browser = Attacked()
    login(place.url, show=browser)

    assert [status for status, _ in browser.pages] == [400, 400, 400, 400, 404, 200]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"iss": "https://evil.example"}, "the redirect is not from the issuer"),
        ({"iss": None}, "the redirect is not from the issuer"),
        ({"code": "evil"}, "the issuer does not accept the authorization code, or the credentials of the client"),
        ({"code": None}, "the issuer sent no authorization code"),
        ({"code": None, "error": "access_denied"}, "the issuer refused the login: access_denied"),
        ({"code": None, "error": "<script>"}, "the issuer refused the login: error"),
        ({"error": "x", "iss": "https://evil.example"}, "the redirect is not from the issuer"),
    ],
    ids=str,
)
def test_a_redirect_that_is_wrong_ends_the_login(place: Protected, change: dict[str, Any], reason: str) -> None:
    """RFC 9207: a response of another issuer is not used, and neither is its error."""
    place.issuer.redirected = lambda params: {
        name: value for name, value in {**params, **change}.items() if value is not None
    }

    assert problem_of(lambda: login(place.url, show=Browser())) == reason


def test_a_code_is_used_once(place: Protected) -> None:
    """The issuer refuses it the second time, for example when someone has read it from a log."""
    browser = Browser()
    login(place.url, show=browser)
    code = parse_qs(urlsplit(browser.pages[0][1]).query)["code"][0]
    client = next(iter(place.issuer.clients))
    with httpx2.Client(trust_env=False) as attacker:
        answer = attacker.post(
            f"{place.issuer.url}/token",
            data={"grant_type": "authorization_code", "code": code, "client_id": client, "code_verifier": "x" * 43},
        )

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("name", ["access_token", "refresh_token"])
@pytest.mark.parametrize(
    "token", ["sEcReT\r\nX: 1", "sEcReT ", "sEcReTö", "sEcReT" * 200_000], ids=["line", "space", "ö", "long"]
)
def test_a_token_that_cannot_be_sent_is_not_stored(
    place: Protected, monkeypatch: pytest.MonkeyPatch, name: str, token: str
) -> None:
    """The error of the HTTP library would contain it; the tokens of the last login remain."""
    login(place.url, show=Browser())
    answer = place.issuer.server.create_token_response

    def change(request: Any) -> Response:
        found = answer(request)
        return JSONResponse({**json.loads(found.body), name: token}, found.status_code)

    with monkeypatch.context() as changed:
        changed.setattr(place.issuer.server, "create_token_response", change)
        with pytest.raises(PluginError) as raised:
            login(place.url, show=Browser())

    assert raised.value.code == "mcp.login"
    assert raised.value.reason == "the issuer sent a token with invalid characters, or one that is too long"
    assert "sEcReT" not in "".join(traceback.format_exception(raised.value))
    with opened(place) as server:
        assert read(server) == "empty"


def test_a_browser_that_does_not_return_is_not_waited_for(place: Protected) -> None:
    """A browser in the terminal runs until its user leaves it, which may be after the time for the login."""
    is_closed = threading.Event()
    began = time.monotonic()
    try:
        reason = problem_of(lambda: login(place.url, show=lambda _: is_closed.wait(20), timeout=1))
        assert time.monotonic() - began < 15
    finally:
        is_closed.set()

    assert reason == "the login was not finished in time"


def test_a_browser_that_fails_ends_the_login(place: Protected) -> None:
    """Without the address of the page, which contains the state."""

    def fail(url: str) -> None:
        raise RuntimeError(url)

    assert problem_of(lambda: login(place.url, show=fail)) == "it cannot be obtained (RuntimeError)"


def test_a_login_without_an_answer_ends(place: Protected) -> None:
    """At its timeout; the port is free again."""
    shown: list[str] = []

    assert problem_of(lambda: login(place.url, show=shown.append, timeout=1)) == "the login was not finished in time"
    where = parse_qs(urlsplit(shown[0]).query)["redirect_uri"][0]
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(where, trust_env=False)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"issuer": "https://evil.example"}, "the metadata of the issuer names another issuer"),
        ({"code_challenge_methods_supported": ["plain"]}, "the issuer does not support PKCE with S256"),
        ({"code_challenge_methods_supported": None}, "the issuer does not support PKCE with S256"),
        (
            {"token_endpoint": "http://10.0.0.1/token"},
            "an address of the issuer is not https, or is in a private network",
        ),
        (
            {"registration_endpoint": "http://id.example.com/"},
            "an address of the issuer is not https, or is in a private network",
        ),
        (
            {"authorization_endpoint": "http://10.0.0.1/"},
            "an address of the issuer is not https, or is in a private network",
        ),
    ],
    ids=str,
)
def test_metadata_of_an_issuer_is_checked(place: Protected, changed: dict[str, Any], reason: str) -> None:
    """Nothing is sent to an address in another network, and nothing without PKCE."""
    place.issuer.changed = changed

    assert problem_of(lambda: login(place.url, show=Browser(), timeout=20)) == reason


class Server:
    """A server that answers each request as its attributes say."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.metadata: dict[str, Any] = {}
        self.challenge = ""
        self.seen: list[str] = []
        self.redirect = ""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self._refuse, methods=["GET", "POST", "DELETE"]),
                Route("/.well-known/oauth-protected-resource/mcp", self._describe),
                Route("/{rest:path}", self._other, methods=["GET", "POST"]),
            ]
        )

    async def _refuse(self, request: Request) -> Response:
        self.seen.append(request.headers.get("authorization", ""))
        if self.redirect:
            return RedirectResponse(self.redirect, 307)
        return Response("", 401, {"www-authenticate": self.challenge or "Bearer"})

    async def _describe(self, request: Request) -> Response:
        return JSONResponse(self.metadata)

    async def _other(self, request: Request) -> Response:
        self.seen.append(request.url.path + " " + request.headers.get("authorization", ""))
        return Response("", 404)


@pytest.fixture
def hostile() -> Iterator[Server]:
    with bound() as (listening, port):
        server = Server(port)
        with serving(server.app(), listening):
            yield server


@pytest.mark.parametrize(
    ("resource", "challenge", "reason"),
    [
        ("https://bank.example/mcp", "", "the metadata of the server names another resource"),
        (
            "",
            'Bearer resource_metadata="http://169.254.169.254/latest/meta-data"',
            "the server names metadata on another host",
        ),
        ("", 'Bearer resource_metadata="http://127.0.0.1:1/x"', "the server names metadata on another host"),
        ("", 'Bearer resource_metadata="ftp://127.0.0.1/x"', "the server names metadata on another host"),
    ],
)
def test_a_server_cannot_name_the_resource_of_another(
    hostile: Server, place: Protected, resource: str, challenge: str, reason: str
) -> None:
    """Otherwise it would get a token for a server that the user trusts, or read the local network."""
    hostile.metadata = {"resource": resource or hostile.url, "authorization_servers": [place.issuer.url]}
    hostile.challenge = challenge

    assert problem_of(lambda: login(hostile.url, show=Browser())) == reason


def test_a_token_for_another_server_is_of_no_use(hostile: Server, place: Protected) -> None:
    """A server that passes on the tokens of its clients gets nothing: the audience differs."""
    hostile.metadata = {"resource": hostile.url, "authorization_servers": [place.issuer.url]}

    assert problem_of(lambda: login(hostile.url, show=Browser())) == "the server does not accept the new token"
    stolen = hostile.seen[-1].removeprefix("Bearer ")
    assert stolen.count(".") == 2
    assert place.post(stolen).status_code == 401


def test_only_the_configured_issuer_is_used(hostile: Server, place: Protected) -> None:
    """The secret of a client is not sent to an issuer that the server names."""
    hostile.metadata = {"resource": hostile.url, "authorization_servers": [place.issuer.url]}
    for grant in ("authorization_code", "client_credentials"):
        settings = OAuth(client_id="a", client_secret="s3cret", issuer="https://id.example.com", grant=grant)  # type: ignore[arg-type]
        if grant == "authorization_code":
            found = problem_of(lambda: login(hostile.url, settings, show=Browser()))
            assert found == "the server names another issuer than the configured one"
        else:
            with pytest.raises(PluginError, match="the server names another issuer than the configured one"):
                from_mcp(url=hostile.url, group="h", oauth=settings)
    assert not place.issuer.asked
    assert not any("s3cret" in each for each in place.issuer.seen)


def test_a_secret_needs_the_issuer_that_knows_it() -> None:
    """Otherwise a server could name an issuer of its own, to which the login would send the secret."""
    with pytest.raises(SpecError) as raised:
        OAuth(client_id="app", client_secret="s3cret")

    assert raised.value.problems == ("client_secret needs client_id and issuer",)


def test_a_token_that_lacks_a_scope_is_not_refreshed(place: Protected) -> None:
    """A refresh adds no scopes, so a tool of another scope would cost one for each call."""
    login(place.url, READING, show=Browser())
    before = place.issuer.asked["/token"]

    async def call() -> int:
        auth = stored_tokens(place.url, READING)
        name = "notes__write_note"
        params = {"name": name, "arguments": {"text": "x"}, "_meta": MODERN_META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": name,
        }
        async with httpx2.AsyncClient(auth=auth, trust_env=False) as client:
            return (await client.post(place.url, json=body, headers=headers)).status_code

    assert asyncio.run(call()) == 403
    assert place.issuer.asked["/token"] == before


def test_a_logout_waits_for_a_process_that_refreshes(place: Protected, data: Path) -> None:
    """Otherwise the refreshed tokens would be stored after the logout."""
    login(place.url, show=Browser())
    file = TokenFile.of(place.url)
    is_locked, is_free = threading.Event(), threading.Event()

    async def refresh() -> None:
        async with file.locked():
            content = file.read()
            is_locked.set()
            await asyncio.to_thread(is_free.wait, 20)
            file.write(content)

    with ThreadPoolExecutor() as threads:
        refreshing = threads.submit(asyncio.run, refresh())
        assert is_locked.wait(20)
        leaving = threads.submit(logout, place.url)
        with pytest.raises(TimeoutError):
            leaving.result(0.2)
        is_free.set()
        refreshing.result(20)
        assert leaving.result(20)

    assert not [*data.glob("*.json")]


def test_a_logout_that_waits_too_long_says_so(place: Protected, monkeypatch: pytest.MonkeyPatch) -> None:
    """And removes nothing."""
    monkeypatch.setattr(token_file, "LOCK_SECONDS", 0.1)
    login(place.url, show=Browser())

    async def hold() -> str:
        async with TokenFile.of(place.url).locked():
            return await asyncio.to_thread(problem_of, lambda: logout(place.url))

    assert asyncio.run(hold()) == "another process is getting an access token for the server"
    assert TokenFile.of(place.url).read()


def test_an_issuer_that_fails_during_a_login_leaves_nothing_running(
    hostile: Server, place: Protected, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise the event loop logs a traceback when it collects what the SDK was doing."""
    hostile.metadata = {"resource": hostile.url, "authorization_servers": [f"http://127.0.0.1:{unused_port()}"]}

    assert problem_of(lambda: login(hostile.url, show=Browser())).startswith("the server or the issuer cannot be")
    gc.collect()
    assert not caplog.records


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("https://10.0.0.5:9000/token", False),
        ("https://10.0.0.9/token", False),
        ("https://id.example.com/token", False),
        ("https://10.0.0.7/token", True),
        ("http://10.0.0.5/token", True),
        ("https://user@10.0.0.5/token", True),
    ],
)
def test_a_server_of_a_private_network_can_be_used(url: str, is_refused: bool) -> None:
    """With its own machine and that of the configured issuer, which the user has chosen, and no other one."""
    auth = stored_tokens("https://10.0.0.5/mcp", OAuth(issuer="https://10.0.0.9"))
    if is_refused:
        with pytest.raises(LoginError):
            auth._check_address(url)
    else:
        auth._check_address(url)


def test_tokens_are_not_used_for_another_server(hostile: Server, place: Protected) -> None:
    """Not even on the same host: each URL has a file of its own."""
    login(place.url, show=Browser())
    with pytest.raises(PluginError):
        from_mcp(url=hostile.url, group="h", oauth=True)

    assert set(hostile.seen) == {""}
    assert TokenFile.of(place.url).path != TokenFile.of(hostile.url).path


def test_a_redirect_takes_no_token_along(hostile: Server, place: Protected) -> None:
    """A server that sends its client elsewhere, on a request with a token."""
    login(place.url, show=Browser())
    file = TokenFile.of(place.url)
    copied = TokenFile.of(hostile.url)
    copied.write({name: value for name, value in file.read().items() if name != "server"})
    with bound() as (listening, port):
        other = Server(port)
        with serving(other.app(), listening):
            hostile.redirect = other.url
            with pytest.raises(PluginError):
                from_mcp(url=hostile.url, group="h", oauth=True, timeout=5)

    assert any(each.startswith("Bearer ") for each in hostile.seen)
    assert other.seen == []


def test_nothing_secret_is_logged(place: Protected, data: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither tokens, nor codes, nor verifiers, nor states; not even at the lowest level."""
    browser = Browser()
    with caplog.at_level(logging.DEBUG):
        login(place.url, show=browser)
        expire(place, data)
        with opened(place) as server:
            read(server)
        place.issuer.redirected = lambda params: {**params, "iss": "https://evil.example"}
        problem_of(lambda: login(place.url, show=browser))

    params = [parse_qs(urlsplit(where).query) for _, where in browser.pages]
    secrets = {value for each in params for name in ("code", "state") for value in each[name]}
    secrets |= {token for each in place.issuer.tokens for token in (each.access_token, each.refresh_token) if token}
    secrets |= {value for value in place.issuer.seen if len(value) > 40 and "://" not in value}
    ours = "\n".join(
        f"{record.getMessage()}{record.exc_text or ''}"
        for record in caplog.records
        if not (record.threadName or "").startswith("Thread-")  # the browser and the servers of this test
    )
    assert len(secrets) >= 8
    assert not [secret for secret in secrets if secret in ours]


# Settings


def test_every_problem_of_the_settings_is_listed() -> None:
    """Without the secret."""
    with pytest.raises(SpecError) as raised:
        OAuth(
            client_secret="s3cret",
            scopes=('a"b',),
            issuer="ftp://x",
            redirect_port=70_000,
            client_metadata_url="http://example.com/c.json",
            grant="password",  # type: ignore[arg-type]
        )

    assert raised.value.problems == (
        "scopes: must be an array of scopes, in brackets",
        "issuer: must be an address such as https://id.example.com",
        'grant: must be "authorization_code" or "client_credentials"',
        "redirect_port: must be a port from 0 to 65535",
        "client_metadata_url: must be an https address with a path, such as https://example.com/client.json",
        "client_secret needs client_id and issuer",
    )


@pytest.mark.parametrize("words", [{"url": None}, {"oauth": True}, {"timeout": "1"}], ids=str)
def test_wrong_types_are_refused(words: dict[str, Any]) -> None:
    """Before anything is opened."""
    with pytest.raises(SpecError):
        login(**{"url": "https://tools.example.com/mcp", "show": Browser(), **words})


@pytest.mark.parametrize(
    "words",
    [
        {"command": ["x"], "url": ""},
        {"auth": httpx2.BasicAuth("a", "b")},
        {"headers": {"authorization": "Bearer x"}},
        {"url": "http://tools.example.com/mcp"},
        {"oauth": "yes"},
        {
            "oauth": OAuth(client_id="a", client_secret="s3cret", issuer="https://x.example"),
            "command": ["x"],
            "url": "",
        },
    ],
    ids=["command", "auth", "header", "plain http", "word", "program"],
)
def test_oauth_needs_a_safe_url_of_its_own(words: dict[str, Any]) -> None:
    """And no other authorization."""
    with pytest.raises(SpecError):
        from_mcp(**{"url": "https://tools.example.com/mcp", "group": "x", "oauth": True, **words})
