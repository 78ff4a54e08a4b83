"""Workers: how they are reused, limited, killed and replaced, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.isolation.own_tools import own
from tests.isolation.working_tools import outside, working

from neuroscript import (
    CallError,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    Host,
    Isolation,
    LimitError,
    SpecError,
    ToolFailed,
    Toolset,
    tool,
)
from neuroscript.isolation.confinement import available

ROOT = Path(__file__).parents[2]

ZYGOTE = b"isolation/zygote.py"
"""What the launcher, the zygotes and the workers run."""


def engine(host: Host | None = None, grants: tuple[str, ...] = (), **settings: Any) -> Engine:
    policy = ExecutionPolicy(grants=grants, isolate=Isolation(tools=("working.*", "own.*"), **settings))
    return Engine(toolsets=working, plugins="none", policy=policy, host=host)


@pytest.fixture
def isolated() -> Iterator[Engine]:
    with engine() as made:
        yield made


def test_worker_is_reused(isolated: Engine) -> None:
    assert [isolated.call("working.count") for _ in range(3)] == [1, 2, 3]


def test_each_call_has_a_new_worker_without_reuse() -> None:
    with engine(reuse=False) as made:
        assert [made.call("working.count") for _ in range(3)] == [1, 1, 1]


def test_worker_is_replaced_after_its_last_call() -> None:
    with engine(max_calls=2) as made:
        assert [made.call("working.count") for _ in range(5)] == [1, 2, 1, 2, 1]


def test_idle_worker_ends() -> None:
    with engine(idle_seconds=0.2) as made:
        assert made.call("working.count") == 1
        time.sleep(0.6)
        assert made.call("working.count") == 1


@pytest.mark.parametrize("name", ["working.loop", "working.hold_interpreter"])
def test_call_is_killed_at_its_deadline(isolated: Engine, name: str) -> None:
    isolated.call("working.count")
    began = time.monotonic()
    with pytest.raises(CallTimeout, match=r"within 0\.3 s and was killed") as caught:
        isolated.call(name, timeout=0.3)
    assert time.monotonic() - began < 1.3
    assert caught.value.state == "killed"
    assert not caught.value.still_runs
    assert isolated.call("working.count") == 1


def test_timeout_of_the_tool_kills() -> None:
    with engine() as made:
        made.register(own)
        with pytest.raises(CallTimeout) as caught:
            made.call("own.sleep", [30])
        assert caught.value.state == "killed"


def test_async_call_is_killed_when_it_is_cancelled(isolated: Engine) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(isolated.acall("working.loop"))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not eventually(workers, isolated)
    assert isolated.call("working.count") == 1


def test_async_call_is_killed_at_its_deadline(isolated: Engine) -> None:
    with pytest.raises(CallTimeout) as caught:
        asyncio.run(isolated.acall("working.hold_interpreter", timeout=0.2))
    assert caught.value.state == "killed"


def test_nested_call_is_killed_with_its_caller() -> None:
    outer = Toolset("outer")

    @outer.tool
    def calls(rt: Any) -> int:
        """Call a tool that never returns."""
        return rt.call_tool("working.loop")  # type: ignore[no-any-return]

    with engine() as made:
        made.register(outer)
        with pytest.raises(CallTimeout):
            made.call("outer.calls", timeout=0.3)
        assert not eventually(workers, made)


@pytest.mark.parametrize(
    ("how", "reported"), [("exit", "exit code 7"), ("segfault", "SIGSEGV"), ("abort", "SIGABRT|SIGSEGV")]
)
def test_end_of_a_worker_is_named(isolated: Engine, how: str, reported: str) -> None:
    with pytest.raises(ToolFailed, match=reported) as caught:
        isolated.call("working.end", [how])
    assert (caught.value.code, caught.value.retry) == ("isolation.died", "never")
    assert isolated.call("working.count") == 1


def test_memory_is_limited() -> None:
    with engine(memory_bytes=400 << 20) as made:
        assert made.call("working.memory", [50]) == 50 << 20
        with pytest.raises(ToolFailed, match="more memory than the 400 MiB") as caught:
            made.call("working.memory", [1000])
        assert (caught.value.code, caught.value.retry) == ("isolation.memory", "never")
        assert made.call("working.memory", [50]) == 50 << 20


def test_environment_is_empty_but_for_granted_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN_SECRET", "value")
    with engine(grants=("env:read:OWN_*",)) as made:
        assert "OWN_SECRET" not in made.call("working.environment")
        assert made.call("working.variable", ["OWN_SECRET"]) == "value"
        assert "OWN_SECRET" not in made.call("working.environment")


def test_each_worker_has_a_temporary_directory_of_its_own(isolated: Engine) -> None:
    """It lasts as long as the worker; a worker starts with an empty one."""
    assert [isolated.call("working.temporary", [name]) for name in ("a", "b")] == [["a"], ["a", "b"]]
    with engine(reuse=False) as made:
        assert [made.call("working.temporary", [name]) for name in ("a", "b")] == [["a"], ["b"]]


def test_worker_has_no_descriptor_of_the_host(isolated: Engine, tmp_path: Path) -> None:
    with open(tmp_path / "x", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert len(isolated.call("working.descriptors")) == 4


def test_standard_streams_lead_nowhere(isolated: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    assert isolated.call("working.standard_streams") == ""
    assert capfd.readouterr() == ("", "")


def test_stream_can_be_read_late_closed_and_killed(isolated: Engine) -> None:
    stream = isolated.stream("working.items", [0])
    assert list(stream) == [1, 2, 3]
    stream = isolated.stream("working.items", [0])
    assert next(stream) == 1
    stream.close()
    stream = isolated.stream("working.items", [60], timeout=0.5)
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(CallTimeout) as caught:
        next(stream)
    assert (caught.value.state, caught.value.items) == ("killed", 2)
    assert isolated.call("working.items", [0]) == [1, 2, 3]


def test_engine_says_which_workers_run_and_what_confines_them(isolated: Engine) -> None:
    assert isolated.workers == ()
    items = isolated.stream("working.items", [0.0])
    next(items)
    isolated.call("working.count")
    busy, idle = sorted(isolated.workers, key=lambda each: not each.is_busy)

    assert (busy.is_busy, idle.is_busy, idle.calls) == (True, False, 1)
    assert busy.toolset == idle.toolset
    assert {"rlimits", "landlock", "seccomp"} <= {*idle.layers}
    items.close()
    isolated.close()
    assert isolated.workers == ()


def test_two_streams_use_two_workers(isolated: Engine) -> None:
    first, second = isolated.stream("working.items", [0]), isolated.stream("working.items", [0])
    assert [next(first), next(second), *first, *second] == [1, 1, 2, 3, 2, 3]


def test_thread_that_is_left_cannot_use_the_runtime(isolated: Engine) -> None:
    isolated.call("working.thread_is_left")
    assert isolated.call("working.late") == ["runtime.closed"]
    with pytest.raises(CallError):
        isolated.call("var.get", ["late"])


def test_nested_calls_may_exceed_the_number_of_workers() -> None:
    with engine(workers=1) as made:
        assert made.call("working.nested", [5]) == 5


def test_calls_wait_for_a_worker() -> None:
    with engine(workers=2) as made:
        made.call("working.count")
        results: list[float] = []
        threads = [threading.Thread(target=lambda: results.append(made.call("working.sleep", [0.1]))) for _ in range(6)]
        for each in threads:
            each.start()
        time.sleep(0.15)
        assert len(workers(made)) <= 2
        for each in threads:
            each.join()
        assert results == [0.1] * 6


def test_call_that_waits_for_a_worker_ends_at_its_deadline() -> None:
    with engine(workers=1) as made:
        made.call("working.count")
        busy = threading.Thread(target=lambda: made.call("working.sleep", [1.0]))
        busy.start()
        time.sleep(0.2)
        began = time.monotonic()
        with pytest.raises(CallTimeout):
            made.call("working.count", timeout=0.2)
        assert time.monotonic() - began < 0.9
        busy.join()


def test_kill_while_the_host_answers_a_request() -> None:
    class Slow:
        def ask(self, prompt: str, *, secret: bool = False) -> str:
            time.sleep(1.0)
            return "late"

    with engine(Host(prompter=Slow(), stdout=io.StringIO())) as made:
        made.call("working.count")
        began = time.monotonic()
        with pytest.raises(CallTimeout) as caught:
            made.call("working.prompt", timeout=0.2)
        assert time.monotonic() - began < 0.9
        assert caught.value.state == "killed"
        assert made.call("working.count") == 1


def test_close_ends_running_calls_and_all_processes() -> None:
    assert closed_during_a_call(engine()) == [CallError]
    assert not eventually(processes)


def test_nothing_is_left_when_the_host_is_killed() -> None:
    started = started_by_a_killed_host()
    assert len(started) >= 3
    assert not eventually(running, started)


def test_descriptors_are_returned(isolated: Engine) -> None:
    def once() -> None:
        with engine() as made:
            made.call("working.count")
            for how in ("exit", "segfault"):
                with pytest.raises(ToolFailed):
                    made.call("working.end", [how])

    once()
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    once()

    def more() -> list[int]:
        gc.collect()
        return list(range(before, len(os.listdir("/proc/self/fd"))))

    assert not eventually(more)


def test_forked_host_starts_its_own_workers(isolated: Engine) -> None:
    assert isolated.call("working.count") == 1
    pid = os.fork()
    if not pid:
        os._exit(isolated.call("working.count") + 10)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 11
    assert isolated.call("working.count") == 2


def test_function_of_a_module_is_isolated_without_a_toolset() -> None:
    with engine() as made:
        made.register(tool(outside, group="own"))
        assert made.call("own.outside") == 3


def test_function_that_no_process_can_import_is_refused_when_it_is_registered() -> None:
    def inner() -> int:
        """Return a number."""
        return 1

    with engine() as made:
        with pytest.raises(SpecError, match=r"own.inner cannot be isolated: .* at the top level of a module"):
            made.register(tool(inner, group="own"))
        assert "own.inner" not in made.tools
        other = tool(inner, group="free")
        made.register(other)
        assert made.call("free.inner") == 1


def test_worker_has_each_layer_that_is_required() -> None:
    """Except a user namespace, which only a user without privileges needs."""
    layers = tuple(layer for layer, reason in available().items() if not reason and layer != "userns")
    with engine(require=layers) as made:
        assert made.call("working.count") == 1


def test_function_is_refused_if_a_former_name_of_its_tool_is_isolated() -> None:
    def inner() -> int:
        """Return a number."""
        return 1

    free = Toolset("free", [tool(inner, group="free")])
    free.alias("own.inner", "free.inner")
    with engine() as made:
        with pytest.raises(SpecError, match=r"free.inner cannot be isolated: .* at the top level of a module"):
            made.register(free)
        assert "free.inner" not in made.tools


def test_injected_arguments_are_supplied_by_the_host(isolated: Engine) -> None:
    fixed = (
        Toolset("own", working.tools).renamed({"working.memory": "own.memory"}).with_fixed("own.memory", mebibytes=2)
    )
    isolated.register(fixed.filtered("own.*"))
    assert isolated.call("own.memory") == 2 << 20


def test_limits_count_isolated_calls() -> None:
    from neuroscript import Limits

    policy = ExecutionPolicy(limits=Limits(calls=2), isolate=("working.*",))
    with Engine(toolsets=working, plugins="none", policy=policy) as made:
        made.call("working.count")
        made.call("working.count")
        with pytest.raises(LimitError):
            made.call("working.count")


def test_tools_that_are_not_isolated_start_no_process() -> None:
    policy = ExecutionPolicy(isolate=("other.*",))
    with Engine(toolsets=working, plugins="none", policy=policy) as made:
        made.call("working.count")
        assert made._shared._pool is None


def closed_during_a_call(made: Engine) -> list[type[BaseException]]:
    """Close an engine while a worker runs a tool that never returns, and return the types of errors of the call."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            made.call("working.loop")
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not workers(made):
        time.sleep(0.01)
    time.sleep(0.1)
    made.close(0)
    thread.join(5)
    return [type(each) for each in errors]


def started_by_a_killed_host(first: str = "", name: bytes = ZYGOTE) -> list[int]:
    """Kill a host during a call, and return the processes of the isolation that it had started.

    Args:
        first: The first lines of its program.
        name: What the processes run.
    """
    program = (
        f"{first}from tests.isolation.test_workers import *\nmade = engine()\nmade.call('working.count')\n"
        "print('ready', flush=True)\nmade.call('working.loop')"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    started = processes(child.pid, name)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return started


def workers(made: Engine) -> list[Any]:
    return [each for each in made._shared.pool._workers if not each.has_ended()]


def eventually(left: Callable[..., list[Any]], *arguments: Any) -> list[Any]:
    """Return what is left after at most five seconds."""
    end = time.monotonic() + 5
    while (found := left(*arguments)) and time.monotonic() < end:
        time.sleep(0.01)
    return found


def processes(parent: int | None = None, name: bytes = ZYGOTE) -> list[int]:
    """Return the processes of the isolation that descend from a process, by default from this one.

    Args:
        name: What the processes run.
    """
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if name in command and (parent or os.getpid()) in _ancestors(int(each)):
            found.append(int(each))
    return found


def running(pids: list[int]) -> list[int]:
    """Return those of some processes that have not ended."""
    return [each for each in pids if _status(each)[:1] not in ([], ["Z"])]


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and (status := _status(pid)):
        pid = int(status[1])
        found.append(pid)
    return found


def _status(pid: int) -> list[str]:
    """Return the state, the parent and so on of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
