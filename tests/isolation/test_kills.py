"""Processes of the isolation are killed at any moment: nothing hangs, nothing is left, and the engine goes on."""

from __future__ import annotations

import gc
import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conftest import ALL
from tests.isolation.every_member import members
from tests.isolation.hostile_tools import hostile
from tests.isolation.test_workers import ROOT, eventually, processes, running, workers
from tests.isolation.working_tools import working

from neuroscript import (
    CallError,
    CallTimeout,
    Engine,
    ExecutionPolicy,
    FileAudit,
    Host,
    Isolation,
    ToolFailed,
    Toolset,
)
from neuroscript.audit.verification import verify
from neuroscript.isolation import processes as handles
from neuroscript.isolation.pool import Pool

TIMED_RUNS: Final = 1_000 if ALL else 50
LATE_SECONDS: Final = 0.1 if ALL else 1.0
"""How long after its deadline a call may still run."""

KILLS: Final = 1_000 if ALL else 24

CALM_EVERY: Final = 4
"""After how many kills a call succeeds before the next kill, however busy the machine is."""

TOOLS: Final = Toolset("all", [*working.tools, *hostile.tools, *members.tools])

EXPECTED: Final = {
    "isolation.died": "never",
    "isolation.unavailable": "host",
    "isolation.busy": "later",
    "call.timeout": "later",
    "tool.failed": "never",
}
"""The codes of errors of calls whose processes are killed, with who can repeat them.

A nested call that fails makes the outer one fail.
"""


def engine(tmp_path: Path, audit: tuple[FileAudit, ...] = (), **settings: Any) -> Engine:
    isolation = Isolation(tools=("working.*", "hostile.*", "member.*"), **settings)
    policy = ExecutionPolicy(grants=("shell:exec:sleep", "fs:*:*"), isolate=isolation)
    host = Host(sandbox_dir=str(tmp_path / "sandbox"), stdout=io.StringIO())
    return Engine(toolsets=TOOLS, plugins="none", policy=policy, host=host, audit=audit)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "sandbox").mkdir()
    with engine(tmp_path) as made:
        made.call("working.count")
        yield made


# Deadlines


@pytest.mark.alone
def test_tools_are_killed_soon_after_their_deadline(made: Engine) -> None:
    late = []
    for number in range(TIMED_RUNS):
        made.call("hostile.harmless", [{}])
        (worker,) = [
            each
            for each in workers_of(made)
            if each.is_alive and each.rules.source.name == "tests.isolation.hostile_tools"
        ]
        process = os.dup(worker._process.descriptor)
        timeout = random.uniform(0.01, 0.1)
        end = time.monotonic() + timeout
        with pytest.raises(CallTimeout) as caught:
            made.call(
                ("hostile.loop", "hostile.loop_in_c", "hostile.regular_expression")[number % 3], [{}], timeout=timeout
            )
        assert caught.value.state == "killed"
        assert handles.readable(10, process) == [process]
        late.append(time.monotonic() - end)
        os.close(process)
    assert max(late) < LATE_SECONDS


def workers_of(made: Engine) -> list[Any]:
    return list(made._shared.pool._workers)


# Ends of the processes that start workers


def launcher(made: Engine) -> int:
    return made._shared.pool._launcher.pid  # type: ignore[union-attr]


def root(made: Engine) -> int:
    (found,) = [each for each in processes() if parent_of(each) == launcher(made)]
    return found


def zygote(made: Engine) -> int:
    (handle,) = made._shared.pool._zygotes.values()
    text = Path(f"/proc/self/fdinfo/{handle._process.descriptor}").read_text()  # type: ignore[union-attr]
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pid:"))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("killed", [launcher, root, zygote])
@pytest.mark.parametrize("layers", ["all layers", "no namespaces"])
def test_engine_starts_new_processes_if_they_were_killed(
    tmp_path: Path, killed: Callable[[Engine], int], layers: str
) -> None:
    (tmp_path / "sandbox").mkdir()
    with engine(tmp_path) as made:
        made._shared.pool.namespaces = layers == "all layers"
        assert made.call("working.count") == 1
        former = running(processes())
        target = killed(made)
        os.kill(target, signal.SIGKILL)
        assert not eventually(running, [target])
        assert not eventually(workers, made)
        assert made.call("working.count") == 1
        assert made.call("working.count") == 2
        assert [each for each in running(processes()) if each not in former]
        assert len(processes()) <= len(former) + 1
    assert not eventually(processes)


@pytest.mark.parametrize("killed", [launcher, zygote])
@pytest.mark.parametrize("layers", ["all layers", "no namespaces"])
def test_call_starts_another_worker_if_its_zygote_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Callable[[Engine], int], layers: str
) -> None:
    (tmp_path / "sandbox").mkdir()
    prepare, targets = Pool._setup, list[int]()

    def kill_first(self: Pool, *arguments: Any) -> dict[str, Any]:
        if not targets:
            targets.append(killed(made))
            os.kill(targets[0], signal.SIGKILL)
            assert not eventually(running, targets)
            time.sleep(0.1)  # then the kernel ends the worker too
        return prepare(self, *arguments)

    with engine(tmp_path) as made:
        made._shared.pool.namespaces = layers == "all layers"
        assert made.call("working.count") == 1
        monkeypatch.setattr(Pool, "_setup", kill_first)
        for each in workers_of(made):
            each.kill()
        assert made.call("working.count") == 1
        assert made.call("working.count") == 2
        assert targets


@pytest.mark.parametrize("stopped", [root, zygote])
def test_stopped_zygote_holds_up_no_call_and_is_replaced(
    made: Engine, monkeypatch: pytest.MonkeyPatch, stopped: Callable[[Engine], int]
) -> None:
    os.kill(stopped(made), signal.SIGSTOP)
    busy = threading.Thread(target=lambda: made.call("working.sleep", [1.5]))
    busy.start()
    began = time.monotonic()
    with pytest.raises(CallTimeout):
        made.call("working.items", [60], timeout=0.3)
    assert time.monotonic() - began < 1.3
    busy.join()
    monkeypatch.setattr(handles, "ANSWER_SECONDS", 0.3)
    for each in workers_of(made):
        each.kill()
    assert made.call("working.count") == 1


def test_late_answer_of_a_zygote_is_not_taken_for_another(made: Engine) -> None:
    made._shared.pool._remove(workers_of(made)[0])
    target = zygote(made)
    os.kill(target, signal.SIGSTOP)
    for _ in range(3):
        with pytest.raises(CallTimeout):
            made.call("working.count", timeout=0.1)
    os.kill(target, signal.SIGCONT)
    assert made.call("working.count") == 1
    assert made.call("working.count") == 2
    assert not eventually(lambda: processes()[4:])  # the launcher, two zygotes and one worker


# Workers that cannot be used


def test_worker_that_holds_an_object_ends_if_another_tool_needs_its_place(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    with engine(tmp_path, workers=1) as made:
        handle = made.call("member.new_handle")
        assert made.call("working.count") == 1
        with pytest.raises(ToolFailed) as caught:
            made.call("member.use_handle", [handle])
        assert (caught.value.code, caught.value.retry) == ("handle.unknown", "model")


def test_call_ends_if_no_worker_becomes_free(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    with engine(tmp_path, workers=1, start_seconds=2) as made:
        stream = made.stream("working.items", [0])
        assert next(stream) == 1
        with pytest.raises(ToolFailed, match="no worker became free within 2 s") as caught:
            made.call("working.count")
        assert (caught.value.code, caught.value.retry) == ("isolation.busy", "later")
        assert list(stream) == [2, 3]
        assert made.call("working.count") == 1


def test_nested_call_does_not_wait_for_the_worker_of_its_caller(made: Engine) -> None:
    handle = made.call("member.new_handle")
    with pytest.raises(ToolFailed, match=r"its call of member.use_handle failed \(isolation.value\)"):
        made.call("member.use_handle_nested", [handle], timeout=10)


def test_worker_that_has_ended_is_not_used_again(made: Engine) -> None:
    (worker,) = workers_of(made)
    os.kill(pid_of(worker), signal.SIGKILL)
    assert not eventually(workers, made)
    assert made.call("working.count") == 1
    assert worker not in workers_of(made)


def pid_of(worker: Any) -> int:
    text = Path(f"/proc/self/fdinfo/{worker._process.descriptor}").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pid:"))


# Python closes a socket whose pair was being made, with a warning:
@pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning")
def test_interrupts_of_the_main_thread_lose_no_worker(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    before = descriptors()
    with engine(tmp_path, workers=2) as made:
        made.call("working.count")
        former = signal.signal(signal.SIGALRM, signal.default_int_handler)
        try:
            for _ in range(60 if ALL else 15):
                with suppress(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, random.uniform(0.001, 0.05))
                    while True:
                        made.call("working.sleep", [0.005])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)
        assert made.call("working.sleep", [0.0], timeout=20) == 0.0
        assert len(workers_of(made)) <= 2
    assert not eventually(processes)
    gc.collect()
    assert descriptors() <= before + 1


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_close_while_workers_start_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    gc.collect()
    before = descriptors()
    for number in range(8):
        made = engine(tmp_path, reuse=False)
        threads = [threading.Thread(target=attempt, args=(made,)) for _ in range(3)]
        for each in threads:
            each.start()
        time.sleep(number * 0.1)
        made.close(0)
        for each in threads:
            each.join(20)
            assert not each.is_alive()
    assert not eventually(processes)
    gc.collect()
    assert descriptors() <= before


def attempt(made: Engine) -> None:
    with suppress(CallError):
        while True:
            made.call("working.sleep", [0.01])


def attempt_once(made: Engine) -> bool:
    """Return whether a call succeeds; a worker may still be ending whose zygote was killed a moment ago."""
    with suppress(CallError):
        return bool(made.call("working.count", timeout=30))
    return False


@pytest.mark.parametrize("layers", ["all layers", "no namespaces"])
def test_daemons_end_with_the_host(tmp_path: Path, layers: str) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.isolation.test_kills import engine\n"
        f"made = engine(Path({str(tmp_path)!r}))\nmade._shared.pool.namespaces = {layers == 'all layers'}\n"
        "print(made.call('hostile.leave_daemon', [{'seconds': '31234567', 'confined': False}]), flush=True)\n"
        "sys.stdin.read()"
    )
    (tmp_path / "sandbox").mkdir()
    child = subprocess.Popen([sys.executable, "-c", program], stdout=-1, stdin=-1, cwd=ROOT)
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == b"1\n"
    assert eventually(lambda: [] if sleepers() else ["no daemon"]) == []
    child.kill()
    child.communicate()
    assert not eventually(sleepers)


def sleepers() -> list[int]:
    found = []
    for each in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if Path(f"/proc/{each}/cmdline").read_bytes() == b"sleep\x0031234567\x00":
                found.append(int(each))
    return found


# Random kills under load

CALLS: Final[dict[str, tuple[list[Any], Callable[[Any], bool]]]] = {
    "working.count": ([], lambda found: found > 0),
    "working.sleep": ([0.02], lambda found: found == 0.02),
    "working.items": ([0], lambda found: found == [1, 2, 3]),
    "working.nested": ([2], lambda found: found == 2),
    "member.plus": ([1, 2], lambda found: found == 3),
    "member.println": ([], lambda found: found == "written"),
}


class Load:
    """Threads that make calls, and what they have seen."""

    def __init__(self, made: Engine) -> None:
        self.results: dict[str, int] = {}
        self.wrong: list[str] = []
        self._made = made
        self._is_over = False
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(4)]
        for each in self._threads:
            each.start()

    def _run(self, number: int) -> None:
        chance = random.Random(number)
        while not self._is_over:
            name = chance.choice(list(CALLS))
            args, fits = CALLS[name]
            began = time.monotonic()
            try:
                found = self._made.call(name, args, timeout=5.0)
                outcome = "ok" if fits(found) else f"wrong: {name} returned {found!r}"
            except CallError as error:
                is_right = EXPECTED.get(error.code) == error.retry
                outcome = error.code if is_right else f"wrong: {error!r} {error.code} {error.__cause__!r}"
            except BaseException as error:
                outcome = f"wrong: {error!r}"
            if time.monotonic() - began > 15:
                outcome = f"wrong: {name} took {time.monotonic() - began:.1f} s"
            self.results[outcome] = self.results.get(outcome, 0) + 1

    def wait_for_success(self) -> None:
        """Wait until another call has succeeded."""
        before = self.results.get("ok", 0)
        end = time.monotonic() + 60
        while self.results.get("ok", 0) == before:
            assert time.monotonic() < end
            time.sleep(0.01)

    def end(self) -> None:
        self._is_over = True
        for each in self._threads:
            each.join(60)
        assert not any(each.is_alive() for each in self._threads)


@pytest.mark.slow
def test_random_kills_under_load(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    chance = random.Random(7)
    gc.collect()
    before = descriptors(), threading.active_count()
    audit = FileAudit(tmp_path / "audit.jsonl")
    made = engine(tmp_path, (audit,))
    load = Load(made)
    for number in range(KILLS):
        time.sleep(chance.uniform(0, 0.4))
        if number % CALM_EVERY == 0:
            load.wait_for_success()
        found = processes()
        if found:
            end_one(chance, chance.choice(found))
    load.end()
    assert not eventually(lambda: [] if attempt_once(made) else ["no worker"])
    made.close()

    assert [each for each in load.results if each.startswith("wrong")] == []
    assert load.results["ok"] >= KILLS / CALM_EVERY
    assert not eventually(processes)
    report = verify(tmp_path / "audit.jsonl")
    assert report.is_intact
    assert report.without_outcome == ()
    assert report.records > 2 * KILLS
    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit.jsonl", "sandbox"]
    assert not list((tmp_path / "sandbox").iterdir())
    gc.collect()
    assert not eventually(lambda: [1] if threading.active_count() > before[1] else [])
    assert descriptors() == before[0]


def end_one(chance: random.Random, pid: int) -> None:
    """Kill a process, in every second case after it has been stopped for a moment."""
    with suppress(ProcessLookupError):
        if chance.random() < 0.5:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
