"""Run one program: read and cut what it writes, and end it when its time is over.

`supervisor.py` runs between this process and the program. It sets the limits and ends every process that the program
started, also when this process is killed.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final, Literal, cast

import attrs

from neuroscript_shell.programs import Fence, Inside, failure

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

LARGEST_FILE: Final = 1 << 30
"""Bytes of the largest file that a program can write."""

MOST_PROCESSES: Final = 256
"""How many processes there may be below one call; RLIMIT_NPROC would count those of the user, ours too."""

LOOK: Final = 0.05
"""Seconds after which is looked whether anybody still waits."""

PATIENCE: Final = 5.0
"""Seconds within which the supervisor ends everything after it was asked to; it needs 4 at most."""

CLOSE_PATIENCE: Final = 2.0
"""Seconds within which the supervisor ends when it is no longer wanted; after that it is killed."""

LAST_WORDS: Final = 0.5
"""Seconds in which is read what is left in the streams, when all that could write to them has ended."""

PIECE: Final = 1 << 16
"""Bytes that are read at once."""

Reason = Literal["", "time", "cancelled"]
"""Why a program was ended."""

Confinement = Literal["namespace", "landlock", "tree"]
"""What keeps a program from outliving its call, as `supervisor.py` explains it."""


@attrs.frozen
class Launch:
    """What is run.

    Attributes:
        program: An absolute path without links.
        words: Its name and its arguments.
        environment: All of its variables.
        directory: The path of its working directory.
        stdin: What it can read.
        seconds: After how many it is ended.
        most_bytes: How much is kept of each of its two streams.
    """

    program: str
    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str
    seconds: float
    most_bytes: int


@attrs.define
class Head:
    """The first bytes of a stream.

    Attributes:
        most: How many are kept.
        is_cut: Whether there were more.
    """

    most: int
    is_cut: bool = False
    _kept: bytearray = attrs.field(factory=bytearray, init=False)

    def add(self, data: bytes) -> None:
        """Keep of *data* what there is room for."""
        room = self.most - len(self._kept)
        self._kept += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    def text(self) -> str:
        """Return what was kept; what is not UTF-8 is replaced."""
        return self._kept.decode("utf-8", "replace")


@attrs.frozen
class Outcome:
    """What came of a program.

    Attributes:
        exit_code: Its own, or None where a signal ended it.
        signal: The name of that signal, or None.
        stdout: What it wrote, as far as it was kept.
        stderr: The same of its other stream.
        seconds: How long it took.
        reason: Why it was ended.
        confinement: What kept it from outliving the call.
    """

    exit_code: int | None
    signal: str | None
    stdout: Head
    stderr: Head
    seconds: float
    reason: Reason
    confinement: Confinement


@attrs.frozen
class _Running:
    process: subprocess.Popen[bytes]
    control: int
    report: int

    def ask_to_end(self) -> None:
        with suppress(OSError):
            os.write(self.control, b"t")

    def wake(self) -> None:
        """Continue a supervisor that was stopped, as a program can do that shares a user with it."""
        self.process.send_signal(signal.SIGCONT)


def run(launch: Launch, fence: Fence, is_left: Callable[[], bool]) -> Outcome:
    """Run a program to its end, and leave nothing of it behind.

    Args:
        fence: The sandbox, from which the supervisor does not come either.
        is_left: Tells whether nobody waits for the outcome any more.

    Raises:
        ToolFailed: shell.too_long, shell.not_runnable, shell.too_many, shell.lost.
    """
    started = time.monotonic()
    with _started(launch, fence) as running:
        stdout, stderr, report = Head(launch.most_bytes), Head(launch.most_bytes), Head(PIECE)
        streams = {_descriptor(running.process.stdout): stdout, _descriptor(running.process.stderr): stderr}
        reason = _watched(running, {**streams, running.report: report}, started + launch.seconds, is_left)
    lines = dict(line.partition(" ")[::2] for line in report.text().splitlines())
    code, number = _ended(lines)
    name = None if number is None else _name(number)
    confinement = cast(Confinement, lines["confinement"])
    return Outcome(code, name, stdout, stderr, time.monotonic() - started, reason, confinement)


@contextmanager
def _started(launch: Launch, fence: Fence) -> Iterator[_Running]:
    with ExitStack() as stack:
        stdin = stack.enter_context(_readable(launch.stdin))
        control, controlling = _piped(stack)
        report, reporting = _piped(stack)
        process = _process(launch, fence, stdin, control.fileno(), reporting.fileno())
        control.close()
        reporting.close()
        try:
            yield _Running(process, controlling.fileno(), report.fileno())
        finally:
            controlling.close()  # from here on the supervisor kills
            _close(process)


def _process(launch: Launch, fence: Fence, stdin: IO[bytes], control: int, report: int) -> subprocess.Popen[bytes]:
    numbers = (control, report, LARGEST_FILE, MOST_PROCESSES)
    words = (*_supervisor(fence), *map(str, numbers), launch.program, *launch.words)
    try:
        return subprocess.Popen(  # noqa: S603
            [word.encode("utf-8", "surrogateescape") for word in words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=launch.directory,
            env=launch.environment,
            start_new_session=True,
            pass_fds=(control, report),
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise failure(
                "shell.too_long", "args_list: expected arguments that the system takes, got longer ones"
            ) from None
        raise failure("shell.lost", "the process that watches the program could not be started", "later") from None


def _supervisor(fence: Fence) -> tuple[str, ...]:
    try:
        return fence.resolved(sys.executable), "-I", "-S", "-X", "utf8", fence.resolved(str(SUPERVISOR))
    except Inside:
        raise failure(
            "shell.in_sandbox", "expected a Python and a neuroscript-shell outside the sandbox", "host"
        ) from None


def _readable(text: str) -> IO[bytes]:
    if not text:
        return Path(os.devnull).open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(text.encode())
    file.seek(0)
    return file


def _piped(stack: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return (
        stack.enter_context(open(reading, "rb", buffering=0)),
        stack.enter_context(open(writing, "wb", buffering=0)),
    )


def _watched(running: _Running, heads: Mapping[int, Head], end: float, is_left: Callable[[], bool]) -> Reason:
    """Read until all streams have ended, or the supervisor has, and return why the program had to end."""
    reason: Reason = ""
    over = float("inf")
    with selectors.DefaultSelector() as selector:
        for descriptor in heads:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < over:
            for key, _ in selector.select(LOOK):
                _read(key.fd, heads[key.fd], selector)
            if running.report not in selector.get_map():  # whoever has escaped may hold a stream open
                over = min(over, time.monotonic() + LAST_WORDS)
            elif reason:
                running.wake()
            elif reason := _reason(end, is_left):
                running.ask_to_end()
                over = time.monotonic() + PATIENCE
    return reason


def _read(descriptor: int, head: Head, selector: selectors.BaseSelector) -> None:
    data = os.read(descriptor, PIECE)
    if data:
        head.add(data)
    else:
        selector.unregister(descriptor)


def _reason(end: float, is_left: Callable[[], bool]) -> Reason:
    if is_left():
        return "cancelled"
    return "time" if time.monotonic() >= end else ""


def _close(process: subprocess.Popen[bytes]) -> None:
    try:
        process.send_signal(signal.SIGCONT)
        process.wait(CLOSE_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _ended(lines: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the exit code of a program or the number of the signal that ended it, as its supervisor reported."""
    match lines:
        case {"exec": number}:
            if int(number) == errno.E2BIG:
                raise failure("shell.too_long", "args_list: expected arguments that the system takes, got longer ones")
            raise failure("shell.not_runnable", "command: its file or its interpreter can not be run", "host")
        case {"crowd": _}:
            raise failure("shell.too_many", f"the program was ended: it began more than {MOST_PROCESSES} processes")
        case {"exit": code}:
            return int(code), None
        case {"signal": number}:
            return None, int(number)
    _kill(lines.get("pid", ""))
    raise failure("shell.lost", "the process that watched the program was killed", "later")


def _kill(group: str) -> None:
    if group:
        with suppress(OSError):
            os.killpg(int(group), signal.SIGKILL)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _descriptor(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()
