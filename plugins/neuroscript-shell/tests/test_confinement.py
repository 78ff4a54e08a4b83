"""Hostile programs: none of their processes outlives the call, with each confinement that the kernel offers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

Program = Callable[[str, str], Path]
Living = Callable[[Path], list[int]]
StartHost = Callable[..., subprocess.Popen[str]]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="namespaces, Landlock and subreapers are Linux features"
)

RESTRICT: Final = (sys.executable, str(Path(__file__).with_name("restrict.py")))

HOSTS: Final[dict[str, tuple[str, ...]]] = {
    "superuser": (),
    "namespace": RESTRICT,
    "masked /proc": (*RESTRICT, "--mask-proc"),
    "landlock": (*RESTRICT, "--no-namespaces"),
    "tree": (*RESTRICT, "--no-namespaces", "--no-landlock"),
}
"""How a host is started that has one kind of confinement."""

HOST: Final = """
import json, sys, time
from concurrent.futures import ThreadPoolExecutor
from neuroscript import CallError, Engine, ExecutionPolicy, Host
policy = ExecutionPolicy(trusted=True, grants=["shell:exec:*", "fs:read:**"])

def call(words):
    command, args, directory, seconds = words
    started = time.monotonic()
    try:
        return engine.call("shell.execute", [command, args, directory, "", [], seconds])
    except CallError as error:
        return {"code": error.code, "retry": error.retry, "seconds": time.monotonic() - started}

with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=sys.argv[1]), policy=policy) as engine:
    with ThreadPoolExecutor(4) as pool:
        print(json.dumps(list(pool.map(call, json.loads(sys.argv[2])))))
"""
"""Runs programs, four at a time: a command, its arguments, the directory and the timeout in seconds of each."""

TIMEOUT_SECONDS: Final = 3.0
"""The timeout of a program that runs until it is ended; it must have begun its work by then."""

PROMPT_SECONDS: Final = 12.0
"""How late a call with that timeout may return on a busy machine."""

END_SECONDS: Final = 10.0
"""The timeout of a program that ends by itself."""

PREAMBLE: Final = """
import ctypes, os, signal, sys, time

libc = ctypes.CDLL(None, use_errno=True)

def detach(close=True):
    "Fork twice, begin a session, and close every stream."
    if os.fork():
        return True
    os.setsid()
    if os.fork():
        os._exit(0)
    if close:
        os.closerange(0, 256)
    return False

def watchers():
    "Return the parent and all that is above it, up to the host."
    found, pid = [], os.getppid()
    while True:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"/supervisor.py" not in file.read():
                    return found
            found.append(pid)
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return found

WATCHERS = watchers()

def await_beat():
    "Return when the process that stays behind has begun its work."
    while not os.path.exists("beat"):
        time.sleep(0.01)

def attack(number):
    "Send a signal to each watcher, again and again for half a second."
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        for pid in WATCHERS:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        time.sleep(0.01)

def beat():
    "Run until killed, and show it by a file that grows."
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        with open("beat", "a") as file:
            file.write(".")
        time.sleep(0.01)
"""

ENDS: Final = {
    "forks_twice_and_closes_its_streams": """
if not detach():
    beat()
await_beat()
""",
    "keeps_the_output_pipe_open": """
if not detach(close=False):
    beat()
await_beat()
""",
    "begins_namespaces_of_its_own": """
if not detach():
    libc.unshare(0x10000000 | 0x20000000)
    os.fork()
    beat()
await_beat()
""",
    "kills_the_watcher_and_ends": """
if not detach():
    attack(signal.SIGKILL)
    beat()
await_beat()
""",
}
"""Programs that end while a process of theirs goes on."""

STAYS: Final = {
    "ignores_every_signal": "beat()",
    "stops_itself": """
if not detach():
    beat()
await_beat()
os.kill(0, signal.SIGSTOP)
""",
    "adopts_its_own_orphans": """
libc.prctl(36, 1, 0, 0, 0)
if not detach():
    beat()
time.sleep(600)
""",
    "forks_continuously": """
if not detach():
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()
        with open("beat", "a") as file:
            file.write(".")
time.sleep(600)
""",
    "kills_the_watcher": """
if not detach():
    attack(signal.SIGKILL)
    beat()
time.sleep(600)
""",
    "stops_the_watcher": """
if not detach():
    attack(signal.SIGSTOP)
    beat()
time.sleep(600)
""",
    "interrupts_the_watcher": """
if not detach():
    attack(signal.SIGINT)
    beat()
time.sleep(600)
""",
    "traces_the_watcher": """
if not detach():
    for pid in WATCHERS:
        libc.ptrace(16, pid, 0, 0)
    beat()
time.sleep(600)
""",
}
"""Programs that run until they are ended."""

NEEDS_THE_KERNEL: Final = ("kills_the_watcher", "kills_the_watcher_and_ends", "forks_continuously")
"""What no watcher is sure to survive, or to outrun, unless the kernel keeps the program from it."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.full if name == "namespace" else ()) for name in HOSTS])
def kind(request: pytest.FixtureRequest) -> str:
    """The confinement of the programs; skipped if this machine does not have it."""
    name: str = request.param
    if name == "superuser" and os.geteuid() != 0:
        pytest.skip("this user is not the superuser")
    if subprocess.run([*HOSTS[name], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no unprivileged user namespaces")
    return name


@pytest.fixture
def start_host(root: Path, living: Living) -> Iterator[StartHost]:
    """Takes a confinement and calls; returns the host that makes them, and kills remaining processes at the end."""
    hosts: list[subprocess.Popen[str]] = []

    def start(kind: str, *calls: tuple[str, list[str], str, float]) -> subprocess.Popen[str]:
        command = [*HOSTS[kind], sys.executable, "-c", HOST, str(root), json.dumps(calls)]
        hosts.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return hosts[-1]

    yield start
    for host in hosts:
        host.kill()
        host.communicate()
    for pid in living(root):
        os.kill(pid, signal.SIGKILL)


def beats(directory: Path) -> dict[str, int]:
    """Return how often the processes in each directory have shown that they run."""
    return {file.parent.name: file.stat().st_size for file in directory.glob("*/beat")}


@pytest.mark.slow
def test_no_process_outlives_the_call(
    root: Path, program: Program, start_host: StartHost, living: Living, kind: str
) -> None:
    """Every call returns in time, and every process that a program started is gone."""
    texts = {name: text for name, text in {**ENDS, **STAYS}.items() if kind != "tree" or name not in NEEDS_THE_KERNEL}
    for name, text in texts.items():
        program(name, PREAMBLE + text)
        (root / name).mkdir()

    calls = [(name, [], name, TIMEOUT_SECONDS if name in STAYS else END_SECONDS) for name in texts]
    out, _ = start_host(kind, *calls).communicate(timeout=120)

    results = dict(zip(texts, json.loads(out), strict=True))
    before = beats(root)
    time.sleep(0.3)
    assert (living(root), beats(root)) == ([], before)
    assert {*before} == {*texts}
    assert [result for result in results.values() if "code" in result] == []
    assert {name: results[name]["timed_out"] for name in texts} == {name: name in STAYS for name in texts}
    assert {name: results[name]["exit_code"] for name in texts} == {name: 0 if name in ENDS else None for name in texts}
    assert max(result["seconds"] for result in results.values()) < PROMPT_SECONDS


VIEW: Final = """
import json, os, subprocess
os.mkdir("below")
open("file", "w").close()
os.rename("file", "below/file")
os.link("below/file", "link")
with open("written", "w") as file:
    print(json.dumps({
        "owner": os.stat("written").st_uid == os.getuid(),
        "directory": os.stat(".").st_uid == os.getuid(),
        "proc": os.readlink("/proc/self") == str(os.getpid()),
        "others": sum(name.isdigit() for name in os.listdir("/proc")) > 5,
        "child": subprocess.run(["sh", "-c", "exit 7"]).returncode,
        "signal": subprocess.run(["sh", "-c", "kill -9 $$"]).returncode,
    }))
"""

COMMITS: Final = """
import subprocess
author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "first"], ["log", "--format=%an %s"]):
    subprocess.run(["git", *words], check=True)
"""

SPAWNS: Final = """
import os, time
open("ready", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for _ in range(300):
    if not os.fork():
        os.fork()
        os._exit(0)
    os.wait()
open("done", "w").close()
"""
"""Starts 300 processes that end at once and whose parents have ended; ends after them."""

FORGERY: Final = """
for pid in WATCHERS:
    for number in range(3, 64):
        try:
            with open(f"/proc/{pid}/fd/{number}", "w") as file:
                file.write("exit 0\\n")
        except OSError:
            continue
os._exit(3)
"""
"""Tells the host that it ended well, by every descriptor of its watchers that it can open."""


def test_confined_program_works_normally(root: Path, program: Program, start_host: StartHost, kind: str) -> None:
    """It keeps its user, files, exit codes and signals; in a namespace it sees only its own processes."""
    user = str(os.geteuid() if kind == "superuser" else os.geteuid() or 1000)
    program("view", VIEW)
    program("forges", PREAMBLE + FORGERY)
    program("dies", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    program("commits", COMMITS)
    (root / "data" / "given").touch()
    calls = [
        ("view", []),
        ("forges", []),
        ("dies", []),
        ("chown", ["1", "given"]),
        ("id", ["-u"]),
        ("id", ["-g"]),
        ("commits", []),
    ]

    out, _ = start_host(kind, *((*each, "data", 60.0) for each in calls)).communicate(timeout=120)
    view, forges, dies, chown, *ids, commits = json.loads(out)

    namespaced = kind in ("superuser", "namespace")
    assert json.loads(view["stdout"]) == {
        "owner": True,
        "directory": True,
        "proc": kind != "masked /proc",
        "others": not namespaced,
        "child": 7,
        "signal": -9,
    }
    assert (forges["exit_code"], dies["exit_code"], dies["signal"]) == (3, None, "SIGSEGV")
    assert chown["success"] is (kind == "superuser")
    assert [each["stdout"] for each in ids] == [f"{user}\n", f"{user}\n"]
    assert (commits["exit_code"], commits["stdout"]) == (0, "A first\n")
    assert (root / "data" / "written").stat().st_uid == os.geteuid()


def test_killed_host_leaves_no_processes(
    root: Path, program: Program, start_host: StartHost, living: Living, kind: str
) -> None:
    """Even if the programs have attacked their supervisors before."""
    names = ["forks_twice_and_closes_its_streams", "ignores_every_signal", "interrupts_the_watcher"]
    if kind != "tree":
        names.append("kills_the_watcher")
    for name in names:
        program(name, PREAMBLE + {**ENDS, **STAYS}[name].replace("await_beat()", "time.sleep(600)"))
        (root / name).mkdir()
    host = start_host(kind, *((name, [], name, 600.0) for name in names))
    wait_until(lambda: len(beats(root)) == len(names))

    host.kill()

    wait_until(lambda: living(root) == [])


def test_repeatedly_stopped_supervisor_does_not_block_the_call(
    root: Path, program: Program, start_host: StartHost, kind: str
) -> None:
    """The call returns in time, even if its supervisor never runs again."""
    program("stops", PREAMBLE + "while True:\n    attack(signal.SIGSTOP)")

    out, _ = start_host(kind, ("stops", [], "data", TIMEOUT_SECONDS)).communicate(timeout=60)

    [result] = json.loads(out)
    assert result["seconds"] < PROMPT_SECONDS
    if kind == "tree":  # the last SIGSTOP may come before or after the last SIGCONT
        assert result.get("timed_out") or (result["code"], result["retry"]) == ("shell.lost", "later")
    else:
        assert result["timed_out"] is True


def test_processes_that_have_ended_do_not_count(
    root: Path, program: Program, start_host: StartHost, living: Living, kind: str
) -> None:
    """A supervisor that has to wait for a processor finds more than 256 of them, and the program goes on."""
    program("spawns", SPAWNS)
    host = start_host(kind, ("spawns", [], "data", 60.0))
    wait_until((root / "data" / "ready").exists)
    supervisors = [pid for pid in living(root) if b"/supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert supervisors

    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    (root / "data" / "go").touch()
    wait_until((root / "data" / "done").exists)
    for pid in supervisors:
        os.kill(pid, signal.SIGCONT)

    [result] = json.loads(host.communicate(timeout=60)[0])
    assert (result.get("exit_code"), result.get("code")) == (0, None)


def test_program_dies_with_its_killed_supervisor(
    root: Path, program: Program, start_host: StartHost, living: Living
) -> None:
    """The error says that the outcome is unknown."""
    if subprocess.run([*HOSTS["tree"], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no unprivileged user namespaces")
    program("kills", PREAMBLE + "attack(signal.SIGKILL)\ntime.sleep(600)")

    out, _ = start_host("tree", ("kills", [], "data", 60.0)).communicate(timeout=60)

    [result] = json.loads(out)
    assert (result["code"], result["retry"]) == ("shell.lost", "later")
    assert living(root) == []


NAMESPACE: Final = ("ok", "each program runs in a PID namespace, and no process of it outlives the call")
LANDLOCK: Final = (
    "ok",
    "Landlock keeps each program from signalling its supervisor; only resource limits and cgroups could still stop that",
)
TREE: Final = (
    "warning",
    "a program that kills or stops its supervisor can outlive the call: the system offers neither "
    "unprivileged user namespaces nor Landlock with signals (Linux 6.12)",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("namespace", NAMESPACE), ("masked /proc", NAMESPACE), ("landlock", LANDLOCK), ("tree", TREE)],
)
def test_doctor_reports_the_confinement(name: str, expected: tuple[str, str], tmp_path: Path) -> None:
    """It runs a program to find out."""
    if subprocess.run([*HOSTS[name], "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no unprivileged user namespaces")
    settings = {
        "NEUROSCRIPT_PLUGINS": "neuroscript-shell",
        "XDG_DATA_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    command = [*HOSTS[name], sys.executable, "-m", "neuroscript", "doctor", "--json"]

    completed = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})

    [finding] = [finding for finding in json.loads(completed.stdout)["checks"] if finding["subject"] == "shell.execute"]
    assert (finding["part"], finding["state"], finding["text"]) == ("programs", *expected)


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as a condition holds; fail after 20 seconds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
