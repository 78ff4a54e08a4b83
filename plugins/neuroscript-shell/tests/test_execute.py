"""The shell.execute tool: inputs, results, and cleanup of processes."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import ArgumentError, CallError, CallTimeout, Engine, PolicyError, ToolFailed

Program = Callable[[str, str], Path]
PidsIn = Callable[[Path, int], list[int]]
Alive = Callable[..., list[int]]

TREE: Final = """
import os, signal, sys, time
first = os.getpid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
for generation in range(3):
    if os.fork() == 0:
        if "setsid" in sys.argv:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(f"{os.getpid()}.new", "w").write(str(os.getpid()))
    os.rename(f"{os.getpid()}.new", f"{os.getpid()}.pid")
if "return" in sys.argv and os.getpid() == first:
    while len([name for name in os.listdir() if name.endswith(".pid")]) < 8:
        time.sleep(0.01)
    sys.exit(0)
time.sleep(600)
"""
"""Eight processes that ignore SIGTERM, write their numbers into the working directory, and sleep."""


def test_result_describes_the_program_run(engine: Engine, program: Program) -> None:
    """All values are in one map."""
    program("both", "import sys; print('out', sys.argv[1]); print('err', file=sys.stderr); sys.exit(3)")

    result = engine.call("shell.execute", ["both", ["a b"]])

    assert result.pop("seconds") > 0
    assert result == {
        "success": False,
        "exit_code": 3,
        "signal": None,
        "stdout": "out a b\n",
        "stderr": "err\n",
        "stdout_truncated": False,
        "stderr_truncated": False,
        "timed_out": False,
    }


UPSTREAM: Final = {
    "Simple Echo": (["echo", ["hello"]], {"exit_code": 0, "stderr": "", "stdout": "hello\n", "success": True}),
    "Directory outside sandbox": (["pwd", None, "../escaped"], "policy.capability"),
    "not a list": (["echo", "not-a-list"], "coercion.type"),
    "P160": (["echo", ["$(id)`id`"]], {"stdout": "$(id)`id`\n"}),
    "P161": (["echo", ["a\0b"]], "shell.bad_argument"),
}


@pytest.mark.parametrize(("args", "expected"), UPSTREAM.values(), ids=UPSTREAM)
def test_upstream_cases(engine: Engine, args: list[Any], expected: dict[str, Any] | str) -> None:
    """Also the path cases that are about programs: with upstream's names in the result, or refused."""
    try:
        result = engine.call("shell.execute", args)
    except CallError as error:
        assert (error.code, error.retry) == (expected, "model")
    else:
        assert {**result, **expected} == result


def test_signal_is_reported(engine: Engine, program: Program) -> None:
    """There is no exit code then."""
    program("dies", "import os; os.abort()")

    result = engine.call("shell.execute", ["dies"])

    assert (result["exit_code"], result["signal"], result["success"]) == (None, "SIGABRT", False)


@pytest.mark.parametrize("text", ["", "one line", "\0\n☃" * 100_000], ids=["nothing", "a line", "much"])
def test_stdin_is_passed(engine: Engine, text: str) -> None:
    """End of file follows the input; without input, it comes immediately."""
    result = engine.call_named("shell.execute", {"command": "cat", "stdin": text, "max_output_bytes": 1_000_000})

    assert result["stdout"] == text


def test_unread_stdin_is_not_an_error(engine: Engine) -> None:
    """The input is discarded."""
    result = engine.call_named("shell.execute", {"command": "true", "stdin": "x" * 1_000_000})

    assert result["success"]


def test_working_directory_is_in_the_sandbox(engine: Engine, root: Path) -> None:
    """The sandbox itself, or a directory in it."""
    there = [engine.call("shell.execute", ["pwd", [], each])["stdout"] for each in (".", "data", "./data/")]

    assert there == [f"{root}\n", f"{root}/data\n", f"{root}/data\n"]


@pytest.mark.parametrize(
    ("directory", "code"),
    [
        ("..", "policy.capability"),
        ("/", "policy.capability"),
        ("data/../..", "policy.capability"),
        ("out", "sandbox.symlink"),
        ("out/data", "sandbox.symlink"),
        ("data/-n.txt", "sandbox.notdir"),
        ("nothing", "sandbox.notfound"),
        ("da\0ta", "policy.capability"),
        ("", "coercion.length"),
    ],
)
def test_working_directory_cannot_leave_the_sandbox(engine: Engine, root: Path, directory: str, code: str) -> None:
    """Neither by a path nor by a link."""
    (root / "out").symlink_to(root.parent)

    with pytest.raises((PolicyError, ToolFailed, ArgumentError)) as caught:
        engine.call("shell.execute", ["pwd", [], directory])

    assert (caught.value.code, caught.value.retry) == (code, "model")


def test_working_directory_needs_a_grant(engine_with: Callable[..., Engine]) -> None:
    """Programs can only work in directories that the grants allow reading."""
    engine = engine_with("shell:exec:pwd", "fs:read:data")

    assert engine.call("shell.execute", ["pwd", [], "data"])["success"]
    with pytest.raises(PolicyError) as caught:
        engine.call("shell.execute", ["pwd"])
    assert str(caught.value) == "shell.execute: needs fs:read:."


def test_replaced_directory_has_no_effect(engine: Engine, root: Path, program: Program, confined: bool) -> None:
    """A link that replaces the path meanwhile does not affect the program; if it is confined, it can make no link."""
    (root / "away").mkdir()
    replace = "os.mkdir('../data')" if confined else "os.symlink('../away', '../data')"
    program("swaps", f"import os\nos.rename('../data', '../old')\n{replace}\nopen('new', 'w').close()")

    result = engine.call("shell.execute", ["swaps", [], "data"])

    assert (result["stderr"], [*(root / "away").iterdir()]) == ("", [])
    assert (root / "old" / "new").exists()


def test_execute_needs_trust_and_a_grant(engine_with: Callable[..., Engine]) -> None:
    """Because a program can do whatever its user can."""
    with pytest.raises(PolicyError) as untrusted:
        engine_with("shell:exec:*", "fs:read:**", trusted=False).call("shell.execute", ["pwd"])
    with pytest.raises(PolicyError) as ungranted:
        engine_with("shell:exec:ls", "fs:read:**").call("shell.execute", ["pwd"])

    assert (untrusted.value.code, untrusted.value.retry, ungranted.value.code, ungranted.value.retry) == (
        "policy.trust",
        "host",
        "policy.capability",
        "host",
    )


@pytest.mark.slow
def test_large_output_uses_bounded_memory(engine: Engine) -> None:
    """The first bytes are retained, the rest is discarded, and the result says so."""
    engine.call("shell.execute", ["true"])
    tracemalloc.start()
    try:
        result = engine.call("shell.execute", ["head", ["-c", "1000000000", "/dev/zero"], ".", "", [], 300, 1000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (result["success"], result["stdout"], result["stdout_truncated"]) == (True, "\0" * 1000, True)
    assert peak < 4_000_000


def test_streams_are_truncated_separately(engine: Engine, program: Program) -> None:
    """At exactly the requested size; invalid UTF-8 is replaced."""
    program("writes", "import os; os.write(1, b'12345'); os.write(2, b'a\\xff\\xfeb\\xe2\\x98\\x83')")

    result = engine.call_named("shell.execute", {"command": "writes", "max_output_bytes": 5})

    assert (result["stdout"], result["stdout_truncated"]) == ("12345", False)
    assert (result["stderr"], result["stderr_truncated"]) == ("a\ufffd\ufffdb\ufffd", True)


@pytest.mark.parametrize("how", ["", "setsid"], ids=["in one group", "in sessions of their own"])
def test_process_tree_that_ignores_sigterm_is_killed(
    engine: Engine, root: Path, program: Program, how: str, alive: Alive, pids_in: PidsIn
) -> None:
    """All of it, before the call returns."""
    program("tree", TREE)

    result = engine.call_named(
        "shell.execute", {"command": "tree", "args_list": [how], "directory": "data", "timeout_seconds": 2.5}
    )

    assert (result["timed_out"], result["exit_code"], result["signal"]) == (True, None, "SIGKILL")
    assert alive(pids_in(root / "data", 8)) == []
    assert result["seconds"] < 8


def test_background_processes_are_killed(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """The call does not wait for processes that the program left."""
    program("tree", TREE)

    result = engine.call("shell.execute", ["tree", ["setsid", "return"], "data", "", [], 60])

    assert (result["timed_out"], result["exit_code"]) == (False, 0)
    assert alive(pids_in(root / "data", 8)) == []


def test_program_can_handle_sigterm(engine: Engine, program: Program) -> None:
    """SIGKILL follows a second later."""
    program(
        "polite",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), os._exit(4)))\n"
        "print('ready', flush=True)\ntime.sleep(60)",
    )

    result = engine.call("shell.execute", ["polite", [], ".", "", [], 2.5])

    assert (result["timed_out"], result["exit_code"], result["stdout"]) == (True, 4, "ready\nbye\n")


def test_sigterm_is_sent_once(engine: Engine, program: Program) -> None:
    """Many programs treat a second SIGTERM as a request to exit without cleanup."""
    program(
        "counting",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'asked\\n'))\n"
        "for _ in range(100):\n    if os.fork() == 0:\n        signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "        time.sleep(600)\n"
        "print('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)",
    )

    result = engine.call("shell.execute", ["counting", [], ".", "", [], 2.0])

    assert (result["timed_out"], result["stdout"]) == (True, "ready\nasked\n")


def test_too_many_processes_are_stopped(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """The maximum is 256 at once."""
    program(
        "crowd",
        "import os, time\nfor _ in range(400):\n    if os.fork() == 0:\n"
        "        open(f'{os.getpid()}.pid', 'w').write(str(os.getpid()))\n        time.sleep(600)\ntime.sleep(600)",
    )

    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", ["crowd", [], "data"])

    assert str(caught.value) == "shell.execute: the program was stopped because it started more than 256 processes"
    assert (caught.value.code, caught.value.retry) == ("shell.too_many", "model")
    assert alive(pids_in(root / "data", 1)) == []


def test_cancelled_call_leaves_no_processes(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """Cancelling the call stops the program."""
    program("tree", TREE)

    async def given_up() -> None:
        task = asyncio.create_task(engine.acall("shell.execute", ["tree", ["setsid"], "data", "", [], 600]))
        pids = await asyncio.to_thread(pids_in, root / "data", 8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(alive, pids, 10) == []

    asyncio.run(given_up())


def test_deadline_leaves_no_processes(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """The deadline of a call stops its program, whatever its timeout is."""
    program("tree", TREE)

    with pytest.raises(CallTimeout) as caught:
        engine.call("shell.execute", ["tree", [], "data", "", [], 600], timeout=2.5)

    assert (caught.value.code, caught.value.retry) == ("call.timeout", "later")
    assert alive(pids_in(root / "data", 8), 10) == []


HOST: Final = """
import sys
from neuroscript import Engine, ExecutionPolicy, Host
policy = ExecutionPolicy(trusted=True, grants=["shell:exec:tree", "fs:read:**"])
with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=sys.argv[1]), policy=policy) as engine:
    engine.call("shell.execute", ["tree", ["setsid"], "data", "", [], 600])
"""


def test_killed_host_leaves_no_processes(root: Path, program: Program, alive: Alive, pids_in: PidsIn) -> None:
    """Even by SIGKILL, when the host cannot clean up."""
    program("tree", TREE)
    host = subprocess.Popen([sys.executable, "-c", HOST, str(root)])
    pids = pids_in(root / "data", 8)

    host.kill()
    host.wait()

    assert alive(pids, 10) == []


LIMITS: Final = """
import ctypes, json, os, resource

def is_open(descriptor):
    try:
        return bool(os.fstat(descriptor))
    except OSError:
        return False

limits = [resource.getrlimit(each) for each in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)]
has_no_new_privileges = ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)
print(json.dumps([*limits, has_no_new_privileges, [*filter(is_open, range(256))], os.getsid(0)]))
"""


def test_program_has_resource_limits(engine: Engine, program: Program, confined: bool) -> None:
    """No core dumps, no file above a gigabyte, no privilege escalation, no descriptors but its streams."""
    program("limits", f"{LIMITS}print(os.getpid())")

    result = engine.call("shell.execute", ["limits"])

    values, pid = result["stdout"].splitlines()
    session = 0 if confined else int(pid)  # a confined program is in the session of its launcher, which it cannot see
    assert json.loads(values) == [[0, 0], [1 << 30, 1 << 30], 1, [0, 1, 2], session]


def test_file_size_is_limited(engine: Engine, root: Path) -> None:
    """The system stops a program that writes more."""
    result = engine.call("shell.execute", ["truncate", ["-s", "1073741825", "big"], "data"])

    assert result["signal"] == "SIGXFSZ"
    assert (root / "data" / "big").stat().st_size <= 1 << 30


def test_program_runs_from_a_thread_with_blocked_signals(engine: Engine) -> None:
    """As threads of other languages have; the supervisor still notices when its children end."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        result = engine.call("shell.execute", ["true", [], ".", "", [], 20.0])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    assert (result["timed_out"], result["success"]) == (False, True)


@pytest.mark.slow
def test_programs_run_concurrently(engine: Engine, program: Program) -> None:
    """Calls from many threads do not mix their streams."""
    with ThreadPoolExecutor(8) as pool:
        result = list(pool.map(lambda number: engine.call("shell.execute", ["show", [str(number)]]), range(24)))

    assert [json.loads(each["stdout"]) for each in result] == [[str(number)] for number in range(24)]


def test_no_descriptor_leaks(engine: Engine, program: Program) -> None:
    """Neither by successful nor by failed calls."""

    def calls() -> None:
        for args in (["show", ["x"]], ["cat", [], ".", "x"], ["sleep", ["9"], ".", "", [], 0.1]):
            engine.call("shell.execute", args)
        for wrong in (["nothing_of_that_name"], ["show", ["x" * 200_000]], ["show", [], "data/-n.txt"]):
            with pytest.raises(ToolFailed):
                engine.call("shell.execute", wrong)

    calls()
    before = len([*Path("/proc/self/fd").iterdir()])
    calls()

    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_interrupted_call_leaves_no_processes(root: Path, program: Program, alive: Alive, pids_in: PidsIn) -> None:
    """Ctrl-C at the host stops the program too."""
    program("tree", TREE)
    host = subprocess.Popen([sys.executable, "-c", HOST, str(root)], stderr=subprocess.DEVNULL)
    pids = pids_in(root / "data", 8)

    host.send_signal(signal.SIGINT)
    host.wait(20)

    assert alive(pids, 10) == []


def test_missing_program_is_not_named_in_the_error(engine: Engine) -> None:
    """No error repeats an argument of the caller."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", ["canary_program", ["canary argument"]])

    text = "shell.execute: command: expected a program on the host's PATH outside the sandbox, got another name"
    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, "shell.not_found", "model")


@pytest.mark.alone
@pytest.mark.slow
def test_event_loop_is_not_blocked(engine: Engine) -> None:
    """Several programs take as long as one."""

    async def four() -> list[Any]:
        calls = (engine.acall("shell.execute", ["sleep", ["3"]]) for _ in range(4))
        return await asyncio.gather(*calls)

    started, before = time.monotonic(), threading.active_count()

    assert all(each["success"] for each in asyncio.run(four()))
    assert time.monotonic() - started < 11
    assert threading.active_count() - before < 100


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Open so many files that the next descriptors are above 1023."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, limits[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_descriptors")
def test_descriptors_above_1023_work(engine: Engine) -> None:
    """The supervisor inherits the host's descriptor numbers."""
    ended = engine.call("shell.execute", ["echo", ["here"]])
    timed_out = engine.call("shell.execute", ["sleep", ["60"], ".", "", [], 0.2])

    assert (ended["exit_code"], ended["stdout"]) == (0, "here\n")
    assert (timed_out["timed_out"], timed_out["signal"]) == (True, "SIGTERM")
