"""Tools that test how workers are used and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

from neuroscript import Runtime, ToolPolicy, Toolset

working = Toolset("working")

CALLS: list[int] = []


@working.tool
def count() -> int:
    """Return how many calls this process has served."""
    CALLS.append(1)
    return len(CALLS)


@working.tool(policy=ToolPolicy(blocking=True))
def sleep(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds


@working.tool
def loop() -> int:
    """Never return."""
    while True:
        pass


@working.tool
def hold_interpreter() -> int:
    """Never release the interpreter lock, in C."""
    return sum(range(10**12))


@working.tool
def end(how: str) -> int:
    """End the process."""
    if how == "exit":
        os._exit(7)
    if how == "segfault":
        import ctypes

        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    return 0


@working.tool
def memory(mebibytes: int) -> int:
    """Use memory."""
    return len(bytearray(mebibytes << 20))


@working.tool
def environment() -> dict[str, str]:
    """Return the environment."""
    return dict(os.environ)


@working.tool
def temporary(name: str) -> list[str]:
    """Write a temporary file, and return the names of all."""
    directory = tempfile.gettempdir()
    with open(os.path.join(directory, name), "w") as file:
        file.write(name)
    return sorted(os.listdir(directory))


@working.tool(policy=ToolPolicy(capabilities=("env:read:{name}",)))
def variable(name: str) -> str:
    """Return a variable of the environment."""
    return os.environ.get(name, "")


@working.tool
def descriptors() -> list[int]:
    """Return the open descriptors."""
    found = []
    for each in range(256):
        try:
            os.fstat(each)
        except OSError:
            continue
        found.append(each)
    return found


@working.tool
def items(seconds: float) -> Iterator[int]:
    """Yield two integers, and wait before the third."""
    yield 1
    yield 2
    time.sleep(seconds)
    yield 3


@working.tool
def thread_is_left(rt: Runtime) -> int:
    """Leave a thread behind that uses the Runtime after the call."""

    def later() -> None:
        time.sleep(0.05)
        try:
            rt.set_var("late", 1)
        except Exception as error:
            LATE.append(str(getattr(error, "code", error)))

    threading.Thread(target=later, daemon=True).start()
    return 1


LATE: list[str] = []


@working.tool
def late() -> list[str]:
    """Return what the thread has seen."""
    time.sleep(0.1)
    return LATE


@working.tool
def nested(rt: Runtime, depth: int) -> int:
    """Call itself."""
    return 0 if depth == 0 else 1 + rt.call_tool("working.nested", (depth - 1,))


@working.tool
def prompt(rt: Runtime) -> str:
    """Ask the user."""
    return rt.prompt_user("?")


@working.tool
def standard_streams() -> str:
    """Write to the standard streams, and read from one."""
    print("to the output")
    print("to the errors", file=sys.stderr)
    return sys.stdin.read()


@working.tool(policy=ToolPolicy(capabilities=("shell:exec:sleep",), effects=("exec",)))
def leave_program() -> int:
    """Start a program, leave it behind, and return its process."""
    return subprocess.Popen(["sleep", "1000"]).pid


def outside() -> int:
    """Return a number."""
    return 3
