"""The client that the conformance suite of MCP starts: an engine with the tools of the suite's server.

The suite passes the URL as the last argument, the name of the scenario in ``MCP_CONFORMANCE_SCENARIO``, and its data as
JSON in ``MCP_CONFORMANCE_CONTEXT``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from neuroscript import Engine, ExecutionPolicy, Host, ToolCall, Turn
from neuroscript.interop.mcp import McpServer, from_mcp

POLICY: Final = ExecutionPolicy(grants=("mcp:call:suite/*", "model:use:*"))
REDIRECT: Final = AnyUrl("http://localhost:3000/callback")
STUBS: Final = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
CALLS: Final[Mapping[str, tuple[ToolCall, ...]]] = {
    "initialize": (),
    "json-schema-ref-no-deref": (),
    "tools_call": (ToolCall("suite.add_numbers", {"a": 5, "b": 3}),),
    "request-metadata": (ToolCall("suite.add_numbers", {"a": 5, "b": 3}),),
    "sep-2322-client-request-state": (
        ToolCall("suite.test_mrtr_echo_state"),
        ToolCall("suite.test_mrtr_unrelated"),
        ToolCall("suite.test_mrtr_no_state"),
        ToolCall("suite.test_mrtr_no_result_type"),
    ),
}
"""The calls of a scenario; in every other one, each tool is called once."""


class Agreeing:
    """A prompter that confirms, and otherwise takes the defaults."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return the answer to *prompt*."""
        return "yes" if "[yes/no]" in prompt and "[default:" not in prompt else ""


class Echo:
    """A model that repeats the last turn."""

    def ask(self, turns: Any) -> Turn:
        """Return the last turn as the model's."""
        return Turn("assistant", turns[-1].content)


class Memory:
    """Tokens and the registration of a client, for one run."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def authorization(url: str, context: Mapping[str, Any]) -> OAuthClientProvider:
    """Return the SDK's authorization, whose user consents at once: the server redirects with the code."""
    found: list[AuthorizationCodeResult] = []

    async def redirect(address: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(address, follow_redirects=False)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        code, state, issuer = (query.get(key, [None])[0] for key in ("code", "state", "iss"))
        found.append(AuthorizationCodeResult(code=code, state=state, iss=issuer))

    async def callback() -> AuthorizationCodeResult:
        return found.pop()

    known = None
    if context.get("client_id"):
        secret = context.get("client_secret")
        known = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=secret,
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    metadata = OAuthClientMetadata(
        client_name="neuroscript",
        redirect_uris=[REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=Memory(known),
        redirect_handler=redirect,
        callback_handler=callback,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


def calls(engine: Engine, server: McpServer, scenario: str, context: Mapping[str, Any]) -> list[ToolCall]:
    """Return the calls of a scenario."""
    if "toolCalls" in context:
        return [ToolCall(f"suite.{each['name']}", each.get("arguments") or {}) for each in context["toolCalls"]]
    if scenario == "json-schema-2020-12-preservation":
        schema = server.definitions["json_schema_2020_12_tool"].data["inputSchema"]
        return [ToolCall("suite.json_schema_echo", {"schema": schema})]
    if scenario in CALLS:
        return [*CALLS[scenario]]
    return [
        ToolCall(name, {arg.name: STUBS.get(arg.type, "x") for arg in tool.spec.args if arg.required})
        for name, tool in engine.tools.items()
    ]


def main() -> None:
    """Run the scenario."""
    url, scenario = sys.argv[-1], os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    auth = authorization(url, context) if scenario.startswith("auth/") else None
    options: dict[str, Any] = {"skip": True, "roots": True, "sampling": True, "auth": auth, "timeout": 240}
    server = from_mcp(url=url, group="suite", trusted=True, **options)
    with Engine(plugins="none", hooks=[server], policy=POLICY, host=Host(prompter=Agreeing(), llm=Echo())) as engine:
        for call in calls(engine, server, scenario, context):
            result = engine.execute(call)
            print(call.name, result.error or "ok", file=sys.stderr)


if __name__ == "__main__":
    main()
