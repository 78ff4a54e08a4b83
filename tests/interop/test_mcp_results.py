"""Results of first-party tools, validated with their schemas by the official client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.interop.mcp_place import served

from neuroscript import Engine, ToolImplementation
from neuroscript.coercion.plain_data import to_plain
from neuroscript.interop.mcp.schema import output_schema
from neuroscript.runtime.wire_names import WireNames
from neuroscript.testing.fuzzing import arguments

QUIET = frozenset({"pure", "idempotent"})
"""Effects of tools that change nothing."""


def draw_arguments(tool: ToolImplementation, count: int) -> list[dict[str, Any]]:
    """Return deterministic arguments that match a tool."""
    found: list[dict[str, Any]] = []

    @hypothesis.seed(0)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    @given(arguments(tool))
    def draw(given: dict[str, Any]) -> None:
        found.append({name: to_plain(value) for name, value in given.items()})

    draw()
    return found[:count]


@pytest.mark.slow
def test_each_result_matches_its_schema(full_counts: bool) -> None:
    """Otherwise the client would raise; the text is JSON, and every tool with a schema has structured content."""
    with Engine(plugins=("neuroscript-std",)) as engine:
        tools = [
            each for each in engine.tools.values() if each.policy.effects and QUIET.issuperset(each.policy.effects)
        ]
    names = WireNames.of(tools)
    calls = [(tool, given) for tool in tools for given in draw_arguments(tool, 30 if full_counts else 2)]
    ended: dict[str, bool] = {}

    async def talk(url: str) -> None:
        async with Client(streamable_http_client(url, max_sse_event_size=None)) as client:
            await client.list_tools()
            for tool, given in calls:
                result = await client.call_tool(names.wire(tool.name), given)
                ended[tool.name] = ended.get(tool.name, False) or not result.is_error
                structured = result.structured_content
                if result.is_error or output_schema(tool.spec) is not None:
                    assert (structured is None) == result.is_error, tool.name
                elif structured is not None:  # an object of a tool that returns anything
                    assert json.loads(result.content[0].text) == structured, tool.name

    with served(plugins=("neuroscript-std",)) as place:
        asyncio.run(talk(place.url))

    assert len(ended) == len(tools) > 60
    assert sum(ended.values()) > len(tools) / 2
