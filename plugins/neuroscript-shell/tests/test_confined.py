"""Programs under ``Isolation(programs=True)``: what they can still reach, and that they could reach more without it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pytest

from neuroscript import Engine, ExecutionPolicy, Host, Isolation, Runtime, ToolFailed, ToolPolicy, Toolset

Program = Callable[[str, str], Path]
Living = Callable[[Path], list[int]]
Run = Callable[..., str]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs can be confined on Linux alone")

GRANTS: Final = (
    *("fs:read:data/**", "fs:read:.", "fs:write:out/**", "fs:delete:out/old", "fs:delete:out/gone/**"),
    *("shell:exec:attempt", "shell:exec:granted"),
)

ATTEMPT: Final = """
import ctypes, mmap, os, socket, subprocess, sys, threading

def attempt(what, place):
    match what:
        case "read":
            return open(place).read()
        case "list":
            return ",".join(sorted(os.listdir(place)))
        case "write":
            open(place, "w").write("x")
        case "delete":
            os.unlink(place)
        case "rename":
            os.rename(place, place + ".new")
        case "link":
            os.symlink("/", place)
        case "mode":
            os.chmod(place, 0o777)
        case "times":
            os.utime(place, (0, 0))
        case "tcp" | "udp":
            kind = socket.SOCK_STREAM if what == "tcp" else socket.SOCK_DGRAM
            socket.socket(socket.AF_INET, kind).connect(("127.0.0.1", int(place)))
        case "unix":
            socket.socket(socket.AF_UNIX).connect(place)
        case "netlink":
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
        case "execute":
            return subprocess.run([place, *sys.argv[3:]], capture_output=True, text=True).stdout.strip()
        case "call":
            if ctypes.CDLL(None, use_errno=True).syscall(*map(int, place.split())) < 0:
                raise PermissionError
        case "memory":
            mmap.mmap(-1, int(place)).close()
        case "fork":
            if not os.fork():
                os._exit(0)
            return str(os.wait()[1])
        case "thread":
            found = []
            thread = threading.Thread(target=found.append, args=("ran",))
            thread.start()
            thread.join()
            return found[0]
        case "environment":
            return ",".join(sorted(os.environ))
        case "signal":
            os.kill(os.getpid(), int(place))
    return "done"

try:
    print(attempt(*sys.argv[1:3]))
except OSError as error:
    print("refused" if error.errno in (None, 1, 12, 13, 18, 30) else error)
"""
"""A program that tries one thing, and prints the outcome."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of the user outside the sandbox."""
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret").write_text("secret")
    return place


@pytest.fixture
def files(root: Path) -> Path:
    """The sandbox, with files that are granted and files that are not."""
    for name in ("data/own", "out/old", "out/gone/one", "out/kept", "private/key"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.fixture
def run(files: Path, program: Program) -> Iterator[Run]:
    """Takes what a program tries; returns what it prints. ``confined`` says whether the policy confines it."""
    program("attempt", ATTEMPT)
    program("granted", "import sys; print('granted', *sys.argv[1:])")
    program("other", "print('other')")
    with ExitStack() as stack:

        def run(what: str, place: str = "", *more: str, confined: bool = True, **settings: Any) -> str:
            policy = ExecutionPolicy(
                grants=GRANTS, trusted=True, isolate=Isolation(programs=confined, memory_bytes=1 << 30, **settings)
            )
            engine = stack.enter_context(
                Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=files), policy=policy)
            )
            result = engine.call("shell.execute", ["attempt", [what, place, *more], "."])
            return str(result["signal"] or (result["stdout"] + result["stderr"]).strip())

        yield run


FORBIDDEN: Final = {
    "reads a file outside the sandbox": ("read", "{outside}/secret", "secret"),
    "reads a list of users": ("read", "/etc/passwd", None),
    "lists a directory outside": ("list", "{outside}", "secret,socket"),
    "reads the environment of a process": ("read", "/proc/1/environ", None),
    "reads a file of the sandbox without a grant": ("read", "private/key", "private/key"),
    "writes outside": ("write", "{outside}/new", "done"),
    "writes beside the sandbox": ("write", "../new", "done"),
    "writes where it may only read": ("write", "data/own", "done"),
    "creates where it may only read": ("write", "data/new", "done"),
    "deletes what it may only write": ("delete", "out/kept", "done"),
    "renames what it may only write": ("rename", "out/kept", "done"),
    "creates a link out of the sandbox": ("link", "out/link", "done"),
    "changes the mode of a file outside": ("mode", "{outside}/secret", "done"),
    "changes the times of a file that it may only read": ("times", "data/own", "done"),
    "connects to a server": ("tcp", "{port}", "done"),
    "sends a datagram": ("udp", "{port}", "done"),
    "connects to a local server": ("unix", "{outside}/socket", "done"),
    "asks the kernel about the network": ("netlink", "", "done"),
    "executes a program without a grant": ("execute", "{bin}/other", "other"),
    "executes a program of the system": ("execute", "/bin/echo", ""),
    "executes a file of the sandbox": ("execute", "{root}/out/script", "script"),
    "leaves its user namespace": ("call", "272 268435456", "done"),
    "reserves more memory than it gets": ("memory", str(2 << 30), "done"),
}
"""What a program tries, and what the outcome is without the confinement; None stands for anything but a refusal."""


@pytest.mark.parametrize(("what", "place", "unconfined"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_confined_program_reaches_nothing_else(
    run: Run, outside: Path, files: Path, bin: Path, what: str, place: str, unconfined: str | None
) -> None:
    """Each attempt is refused, and succeeds without the confinement."""
    if what == "call" and os.uname().machine != "x86_64":
        pytest.skip("the number of a system call is that of another processor")
    script = files / "out" / "script"
    script.write_text("#!/bin/sh\necho script\n")
    script.chmod(0o755)
    with closing(socket.socket(socket.AF_UNIX)) as local, closing(socket.create_server(("127.0.0.1", 0))) as server:
        local.bind(str(outside / "socket"))
        local.listen()
        place = place.format(outside=outside, root=files, bin=bin, port=server.getsockname()[1])

        confined = run(what, place)
        free = run(what, place, confined=False)

    assert confined == "refused"
    assert free == unconfined if unconfined is not None else free != "refused"


PERMITTED: Final = {
    "read": ("read", "data/own", "data/own"),
    "list": ("list", "data", "-n.txt,own"),
    "write": ("write", "out/new", "done"),
    "replace": ("write", "out/kept", "done"),
    "delete": ("delete", "out/gone/one", "done"),
    "write to the null device": ("write", "/dev/null", "done"),
    "execute a granted program": ("execute", "{bin}/granted", "granted"),
    "fork": ("fork", "", "0"),
    "start a thread": ("thread", "", "ran"),
    "signal itself": ("signal", "10", "SIGUSR1"),
    "environment": ("environment", "", "HOME,LANG,PATH,TMPDIR"),
}


@pytest.mark.parametrize(("what", "place", "expected"), PERMITTED.values(), ids=PERMITTED)
def test_confined_program_does_what_the_policy_grants(
    run: Run, bin: Path, what: str, place: str, expected: str
) -> None:
    """Files and programs of the grants, and everything that concerns the program alone."""
    assert run(what, place.format(bin=bin)) == expected


def test_network_is_a_setting_of_its_own(run: Run) -> None:
    """The pattern names the tool whose programs may use it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = str(server.getsockname()[1])

        assert run("tcp", port, network=("shell.*",)) == "done"
        assert run("tcp", port, network=("git.*",)) == "refused"


def test_all_programs_of_the_search_path_can_be_granted(files: Path, bin: Path, program: Program) -> None:
    """``shell:exec:*`` permits what PATH contains, but not what the sandbox contains."""
    program("attempt", ATTEMPT)
    program("other", "print('other')")
    policy = ExecutionPolicy(trusted=True, grants=["shell:exec:*", "fs:*:*"], isolate=Isolation(programs=True))
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=files), policy=policy) as engine:
        script = files / "script"
        script.write_text("#!/bin/sh\necho script\n")
        script.chmod(0o755)

        found = [
            engine.call("shell.execute", ["attempt", ["execute", each]])["stdout"].strip()
            for each in (str(bin / "other"), str(script))
        ]

    assert found == ["other", "refused"]


outer = Toolset("outer")


@outer.tool(policy=ToolPolicy(capabilities=("shell:exec:attempt", "fs:read:.", "fs:read:data/**"), requires_trust=True))
def ask(rt: Runtime, path: str) -> str:
    """Read a file with a program."""
    found: str = rt.call_tool("shell.execute", ["attempt", ["read", path]])["stdout"]
    return found.strip()


def test_program_of_a_nested_call_can_do_no_more_than_the_tool_above(files: Path, program: Program) -> None:
    """The grants of the host do not suffice."""
    program("attempt", ATTEMPT)
    policy = ExecutionPolicy(trusted=True, grants=["fs:*:*", "shell:exec:*"], isolate=Isolation(programs=True))
    host = Host(sandbox_dir=files)
    with Engine(plugins=["neuroscript-shell"], toolsets=[outer], host=host, policy=policy) as engine:
        found = [engine.call("outer.ask", [path]) for path in ("data/own", "private/key")]
        direct = engine.call("shell.execute", ["attempt", ["read", "private/key"]])["stdout"].strip()

    assert (found, direct) == (["data/own", "refused"], "private/key")


def test_confined_program_leaves_no_process(files: Path, program: Program, living: Living) -> None:
    """A daemon ends with the program."""
    program(
        "daemon", "import os, time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(600)"
    )
    policy = ExecutionPolicy(trusted=True, grants=["shell:exec:daemon", "fs:*:*"], isolate=Isolation(programs=True))
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=files), policy=policy) as engine:
        result = engine.call("shell.execute", ["daemon", [], "data"])

    assert (result["exit_code"], living(files)) == (0, [])


def test_isolated_tool_says_what_to_do(files: Path) -> None:
    """A worker cannot start the supervisor."""
    policy = ExecutionPolicy(trusted=True, grants=["shell:exec:*", "fs:*:*"], isolate=["shell.*"])
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=files), policy=policy) as engine:
        with pytest.raises(ToolFailed) as caught:
            engine.call("shell.execute", ["true"])

    assert (caught.value.code, caught.value.retry) == ("shell.isolated", "host")
    assert str(caught.value) == (
        "shell.execute: cannot be isolated; add it to exclude of isolation, and set programs = true there"
    )


RESTRICT: Final = (sys.executable, str(Path(__file__).with_name("restrict.py")))

SYSTEMS: Final = {
    "namespaces": (RESTRICT, "refused"),
    "masked /proc": ((*RESTRICT, "--mask-proc"), "refused"),
    "no namespaces": ((*RESTRICT, "--no-namespaces"), "refused"),
    "no Landlock": ((*RESTRICT, "--no-namespaces", "--no-landlock"), "secret"),
}
"""How a host is started on systems that lack something, and whether its programs can read a file outside."""

HOST: Final = """
import json, sys
from neuroscript import CallError, Engine, ExecutionPolicy, Host, Isolation

def call(require, words):
    isolation = Isolation(programs=True, require=require)
    policy = ExecutionPolicy(trusted=True, grants=["shell:exec:*", "fs:*:*"], isolate=isolation)
    with Engine(plugins=["neuroscript-shell"], host=Host(sandbox_dir=sys.argv[1]), policy=policy) as engine:
        try:
            result = engine.call("shell.execute", ["attempt", words])
            return (result["stdout"] + result["stderr"]).strip()
        except CallError as error:
            return error.code

print(json.dumps([call(*each) for each in json.loads(sys.argv[2])]))
"""


@pytest.mark.parametrize(("start", "expected"), SYSTEMS.values(), ids=SYSTEMS)
def test_confinement_of_an_unprivileged_user(
    start: tuple[str, ...], expected: str, files: Path, outside: Path, program: Program
) -> None:
    """Where Landlock is missing, files are readable, and a policy that requires it refuses to start a program."""
    if subprocess.run([*start, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no unprivileged user namespaces")
    program("attempt", ATTEMPT)
    calls = [([], ["read", "data/own"]), ([], ["read", f"{outside}/secret"]), (["landlock"], ["read", "data/own"])]

    command = [*start, sys.executable, "-c", HOST, str(files), json.dumps(calls)]
    completed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)

    required = "data/own" if expected == "refused" else "isolation.unavailable"
    assert json.loads(completed.stdout) == ["data/own", expected, required]
