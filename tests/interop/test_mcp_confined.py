"""MCP servers that run confined: what they can still reach, and that they could reach more otherwise."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.mcp_engines import ALL, call_tool, engine_of, start_server, wait_until

from neuroscript import Engine, PluginError, Secret, SpecError
from neuroscript.interop.mcp import add_servers, from_mcp
from neuroscript.isolation.confinement import available

pytestmark = pytest.mark.skipif(
    bool(available()["landlock"] or available()["seccomp"]), reason="this system cannot confine programs"
)

SERVER: Final = [sys.executable, str(Path(__file__).with_name("mcp_attempts.py"))]

Attempt = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory with directories that the server may read, write, or neither."""
    for name in ("readable", "writable", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    yield tmp_path
    for pid in processes_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def attempt(place: Path) -> Iterator[Attempt]:
    """Takes what a server tries; returns the outcome."""
    with ExitStack() as stack:
        engines: dict[str, Engine] = {}

        def attempt(what: str, target: str, **options: Any) -> str:
            if repr(options) not in engines:
                server = from_mcp(SERVER, group="far", trusted=True, **options)
                engines[repr(options)] = stack.enter_context(engine_of(server))
            result = call_tool(engines[repr(options)], "attempt", what=what, place=target)
            assert result.ok, result.error
            return str(result.value)

        yield attempt


def processes_in(directory: Path) -> list[int]:
    """Return the processes whose working directory is below a directory."""
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and (process / "cwd").readlink().is_relative_to(directory):
                found.append(int(process.name))
    return found


FORBIDDEN: Final = {
    "read a file of the user": ("read", "{place}/private/file"),
    "read a list of users": ("read", "/etc/passwd"),
    "read its working directory": ("read", "{cwd}/pyproject.toml"),
    "write beside its files": ("write", "{place}/new"),
    "write where it may only read": ("write", "{place}/readable/file"),
    "delete a file of the user": ("delete", "{place}/private/file"),
    "connect": ("connect", "{port}"),
    "execute a program": ("execute", "/bin/true"),
}


@pytest.mark.parametrize(("what", "target"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_confined_server_reaches_nothing_else(attempt: Attempt, place: Path, what: str, target: str) -> None:
    """Each attempt is refused, and succeeds without the confinement."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        target = target.format(place=place, cwd=Path.cwd(), port=server.getsockname()[1])

        confined = attempt(what, target, confine=True, read=[place / "readable"], write=[place / "writable"])
        free = attempt(what, target)

    assert confined == "refused"
    assert free != "refused"


def test_confined_server_uses_what_its_table_names(attempt: Attempt, place: Path) -> None:
    """The table adds files and the network to what each confined server may use."""
    options = {"confine": True, "read": [str(place / "readable")], "write": [place / "writable"], "network": True}
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        connected = attempt("connect", str(server.getsockname()[1]), **options)
    read = attempt("read", f"{place}/readable/file", **options)
    written = attempt("write", f"{place}/writable/new", **options)
    deleted = attempt("delete", f"{place}/writable/file", **options)

    assert (connected, read, written, deleted) == ("done", "readable", "done", "done")
    assert [each.name for each in (place / "writable").iterdir()] == ["new"]


def test_confined_server_has_no_other_environment(attempt: Attempt) -> None:
    """Neither HOME nor PATH, only a temporary directory of its own. No command line has the value of a secret."""
    env, secrets = {"LEVEL": "info", "TOKEN": Secret("t")}, {"t": "a-secret-token"}

    confined = json.loads(attempt("environment", "", env=env, secrets=secrets, confine=True))
    free = json.loads(attempt("environment", "", env=env, secrets=secrets))
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]

    assert ("TMPDIR" in confined) == (not available()["mountns"])
    assert {**confined, "TMPDIR": ""} == {"LEVEL": "info", "TOKEN": "a-secret-token", "TMPDIR": ""}
    assert {"HOME", "PATH"} <= free.keys()
    assert not any(b"a-secret-token" in line for line in lines)


@pytest.mark.parametrize(("options", "expected"), [({"confine": True}, 0), ({}, 1)], ids=["confined", "free"])
def test_everything_that_a_confined_server_has_started_ends_with_it(
    place: Path, options: dict[str, Any], expected: int
) -> None:
    """Also a daemon with a session of its own; without the confinement it stays."""
    if available()["pidns"]:
        pytest.skip("this system permits no PID namespaces")
    access = {"read": [place / "readable"]} if options else {}
    with engine_of(from_mcp(SERVER, group="far", trusted=True, **options, **access)) as engine:
        assert call_tool(engine, "attempt", what="daemon", place=str(place / "readable")).value == "done"
        wait_until(lambda: len(processes_in(place)) == 1)

    wait_until(lambda: len(processes_in(place)) == expected)
    time.sleep(0.2)
    assert len(processes_in(place)) == expected


HOST: Final = """
import sys, time
from neuroscript import Engine, ExecutionPolicy
from neuroscript.interop.mcp import from_mcp
server = from_mcp(sys.argv[3:], group="far", trusted=True, confine=True, read=[sys.argv[1]])
with Engine(plugins="none", hooks=[server], policy=ExecutionPolicy(grants=["mcp:call:far/*"])) as engine:
    engine.call("far.attempt", ["daemon", sys.argv[2]])
    time.sleep(600)
"""


def test_killed_host_leaves_no_process(place: Path) -> None:
    """The kernel ends the launcher with the host, and everything else with the launcher."""
    if available()["pidns"]:
        pytest.skip("this system permits no PID namespaces")
    host = subprocess.Popen([sys.executable, "-c", HOST, str(place), str(place / "readable"), *SERVER])
    try:
        wait_until(lambda: len(processes_in(place)) == 1, 60)
    finally:
        host.kill()
        host.wait()

    wait_until(lambda: processes_in(place) == [])


def test_server_of_the_sdk_works_confined() -> None:
    """It reads the packages of its virtual environment."""
    with engine_of(start_server(confine=True)) as engine:
        assert call_tool(engine, "add", a=2, b=3).value == 5


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_server_in_another_language_works_confined(place: Path) -> None:
    """It reads the modules that were installed with it, and nothing else of the directory."""
    package = place / "app" / "node_modules" / "server"
    (place / "app" / "node_modules" / "text").mkdir(parents=True)
    (place / "app" / "node_modules" / "text" / "index.js").write_text("module.exports = 'from a module'\n")
    package.mkdir()
    (package / "index.js").write_text(NODE_SERVER)
    (place / "app" / "secret").write_text("secret")
    with engine_of(from_mcp(["node", str(package / "index.js")], group="far", trusted=True, confine=True)) as engine:
        result = call_tool(engine, "say")

    assert result.value == "from a module, EACCES"


NODE_SERVER: Final = """
const text = require('text')
let outcome
try { outcome = require('fs').readFileSync(__dirname + '/../../secret', 'utf8') } catch (error) { outcome = error.code }
const say = (message) => console.log(JSON.stringify({jsonrpc: '2.0', ...message}))
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const {id, method} = JSON.parse(line)
  if (method === 'initialize')
    say({id, result: {protocolVersion: '2025-06-18', capabilities: {tools: {}}, serverInfo: {name: 's', version: '1'}}})
  else if (method === 'tools/list') say({id, result: {tools: [{name: 'say', inputSchema: {type: 'object'}}]}})
  else if (method === 'tools/call') say({id, result: {content: [{type: 'text', text: `${text}, ${outcome}`}]}})
  else if (id !== undefined) say({id, error: {code: -32601, message: method}})
})
"""


def test_table_of_a_policy_file_confines_a_server(place: Path) -> None:
    """Paths are relative to the file."""
    file = place / "policy.toml"
    file.write_text(f"[mcp.far]\ncommand = {json.dumps(SERVER)}\ntrusted = true\nconfine = true\nread = 'readable'\n")
    files = [f"{place}/{name}/file" for name in ("readable", "private")]
    with Engine(plugins="none", policy=ALL) as engine:
        assert add_servers(engine, file) == ()
        found = [call_tool(engine, "attempt", what="read", place=each).value for each in files]

    assert found == ["readable", "refused"]


def test_missing_program_is_reported_as_without_confinement() -> None:
    """Before anything is started."""
    with pytest.raises(PluginError) as caught:
        from_mcp(["no-such-program"], group="far", confine=True)

    assert str(caught.value) == "mcp far: the server could not be reached: FileNotFoundError"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"url": "http://127.0.0.1:1/mcp", "confine": True},
            "confine cannot be used with url, because this process does not start the server",
        ),
        ({"command": SERVER, "read": ["/srv"], "network": True}, "read, network can only be used with confine"),
    ],
    ids=["over HTTP", "without confine"],
)
def test_settings_that_would_have_no_effect_are_refused(options: dict[str, Any], problem: str) -> None:
    """A host must not believe that a server is confined which is not."""
    with pytest.raises(SpecError) as caught:
        from_mcp(group="far", **options)

    assert caught.value.problems == (problem,)
