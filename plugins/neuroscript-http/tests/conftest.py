"""A small network for the tests: servers on loopback, names that resolve as a test says, and engines over it.

The two functions that a host may replace are replaced: names are resolved by a table, and a connection to a public
address is made to a server on loopback. All between them is what users have.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, Limits, ToolFailed
from neuroscript.testing import Setup
from neuroscript_http.network import Network, connect
from neuroscript_http.toolset import make_toolset

PUBLIC: Final = "93.184.215.14"
HOST: Final = "https://api.example.com/"
"""The host of the examples."""

GRANTS: Final = ("net:read,write:*.example.com", "fs:*:*")
ITEMS: Final = b'{"items": ["tea"]}'

Answering = Callable[[socket.socket, bytes], None]


class Server:
    """A web server on loopback: answers each path with bytes, or with a function that gets the connection."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[bytes] = []
        self.answers: dict[str, bytes | Answering] = {}
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def answer(self, path: str, status: int = 200, body: bytes = b"", **headers: str) -> None:
        """Answer a path with a complete body; ``content_type`` is the content-type header."""
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if status not in (204, 304):
            lines.append(f"content-length: {len(body)}")
        head = "\r\n".join([f"HTTP/1.1 {status} Word", *lines, "", ""])
        self.answers[path] = head.encode("latin-1") + body

    def drip(self, path: str, pieces: Sequence[bytes], pause: float) -> None:
        """Answer a path in pieces, with seconds between them."""

        def answering(connection: socket.socket, request: bytes) -> None:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)

        self.answers[path] = answering

    def sent(self, at: int = -1) -> str:
        """Return a received request, in lower case."""
        return self.requests[at].decode("latin-1").lower()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._handle, args=(connection,), daemon=True).start()

    def _handle(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                request = _request(connection)
                self.requests.append(request)
                path = request.split(b" ")[1].decode("latin-1")
                answer = self.answers.get(path, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                if callable(answer):
                    answer(connection, request)
                else:
                    connection.sendall(answer)


def _request(connection: socket.socket) -> bytes:
    result = b""
    while b"\r\n\r\n" not in result:
        result += connection.recv(65536)
    head, _, body = result.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def answering(server: Server) -> Server:
    """Configure the responses that the examples request."""
    server.answer("/items", 200, ITEMS, content_type="application/json")
    server.answer("/items/7", 204)
    return server


def led_to(server: Server) -> Callable[[Engine, str, Any], Any]:
    """Return what makes the host of an example real: a server on loopback, which has to be granted by its address."""
    place = f"127.0.0.1:{server.port}"

    def prepared(engine: Engine, name: str, args: Any) -> Any:
        arguments = [arg.name for arg in engine.tools[name].spec.args]
        named = dict(args) if isinstance(args, Mapping) else dict(zip(arguments, args, strict=False))
        if not named["url"].startswith(HOST):
            return args
        return {**named, "url": named["url"].replace(HOST, f"http://{place}/"), "private": [place]}

    return prepared


@pytest.hookimpl(optionalhook=True)
def pytest_neuroscript_setup(distribution: str) -> Setup | None:
    """Return the network of the examples; its server runs as long as the process."""
    return Setup(prepare=led_to(answering(Server()))) if distribution == "neuroscript-http" else None


@pytest.fixture
def setup() -> Iterator[Setup]:
    """The network of the examples."""
    server = answering(Server())
    yield Setup(prepare=led_to(server))
    server.close()


class World:
    """Names, addresses and servers.

    Attributes:
        names: The answers of the resolver to a name, one for each time it is asked; the last one stays.
        asked: The names that were asked for.
        reached: The addresses and ports to which a connection was made.
        routes: The server behind each port of a public address.
        known: Which certificates hold.
    """

    def __init__(self, plain: Server, secure: Server, known: ssl.SSLContext) -> None:
        self.plain = plain
        self.secure = secure
        self.names: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []
        self.reached: list[tuple[str, int]] = []
        self.routes = {80: plain.port, 443: secure.port}
        self.known = known

    @property
    def network(self) -> Network:
        """The network of the tools."""
        return Network(self._resolve, self._connect, lambda: self.known)

    def _resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            return [PUBLIC]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def _connect(self, address: str, port: int, seconds: float) -> socket.socket:
        self.reached.append((address, port))
        if address.startswith("127."):
            return connect(address, port, seconds)
        return connect("127.0.0.1", self.routes[port], seconds)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for the hosts below example.com, and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    names = "subjectAltName=DNS:*.example.com,DNS:example.com"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    rest = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=example.com", "-addext", names]
    subprocess.run([*made, *rest], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def world(certificates: Path) -> Iterator[World]:
    """The network of one test: ``api.example.com`` answers ``/items`` over http and https."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    known = ssl.create_default_context(cafile=str(certificates / "cert.pem"))
    plain, secure = answering(Server()), answering(Server(serving))
    yield World(plain, secure, known)
    plain.close()
    secure.close()


EngineWith = Callable[..., Engine]


@pytest.fixture
def engine_with(world: World, tmp_path: Path) -> Iterator[EngineWith]:
    """Takes grants and limits, and returns an engine over the network."""
    with ExitStack() as stack:

        def engine(*grants: str, **limits: Any) -> Engine:
            policy = ExecutionPolicy(grants=grants, limits=Limits(**limits))
            host = Host(sandbox_dir=tmp_path)
            made_engine = Engine(plugins="none", toolsets=[make_toolset(world.network)], host=host, policy=policy)
            return stack.enter_context(made_engine)

        yield engine


@pytest.fixture
def engine(engine_with: EngineWith) -> Engine:
    """An engine with grants for the hosts below example.com and all files of the sandbox."""
    return engine_with(*GRANTS)


@pytest.fixture
def failure() -> Callable[..., tuple[str, str, str]]:
    """Return a function that makes a request and returns the code, retry and message of its failure."""

    def failure(engine: Engine, url: str, **named: Any) -> tuple[str, str, str]:
        with pytest.raises(ToolFailed) as caught:
            engine.call_named("http.get", {"url": url, **named})
        return caught.value.code, caught.value.retry, caught.value.text

    return failure
