"""Attacks by other web pages, other programs of this machine, and users who may do less than they try."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic, sleep
from typing import Any, Final
from urllib.parse import urlsplit

import attrs
import httpx
import pytest
from playwright.sync_api import Page
from starlette.routing import Route
from tests.browsers import PageOpener
from tests.console.conftest import Client, ServedConsole, small_tools

from neuroscript import Engine
from neuroscript.console import User, app
from neuroscript.console.access import HEADERS
from neuroscript.console.application import _pages
from neuroscript.console.visitor import MAX_STREAMS
from neuroscript.interop.http_server.guard import MAX_BODY_BYTES

FORBIDDEN: Final = "error: Failed to load resource: the server responded with a status of 403 (Forbidden)"

TOKEN: Final = "the-token-of-ada-for-tests"

WITH_USER = pytest.mark.parametrize(
    "make_app",
    [lambda: app(Engine(plugins=(), toolsets=[small_tools()]), users=[User("ada", "operator", TOKEN)])],
    ids=[""],
)


def some(cases: Mapping[str, Any], *names: str) -> list[Any]:
    """Return the values of all cases as parameters; only those with these names run without the full counts."""
    return [pytest.param(case, id=id, marks=[] if id in names else [pytest.mark.full]) for id, case in cases.items()]


def routes(method: str) -> list[Any]:
    """Return the routes of the console with a method."""
    with Engine(plugins=()) as engine:
        console = app(engine).console
        return [each for each in _pages(console).routes if isinstance(each, Route) and method in (each.methods or ())]


def path_of(route: Route, value: str = "x") -> str:
    """Return the path of a route with *value* for each parameter."""
    return re.sub(r"\{\w+(:\w+)?\}", lambda found: "1" if found[1] == ":int" else value, route.path)


POSTS: Final = {route.name: path_of(route) for route in routes("POST")}
GETS: Final = {route.name: path_of(route) for route in routes("GET")}


@pytest.fixture
def client(console: ServedConsole) -> Client:
    """Return a client that has signed in as an approver."""
    return console.sign_in()


# Forms of other pages

FORGED: Final = {
    "no-origin": {},
    "null": {"origin": "null"},
    "other-site": {"origin": "https://attacker.example"},
    "other-port": {"origin": "http://127.0.0.1:1"},
    "other-name": {"origin": "http://localhost:{port}"},
    "other-scheme": {"origin": "ftp://127.0.0.1:{port}"},
    "longer": {"origin": "{own}.attacker.example"},
    "same-site": {"origin": "{own}", "sec-fetch-site": "same-site"},
    "cross-site": {"origin": "{own}", "sec-fetch-site": "cross-site"},
    "no-page": {"origin": "{own}", "sec-fetch-site": "none"},
    "referer": {"referer": "{own}/browser"},
}
"""Headers of requests that no form of the console sends."""


@pytest.mark.parametrize("headers", some(FORGED, "no-origin", "other-port", "cross-site", "referer"))
def test_form_of_another_origin_is_refused(console: ServedConsole, client: Client, headers: dict[str, str]) -> None:
    """By every route, with the right cookie and the right token."""
    own = {"own": console.url, "port": str(urlsplit(console.url).port)}
    sent = {name: value.format(**own) for name, value in headers.items()}
    form = {"csrf": client.csrf, "token": TOKEN}
    statuses = {name: client.http.post(path, data=form, headers=sent).status_code for name, path in POSTS.items()}

    assert statuses == dict.fromkeys(POSTS, 403)


@pytest.mark.parametrize("sent", some({each: each for each in ("", "other", "old", "é", "array")}, "", "other"))
def test_form_without_the_token_of_its_browser_is_refused(console: ServedConsole, client: Client, sent: str) -> None:
    """The token of another browser of the same user is another one, and a sign-out ends it."""
    other, old = console.sign_in(), console.sign_in()
    assert old.post("/sign-out").status_code == 200
    token = {"other": other.csrf, "old": old.csrf}.get(sent, sent)
    key = "csrf[]" if sent == "array" else "csrf"
    with_token = [path for name, path in POSTS.items() if name != "access.sign_in_action"]
    as_field = [client.post(path, {"csrf": "", key: token}).status_code for path in with_token]
    in_header = [
        client.post(path, {"csrf": ""}, headers={"x-csrf-token": token.encode()}).status_code for path in with_token
    ]
    in_query = [client.post(f"{path}?csrf={client.csrf}", {"csrf": ""}).status_code for path in with_token]

    assert {*as_field, *in_header, *in_query} == {403}
    assert client.get("/browser").status_code == 200


def test_browser_that_is_not_signed_in_can_do_nothing(console: ServedConsole) -> None:
    """Each route leads to the page for signing in, except those that it consists of."""
    with httpx.Client(base_url=console.url, headers={"origin": console.url}) as http:
        posts = {name: http.post(path) for name, path in POSTS.items()}
        gets = {name: http.get(path) for name, path in GETS.items()}
    answers = {name: (each.status_code, each.headers.get("location")) for name, each in {**posts, **gets}.items()}
    open_routes = {
        "access.sign_in": (200, None),
        "access.sign_in_action": (403, None),
        "access.enter": (403, None),
    }

    assert answers == {**dict.fromkeys(answers, (303, "/sign-in")), **open_routes}


def test_role_limits_what_a_user_can_do(console: ServedConsole) -> None:
    """A viewer may change only what concerns the own browser, and only an approver may approve."""
    accepted = {}
    for role in ("viewer", "operator", "approver"):
        client = console.sign_in(User("vera", role))
        names = sorted(POSTS, key=lambda name: name == "access.sign_out")  # nothing is accepted after it
        statuses = {name: client.post(POSTS[name]).status_code for name in names}
        accepted[role] = {name for name, status in statuses.items() if status != 403} | {"access.sign_in_action"}

    assert accepted["viewer"] == {*VIEWER_POSTS, "access.sign_in_action"}
    assert accepted["operator"] == {*POSTS} - {*APPROVER_POSTS}
    assert accepted["approver"] == {*POSTS}


VIEWER_POSTS: Final = (
    *("access.link", "access.theme", "access.sign_out", "audit.verify"),
    *("policy.compare_texts", "policy.explain", "policy.explain_live", "tools.check", "tools.fields", "tools.form"),
)
"""Forms that every user may send: they change nothing but the own browser."""

APPROVER_POSTS: Final = (
    *("approvals.answer_live", "approvals.answer_stored", "approvals.check", "approvals.submit_change"),
    *("approvals.change_fields", "approvals.check_change", "health.accept"),
)
"""Forms that only an approver may send."""


class Attacker(BaseHTTPRequestHandler):
    """Serves the pages of another origin on this machine, whose requests have the cookie of the console."""

    pages: dict[str, str]

    def do_GET(self) -> None:
        """Respond with a page."""
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(self.pages.get(self.path, "").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def attacker(**pages: str) -> Iterator[str]:
    """Serve pages of an attacker, and yield their address."""
    handler = type("Pages", (Attacker,), {"pages": {f"/{name}": text for name, text in pages.items()}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


FORM = """<form id="f" method="post" action="{url}/link"><input name="csrf" value="{csrf}"></form>
<script>document.getElementById("f").submit()</script>"""

FETCH = """<script>
const results = {};
const attempt = async (name, run) => { results[name] = await run().catch((error) => error.name); };
(async () => {
  const own = {credentials: "include"};
  await attempt("read", async () => (await fetch("URL/browser", own)).status);
  await attempt("post", async () => (await fetch("URL/link", {...own, method: "POST", body: "csrf=CSRF"})).status);
  await attempt("blind", async () => (await fetch("URL/link", {...own, mode: "no-cors", method: "POST"})).type);
  await attempt("events", () => new Promise((done) => {
    const source = new EventSource("URL/activities/x/events", {withCredentials: true});
    source.onerror = () => { source.close(); done("error"); };
  }));
  await attempt("script", () => new Promise((done) => {
    const script = document.createElement("script");
    script.onload = () => done("loaded");
    script.onerror = () => done("error");
    script.src = "URL/static/console.js";
    document.head.append(script);
  }));
  window.results = results;
})();
</script>"""

FRAME = '<iframe src="{url}/browser"></iframe><object data="{url}/browser"></object><embed src="{url}/browser">'

OPENER = """<script>
const opened = window.open("URL/browser");
setTimeout(() => { window.results = opened.closed; }, 1500);
</script>"""


def links_of(console: ServedConsole) -> int:
    """Return how many links were created and not used."""
    return len(console.app.console._links)


def test_page_of_another_port_cannot_send_a_form(
    console: ServedConsole, signed_in: Page, open_page: PageOpener
) -> None:
    """The browser sends the strict cookie to all ports of an address, and the attacker knows even the token."""
    (visitor,) = console.app.console.visitors
    before = links_of(console)
    with attacker(form=FORM.format(url=console.url, csrf=visitor.csrf)) as address:
        sent = []
        signed_in.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
        signed_in.goto(f"{address}/form")
        signed_in.wait_for_url(f"{console.url}/link")

        assert "neuroscript-" in sent[0].all_headers()["cookie"]
        assert signed_in.locator("h1").inner_text() == "Not permitted"
    assert links_of(console) == before
    assert open_page.take_problems() == [FORBIDDEN]


@pytest.mark.full
def test_page_of_another_port_cannot_use_the_console(
    console: ServedConsole, signed_in: Page, open_page: PageOpener
) -> None:
    """It reads no page, no event and no script, and what it sends blindly is refused."""
    (visitor,) = console.app.console.visitors
    before = links_of(console)
    with attacker(fetch=FETCH.replace("URL", console.url).replace("CSRF", visitor.csrf)) as address:
        signed_in.goto(f"{address}/fetch")
        results = signed_in.wait_for_function("() => window.results").json_value()

    refused = {"read": "TypeError", "post": "TypeError", "blind": "TypeError", "events": "error", "script": "error"}
    assert results == refused
    assert links_of(console) == before
    assert len(open_page.take_problems()) >= 4


def test_page_of_another_port_cannot_frame_the_console(
    console: ServedConsole, signed_in: Page, open_page: PageOpener
) -> None:
    """No element shows it, so no click can be stolen."""
    with attacker(frame=FRAME.format(url=console.url)) as address:
        signed_in.goto(f"{address}/frame")
        signed_in.wait_for_load_state("networkidle")
        texts = [frame.locator("body").inner_text() for frame in signed_in.frames[1:]]

    assert len(texts) >= 2
    assert not any("approver" in text for text in texts)
    assert all("frame-ancestors" in each or "X-Frame-Options" in each for each in open_page.take_problems())


@pytest.mark.full
def test_page_of_another_port_cannot_hold_a_window_of_the_console(
    console: ServedConsole, signed_in: Page, open_page: PageOpener
) -> None:
    """The browser separates the window that it opens."""
    with attacker(opener=OPENER.replace("URL", console.url)) as address:
        with signed_in.context.expect_page() as opened:
            signed_in.goto(f"{address}/opener")
        opened.value.wait_for_load_state()
        is_separated = signed_in.wait_for_function(
            "() => window.results !== undefined && [window.results]"
        ).json_value()

        assert opened.value.evaluate("window.opener") is None
        assert is_separated == [True]


# Requests of other hosts

HOSTS: Final = {
    "name": "attacker.example:{port}",
    "subdomain": "127.0.0.1.attacker.example:{port}",
    "prefix": "localhost.attacker.example",
    "user": "127.0.0.1@attacker.example",
    "network": "192.168.0.1:{port}",
    "any": "0.0.0.0:{port}",
    "empty": "",
}


@pytest.mark.parametrize("host", some(HOSTS, "name", "user", "empty"))
def test_name_that_an_attacker_points_to_this_machine_is_refused(
    console: ServedConsole, client: Client, host: str
) -> None:
    """As after DNS rebinding: the page of the attacker then has the origin of the request."""
    name = host.format(port=urlsplit(console.url).port)
    headers = {"host": name, "origin": f"http://{name}"}
    statuses = {
        *(beginning(client, path, headers={"host": name}).status_code for path in GETS.values()),
        *(client.post(path, headers=headers).status_code for path in POSTS.values()),
        client.get("/static/console.js", headers={"host": name}).status_code,
    }

    assert statuses in ({421}, {400})


def test_second_host_is_refused(console: ServedConsole) -> None:
    """An unclear request is not answered for one of its hosts."""
    port = urlsplit(console.url).port or 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        lines = ("GET /sign-in HTTP/1.1", f"Host: 127.0.0.1:{port}", "Host: attacker.example", "Connection: close")
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        status = connection.recv(100).split(b" ")[1]

    assert status in (b"400", b"421")


def test_own_names_of_this_machine_are_accepted(console: ServedConsole) -> None:
    """Otherwise the tests above would show nothing."""
    port = urlsplit(console.url).port
    hosts = (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", "localhost")

    assert [httpx.get(f"{console.url}/sign-in", headers={"host": host}).status_code for host in hosts] == [200] * 4


# Headers


def test_each_response_is_protected(console: ServedConsole, client: Client) -> None:
    """Pages, static files, refusals and errors: no framing, no guessing of types, no script but ours, no cache."""
    responses = {
        **{name: beginning(client, path) for name, path in GETS.items()},
        **{f"post {name}": client.http.post(path) for name, path in POSTS.items()},
        "static": client.get("/static/console.js"),
        "versioned": client.get("/static/console.js?v=1"),
        "none": client.get("/none"),
        "method": client.http.request("DELETE", "/browser"),
        "host": client.get("/browser", headers={"host": "attacker.example"}),
        "stranger": httpx.get(f"{console.url}/browser"),
        "slash": client.get("//attacker.example/"),
    }
    lacking = {
        name: [header for header in HEADERS if header not in response.headers] for name, response in responses.items()
    }
    cached = [name for name, response in responses.items() if response.headers["cache-control"] != "no-store"]

    assert [name for name, headers in lacking.items() if headers] == []
    assert cached == ["versioned"]
    assert {each.headers["x-frame-options"] for each in responses.values()} == {"DENY"}
    assert {each.headers["content-security-policy"] for each in responses.values()} == {
        HEADERS["content-security-policy"]
    }
    assert not re.search("unsafe|data:|blob:|[*]|https?:", HEADERS["content-security-policy"])


def beginning(client: Client, path: str, **options: Any) -> httpx.Response:
    """Return a response without its body, which may be an endless stream of events."""
    with client.http.stream("GET", path, **options) as response:
        return response


def test_no_response_leads_to_another_site(console: ServedConsole, client: Client) -> None:
    """Not by a path that a browser reads as the name of a host."""
    paths = (
        "//attacker.example/",
        "//attacker.example/..",
        "/\\attacker.example",
        "/%2f%2fattacker.example/",
        "/.//a/",
    )
    with socket.create_connection(("127.0.0.1", urlsplit(console.url).port or 0)) as connection:
        received = []
        for path in paths:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {urlsplit(console.url).netloc}\r\n\r\n".encode())
            received.append(connection.recv(65_536).partition(b"\r\n\r\n")[0].lower())

    assert len(received) == len(paths)
    assert [each for each in received if b"location:" in each and b"location: /sign-in" not in each] == []


# The cookie, links and tokens


@pytest.mark.full
def test_cookie_is_for_this_port_and_no_script(console: ServedConsole, signed_in: Page) -> None:
    """Its name contains the port, because a browser sends the cookies of all ports of an address."""
    (cookie,) = signed_in.context.cookies()

    assert cookie["name"] == f"neuroscript-{urlsplit(console.url).port}"
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert cookie["domain"] == "127.0.0.1"
    assert signed_in.evaluate("document.cookie") == ""
    assert len(cookie["value"]) >= 43


def test_cookie_that_another_page_has_set_is_not_used(console: ServedConsole, client: Client) -> None:
    """A browser that signs in receives a new one."""
    name = f"neuroscript-{urlsplit(console.url).port}"
    chosen = "a" * 43
    with httpx.Client(base_url=console.url, cookies={name: chosen}) as victim:
        before = victim.get("/browser")
        entered = victim.get(console.link())
    after = httpx.get(f"{console.url}/browser", cookies={name: chosen})

    assert (before.status_code, entered.status_code, after.status_code) == (303, 200, 303)
    assert chosen not in entered.headers["set-cookie"]


def test_link_signs_in_once_although_many_follow_it(console: ServedConsole) -> None:
    """At the same time."""
    link = console.link()
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: httpx.get(link, timeout=30), range(8)))

    assert sorted(each.status_code for each in responses) == [200, *[403] * 7]
    assert sum("set-cookie" in each.headers for each in responses) == 1


def test_token_of_a_link_is_in_no_other_request(console: ServedConsole, open_page: PageOpener) -> None:
    """Neither the address nor the ``Referer`` of what the page loads and leads to contains it, nor the history."""
    requests: list[Any] = []
    context = open_page.new_context()
    context.on("request", lambda request: requests.append(request))
    link = console.link()
    token = link.partition("=")[2]
    page = open_page(link, context)
    page.wait_for_url(lambda url: "/enter" not in url)
    page.go_back()
    again = open_page(link, context)
    again.wait_for_url(lambda url: "/enter" not in url)
    others = [each for each in requests if not each.url.startswith(f"{console.url}/enter")]

    assert len(others) > 4
    assert [each.url for each in others if token in each.url + str(each.all_headers())] == []
    assert page.url == "about:blank"


@WITH_USER
def test_tokens_cannot_be_guessed_by_trying(console: ServedConsole) -> None:
    """After some attempts, even the right token waits; links and browsers that are signed in are not affected."""
    client, link = console.sign_in(), console.link()
    origin = {"origin": console.url}
    statuses = []
    while 429 not in statuses and len(statuses) < 40:
        sent = {"token": f"guess-{len(statuses)}"}
        statuses.append(httpx.post(f"{console.url}/sign-in", data=sent, headers=origin).status_code)
    right = httpx.post(f"{console.url}/sign-in", data={"token": TOKEN}, headers=origin)
    guessed = httpx.get(f"{console.url}/enter?token=guess")
    entered = httpx.get(link)

    assert {*statuses[:-1]} == {403}
    assert len(statuses) <= 20
    assert [each.status_code for each in (right, guessed, entered)] == [429, 403, 200]
    assert right.headers["retry-after"] == "60"
    assert client.get("/browser").status_code == 200


def test_one_browser_cannot_flood_the_console(client: Client) -> None:
    """Forms that a browser sends too fast are refused for a moment."""
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: client.post("/theme").status_code, range(300)))

    assert {*statuses} == {303, 429}


# Paths and bodies

TRAVERSALS: Final = (
    "../application.py",
    "..%2fapplication.py",
    "%2e%2e/application.py",
    "%2e%2e%2fapplication.py",
    "..%5capplication.py",
    "....//application.py",
    "..%252fapplication.py",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
    "console.js%00.png",
    ".%00./application.py",
)
"""Paths that would leave a directory."""


@pytest.mark.parametrize("path", some({each: each for each in TRAVERSALS}, *TRAVERSALS[::3], TRAVERSALS[-1]))
def test_no_path_leaves_a_directory(console: ServedConsole, client: Client, path: str) -> None:
    """Neither of the static files, nor in a parameter of a page."""
    targets = [f"/static/{path}"]
    targets += [path_of(route, path) for route in routes("GET") if "{" in route.path]
    received = [raw(console, target, client) for target in targets]

    assert len(received) > 1
    assert {status for status, _ in received} <= {b"303", b"400", b"404", b"403"}
    assert not any(b"root:" in body or b"from __future__" in body for _, body in received)


def raw(console: ServedConsole, target: str, client: Client) -> tuple[bytes, bytes]:
    """Request a path exactly as it is, and return the status and the body."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())
    lines = (
        f"GET {target} HTTP/1.1",
        f"Host: {urlsplit(console.url).netloc}",
        f"Cookie: {cookies}",
        "Connection: close",
    )
    with socket.create_connection(("127.0.0.1", urlsplit(console.url).port or 0)) as connection:
        connection.settimeout(30)
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    return received.split(b" ")[1], received.partition(b"\r\n\r\n")[2]


def test_large_bodies_are_refused(console: ServedConsole, client: Client) -> None:
    """Whether or not the request states its size, also before signing in; no form has this many fields."""
    large = b"csrf=" + b"a" * MAX_BODY_BYTES
    headers = {"origin": console.url, "content-type": "application/x-www-form-urlencoded"}
    many = {f"field{number}": "" for number in range(20_001)}
    file = {"file": ("name", b"a" * MAX_BODY_BYTES, "text/plain")}
    with httpx.Client(base_url=console.url, timeout=30) as stranger:
        for http, path in ((client.http, "/theme"), (stranger, "/sign-in")):
            stated = http.post(path, content=large, headers=headers)
            chunked = http.post(path, content=iter([large]), headers=headers)
            fields = http.post(path, data=many, headers=headers)
            upload = http.post(path, files=file, headers={"origin": console.url})

            assert [each.status_code for each in (stated, chunked, fields, upload)] == [413, 413, 400, 413]


TYPES: Final = ("application/json", "text/plain", "multipart/form-data", "multipart/form-data; boundary=x", "\x7f", "")


@pytest.mark.parametrize("content_type", TYPES)
def test_body_of_another_type_changes_nothing(console: ServedConsole, client: Client, content_type: str) -> None:
    """Another page could send some of them without asking the browser."""
    body = f'{{"csrf": "{client.csrf}"}}'.encode()
    sent = {"origin": console.url, "content-type": content_type}
    response = client.http.post("/link", content=body, headers=sent)

    assert response.status_code in (400, 403)
    assert links_of(console) == 0


# Errors of the host's code

PASSWORD: Final = "hunter2"


@attrs.frozen
class BrokenUser:
    """A user of a host that makes a mistake."""

    name: str = "ada"
    role: str = "viewer"

    def may(self, role: str) -> bool:
        """Raise an exception with a value."""
        raise ValueError(PASSWORD)


def broken(connection: Any) -> Any:
    """Return a user whose role cannot be read, or raise an exception with a value."""
    if connection.url.path == "/sign-in":
        raise ValueError(PASSWORD)
    return BrokenUser()


@pytest.mark.parametrize(
    "make_app", [lambda: app(Engine(plugins=(), toolsets=[small_tools()]), authenticate=broken)], ids=[""]
)
def test_text_of_an_exception_is_neither_shown_nor_logged(
    console: ServedConsole, caplog: pytest.LogCaptureFixture
) -> None:
    """It may contain what a browser has sent. The log says where it was raised."""
    failed, unknown = httpx.get(f"{console.url}/browser"), httpx.get(f"{console.url}/sign-in")

    assert (failed.status_code, unknown.status_code) == (500, 200)
    assert "Internal error" in failed.text
    assert {name: failed.headers[name] for name in HEADERS} == HEADERS
    assert PASSWORD not in failed.text + unknown.text + caplog.text
    assert [record.getMessage().partition("\n")[0] for record in caplog.records] == [
        "a page failed (ValueError)",
        "the console could not authenticate a browser (ValueError)",
    ]
    assert caplog.text.count("test_attacks.py") == 2


def test_event_streams_of_one_browser_are_limited(console: ServedConsole, client: Client) -> None:
    """Each looks at the directory of suspended calls again and again, so a script could keep the console busy."""
    (visitor,) = console.app.console.visitors
    with ExitStack() as opened:
        statuses, readers = [], []
        for _ in range(MAX_STREAMS + 1):
            stream = opened.enter_context(client.http.stream("GET", "/approvals/events"))
            readers.append(stream.iter_lines())
            next(readers[-1])  # it is counted now
            statuses.append(stream.status_code)
    deadline = monotonic() + 30
    while visitor.streams and monotonic() < deadline:
        sleep(0.05)

    assert statuses == [200] * MAX_STREAMS + [429]
    assert visitor.streams == 0
