"""The start, the failures and the end of MCP servers, and servers over HTTP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from tests.interop.mcp_engines import (
    SERVER,
    bare_server,
    call_tool,
    child_processes,
    engine_of,
    error_code,
    plain_server,
    wait_until,
)
from tests.interop.mcp_engines import engine as engine
from tests.interop.mcp_stdio import command

from neuroscript import Engine, PluginError, Secret, SpecError
from neuroscript._imports import install_hint
from neuroscript.interop.mcp import from_mcp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes and descriptors are counted in /proc")

# Servers that fail


def descriptors() -> int:
    """Return the number of open descriptors of this process."""
    return len([*Path("/proc/self/fd").iterdir()])


def threads() -> int:
    """Return the number of connection threads."""
    return sum(1 for each in threading.enumerate() if each.name == "neuroscript-mcp")


def test_a_server_that_dies_during_a_call_is_restarted_for_the_next() -> None:
    """The call is not repeated, because its outcome is unknown."""
    with engine_of(plain_server()) as engine:
        first = call_tool(engine, "process").value
        result = call_tool(engine, "die")
        second = call_tool(engine, "process").value

    assert (error_code(result), result.error and result.error.retry) == ("mcp.closed", "later")
    assert isinstance(second, int) and second != first


def test_a_server_that_died_between_calls_is_restarted() -> None:
    """Nothing was sent to it, so the call is safe to make."""
    before = (child_processes(), threads())
    with engine_of(bare_server()) as engine:
        assert call_tool(engine, "raw", answer={"content": []}).ok
        for pid in child_processes() - before[0]:
            os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: threads() == before[1])

        assert call_tool(engine, "raw", answer={"content": []}).ok


def test_a_server_that_dies_repeatedly_is_not_restarted() -> None:
    """There is a limit on connections per minute."""
    with engine_of(bare_server()) as engine:
        codes = [error_code(call_tool(engine, "raw", answer={"die": True})) for _ in range(6)]

    assert codes == ["mcp.closed"] * 5 + ["mcp.start"]


def test_an_unresponsive_server_is_stopped_in_time() -> None:
    """Its process has ended."""
    before = child_processes()
    with pytest.raises(PluginError) as caught:
        from_mcp([sys.executable, "-c", "import time; time.sleep(3600)"], group="far", timeout=0.5)

    assert str(caught.value) == "mcp far: the server could not be reached: it did not respond in time"
    assert caught.value.code == "mcp.start"
    assert child_processes() == before


def test_a_server_that_ignores_its_shutdown_is_killed() -> None:
    """When its engine is closed."""
    with engine_of(plain_server("stubborn")) as engine:
        number = call_tool(engine, "process").value

    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_missing_program_is_reported() -> None:
    """The error contains only the type of the exception."""
    with pytest.raises(PluginError) as caught:
        from_mcp(["/no/such/program"], group="far")

    assert str(caught.value) == "mcp far: the server could not be reached: FileNotFoundError"


def test_output_to_stderr_does_not_block_a_server() -> None:
    """It is read and dropped, so the server never waits."""
    with engine_of(plain_server("flood")) as engine:
        assert call_tool(engine, "add", a=1).value == 2


def test_little_garbage_is_ignored_and_much_ends_the_connection() -> None:
    """Lines that are not messages are counted."""
    with engine_of(plain_server("garbage", "little")) as engine:
        assert call_tool(engine, "add", a=1).value == 2
    with pytest.raises(PluginError) as caught:
        plain_server("garbage")

    assert caught.value.code == "mcp.start"


def test_calls_of_several_threads_share_one_connection(engine: Engine) -> None:
    """Each call gets its own answer."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: call_tool(engine, "add", a=number).value, range(64)))

    assert found == [number + 1 for number in range(64)]
    assert len({call_tool(engine, "process").value for _ in range(3)}) == 1


@pytest.mark.slow
def test_a_program_that_does_not_close_its_engine_leaves_no_process() -> None:
    """The server ends with the program."""
    code = (
        "from neuroscript import Engine, ExecutionPolicy\nfrom neuroscript.interop.mcp import from_mcp\n"
        f"server = from_mcp({command('plain')!r}, group='far', trusted=True)\n"
        "engine = Engine(plugins='none', hooks=[server], policy=ExecutionPolicy(grants=['mcp:call:far/*']))\n"
        "print(engine.call('far.process'))"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert completed.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(completed.stdout), 0)


def test_fifty_calls_leave_nothing_behind() -> None:
    """No additional thread, process or descriptor remains."""
    before = (threads(), child_processes())
    count = descriptors()
    with engine_of(plain_server()) as engine:
        assert call_tool(engine, "add", a=1).value == 2
        during = (threads(), len(child_processes()), descriptors())
        for number in range(50):
            assert call_tool(engine, "add", a=number).value == number + 1
        assert (threads(), len(child_processes()), descriptors()) == during

    assert (threads(), child_processes()) == before
    wait_until(lambda: descriptors() <= count)


# HTTP and options


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of the server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with subprocess.Popen([*SERVER, "http", str(port)], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_server_over_http_is_called(url: str) -> None:
    """The same rules apply, and no thread or descriptor remains."""
    before = (threads(), descriptors())
    with engine_of(from_mcp(url=url, group="far", trusted=True)) as engine:
        assert call_tool(engine, "add", a="2").value == 3
        assert error_code(call_tool(engine, "add", a="x")).startswith("coercion")

    assert threads() == before[0]
    wait_until(lambda: descriptors() <= before[1])


def test_a_header_can_be_a_secret_of_the_host(httpserver: HTTPServer) -> None:
    """It is sent, but not shown."""
    httpserver.expect_request("/mcp").respond_with_data("no", status=401)
    with pytest.raises(PluginError) as caught:
        from_mcp(
            url=httpserver.url_for("/mcp"),
            group="far",
            headers={"Authorization": Secret("key")},
            secrets={"key": "Bearer t-12345"},
        )

    assert httpserver.log[0][0].headers["Authorization"] == "Bearer t-12345"
    assert "12345" not in repr(caught.value)


def test_the_environment_of_a_server_is_explicit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It inherits no other variables; secrets are passed by name."""
    monkeypatch.setenv("TEA_KEY", "of the host itself")
    with engine_of(plain_server(env={"TEA_TOKEN": Secret("tea")}, secrets={"tea": "t-123456"})) as engine:
        found = [call_tool(engine, "environment", text=name).value for name in ("TEA_KEY", "TEA_TOKEN")]

    assert found == ["nothing", "t-123456"]


def test_the_error_without_the_sdk_names_the_extra() -> None:
    """The package can still be imported."""
    code = (
        "import sys\nsys.modules['mcp'] = None\nfrom neuroscript.interop.mcp import from_mcp\n"
        "try:\n    from_mcp(['true'], group='far')\nexcept ValueError as error:\n    print(error)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert completed.stdout == f"mcp: the MCP SDK is not installed; install it with: {install_hint('mcp')}\n"


@pytest.mark.slow
def test_invalid_options_are_reported_at_once() -> None:
    """Before a server is started."""
    with pytest.raises(SpecError) as caught:
        from_mcp(
            url="http://me:secret@127.0.0.1/mcp", group="a b", timeout=0, headers={"A": "b\nc", "B": Secret("key")}
        )

    assert caught.value.problems == (
        "url: expected a URL such as http://127.0.0.1:8000/mcp, without a password",
        "group: a b is not a valid group name",
        "timeout: expected a positive, finite number of seconds",
        "headers: A: expected a string of one line, or a Secret",
        "headers: the host provides no secret named key",
    )
