"""Audit records, and processes that write them.

``python -m tests.audit_records append PATH COUNT NAME`` appends records of mixed sizes and outcomes; ``acknowledge`` prints each
written record on stdout; ``cramped`` writes to a file of limited size; ``fork`` continues in a child process; ``begin``
writes calls to a database, says so, and waits to be killed; ``rows`` appends to a database.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from neuroscript import CallRecord, FileAudit, SqliteAudit, ToolFacts
from neuroscript.errors import AuditError

ROOT = Path(__file__).parent.parent
KEY = bytes(range(32))

WRITE = ToolFacts("fs.write", "a" * 64, "neuroscript-fs", "0.1.0", "fs.*", effects=("writes",))
ADD = ToolFacts("math.add", "b" * 64, "neuroscript-std", "0.1.0", "*", effects=("pure",))

RECORD = CallRecord(
    kind="outcome",
    about=WRITE,
    run="run1",
    session="run1",
    call=1,
    parent=0,
    depth=1,
    policy="c" * 64,
    time=1_700_000_000.25,
    needs=("fs:write:a.txt",),
    types=(str, bytes),
    sizes=(5, 3),
    digest=b"\x01" * 16,
    repairs=(),
    code="ok",
    rule="fs.*",
    spent={},
    seconds=0.001,
)


def intent(call: int = 1, **fields: Any) -> CallRecord:
    """Return the record of a call that starts."""
    return RECORD._replace(kind="intent", call=call, code="", seconds=0.0, **fields)


def outcome(call: int = 1, **fields: Any) -> CallRecord:
    """Return the record of a call that has ended."""
    return RECORD._replace(call=call, **fields)


def refused(call: int = 1, **fields: Any) -> CallRecord:
    """Return the record of a refused call."""
    reported = {"code": "policy.denied", "rule": "fs.*", **fields}
    return RECORD._replace(kind="refused", call=call, **reported)


def mixed(call: int, run: str) -> CallRecord:
    """Return a record whose line has between about 700 and 70,000 bytes."""
    return outcome(call, run=run, needs=("fs:write:" + "x" * (call * 7919 % 69_000),))


def child(*words: object, **how: Any) -> subprocess.Popen[bytes]:
    """Start this module in a separate process."""
    command = [sys.executable, "-m", "tests.audit_records", *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how)


def append(path: str, count: str, run: str) -> None:
    """Append records of mixed sizes with a key."""
    audit = FileAudit(path, key=KEY)
    for call in range(1, int(count) + 1):
        audit.write(mixed(call, run))
    audit.close()


def acknowledge(path: str, count: str) -> None:
    """Write the starts and ends of calls, and print each when it is written."""
    audit = FileAudit(path, key=KEY)
    for number in range(1, int(count) + 1):
        call, ends = divmod(number + 1, 2)
        audit.write(outcome(call) if ends else intent(call))
        os.write(1, b"%d\n" % number)


def cramped(path: str, room: str) -> None:
    """Write a record to a file with too little space, print the outcome, and write one when there is space."""
    audit = FileAudit(path, key=KEY)
    audit.write(outcome(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(path).stat().st_size + int(room), resource.RLIM_INFINITY))
    for call in (2, 3):
        try:
            audit.write(outcome(call))
        except (AuditError, OSError) as error:
            print(type(error).__name__, error, flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    audit.write(outcome(4))
    print(audit.head)


def fork(path: str, kind: str) -> None:
    """Write to one audit log here and in a forked process, and print the outcome in the child."""
    audit = FileAudit(path, key=KEY) if kind == "file" else SqliteAudit(path)
    audit.write(outcome(1))
    process = os.fork()
    try:
        for call in range(2, 52):
            audit.write(outcome(call, run="parent" if process else "child"))
    except AuditError as error:
        os.write(1, str(error).encode())
    audit.close()
    if not process:
        os._exit(0)
    sys.exit(os.waitpid(process, 0)[1])


def rows(path: str, count: str, run: str) -> None:
    """Append rows to a database."""
    audit = SqliteAudit(path, batch=3)
    for call in range(1, int(count) + 1):
        audit.write(outcome(call, run=run))
    audit.close()


def begin(path: str) -> None:
    """Write a harmless finished call and two calls with effects, one of them finished, and wait."""
    audit = SqliteAudit(path)
    audit.write(intent(1))
    audit.write(intent(2))
    audit.flush()
    audit.write(outcome(1))
    audit.flush()
    audit.write(outcome(3, about=ADD))
    print("begun", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
