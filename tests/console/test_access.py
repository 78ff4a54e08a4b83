"""Who may use the console: links, tokens, cookies, forms, and hosts that authenticate users themselves."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from neuroscript import Engine
from neuroscript.console import User, app, visitor
from neuroscript.console.application import ConsoleApp

BASE = "http://127.0.0.1"
ORIGIN = {"origin": BASE}


@pytest.fixture
def console() -> ConsoleApp:
    """Return the console of an engine without tools."""
    return app(Engine(plugins="none"))


def client_of(application: Any, base: str = BASE) -> TestClient:
    """Return a browser without cookies."""
    return TestClient(application, base_url=base, follow_redirects=False)


def signed_in(console: ConsoleApp) -> TestClient:
    """Return a browser that has opened a link."""
    client = client_of(console)
    assert client.get(console.link()).status_code == 200
    return client


def csrf_of(client: TestClient) -> str:
    """Return the token of the forms of a browser."""
    found = re.search(r'name="csrf" value="([^"]+)"', client.get("/browser").text)
    assert found
    return found[1]


def test_a_preview_of_a_link_does_not_use_it(console: ConsoleApp) -> None:
    """A chat program or a browser may request it before the user opens it."""
    client, link = client_of(console), console.link()
    head = client.head(link)
    prefetch = client.get(link, headers={"sec-purpose": "prefetch"})
    opened = client.get(link)

    assert (head.status_code, prefetch.status_code, opened.status_code) == (204, 204, 200)
    assert opened.headers["referrer-policy"] == "no-referrer"


def test_a_link_of_the_same_user_keeps_the_browser(console: ConsoleApp) -> None:
    """Its session and what it runs remain."""
    client = signed_in(console)
    token = csrf_of(client)
    again = client.get(console.link())

    assert again.status_code == 200
    assert "set-cookie" not in again.headers
    assert csrf_of(client) == token


def test_link_for_another_browser_signs_it_in(console: ConsoleApp) -> None:
    """As the same user, with a session of its own."""
    client = signed_in(console)
    page = client.post("/link", data={"csrf": csrf_of(client)}, headers=ORIGIN)
    link = re.search(r"http://127\.0\.0\.1/enter\?token=[\w-]+", page.text)
    assert link
    other = client_of(console)

    assert other.get(link[0]).status_code == 200
    assert csrf_of(other) != csrf_of(client)


def test_signing_out_ends_the_session(console: ConsoleApp) -> None:
    """The cookie is unknown afterwards, even if it is stolen."""
    client = signed_in(console)
    cookies = dict(client.cookies)
    (known,) = console.console.visitors
    session = known.session
    client.post("/sign-out", data={"csrf": csrf_of(client)}, headers=ORIGIN)
    thief = client_of(console)
    thief.cookies.update(cookies)

    assert session.is_closed
    assert thief.get("/browser").headers["location"] == "/sign-in"


def test_idle_browser_must_sign_in_again(console: ConsoleApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session is closed."""
    client = signed_in(console)
    (known,) = console.console.visitors
    session = known.session
    monkeypatch.setattr(visitor, "IDLE_SECONDS", -1.0)

    assert client.get("/browser").headers["location"] == "/sign-in"
    assert session.is_closed


def test_the_browser_that_was_idle_longest_gives_way(console: ConsoleApp, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of browsers is limited."""
    monkeypatch.setattr(visitor, "MAX_VISITORS", 2)
    first, second = signed_in(console), signed_in(console)
    first.get("/browser")
    third = signed_in(console)

    assert [each.get("/browser").status_code for each in (first, second, third)] == [200, 303, 200]


def test_user_who_signs_in_again_and_again_signs_out_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a viewer could cancel what all others run."""
    monkeypatch.setattr(visitor, "MAX_VISITORS", 3)
    console = app(Engine(plugins="none"), users=[User("vera", "viewer", "v" * 20)])
    other = signed_in(console)
    vera = [client_of(console) for _ in range(4)]
    entered = [each.post("/sign-in", data={"token": "v" * 20}, headers=ORIGIN).status_code for each in vera]

    assert entered == [200] * 4
    assert [each.get("/browser").status_code for each in (other, *vera)] == [200, 303, 303, 200, 200]


def test_links_of_a_user_remove_no_link_of_another_user(console: ConsoleApp) -> None:
    """A viewer who creates many of them cannot make the link of the command invalid; the newest ones are valid."""
    link, vera = console.link(), User("vera", "viewer")
    tokens = [console.console.create_link_token(vera) for _ in range(30)]

    assert [console.console.use_link(each) for each in tokens] == [None] * 10 + [vera] * 20
    assert client_of(console).get(link).status_code == 200


def test_other_web_pages_cannot_use_up_the_attempts_of_a_user(console: ConsoleApp) -> None:
    """A page of any site can load addresses of this machine as pictures, with tokens that are wrong."""
    client, link = client_of(console), console.link()
    site = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}
    wrong = [client.get("/enter?token=wrong", headers=site).status_code for _ in range(20)]

    assert wrong == [403] * 20
    assert client.get(link).status_code == 200


@pytest.mark.parametrize(
    ("headers", "with_token", "status"),
    [
        (ORIGIN, True, 303),
        ({**ORIGIN, "sec-fetch-site": "same-origin"}, True, 303),
        (ORIGIN, False, 403),
        ({}, True, 403),
        ({"origin": "null"}, True, 403),
        ({"origin": "http://127.0.0.1:8000"}, True, 403),
        ({"origin": "http://localhost"}, True, 403),
        ({**ORIGIN, "sec-fetch-site": "same-site"}, True, 403),
    ],
    ids=["own", "own-with-metadata", "no-token", "no-origin", "opaque", "other-port", "other-name", "same-site"],
)
def test_only_forms_of_this_browser_are_accepted(
    console: ConsoleApp, headers: dict[str, str], with_token: bool, status: int
) -> None:
    """The cookie alone proves nothing: browsers send it to every port of this machine."""
    client = signed_in(console)
    data = {"theme": "dark", **({"csrf": csrf_of(client)} if with_token else {})}
    response = client.post("/theme", data=data, headers=headers)

    assert response.status_code == status
    assert ('data-theme="dark"' in client.get("/browser").text) == (status == 303)


def test_failed_attempts_to_sign_in_are_limited() -> None:
    """After ten of them, even the right token is refused for a while."""
    console = app(Engine(plugins="none"), users=[User("ada", "viewer", "the-right-token")])
    client = client_of(console)
    wrong = [client.post("/sign-in", data={"token": "wrong"}, headers=ORIGIN).status_code for _ in range(11)]
    right = client.post("/sign-in", data={"token": "the-right-token"}, headers=ORIGIN)

    assert wrong == [403] * 10 + [429]
    assert (right.status_code, right.headers["retry-after"]) == (429, "60")


def test_actions_of_a_browser_are_limited(console: ConsoleApp) -> None:
    """A script in a page cannot exhaust the server."""
    client = signed_in(console)
    data = {"csrf": csrf_of(client), "theme": ""}
    statuses = [client.post("/theme", data=data, headers=ORIGIN).status_code for _ in range(200)]

    assert statuses[:100] == [303] * 100
    assert 429 in statuses


def test_large_forms_are_refused(console: ConsoleApp) -> None:
    """Both if the request states its size, and if it does not."""
    client = signed_in(console)
    body = b"theme=" + b"x" * 5_000_000
    headers = {**ORIGIN, "content-type": "application/x-www-form-urlencoded", "x-csrf-token": csrf_of(client)}
    stated = client.post("/theme", content=body, headers=headers)
    streamed = client.post("/theme", content=iter([body[:3_000_000], body[3_000_000:]]), headers=headers)

    assert (stated.status_code, streamed.status_code) == (413, 413)


def test_console_below_a_path_of_another_application() -> None:
    """Each link contains the path, and the cookie has a name of its own."""
    console = app(Engine(plugins="none"))
    client = client_of(Starlette(routes=[Mount("/tools/console", console)]))
    entered = client.get(console.link("http://127.0.0.1/tools/console"))
    page = client.get("/tools/console/browser")
    addresses = re.findall(r'(?:href|src|action)="([^"]+)"', page.text)

    assert entered.headers["set-cookie"].startswith("neuroscript-80-tools-console=")
    assert page.status_code == 200
    assert [each for each in addresses if not each.startswith(("/tools/console/", "#"))] == []
    assert client.get(next(each for each in addresses if "console.css" in each)).status_code == 200


def test_host_authenticates_users_itself() -> None:
    """Each request is of the user that the host names; another user gets another session."""
    users = {"ada-key": User("ada", "approver"), "bob-key": User("bob")}
    console = app(
        Engine(plugins="none"),
        is_local=False,
        authenticate=lambda connection: users.get(connection.headers.get("x-key", "")),
    )
    client = client_of(console)
    pages = [client.get("/browser", headers={"x-key": key}).text for key in ("ada-key", "ada-key", "bob-key")]
    names = [re.findall(r"<dd>(\w+)</dd>", page)[0] for page in pages]
    sessions = [re.findall(r"web-[\w-]+", page)[0] for page in pages]

    assert names == ["ada", "ada", "bob"]
    assert sessions[0] == sessions[1] != sessions[2]
    assert client.get("/browser").headers["location"] == "/sign-in"


@pytest.mark.parametrize("now", [None, User("ada", "viewer")], ids=["signed-out", "viewer"])
def test_browser_that_the_host_signs_out_is_signed_out(now: User | None) -> None:
    """What it runs is cancelled, and its event streams end; static files and failures of the host change nothing."""
    users: list[User | None] = [User("ada", "approver")]

    def authenticate(connection: Any) -> User | None:
        return users[0] if "x-fails" not in connection.headers else next(iter(()))

    console = app(Engine(plugins="none"), is_local=False, authenticate=authenticate)
    client = client_of(console)
    client.get("/browser")
    (before,) = console.console.visitors
    session = before.session
    users[0] = now
    client.get("/static/console.css")
    client.get("/browser", headers={"x-fails": "1"})
    was_closed = session.is_closed
    client.get("/browser")

    assert (was_closed, session.is_closed) == (False, True)
    assert before not in [*console.console.visitors]


def test_console_that_others_can_reach_needs_users() -> None:
    """Otherwise everyone could use it."""
    with pytest.raises(ValueError, match="needs users with tokens"):
        app(Engine(plugins="none"), is_local=False)


def test_every_response_has_the_headers_that_protect_it(console: ConsoleApp) -> None:
    """Also errors, redirects and files."""
    client = signed_in(console)
    responses = [client.get(path) for path in ("/", "/browser", "/missing", "/static/console.css", "/sign-in")]
    responses.append(client.post("/theme"))
    responses.append(client_of(console, "http://attacker.example").get("/"))

    assert [each.status_code for each in responses] == [303, 200, 404, 200, 200, 403, 421]
    for response in responses:
        assert response.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "'unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"


def test_only_files_whose_address_has_a_version_are_stored(console: ConsoleApp) -> None:
    """Pages are never stored."""
    client = signed_in(console)
    page = client.get("/browser")
    versioned = re.search(r'href="(/static/console\.css\?v=\w+)"', page.text)
    assert versioned

    assert client.get(versioned[1]).headers["cache-control"] == "private, max-age=31536000, immutable"
    assert client.get("/static/console.css").headers["cache-control"] == "no-store"
    assert page.headers["cache-control"] == "no-store"
