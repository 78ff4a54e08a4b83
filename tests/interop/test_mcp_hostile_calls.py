"""Calls and tools that could occupy a server or change under its clients: patterns, depth, size and changed lists."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from tests.interop.mcp_place import Place, served, until

from neuroscript import Toolset, ToolSpec, spec_from_schema
from neuroscript.interop.mcp.server.serve import POLL_SECONDS
from neuroscript.interop.mcp.server.standard_input import MAX_LINE_CHARS, TOO_LONG

PATTERNS = {"nested": "^(a+)+$", "look-ahead": "^(?=(a+)+$)(a|aa)+b$"}
"""Patterns with which a backtracking matcher takes exponential time."""

TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "required": ["tree"],
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    },
}
"""A schema that refers to itself."""


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with served() as place:
        tools = Toolset("hostile")
        for index, pattern in enumerate(PATTERNS.values()):
            text = {"type": "string", "pattern": pattern}
            schema = {"type": "object", "properties": {"text": text}, "required": ["text"]}
            tools.add(spec_from_schema(f"match_{index}", schema, group="hostile"), lambda rt, text: "ran")
        tools.add(spec_from_schema("visit", TREE, group="hostile"), lambda rt, tree: "ran")
        place.engine.register(tools)
        yield place


async def text_of(client: Client, tool: str, **arguments: Any) -> str:
    """Return the text of a result, which must arrive within ten seconds."""
    async with asyncio.timeout(10):
        found = await client.call_tool(tool, arguments)
    return str(found.content[0].text)


@pytest.mark.parametrize("index", range(len(PATTERNS)), ids=PATTERNS)
def test_a_pattern_that_backtracks_is_matched_quickly(place: Place, index: int) -> None:
    """A client cannot occupy the server with a string for which the author's pattern is slow."""

    async def talk() -> tuple[str, str]:
        async with Client(place.url) as client:
            slow = text_of(client, f"hostile__match_{index}", text="a" * 50_000 + "!")
            return tuple(await asyncio.gather(slow, text_of(client, "t__add", a=1)))  # type: ignore[return-value]

    refused, added = asyncio.run(talk())
    assert refused.startswith("error schema.pattern: text: expected a string that matches ")
    assert added == "2"


@pytest.mark.parametrize(("depth", "text"), [(20, "ran"), (150, "error limit.depth: tree['next']")], ids=["20", "150"])
def test_a_schema_that_refers_to_itself_limits_the_depth(place: Place, depth: int, text: str) -> None:
    """The client receives the whole schema, and the arguments have a maximum depth."""
    tree: Any = {}
    for _ in range(depth):
        tree = {"next": tree}

    async def talk() -> tuple[Any, str]:
        async with Client(place.url) as client:
            listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            return listed["hostile__visit"], await text_of(client, "hostile__visit", tree=tree)

    schema, found = asyncio.run(talk())
    assert schema == TREE
    assert found[: len(text)] == text


def test_a_growing_list_is_always_complete() -> None:
    """While tools are added, a client sees those of one moment, and is not notified of each of them."""
    counts: list[int] = []
    changes: list[float] = []

    async def record(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            changes.append(time.monotonic())

    def grow(place: Place) -> None:
        for number in range(150):
            more = Toolset(f"more_{number:03}")
            more.add(ToolSpec("tool", f"more_{number:03}"), lambda rt: None)
            place.engine.register(more)
            time.sleep(0.005)

    async def talk(place: Place) -> float:
        began = time.monotonic()
        async with Client(place.url, mode="legacy", message_handler=record) as client:
            growing = threading.Thread(target=grow, args=(place,))
            growing.start()
            while growing.is_alive():
                names = [tool.name for tool in (await client.list_tools()).tools]
                numbers = [int(name.split("_")[1]) for name in names if name.startswith("more_")]
                assert numbers == list(range(len(numbers)))
                counts.append(len(numbers))
            growing.join()
            assert sum(tool.name.startswith("more_") for tool in (await client.list_tools()).tools) == 150
        return time.monotonic() - began

    with served() as place:
        seconds = asyncio.run(talk(place))

    assert counts == sorted(counts)
    assert len({*counts}) > 3
    assert len(changes) <= seconds / POLL_SECONDS + 1


PLUGIN = '''\
import time
from pathlib import Path
from neuroscript import Runtime, Toolset
shop = Toolset("shop")
@shop.tool
def buy(rt: Runtime, {argument}: str, go: str = "") -> str:
    """Buy something."""
    if go:
        Path(go).with_suffix(".began").touch()
        while not Path(go).exists() and not rt.cancelled:
            time.sleep(0.01)
    return "{argument} " + {argument}
'''


def test_a_tool_that_changes_during_a_session_is_reported(tmp_path: Path) -> None:
    """A running call ends with the old tool; the next one with old arguments is an error that says what is expected."""
    plugin, go = tmp_path / "shop.py", tmp_path / "go"
    changed: list[str] = []

    async def record(message: Any) -> None:
        changed.append(getattr(message, "method", ""))

    async def talk(place: Place) -> tuple[str, str, str]:
        async with Client(place.url, mode="legacy", message_handler=record) as client:
            await client.list_tools()
            running = asyncio.create_task(text_of(client, "shop__buy", thing="milk", go=str(go)))
            await asyncio.to_thread(until, go.with_suffix(".began").exists)
            plugin.write_text(PLUGIN.format(argument="item"))
            place.engine.reload_plugin(plugin)
            await asyncio.to_thread(until, lambda: "notifications/tools/list_changed" in changed)
            go.touch()
            old = await text_of(client, "shop__buy", thing="milk")
            return await running, old, await text_of(client, "shop__buy", item="milk")

    plugin.write_text(PLUGIN.format(argument="thing"))
    with served() as place:
        place.engine.load_plugin(plugin)
        ended, refused, bought = asyncio.run(talk(place))

    assert (ended, bought) == ("thing milk", "item milk")
    assert refused == (
        "error arg.invalid: item: expected string, got nothing; thing: expected only item, go, got an unknown name of "
        "type str. Fix the arguments and call again."
    )


def test_a_message_of_any_length_ends_a_server_over_stdio() -> None:
    """The server stops reading at the maximum, says so on stderr, and leaves no client waiting."""
    command = [sys.executable, "-m", "neuroscript", "mcp", "serve"]
    sent = 0
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0) as running:
        assert running.stdin and running.stderr
        with suppress(BrokenPipeError):
            while sent < 10 * MAX_LINE_CHARS:
                sent += running.stdin.write(b"x" * 65_536) or 0
        error = running.stderr.read().decode()

        assert (running.wait(30), error) == (0, f"neuroscript: {TOO_LONG}\n")
        assert sent < 1.1 * MAX_LINE_CHARS
