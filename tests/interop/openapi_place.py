"""An engine that is served with its OpenAPI document, on a loop in a thread, by the parts that users have."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from tests.interop.mcp_place import bound, until

from neuroscript import Engine
from neuroscript.interop.http_server.listener import server as http_server
from neuroscript.interop.openapi import app


@attrs.frozen
class Answer:
    """One response.

    Attributes:
        status: The status.
        headers: Values by name, in lower case.
        body: The content.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> tuple[int, str, str, str]:
        """The status, the code, the retry word and the detail of a problem."""
        assert self.headers["content-type"] == "application/problem+json"
        said = self.json
        assert (said["type"], said["status"]) == ("about:blank", self.status)
        return self.status, said["code"], said["retry"], said["detail"]


@attrs.frozen(eq=False)
class Place:
    """A running service and its address."""

    engine: Engine
    port: int

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send a request by hand, and return the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            found = {name.lower(): text for name, text in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def call(self, path: str, arguments: Any, **headers: str) -> Answer:
        """Call a tool."""
        return self.send("POST", path, json.dumps(arguments).encode(), content_type="application/json", **headers)


@contextmanager
def serving(engine: Engine, **words: Any) -> Iterator[Place]:
    """Serve an engine; *words* are the keyword arguments of the application."""
    with bound() as (listening, port):
        server = http_server(app(engine, **words))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            until(lambda: server.started)
            yield Place(engine, port)
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()
