"""A process that is killed during audited calls: acknowledged calls are in the log, and the others are reported.

A child makes calls through an engine and prints each completed one. Records contain sizes and no values, so the length
of the argument identifies the call.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from neuroscript import FileAudit
from neuroscript.audit import VerificationReport, read, verify

KEY = bytes(range(32))
COUNT = 1_000
ENDLESS = 100 * COUNT
"""How many calls the child would make if it were not stopped."""

CHILD = """
import os, sys, threading, time
from neuroscript import ArgSpec, ArgType, Engine, FileAudit, SqliteAudit, ToolPolicy, Toolset, ToolSpec

path, kind, count, threads, last = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
WRITES, TEXT = ToolPolicy(effects=("writes",)), (ArgSpec("text", ArgType.STRING),)

def outer(rt, text):
    return rt.call_tool("g.inner", (text,))

def inner(rt, text):
    if len(text) == last:
        os.write(1, b"within\\n")
        time.sleep(60)
    return len(text)

tools = Toolset("g")
for func in (outer, inner):
    tools.add(ToolSpec(func.__name__, "g", TEXT, return_type=ArgType.INT), func, WRITES)
audit = {
    "file": lambda: FileAudit(path, key=bytes(range(32))),
    "database": lambda: SqliteAudit(path),
    "database, each row": lambda: SqliteAudit(path, batch=1),
}[kind]()
engine = Engine(toolsets=[tools], plugins="none", audit=audit)

def work(first):
    for number in range(first, count + 1, threads):
        assert engine.call("g.outer", ("x" * number,)) == number
        os.write(1, b"%d\\n" % number)

workers = [threading.Thread(target=work, args=(first,)) for first in range(1, threads + 1)]
for each in workers:
    each.start()
for each in workers:
    each.join()
"""
"""Makes so many calls, each with one within, in so many threads; in the last one it says so and waits to be killed."""


@contextmanager
def child(path: Path, kind: str, threads: int, last: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start the process that makes the calls, and have it dead at the end."""
    command = [sys.executable, "-c", CHILD, *map(str, (path, kind, ENDLESS, threads, last))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        try:
            yield started
        finally:
            started.kill()


def killed(path: Path, kind: str, threads: int = 1, last: int = 0) -> list[int]:
    """Kill the child after half of its calls, or within *last*; return the calls that it acknowledged."""
    open_calls: list[bytes] = []
    with child(path, kind, threads, last) as process:
        assert process.stdout is not None
        for line in process.stdout:
            open_calls.append(line.strip())
            if open_calls[-1] == b"within" or (not last and len(open_calls) == COUNT // 2):
                break
        os.kill(process.pid, signal.SIGKILL)
        open_calls += process.stdout.read().split()
        assert process.wait() == -signal.SIGKILL
    return [int(each) for each in open_calls if each != b"within"]


def outcomes(path: Path) -> Counter[tuple[str, int]]:
    """Return how often each call is recorded as successful, by its tool and the size of its text."""
    return Counter((each["tool"], each["sizes"][0]) for each in read(path) if each["kind"] == "outcome")


def without_outcome(path: Path) -> list[tuple[str, int]]:
    """Return the calls that began and did not end, by tool and number, in the order in which they began."""
    records = [*read(path)]
    ended = {each["call"] for each in records if each["kind"] == "outcome"}
    return [(each["tool"], each["call"]) for each in records if each["kind"] == "intent" and each["call"] not in ended]


def open_calls(found: VerificationReport) -> list[tuple[str, int]]:
    """Return the calls without an outcome according to `verify`."""
    return [(each.tool, each.call) for each in found.without_outcome]


@pytest.mark.parametrize("threads", [1, 4])
def test_a_kill_between_calls_loses_no_acknowledged_call(threads: int, tmp_path: Path) -> None:
    """Every acknowledged call is recorded; calls without an outcome were running in a thread.

    Linux may cut the write during which it kills a process, at the end of a page of the file. This is reported, and the
    next writer of the log completes the tail.
    """
    path = tmp_path / "trail.jsonl"
    acknowledged = killed(path, "file", threads)

    found, kept = verify(path, key=KEY), outcomes(path)
    assert len(acknowledged) >= COUNT // 2
    assert [number for number in acknowledged if (kept["g.outer", number], kept["g.inner", number]) != (1, 1)] == []
    assert found.keyed and {each.kind for each in found.problems} <= {"torn tail"}
    assert open_calls(found) == without_outcome(path)
    assert len(open_calls(found)) <= 2 * threads

    FileAudit(path, key=KEY).close()
    again = verify(path, key=KEY, head=found.head)
    assert (again.is_intact, open_calls(again)) == (True, open_calls(found))


def test_a_call_during_a_kill_has_no_outcome(tmp_path: Path) -> None:
    """Neither has the enclosing call; later records do not change that."""
    path = tmp_path / "trail.jsonl"
    acknowledged = killed(path, "file", last=COUNT // 2)

    found = verify(path, key=KEY)
    assert acknowledged == [*range(1, COUNT // 2)]
    assert open_calls(found) == [("g.outer", COUNT - 1), ("g.inner", COUNT)] == without_outcome(path)
    assert (found.is_intact, found.records) == (True, 2 * COUNT - 2)

    FileAudit(path, key=KEY).close()
    assert killed(path, "file", last=3) == [1, 2]
    again = verify(path, key=KEY, head=found.head)
    assert (again.is_intact, again.records) == (True, found.records + 2 * 6 - 2)
    assert open_calls(again) == [*open_calls(found), ("g.outer", 5), ("g.inner", 6)]


def test_a_truncated_log_is_found_after_a_kill(tmp_path: Path) -> None:
    """A stored head of the acknowledged records shows it; a kill never has this effect."""
    path = tmp_path / "trail.jsonl"
    killed(path, "file", last=10)
    head = verify(path, key=KEY).head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))

    assert [each.kind for each in verify(path, key=KEY, head=head).problems] == ["cut tail"]
    assert verify(path, key=KEY).is_intact


@pytest.mark.parametrize("threads", [1, 4])
def test_a_database_loses_no_call_that_may_do_harm(threads: int, tmp_path: Path) -> None:
    """Each has its row, which is committed before it begins; outcomes of the last moment may be those that are lost."""
    path = tmp_path / "trail.db"
    acknowledged = killed(path, "database", threads)

    found, records = verify(path), [*read(path)]
    kept = Counter((each["tool"], each["sizes"][0]) for each in records)
    assert [number for number in acknowledged if (kept["g.outer", number], kept["g.inner", number]) != (1, 1)] == []
    assert found.is_intact
    assert open_calls(found) == without_outcome(path)
    assert len(open_calls(found)) <= 2 * 2 * threads


def test_a_database_that_commits_each_row_loses_no_outcome(tmp_path: Path) -> None:
    """Durable writes are optional because they are slow."""
    path = tmp_path / "trail.db"
    acknowledged = killed(path, "database, each row")

    kept: Any = outcomes(path)
    assert [number for number in acknowledged if (kept["g.outer", number], kept["g.inner", number]) != (1, 1)] == []
    assert verify(path).is_intact
    assert open_calls(verify(path)) == without_outcome(path)


def test_a_database_shows_the_running_call(tmp_path: Path) -> None:
    """After a kill during the call; the outcome of the previous call was committed with its start."""
    path = tmp_path / "trail.db"
    acknowledged = killed(path, "database", last=50)

    assert acknowledged == [*range(1, 50)]
    assert open_calls(verify(path)) == [("g.outer", 99), ("g.inner", 100)]
    assert {number for _, number in outcomes(path)} == {*range(1, 50)}
