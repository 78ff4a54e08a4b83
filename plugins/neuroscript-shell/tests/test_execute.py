"""Programs: what they get, what they give, and what is left of them."""

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


def test_a_program_gets_its_arguments_and_tells_how_it_ended(engine: Engine, program: Program) -> None:
    """All that is told of it, in one map."""
    program("both", "import sys; print('out', sys.argv[1]); print('err', file=sys.stderr); sys.exit(3)")

    came = engine.call("shell.execute", ["both", ["a b"]])

    assert came.pop("seconds") > 0
    assert came == {
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
def test_upstreams_own_cases_hold(engine: Engine, args: list[Any], expected: dict[str, Any] | str) -> None:
    """And those of the corpus of paths that are about programs: with upstream's names in the result, or refused."""
    try:
        came = engine.call("shell.execute", args)
    except CallError as error:
        assert (error.code, error.retry) == (expected, "model")
    else:
        assert {**came, **expected} == came


def test_a_program_that_kills_itself_tells_the_signal(engine: Engine, program: Program) -> None:
    """There is no exit code then."""
    program("dies", "import os; os.abort()")

    came = engine.call("shell.execute", ["dies"])

    assert (came["exit_code"], came["signal"], came["success"]) == (None, "SIGABRT", False)


@pytest.mark.parametrize("text", ["", "one line", "\0\n☃" * 100_000], ids=["nothing", "a line", "much"])
def test_what_it_can_read_is_what_is_given(engine: Engine, text: str) -> None:
    """All of it and then the end; without a text there is the end at once."""
    came = engine.call_named("shell.execute", {"command": "cat", "stdin": text, "max_output_bytes": 1_000_000})

    assert came["stdout"] == text


def test_a_program_that_does_not_read_is_no_failure(engine: Engine) -> None:
    """What it was given is let go."""
    came = engine.call_named("shell.execute", {"command": "true", "stdin": "x" * 1_000_000})

    assert came["success"]


def test_the_sandbox_is_where_it_works(engine: Engine, root: Path) -> None:
    """The sandbox itself, or a directory below it."""
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
def test_it_works_nowhere_else(engine: Engine, root: Path, directory: str, code: str) -> None:
    """No path and no link leads out of the sandbox."""
    (root / "out").symlink_to(root.parent)

    with pytest.raises((PolicyError, ToolFailed, ArgumentError)) as caught:
        engine.call("shell.execute", ["pwd", [], directory])

    assert (caught.value.code, caught.value.retry) == (code, "model")


def test_a_directory_needs_its_own_grant(engine_with: Callable[..., Engine]) -> None:
    """What may be read below the sandbox is where programs may work."""
    engine = engine_with("shell:exec:pwd", "fs:read:data")

    assert engine.call("shell.execute", ["pwd", [], "data"])["success"]
    with pytest.raises(PolicyError) as caught:
        engine.call("shell.execute", ["pwd"])
    assert str(caught.value) == "shell.execute: needs fs:read:."


def test_the_directory_stays_while_its_name_leads_elsewhere(engine: Engine, root: Path, program: Program) -> None:
    """A link that takes its name meanwhile changes nothing for the program."""
    (root / "away").mkdir()
    program(
        "swaps",
        "import os\nos.rename('../data', '../old')\nos.symlink('../away', '../data')\nopen('new', 'w').close()",
    )

    came = engine.call("shell.execute", ["swaps", [], "data"])

    assert (came["stderr"], [*(root / "away").iterdir()]) == ("", [])
    assert (root / "old" / "new").exists()


def test_trust_and_a_grant_are_both_needed(engine_with: Callable[..., Engine]) -> None:
    """A program does what its user may do."""
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


def test_a_gigabyte_of_output_fills_no_memory(engine: Engine) -> None:
    """The first bytes are kept, the rest is read and let go, and that is told."""
    engine.call("shell.execute", ["true"])
    tracemalloc.start()
    try:
        came = engine.call("shell.execute", ["head", ["-c", "1000000000", "/dev/zero"], ".", "", [], 300, 1000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (came["success"], came["stdout"], came["stdout_truncated"]) == (True, "\0" * 1000, True)
    assert peak < 4_000_000


def test_each_stream_is_cut_by_itself(engine: Engine, program: Program) -> None:
    """Exactly as many bytes as were asked for; what is not UTF-8 is replaced."""
    program("writes", "import os; os.write(1, b'12345'); os.write(2, b'a\\xff\\xfeb\\xe2\\x98\\x83')")

    came = engine.call_named("shell.execute", {"command": "writes", "max_output_bytes": 5})

    assert (came["stdout"], came["stdout_truncated"]) == ("12345", False)
    assert (came["stderr"], came["stderr_truncated"]) == ("a\ufffd\ufffdb\ufffd", True)


@pytest.mark.parametrize("how", ["", "setsid"], ids=["in one group", "in sessions of their own"])
def test_a_tree_that_ignores_sigterm_is_gone_after_the_limit(
    engine: Engine, root: Path, program: Program, how: str, alive: Alive, pids_in: PidsIn
) -> None:
    """All of it, when the call returns."""
    program("tree", TREE)

    came = engine.call_named(
        "shell.execute", {"command": "tree", "args_list": [how], "directory": "data", "timeout_seconds": 2.5}
    )

    assert (came["timed_out"], came["exit_code"], came["signal"]) == (True, None, "SIGKILL")
    assert alive(pids_in(root / "data", 8)) == []
    assert came["seconds"] < 8


def test_what_outlives_its_program_is_gone_when_the_call_returns(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """A program that has ended leaves nothing running, and nobody waits for what it left."""
    program("tree", TREE)

    came = engine.call("shell.execute", ["tree", ["setsid", "return"], "data", "", [], 60])

    assert (came["timed_out"], came["exit_code"]) == (False, 0)
    assert alive(pids_in(root / "data", 8)) == []


def test_a_program_that_ends_at_sigterm_may_say_its_last_words(engine: Engine, program: Program) -> None:
    """SIGTERM comes first, and a second later SIGKILL."""
    program(
        "polite",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), os._exit(4)))\n"
        "print('ready', flush=True)\ntime.sleep(60)",
    )

    came = engine.call("shell.execute", ["polite", [], ".", "", [], 2.5])

    assert (came["timed_out"], came["exit_code"], came["stdout"]) == (True, 4, "ready\nbye\n")


def test_a_program_is_asked_to_end_once(engine: Engine, program: Program) -> None:
    """A second SIGTERM means to many programs that they are to leave their work as it lies."""
    program(
        "counting",
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'asked\\n'))\n"
        "for _ in range(100):\n    if os.fork() == 0:\n        signal.signal(signal.SIGTERM, signal.SIG_DFL)\n"
        "        time.sleep(600)\n"
        "print('ready', flush=True)\nfor _ in range(600):\n    time.sleep(0.1)",
    )

    came = engine.call("shell.execute", ["counting", [], ".", "", [], 2.0])

    assert (came["timed_out"], came["stdout"]) == (True, "ready\nasked\n")


def test_a_crowd_of_processes_is_ended(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """More than 256 at once are too many."""
    program(
        "crowd",
        "import os, time\nfor _ in range(400):\n    if os.fork() == 0:\n"
        "        open(f'{os.getpid()}.pid', 'w').write(str(os.getpid()))\n        time.sleep(600)\ntime.sleep(600)",
    )

    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", ["crowd", [], "data"])

    assert str(caught.value) == "shell.execute: the program was ended: it began more than 256 processes"
    assert (caught.value.code, caught.value.retry) == ("shell.too_many", "model")
    assert alive(pids_in(root / "data", 1)) == []


def test_nothing_is_left_when_the_call_is_cancelled(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """Whoever stops waiting ends the program too."""
    program("tree", TREE)

    async def given_up() -> None:
        task = asyncio.create_task(engine.acall("shell.execute", ["tree", ["setsid"], "data", "", [], 600]))
        pids = await asyncio.to_thread(pids_in, root / "data", 8)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(alive, pids, 10) == []

    asyncio.run(given_up())


def test_nothing_is_left_when_the_call_is_too_late(
    engine: Engine, root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """The deadline of a call ends its program, whatever time that was given."""
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


def test_nothing_is_left_when_the_host_is_killed(root: Path, program: Program, alive: Alive, pids_in: PidsIn) -> None:
    """Even by SIGKILL, when nothing of it can run any more."""
    program("tree", TREE)
    host = subprocess.Popen([sys.executable, "-c", HOST, str(root)])
    pids = pids_in(root / "data", 8)

    host.kill()
    host.wait()

    assert alive(pids, 10) == []


def test_a_program_has_limits_of_its_own(engine: Engine, program: Program) -> None:
    """No core, no file above a gigabyte, no rights by the file that it runs, no descriptor but its streams."""
    program(
        "limits",
        "import json, os, resource\n"
        "status = open('/proc/self/status').read()\n"
        "print(json.dumps([resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_FSIZE),\n"
        "    'NoNewPrivs:\\t1' in status, sorted(os.listdir('/proc/self/fd'))[:4], os.getsid(0) == os.getpid()]))",
    )

    came = engine.call("shell.execute", ["limits"])

    assert json.loads(came["stdout"]) == [[0, 0], [1 << 30, 1 << 30], True, ["0", "1", "2", "3"], True]


def test_a_file_can_not_grow_without_end(engine: Engine, root: Path) -> None:
    """Whoever writes further is ended by the system."""
    came = engine.call("shell.execute", ["truncate", ["-s", "1073741825", "big"], "data"])

    assert came["signal"] == "SIGXFSZ"
    assert (root / "data" / "big").stat().st_size <= 1 << 30


def test_a_program_runs_for_a_thread_that_blocks_all_signals(engine: Engine) -> None:
    """As threads of other languages do: the supervisor notices its children's end all the same."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        came = engine.call("shell.execute", ["true", [], ".", "", [], 20.0])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    assert (came["timed_out"], came["success"]) == (False, True)


def test_programs_run_beside_each_other(engine: Engine, program: Program) -> None:
    """Calls of many threads do not mix their streams."""
    with ThreadPoolExecutor(8) as pool:
        came = list(pool.map(lambda number: engine.call("shell.execute", ["show", [str(number)]]), range(24)))

    assert [json.loads(each["stdout"]) for each in came] == [[str(number)] for number in range(24)]


def test_no_descriptor_is_left_open(engine: Engine, program: Program) -> None:
    """Neither by calls that go well nor by those that fail."""

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


def test_a_main_thread_that_is_interrupted_leaves_nothing(
    root: Path, program: Program, alive: Alive, pids_in: PidsIn
) -> None:
    """Ctrl-C at the host ends the program with it."""
    program("tree", TREE)
    host = subprocess.Popen([sys.executable, "-c", HOST, str(root)], stderr=subprocess.DEVNULL)
    pids = pids_in(root / "data", 8)

    host.send_signal(signal.SIGINT)
    host.wait(20)

    assert alive(pids, 10) == []


def test_what_is_not_there_is_told_without_its_name(engine: Engine) -> None:
    """No error repeats what the caller wrote."""
    with pytest.raises(ToolFailed) as caught:
        engine.call("shell.execute", ["canary_program", ["canary argument"]])

    text = "shell.execute: command: expected a program on the host's PATH outside the sandbox, got another name"
    assert (str(caught.value), caught.value.code, caught.value.retry) == (text, "shell.not_found", "model")


@pytest.mark.alone
def test_the_event_loop_goes_on_while_a_program_runs(engine: Engine) -> None:
    """Several of them take as long as one."""

    async def four() -> list[Any]:
        calls = (engine.acall("shell.execute", ["sleep", ["3"]]) for _ in range(4))
        return await asyncio.gather(*calls)

    started, before = time.monotonic(), threading.active_count()

    assert all(each["success"] for each in asyncio.run(four()))
    assert time.monotonic() - started < 11
    assert threading.active_count() - before < 100


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Hold so many open files that the next ones have numbers above 1023."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, limits[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    yield
    for descriptor in held:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_descriptors")
def test_a_host_with_many_open_files_runs_programs(engine: Engine) -> None:
    """The supervisor has descriptors with the numbers of the host's; it waits for numbers above 1023 too."""
    ended = engine.call("shell.execute", ["echo", ["here"]])
    timed_out = engine.call("shell.execute", ["sleep", ["60"], ".", "", [], 0.2])

    assert (ended["exit_code"], ended["stdout"]) == (0, "here\n")
    assert (timed_out["timed_out"], timed_out["signal"]) == (True, "SIGTERM")
