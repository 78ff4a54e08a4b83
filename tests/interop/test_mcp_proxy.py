"""A server behind ``mcp serve``: its definitions and results arrive at a client as the server sent them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).parents[2]
RICH = str(Path(__file__).with_name("mcp_rich.py"))

CALLS: Mapping[str, list[tuple[str, dict[str, Any]]]] = {
    "sdk": [
        *(("search_shop", {"text": "tea"}), ("add", {"a": 2}), ("blocks", {}), ("chart", {}), ("nothing", {})),
        ("fail", {"text": "no such thing"}),
    ],
    "fastmcp": [
        *(("plus", {"a": 1, "b": 2}), ("names", {"count": 3}), ("found", {"name": "tea"})),
        *(("picture", {}), ("several", {})),
    ],
    "time": [("convert_time", {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"})],
}
SERVERS = {
    "sdk": [sys.executable, RICH, "sdk"],
    "fastmcp": [sys.executable, RICH, "fastmcp"],
    "time": [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"],
}


async def ask(command: list[str], calls: list[tuple[str, dict[str, Any]]]) -> tuple[dict[str, Any], list[Any]]:
    """Return the definitions and the results of a server."""
    own = {
        **os.environ,
        "NEUROSCRIPT_PLUGINS": "",
        "PYTHONPATH": os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")]),
    }
    where = StdioServerParameters(command=command[0], args=command[1:], env=own, cwd=ROOT)
    async with Client(stdio_client(where)) as client:
        listed = await client.list_tools()
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
    return {each.name: plain(each) for each in listed.tools}, [normal(plain(each)) for each in results]


def plain(model: Any) -> dict[str, Any]:
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def normal(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the facts of its connection, and with the JSON text of structured content decoded."""
    meta = {
        key: each for key, each in result.pop("_meta", {}).items() if not key.startswith("io.modelcontextprotocol/")
    }
    if result.get("structuredContent") is not None:
        result["content"] = [decoded(each) for each in result["content"]]
    return {**result, "_meta": meta}


def decoded(block: dict[str, Any]) -> dict[str, Any]:
    try:
        return {**block, "text": json.loads(block["text"])}
    except (KeyError, ValueError):
        return block


@pytest.mark.parametrize("name", ["sdk", *(pytest.param(each, marks=pytest.mark.full) for each in ("fastmcp", "time"))])
def test_server_behind_the_product_is_the_same_server(name: str, tmp_path: Path) -> None:
    """Each definition is equal, and each result except for the layout of JSON text and the words around an error."""
    policy = tmp_path / "policy.toml"
    table = {"command": SERVERS[name], "trusted": "true", "trust_annotations": "true"}
    lines = [f"{key} = {json.dumps(each) if isinstance(each, list) else each}" for key, each in table.items()]
    policy.write_text("\n".join(['[policy]\ngrants = ["mcp:call:**"]\n[mcp.far]', *lines]))
    own = [sys.executable, "-m", "neuroscript", "mcp", "serve", "--tools", "far.*", "--names", "bare"]

    definitions, results = asyncio.run(ask(SERVERS[name], CALLS[name]))
    served, answers = asyncio.run(ask([*own, "--policy", str(policy)], CALLS[name]))

    assert served == definitions
    for call, answer, result in zip(CALLS[name], answers, results, strict=True):
        if result["isError"]:
            assert answer["isError"]
            assert result["content"][0]["text"] in answer["content"][0]["text"]
        else:
            assert (call, answer) == (call, result)
