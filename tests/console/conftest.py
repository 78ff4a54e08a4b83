"""Consoles that are really served, and browsers that are signed in to them."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from subprocess import Popen
from threading import Thread
from time import sleep
from typing import Any

import attrs
import httpx
import pytest
from playwright.sync_api import Page
from tests.browsers import PageOpener
from tests.browsers import browser as browser
from tests.browsers import open_page as open_page

from neuroscript import Engine, Runtime, ToolPolicy, Toolset
from neuroscript.console import User, app
from neuroscript.console.application import ConsoleApp
from neuroscript.interop.http_server.listener import server

MakeApp = Callable[[], ConsoleApp]


@attrs.frozen
class ServedConsole:
    """A console at an address of this machine.

    Attributes:
        app: Its application, in another thread.
        url: Its address, such as ``http://127.0.0.1:41234``.
    """

    app: ConsoleApp
    url: str
    _clients: ExitStack

    @property
    def engine(self) -> Engine:
        """The engine whose tools it shows."""
        return self.app.console.engine

    def link(self, user: User | None = None) -> str:
        """Return a link that signs a browser in, as an approver on this machine or as another user."""
        if user is None:
            return self.app.link(self.url)
        return f"{self.url}/enter?token={self.app.console.create_link_token(user)}"

    def sign_in(self, user: User | None = None) -> Client:
        """Return a client without a browser that has signed in with a link."""
        http = self._clients.enter_context(httpx.Client(base_url=self.url, timeout=30))
        found = re.search(r'data-csrf="([^"]+)"', http.get(self.link(user)).text)
        assert found is not None
        return Client(http, found[1])


@attrs.frozen
class Client:
    """A client that sends forms as a page of the console does.

    Attributes:
        http: Sends requests with the cookie.
        csrf: The token of each form.
    """

    http: httpx.Client
    csrf: str

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Request a page."""
        return self.http.get(path, **options)

    def post(self, path: str, form: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        """Send a form."""
        headers = {"origin": str(self.http.base_url).rstrip("/"), **options.pop("headers", {})}
        return self.http.post(path, data={"csrf": self.csrf, **(form or {})}, headers=headers, **options)


@contextmanager
def serving(application: ConsoleApp) -> Iterator[ServedConsole]:
    """Serve a console in another thread, and close it and its engine at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening, application.console.engine:
        running = server(application)
        thread = Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        while not running.started and thread.is_alive():
            sleep(0.002)
        try:
            with ExitStack() as clients:
                yield ServedConsole(application, f"http://127.0.0.1:{listening.getsockname()[1]}", clients)
        finally:
            application.close()
            running.should_exit = True
            thread.join()


def small_tools() -> Toolset:
    """Return tools that need nothing and tools that have effects."""
    tools = Toolset("shop")

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def price(item: str, count: int = 1) -> float:
        """Return the price of an item.

        Args:
            item: Its name.
            count: How many.
        """
        return len(item) * count / 2

    @tools.tool(policy=ToolPolicy(effects=("pure",)))
    def receipt(rt: Runtime, items: list[str], note: str | None = None) -> dict[str, object]:
        """Return what a customer buys.

        Args:
            items: What the customer buys.
            note: Printed below the items.
        """
        return {"items": items, "note": note, "count": len(items)}

    @tools.tool(policy=ToolPolicy(effects=("writes",)))
    def order(item: str) -> str:
        """Order an item.

        Args:
            item: Its name.
        """
        return f"ordered {item}"

    return tools


@pytest.fixture
def make_app() -> MakeApp:
    """Return what makes the application of `console`. A test replaces it with a parameter or a fixture of its own."""
    return lambda: app(Engine(plugins=(), toolsets=[small_tools()]))


@pytest.fixture
def console(make_app: MakeApp) -> Iterator[ServedConsole]:
    """Return a console that is served."""
    with serving(make_app()) as served:
        yield served


@pytest.fixture
def signed_in(console: ServedConsole, open_page: PageOpener) -> Page:
    """Return a page of a browser that is signed in, at the first page of the console."""
    page = open_page(console.link())
    page.wait_for_url(lambda url: "/enter" not in url)
    return page


@pytest.fixture
def cli_console() -> Iterator[Callable[..., tuple[Popen[str], str]]]:
    """Return what runs ``neuroscript web`` in a process of its own, and returns it with the link that it prints."""
    from tests.cli.conftest import serving_http

    with ExitStack() as stack:

        def start(*words: str, **environment: str) -> tuple[Any, str]:
            return stack.enter_context(serving_http("web", "--port", "0", *words, **environment))

        yield start
