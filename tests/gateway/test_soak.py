"""Twelve public servers behind the gateway, used by three clients at once while servers and clients are killed."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import ALL
from tests.gateway.place import TOKENS, file_of, headers, server_table, text_of
from tests.gateway.public_servers import calls, commands

from neuroscript.audit import verify

SECONDS = 600.0 if ALL else 60.0
"""The duration of the test, in seconds."""

CALL_SECONDS = 60.0
"""A call that takes longer counts as one that hangs."""

EXPECTED = ("mcp.closed", "mcp.restarting", "mcp.start")
"""The codes of calls whose server was killed."""

ROOT = Path(__file__).parents[2]


class Page(BaseHTTPRequestHandler):
    """A page that contains its own path."""

    def do_GET(self) -> None:
        data = self.path.encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: Any) -> None:
        pass


class Pages(ThreadingHTTPServer):
    """A server that ignores clients that disconnect, because their server was killed."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Soak:
    """The clients, and what they have seen."""

    def __init__(self, url: str, page: str, directory: Path, end: float) -> None:
        self.url, self.page, self.directory, self.end = url, page, directory, end
        self.codes: Counter[str] = Counter()
        self.by_server: Counter[str] = Counter()
        self.problems: list[str] = []
        self.kills = self.lost = 0

    async def client(self, name: str, random_: random.Random) -> None:
        """Call all servers, reconnect after a while, and sometimes disconnect in the middle of calls."""
        number = 0
        while monotonic() < self.end:
            mode, is_leaving = random_.choice(["auto", "legacy"]), False
            try:
                await asyncio.sleep(0.05)
                async with httpx2.AsyncClient(headers=headers(name), timeout=CALL_SECONDS * 2) as http:
                    async with Client(streamable_http_client(self.url, http_client=http), mode=mode) as client:
                        for _ in range(random_.randint(1, 4)):
                            number += 1
                            batch = asyncio.gather(*self.batch(client, f"{name}x{number}x"))
                            if random_.random() < 0.15:
                                await asyncio.sleep(random_.random() * 0.2)
                                is_leaving = True
                                batch.cancel()
                                await asyncio.wait([batch])
                                self.lost += 1
                                break
                            await batch
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    raise
            except (httpx2.HTTPError, ExceptionGroup) as error:
                if not is_leaving:  # the SDK complains about the responses that it still receives
                    self.problems.append(f"{name}: {error!r}")

    def batch(self, client: Client, mark: str) -> list[Any]:
        """Return one call of each server; each argument and each expected result contains the mark of the client."""
        made = calls(self.directory, self.page, mark)
        return [self.call(client, server, *call, mark) for server, call in made.items()]

    async def call(self, client: Client, server: str, tool: str, arguments: Any, expected: str, mark: str) -> None:
        """Make a call, and check that its result is that of this call."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                result = await client.call_tool(f"{server}__{tool}", arguments)
        except TimeoutError:
            self.problems.append(f"{server}: a call did not end")
            return
        text = text_of(result)
        found = re.match(r"error ([a-z_.]+)", text) if result.is_error else None
        code = found[1] if found else "error" if result.is_error else "ok"
        self.codes[code] += 1
        if code == "ok":
            self.by_server[server] += 1
            if expected not in text:
                self.problems.append(f"{server}: expected {expected}, got {text[:200]}")
        elif code not in EXPECTED and server not in ("context", "memory"):  # one needs the internet, one has races
            self.problems.append(f"{server}: {text[:200]}")
        others = [each for each in re.findall(r"(alice|bob|carol)x\d+x", text) if not mark.startswith(each)]
        if others and server != "memory":  # whose graph is common to all clients
            self.problems.append(f"{server}: a result for {mark} has the mark of {others[0]}")

    async def kill(self, gateway: int, random_: random.Random) -> None:
        """Kill a random server every few seconds."""
        while monotonic() < self.end:
            await asyncio.sleep(random_.uniform(1, 5))
            children = subprocess.run(["pgrep", "-P", str(gateway)], capture_output=True, text=True).stdout.split()
            if children:
                os.kill(int(random_.choice(children)), signal.SIGKILL)
                self.kills += 1

    async def run(self, gateway: int) -> None:
        """Run the three clients and the killer until the end."""
        names = ("alice", "bob", "carol")
        workers = [self.client(name, random.Random(number)) for number, name in enumerate(names)]
        async with asyncio.timeout(self.end - monotonic() + 2 * CALL_SECONDS):
            await asyncio.gather(*workers, self.kill(gateway, random.Random(9)))


def settings(directory: Path) -> str:
    """Return the settings of the gateway."""
    clients = "".join(f'[client.{name.lower()}]\ntoken = {{secret = "{name}"}}\n' for name in TOKENS)
    servers = "".join(server_table(name, each, skip=True) for name, each in commands(directory).items())
    gateway = '[gateway]\nlisten = "127.0.0.1:0"\naudit = "audit.jsonl"\nmetrics = true\n'
    return f'[policy]\ngrants = ["mcp:call:**"]\n{servers}{gateway}{clients}monitor = true\n'


@pytest.mark.full
def test_twelve_servers_and_three_clients_with_kills(tmp_path: Path) -> None:
    """No call hangs, no result reaches another client, and the audit log is whole."""
    faulthandler.dump_traceback_later(SECONDS + 600, exit=True)  # in place of the time that other tests have
    try:
        path = file_of(tmp_path, settings(tmp_path))
    except OSError:
        pytest.skip("the public MCP servers could not be installed")
    page = Pages(("127.0.0.1", 0), Page)
    threading.Thread(target=page.serve_forever, daemon=True).start()
    command = [sys.executable, "-m", "neuroscript", "gateway", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **TOKENS}, cwd=ROOT)
    assert process.stderr is not None
    reading: threading.Thread | None = None
    try:
        while not (found := re.search(r"serving at (\S+)", process.stderr.readline())):
            assert process.poll() is None
        reading = threading.Thread(target=process.stderr.read, daemon=True)
        reading.start()
        soak = Soak(found[1], f"http://127.0.0.1:{page.server_port}", tmp_path, monotonic() + SECONDS)
        asyncio.run(soak.run(process.pid))
        states = httpx2.get(found[1].replace("/mcp", "/health/servers"), headers=headers("carol")).json()["servers"]
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        if reading is not None:
            reading.join(10)
        process.stderr.close()
        page.shutdown()
        page.server_close()

    print(
        f"\n{dict(soak.codes)} calls, {soak.kills} kills, {soak.lost} clients lost, {sum(each['restarts'] for each in states)} restarts"
    )
    report = verify(tmp_path / "audit.jsonl")
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()
    callers = {json.loads(line)["session"].partition("/")[0] for line in lines}
    print(f"{dict(soak.by_server)}\n{report.records} records, {len(report.without_outcome)} without an outcome")
    assert soak.problems == []
    assert len(states) == 12
    assert len(soak.by_server) >= 11, soak.by_server
    assert soak.kills > SECONDS / 10
    assert report.is_intact
    assert len(report.without_outcome) <= 36  # calls that the signal interrupted
    assert callers == {"alice", "bob", "carol"}
