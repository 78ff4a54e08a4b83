"""An MCP server with authorization: its issuer, the server, and what a client of it needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import httpx2
from tests.interop.mcp_place import bound, http_server
from tests.interop.oauth_issuer import Issuer, issuing, serving_with

from neuroscript import Engine, ExecutionPolicy, Runtime, ToolPolicy, Toolset
from neuroscript.interop.http_server.access_tokens import JWTAuthenticator
from neuroscript.interop.mcp import Service, ask_client, serve
from neuroscript.interop.mcp.server.http import app

SCOPES = {"notes:read": "notes.read_*", "notes:write": ("notes.*",)}
CLIENT = {"name": "by hand", "version": "1"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def notes() -> Toolset:
    """Return tools that read and write one note."""
    found = Toolset("notes")
    stored = ["empty"]

    @found.tool
    def read_note(rt: Runtime) -> str:
        """Return the note."""
        return stored[-1]

    @found.tool(policy=ToolPolicy(effects=("writes",)))
    def write_note(rt: Runtime, text: str) -> bool:
        """Change the note."""
        stored.append(text)
        return True

    @found.tool
    def remember(rt: Runtime, text: str) -> bool:
        """Set a variable."""
        rt.set_var("text", text)
        return True

    @found.tool
    def recall(rt: Runtime) -> str:
        """Return the variable."""
        return str(rt.get_var("text", ""))

    return found


@attrs.frozen(eq=False)
class Protected:
    """A running server with its issuer."""

    issuer: Issuer
    engine: Engine
    service: Service
    port: int
    audience: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def token(self, **claims: Any) -> str:
        """Return a token of the issuer for this server."""
        return self.issuer.token(claims.pop("audience", self.audience), **claims)

    def post(self, token: str | None, method: str = "tools/list", params: Any = None, **headers: Any) -> Any:
        """Send a request of protocol 2026-07-28 with a token, and return the response."""
        params = {"_meta": MODERN_META, **(params or {})}
        name = {"Mcp-Name": params["name"]} if "name" in params else {}
        sent = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **name,
            **({} if token is None else {"Authorization": f"Bearer {token}"}),
            **headers,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        with httpx2.Client(trust_env=False) as client:
            return client.post(self.url, json=body, headers=sent)

    def legacy(self, token: str, method: str, params: Any = None, session: str = "") -> Any:
        """Send a request of protocol 2025-11-25 with a token, and return the response."""
        sent = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {token}",
            **({"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"} if session else {}),
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        with httpx2.Client(trust_env=False) as client:
            return client.post(self.url, json=body, headers=sent)

    def session(self, token: str) -> str:
        """Begin a session with a handshake, and return its id."""
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        answer = self.legacy(token, "initialize", hello)
        assert answer.status_code == 200, answer.text
        return str(answer.headers["mcp-session-id"])


def result(answer: Any) -> Any:
    """Return the result or the error in a response: JSON, or an event stream."""
    assert answer.status_code == 200, (answer.status_code, answer.text)
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
        text = lines[-1]
    data = json.loads(text)
    return data.get("result", data.get("error"))


def names(answer: Any) -> list[str]:
    """Return the names of the listed tools."""
    return sorted(each["name"] for each in result(answer)["tools"])


@contextmanager
def protected(
    *,
    scopes: Mapping[str, Any] | None = SCOPES,
    alg: str = "ES256",
    path: str = "",
    options: Mapping[str, Any] | None = None,
    policy: ExecutionPolicy | None = None,
    tasks: tuple[str, ...] = (),
    audience: str = "",
    **words: Any,
) -> Iterator[Protected]:
    """Run an issuer, and a server that accepts its tokens.

    Args:
        options: Keyword arguments of the authenticator.
        audience: The audience of the tokens, if it is not the URL of the server.
        words: Keyword arguments of the engine.
    """
    policy = policy or ExecutionPolicy(approver=ask_client)
    with issuing(path, alg) as issuer, bound() as (listening, port):
        audience = audience or f"http://127.0.0.1:{port}/mcp"
        authenticator = JWTAuthenticator(issuer=issuer.url, audience=audience, **(options or {}))
        with Engine(toolsets=notes(), plugins="none", policy=policy, **words) as engine:
            service = serve(engine, name="tests", scopes=scopes, tasks=tasks)
            with serving_with(http_server(app(service, authenticator=authenticator)), listening):
                yield Protected(issuer, engine, service, port, audience)
