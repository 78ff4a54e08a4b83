"""Plans for durable runs, and the tools that they call."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from neuroscript import ArgSpec, Engine, ExecutionPolicy, Host, ToolFailed, ToolPolicy, Toolset, ToolSpec
from neuroscript.workflow import Plan, plan_from_data

VALUES: dict[str, Any] = {
    "bytes": b"\x00\xff",
    "nothing": None,
    "numbers": [1, -(2**63), 0.1, 1e308, True],
    "whole": [3, 1, 2],
    "texts": ["", "\x00", "ä\U0001f600"],
    "looks_like_bytes": {"$base64": "QQ=="},
    "looks_like_ours": {"$bytes": "QQ==", "$pairs": []},
    "time": datetime(2026, 2, 3, 4, 5, 6, 7, UTC),
}


def tools() -> Toolset:
    """Return tools with results of many types and errors of many kinds."""
    kept = Toolset("kept")

    @kept.tool()
    def value(name: str) -> Any:
        """Return a value by its name."""
        return VALUES[name]

    @kept.tool()
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @kept.tool()
    def fail(how: str) -> int:
        """Fail."""
        if how == "itself":
            raise ToolFailed("the shop is closed", code="shop.closed", retry="later")
        raise KeyError(how)

    @kept.tool(policy=ToolPolicy(requires_trust=True))
    def trusted() -> int:
        """Require trust."""
        return 1

    kept.add(
        ToolSpec("embed", "kept", (ArgSpec("of", "string"),), return_type="embedding"),
        lambda rt, of: array("f", [0.1, 0.2]),
    )
    secret = ArgSpec("token", "string", secret=True)
    kept.add(ToolSpec("enter", "kept", (secret,), return_type="int"), lambda rt, token: len(token))
    kept.add(ToolSpec("open", "kept", (), return_type="handle"), lambda rt: rt.handles.put(object(), "it"))
    return kept


@pytest.fixture
def engine() -> Iterator[Engine]:
    """Return an engine with the tools."""
    with Engine(toolsets=[tools()], plugins="none", host=Host(), policy=ExecutionPolicy()) as engine:
        yield engine


def plan_of(nodes: dict[str, Any], **more: Any) -> Plan:
    """Return a plan from nodes as plain data, whose failures do not halt it."""
    return plan_from_data(
        {"name": "it", "nodes": {name: {"on_fail": "continue", **node} for name, node in nodes.items()}, **more}
    )
