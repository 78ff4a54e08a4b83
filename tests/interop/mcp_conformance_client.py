"""The client that the conformance suite of MCP starts: an engine with the tools of the suite's server.

The suite passes the URL as the last argument, the name of the scenario in ``MCP_CONFORMANCE_SCENARIO``, and its data as
JSON in ``MCP_CONFORMANCE_CONTEXT``.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from neuroscript import Engine, ExecutionPolicy, Host, ToolCall, Turn
from neuroscript.interop.mcp import McpServer, OAuth, from_mcp
from neuroscript.interop.mcp.client.oauth import StoredTokens
from neuroscript.interop.mcp.client.token_file import TokenFile

POLICY: Final = ExecutionPolicy(grants=("mcp:call:suite/*", "model:use:*"))
REDIRECT: Final = "http://localhost:3000/callback"
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


class Consenting(StoredTokens):
    """Our authorization, whose user consents at once: the server redirects with the code."""

    is_interactive = True

    def __init__(self, url: str, settings: OAuth, directory: str) -> None:
        super().__init__(url, settings, TokenFile(Path(directory) / "tokens.json", url), REDIRECT)
        self.context.redirect_handler = self._open
        self.context.callback_handler = self._found
        self._results: list[AuthorizationCodeResult] = []

    async def _open(self, address: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(address, follow_redirects=False)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        code, state, issuer = (query.get(key, [None])[0] for key in ("code", "state", "iss"))
        self._results.append(AuthorizationCodeResult(code=code or "", state=state, iss=issuer))

    async def _found(self) -> AuthorizationCodeResult:
        return self._results.pop()


def authorization(url: str, context: Mapping[str, Any], directory: str) -> Consenting:
    """Return what authorizes the requests of a scenario."""
    if context.get("client_id"):
        secret = context.get("client_secret") or ""
        settings = OAuth(client_id=context["client_id"], client_secret=secret, issuer=issuer_of(url) if secret else "")
    else:
        settings = OAuth(client_metadata_url="https://conformance-test.local/client-metadata.json")
    return Consenting(url, settings, directory)


def issuer_of(url: str) -> str:
    """Return the issuer of a server, which a user with a secret would know."""
    with httpx2.Client(trust_env=False) as client:
        challenge = client.post(url).headers["www-authenticate"]
        metadata = challenge.partition('resource_metadata="')[2].partition('"')[0]
        return str(client.get(metadata).json()["authorization_servers"][0])


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
    directory = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, directory)
    auth = authorization(url, context, directory) if scenario.startswith("auth/") else None
    options: dict[str, Any] = {"skip": True, "roots": True, "sampling": True, "auth": auth, "timeout": 240}
    server = from_mcp(url=url, group="suite", trusted=True, **options)
    with Engine(plugins="none", hooks=[server], policy=POLICY, host=Host(prompter=Agreeing(), llm=Echo())) as engine:
        for call in calls(engine, server, scenario, context):
            result = engine.execute(call)
            print(call.name, result.error or "ok", file=sys.stderr)


if __name__ == "__main__":
    main()
