"""Servers that end: when they are started again, and what callers and the operator see meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.place import POLICY, file_of, running, scripted, server_table, text_of, tool
from tests.interop.mcp_place import until

from neuroscript import ToolFailed
from neuroscript.cli.terminal.exit_codes import INTERRUPTED
from neuroscript.gateway import restarts as restarts_module
from neuroscript.gateway.restarts import MAX_DELAY_SECONDS, STABLE_SECONDS, Restarts

TOOLS = [tool("echo"), tool("process"), tool("die"), tool("sleep")]


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_delay_doubles_up_to_a_maximum_and_calls_meanwhile_are_refused() -> None:
    clock = Clock()
    restarts = Restarts(lambda: None, clock)
    delays = []

    for _ in range(10):
        restarts.begin(lambda: None)
        restarts.ended(ToolFailed("cannot start", code="mcp.start", retry="later"))
        delays.append(restarts.wait_seconds)
        with pytest.raises(ToolFailed) as refused:
            restarts.begin(lambda: None)
        clock.now += delays[-1] or 0

    assert delays == [0.5, 1, 2, 4, 8, 16, 32, MAX_DELAY_SECONDS, MAX_DELAY_SECONDS, MAX_DELAY_SECONDS]
    assert (refused.value.code, refused.value.retry) == ("mcp.restarting", "later")
    assert refused.value.text == "the server has ended; it is started again in 60 s"
    assert (restarts.status, restarts.error, restarts.restarts) == ("waiting", "cannot start", 9)


def test_server_that_ran_for_a_while_is_started_again_at_once() -> None:
    clock = Clock()
    restarts = Restarts(lambda: None, clock)

    restarts.begin(lambda: None)
    restarts.opened()
    clock.now += STABLE_SECONDS
    restarts.ended(None)

    assert (restarts.wait_seconds, restarts.status) == (0.0, "waiting")
    restarts.begin(lambda: None)
    assert (restarts.wait_seconds, restarts.status) == (None, "starting")


def test_killed_server_is_started_again_without_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is interrupted, and one that comes too early, get errors that say that they can be repeated."""
    monkeypatch.setattr(restarts_module, "FIRST_DELAY_SECONDS", 3.0)  # time for a call on a busy machine
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", TOOLS))

    async def main(place: Any) -> tuple[str, ...]:
        async with place.client() as client:
            first = text_of(await client.call_tool("notes__process", {}))
            running = asyncio.create_task(client.call_tool("notes__sleep", {"text": "60"}))
            await asyncio.sleep(0.3)
            os.kill(int(first), signal.SIGKILL)
            interrupted = text_of(await running)
            early = text_of(await client.call_tool("notes__process", {}))
            await asyncio.to_thread(until, lambda: place.state("notes").status == "running", 20)
            return first, interrupted, early, text_of(await client.call_tool("notes__process", {}))

    with running(tmp_path, text) as place:
        first, interrupted, early, later = asyncio.run(main(place))
        state = place.state("notes")

    assert "mcp.closed" in interrupted
    assert "may succeed later" in interrupted
    assert "mcp.restarting" in early
    assert "may succeed later" in early
    assert later.isdecimal()
    assert later != first
    assert (state.restarts, state.is_healthy) == (1, True)


def test_servers_end_at_once_with_the_gateway_even_while_they_start(tmp_path: Path) -> None:
    """They ignore SIGTERM and the end of stdin; one after the other, they would take several times as long."""
    ignore = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    wait = "open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(120)"
    logs = [tmp_path / f"{at}.log" for at in range(4)]
    tables = [
        server_table(f"s{at}", [sys.executable, "-c", ignore + wait, str(log)], timeout=60)
        for at, log in enumerate(logs)
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "neuroscript", "gateway", file_of(tmp_path, POLICY + "".join(tables))]
    )
    try:
        until(lambda: all(log.exists() and log.read_text().endswith("\n") for log in logs), 60)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
    finally:
        process.kill()

    assert code == INTERRUPTED
    for log in logs:
        with pytest.raises(ProcessLookupError):
            os.kill(int(log.read_text()), 0)


def test_close_is_noticed_while_servers_are_looked_at(tmp_path: Path) -> None:
    """A gateway that is closed at any moment of the round of its thread does not wait for ever."""
    with running(tmp_path, POLICY) as place:
        servers = place.gateway.servers
        reached, go_on = threading.Event(), threading.Event()

        class Wake(threading.Event):
            def clear(self) -> None:
                reached.set()
                go_on.wait(20)
                super().clear()

        before, servers._wake = servers._wake, Wake()
        before.set()
        servers._wake.set()
        assert reached.wait(20)
        closing = threading.Thread(target=servers.close, daemon=True)
        closing.start()
        until(lambda: servers._is_closed)
        time.sleep(0.05)
        go_on.set()
        closing.join(20)
        assert not closing.is_alive()


def test_server_that_cannot_be_used_does_not_affect_the_others(tmp_path: Path) -> None:
    """One program does not exist, one ends at once, and one needs a secret that is not set."""
    text = (
        POLICY
        + server_table("absent", [str(tmp_path / "absent")])
        + server_table("ending", [sys.executable, "-c", ""])
        + server_table("secret", scripted(tmp_path, "secret", TOOLS), env={"KEY": {"secret": "NOT_SET_ANYWHERE"}})
        + server_table("notes", scripted(tmp_path, "notes", TOOLS))
    )

    with running(tmp_path, text) as place:
        names = place.tools()
        found = {each.name: (each.status, each.problem) for each in place.gateway.servers.states}
        health = place.get("/health").json()

    assert names == ["notes__die", "notes__echo", "notes__process", "notes__sleep"]
    assert found["absent"][1] == "the server could not be reached: FileNotFoundError"
    assert found["ending"][1] == "the server could not be reached: it ended, or was stopped, before it responded"
    assert found["secret"] == ("unusable", "env: the host provides no secret named NOT_SET_ANYWHERE")
    assert found["notes"] == ("running", "")
    assert health == {"status": "degraded"}


def test_server_with_accepted_tools_is_started_by_the_first_call(tmp_path: Path) -> None:
    """A list of its tools does not start it."""
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", TOOLS))
    with running(tmp_path, text):
        pass

    with running(tmp_path, text) as place:
        names = place.tools()
        before = place.state("notes").status
        place.call("", "notes__echo", {"text": "x"})
        after = place.state("notes").status

    assert (len(names), before, after) == (4, "idle", "running")


def test_gateway_leaves_no_process(tmp_path: Path) -> None:
    text = POLICY + server_table("notes", scripted(tmp_path, "notes", TOOLS))

    with running(tmp_path, text) as place:
        process = int(text_of(place.call("", "notes__process")))

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
