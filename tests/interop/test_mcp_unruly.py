"""Servers that violate the protocol: they still work or are stopped in time, and nothing of it is logged."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.mcp_stdio import command

from neuroscript import Engine, ExecutionPolicy, PluginError, Secret, SpecError, ToolCall, ToolFailed
from neuroscript.interop.mcp import McpServer, add_servers, from_mcp
from neuroscript.interop.mcp.client.accepted_definitions import Definition, read, write
from neuroscript.interop.mcp.client.connection import Connection, OpenConnection

ALL: Final = ExecutionPolicy(grants=("mcp:call:far/*",))


def unruly(what: str, **options: Any) -> McpServer:
    return from_mcp(command("unruly", what), group="far", trusted=True, **options)


def call_result(server: McpServer) -> Any:
    """Return the result of a call of its tool, and close it."""
    with Engine(plugins="none", hooks=[server], policy=ALL) as engine:
        return engine.call("far.hi", [])


def test_output_that_is_not_a_message_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nor is a traceback; other users of the SDK in this process still receive its logs."""
    caplog.set_level(logging.DEBUG)

    assert call_result(unruly("chatty")) == "hi"
    assert [each.name for each in caplog.records if each.name != "asyncio"] == []
    logging.getLogger("mcp.client.stdio").warning("of another one")
    assert caplog.messages[-1] == "of another one"


def test_a_server_that_announces_changes_at_each_listing_works() -> None:
    """It is listed a limited number of times, and the last answer counts."""
    assert call_result(unruly("restless", timeout=5)) == "hi"


def test_a_huge_timeout_is_unlimited() -> None:
    """It is a finite number, so it is valid."""
    assert call_result(unruly("calm", timeout=1e300)) == "hi"


def test_a_server_error_does_not_end_the_connection() -> None:
    """Servers use the SDK's number for that, because the protocol has none for their own errors."""
    with Engine(plugins="none", hooks=[unruly("refusing")], policy=ALL) as engine:
        codes = [engine.execute(ToolCall("far.hi", {})).error for _ in range(7)]

    assert [str(each) for each in codes] == ["far.hi: the server refused: no such city"] * 7


def test_a_server_that_repeats_its_secret_is_rejected() -> None:
    """Its descriptions are sent to models, and stored."""
    secret = {"env": {"KEY": Secret("FAR_KEY")}, "secrets": {"FAR_KEY": "k-12345678"}}
    with pytest.raises(SpecError) as caught:
        unruly("calm", **secret, skip=True)

    assert str(caught.value) == "mcp far: hi: contains a secret that was passed to the server"


def test_definitions_that_another_process_accepted_count(tmp_path: Path) -> None:
    """Two processes that see a server for the first time do not overwrite each other's definitions."""
    other = {"hi": Definition.of_data({"name": "hi", "description": "Other.", "inputSchema": {"type": "object"}})}
    write(tmp_path / "other.json", other)
    words = json.dumps(command("unruly", "overtaken"))
    (tmp_path / "p.toml").write_text(f"[mcp.far]\ncommand = {words}\n")
    with Engine(plugins="none") as engine:
        problems = add_servers(engine, tmp_path / "p.toml")
        found = engine.tools["far.hi"].spec.description

    assert (problems, found, read(tmp_path / "far.mcp.json")) == ((), "Other.", other)


@pytest.mark.slow
def test_deep_definitions_are_stored_readably(tmp_path: Path) -> None:
    """Even if the file would be huge with one line for each value."""
    value: Any = [1] * 45_000
    for _ in range(50):
        value = [value]
    schema = {"type": "object", "default": value}
    known = {f"t{n}": Definition.of_data({"name": f"t{n}", "inputSchema": schema}) for n in range(7)}

    write(tmp_path / "far.json", known)

    assert read(tmp_path / "far.json") == known


# The connection


def test_an_opening_that_blocks_a_thread_is_abandoned_in_time() -> None:
    """For example a DNS lookup, which cannot be cancelled."""
    held = threading.Event()

    @asynccontextmanager
    async def dial(ended: Callable[[], None]) -> AsyncIterator[None]:
        await asyncio.to_thread(held.wait)
        yield

    connection = Connection(dial, 0.1)
    with pytest.raises(ToolFailed) as caught:
        connection.asked_now(asyncio.sleep)
    held.set()
    connection.close()

    assert caught.value.text == "the server could not be reached: it did not respond in time"


def test_nothing_is_logged_for_a_prompt_whose_caller_has_gone(caplog: pytest.LogCaptureFixture) -> None:
    """Not even if the connection ends at the same time."""

    @asynccontextmanager
    async def dial(ended: Callable[[], None]) -> AsyncIterator[None]:
        yield

    requests: list[Future[None]] = []
    life = OpenConnection(dial, 5.0)

    async def work(_: Any) -> None:
        def gone() -> None:
            requests[0].cancel()
            life.end()

        while not requests:
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(gone)
        await asyncio.Event().wait()

    life.opened.result(5)
    requests.append(life.submit(work))
    life.close()
    gc.collect()

    assert (requests[0].cancelled(), caplog.messages) == (True, [])


def test_local_addresses_bypass_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy may be another machine, and would read the secret in a header."""
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(PluginError):
            from_mcp(url="http://127.0.0.1:9/mcp", group="far", headers={"Authorization": "Bearer s3cret"}, timeout=2)
        proxy.setblocking(False)

        with pytest.raises(BlockingIOError):
            proxy.accept()
