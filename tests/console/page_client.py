"""A browser without JavaScript: it is signed in, follows no redirects, and sends forms as pages of the console do."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import attrs
from starlette.testclient import TestClient

from neuroscript.console import User
from neuroscript.console.application import ConsoleApp

BASE = "http://127.0.0.1"


@attrs.frozen
class PageClient:
    """A browser that is signed in.

    Attributes:
        app: The console.
        client: Its cookies.
        csrf: The token of its forms.
    """

    app: ConsoleApp
    client: TestClient
    csrf: str

    @classmethod
    def of(cls, app: ConsoleApp, client: TestClient | None = None, user: User | None = None) -> PageClient:
        """Sign a browser in with a link.

        Args:
            client: One that shares its event loop between requests, ``with TestClient(app)``.
        """
        client = client or TestClient(app, base_url=BASE, follow_redirects=False)
        link = app.link() if user is None else f"/enter?token={app.console.create_link_token(user)}"
        assert client.get(link).status_code == 200
        found = re.search(r'name="csrf" value="([^"]+)"', client.get("/browser").text)
        assert found
        return cls(app, client, found[1])

    def get(self, path: str, **query: str) -> str:
        """Return a page."""
        found = self.client.get(path, params=query or None)
        assert found.status_code == 200, found.text
        return found.text

    def post(self, path: str, **form: Any) -> Any:
        """Send a form, and return the response."""
        files = {name: form.pop(name) for name in [*form] if isinstance(form[name], tuple)}
        return self.client.post(path, data={"csrf": self.csrf, **form}, files=files or None, headers={"origin": BASE})


def text_of(html: str) -> str:
    """Return the text of HTML with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())
