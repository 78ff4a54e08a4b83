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
from tests.interop.mcp_engines import SERVER, bare_server, children, code, done, engine_of, opened, until
from tests.interop.mcp_engines import engine as engine

from neuroscript import Engine, PluginError, Secret, SpecError
from neuroscript.interop.mcp import from_mcp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes and descriptors are counted in /proc")

# Servers that fail


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len([*Path("/proc/self/fd").iterdir()])


def threads() -> int:
    """Return how many threads talk to servers."""
    return sum(1 for each in threading.enumerate() if each.name == "neuroscript-mcp")


def test_a_server_that_dies_in_a_call_is_started_again_for_the_next() -> None:
    """The call is not repeated, because its outcome is unknown."""
    with engine_of(opened()) as engine:
        first = done(engine, "process").value
        result = done(engine, "die")
        second = done(engine, "process").value

    assert (code(result), result.error and result.error.retry) == ("mcp.closed", "later")
    assert isinstance(second, int) and second != first


def test_a_server_that_was_gone_before_a_call_is_started_again_for_it() -> None:
    """Nothing was asked of it, so nothing is lost."""
    before = (children(), threads())
    with engine_of(bare_server()) as engine:
        assert done(engine, "raw", answer={"content": []}).ok
        for pid in children() - before[0]:
            os.kill(int(pid), signal.SIGKILL)
        until(lambda: threads() == before[1])

        assert done(engine, "raw", answer={"content": []}).ok


def test_a_server_that_dies_again_and_again_is_left_alone() -> None:
    """After so many openings within a minute."""
    with engine_of(bare_server()) as engine:
        codes = [code(done(engine, "raw", answer={"die": True})) for _ in range(6)]

    assert codes == ["mcp.closed"] * 5 + ["mcp.start"]


def test_a_server_that_never_answers_is_left_in_time() -> None:
    """And its process is ended."""
    before = children()
    with pytest.raises(PluginError) as caught:
        from_mcp([sys.executable, "-c", "import time; time.sleep(3600)"], group="far", timeout=0.5)

    assert str(caught.value) == "mcp far: the server could not be reached: it did not respond in time"
    assert caught.value.code == "mcp.start"
    assert children() == before


def test_a_server_that_ignores_its_end_is_killed() -> None:
    """When its engine is closed."""
    with engine_of(opened("stubborn")) as engine:
        number = done(engine, "process").value

    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_program_that_is_not_there_is_told_of() -> None:
    """By the type of the error alone."""
    with pytest.raises(PluginError) as caught:
        from_mcp(["/no/such/program"], group="far")

    assert str(caught.value) == "mcp far: the server could not be reached: FileNotFoundError"


def test_a_server_that_floods_its_errors_is_called_all_the_same() -> None:
    """No caller reads them, and nothing waits."""
    with engine_of(opened("flood")) as engine:
        assert done(engine, "add", a=1).value == 2


def test_a_server_that_writes_garbage_is_called_as_long_as_there_is_little_of_it() -> None:
    """And left where there is much."""
    with engine_of(opened("garbage", "little")) as engine:
        assert done(engine, "add", a=1).value == 2
    with pytest.raises(PluginError) as caught:
        opened("garbage")

    assert caught.value.code == "mcp.start"


def test_calls_of_several_threads_share_one_connection(engine: Engine) -> None:
    """And get their own answers."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: done(engine, "add", a=number).value, range(64)))

    assert found == [number + 1 for number in range(64)]
    assert len({done(engine, "process").value for _ in range(3)}) == 1


def test_a_program_that_closes_nothing_leaves_no_process_behind() -> None:
    """Its end is the end of what it started."""
    code = (
        "from neuroscript import Engine, ExecutionPolicy\nfrom neuroscript.interop.mcp import from_mcp\n"
        f"server = from_mcp({SERVER!r}, group='far', trusted=True)\n"
        "engine = Engine(plugins='none', hooks=[server], policy=ExecutionPolicy(grants=['mcp:call:far/*']))\n"
        "print(engine.call('far.process'))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert ran.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(ran.stdout), 0)


def test_fifty_calls_leave_nothing_behind() -> None:
    """No thread, no process, no descriptor."""
    before = (threads(), children())
    count = descriptors()
    with engine_of(opened()) as engine:
        assert done(engine, "add", a=1).value == 2
        during = (threads(), len(children()), descriptors())
        for number in range(50):
            assert done(engine, "add", a=number).value == number + 1
        assert (threads(), len(children()), descriptors()) == during

    assert (threads(), children()) == before
    until(lambda: descriptors() <= count)


# Over HTTP, and what it is started with


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of the server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with subprocess.Popen([*SERVER, "http", str(port)], stderr=subprocess.DEVNULL) as process:
        until(lambda: _answers(port))
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_server_over_http_is_called(url: str) -> None:
    """Under the same rules, and nothing is left of it."""
    before = (threads(), descriptors())
    with engine_of(from_mcp(url=url, group="far", trusted=True)) as engine:
        assert done(engine, "add", a="2").value == 3
        assert code(done(engine, "add", a="x")).startswith("coercion")

    assert threads() == before[0]
    until(lambda: descriptors() <= before[1])


def test_a_header_is_a_secret_of_the_host(httpserver: HTTPServer) -> None:
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


def test_the_environment_is_what_the_host_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else of its own, and secrets by their names."""
    monkeypatch.setenv("TEA_KEY", "of the host itself")
    with engine_of(opened(env={"TEA_TOKEN": Secret("tea")}, secrets={"tea": "t-123456"})) as engine:
        found = [done(engine, "environment", name=name).value for name in ("TEA_KEY", "TEA_TOKEN")]

    assert found == ["nothing", "t-123456"]


def test_without_the_sdk_a_sentence_names_the_extra() -> None:
    """And the package is imported all the same."""
    code = (
        "import sys\nsys.modules['mcp'] = None\nfrom neuroscript.interop.mcp import from_mcp\n"
        "try:\n    from_mcp(['true'], group='far')\nexcept ValueError as error:\n    print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)

    assert ran.stdout == 'mcp: the MCP SDK is not installed; install it with: pip install "neuroscript[mcp]"\n'


def test_what_is_wrong_with_the_call_is_told_at_once() -> None:
    """Before anything is started."""
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
