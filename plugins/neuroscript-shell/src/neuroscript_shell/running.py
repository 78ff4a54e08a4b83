"""Run one program: read and truncate its output, and stop it when its time is over.

`supervisor.py` runs between this process and the program. It sets the limits and ends every process that the program
started, even when this process is killed.
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

from neuroscript_shell.programs import InsideSandbox, SandboxFence, failure

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

LARGEST_FILE: Final = 1 << 30
"""Maximum bytes of a file that a program writes."""

MAX_PROCESSES: Final = 256
"""Maximum number of processes per call; RLIMIT_NPROC would count all processes of the user, including ours."""

POLL_SECONDS: Final = 0.05
"""Seconds between two checks for cancellation."""

STOP_TIMEOUT_SECONDS: Final = 5.0
"""Seconds for the supervisor to stop everything after a request; it needs at most 4."""

CLOSE_PATIENCE: Final = 2.0
"""Seconds for the supervisor to exit when it is no longer needed, before it is killed."""

DRAIN_SECONDS: Final = 0.5
"""Seconds to read the rest of the streams after all processes that could write to them have ended."""

CHUNK_BYTES: Final = 1 << 16
"""Bytes to read at once."""

Reason = Literal["", "time", "cancelled"]
"""Why a program was stopped."""

Confinement = Literal["namespace", "landlock", "tree"]
"""What prevents a program from outliving its call; see `supervisor.py`."""


@attrs.frozen
class Launch:
    """A program to run.

    Attributes:
        program: An absolute path without links.
        words: The name and the arguments of the program.
        environment: All environment variables.
        directory: The path of the working directory.
        stdin: The standard input.
        seconds: The timeout in seconds.
        most_bytes: Maximum bytes to retain of each output stream.
        descriptors: Descriptors to pass to the program.
    """

    program: str
    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str
    seconds: float
    most_bytes: int
    descriptors: tuple[int, ...] = ()


@attrs.define
class TruncatedOutput:
    """The first bytes of a stream.

    Attributes:
        max_bytes: Maximum bytes to retain.
        is_cut: Whether bytes were dropped.
    """

    max_bytes: int
    is_cut: bool = False
    _bytes: bytearray = attrs.field(factory=bytearray, init=False)

    def add(self, data: bytes) -> None:
        """Retain as much of *data* as fits."""
        room = self.max_bytes - len(self._bytes)
        self._bytes += data[:room]
        self.is_cut = self.is_cut or len(data) > room

    def text(self) -> str:
        """Return the retained bytes as text; invalid UTF-8 is replaced."""
        return self._bytes.decode("utf-8", "replace")


@attrs.frozen
class Outcome:
    """The result of a program.

    Attributes:
        exit_code: The exit code, or None if a signal ended the program.
        signal: The name of the signal that ended the program, or None.
        stdout: The retained part of the standard output.
        stderr: The retained part of the standard error.
        seconds: The run time in seconds.
        reason: Why the program was stopped.
        confinement: What prevented the program from outliving the call.
    """

    exit_code: int | None
    signal: str | None
    stdout: TruncatedOutput
    stderr: TruncatedOutput
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
        """Continue the supervisor, which a program of the same user can have stopped."""
        self.process.send_signal(signal.SIGCONT)


def run(launch: Launch, fence: SandboxFence, is_left: Callable[[], bool]) -> Outcome:
    """Run a program until it ends, and leave no process behind.

    Args:
        fence: The sandbox; the supervisor must not come from it either.
        is_left: Returns whether the call was cancelled.

    Raises:
        ToolFailed: shell.too_long, shell.not_runnable, shell.too_many, shell.lost.
    """
    started = time.monotonic()
    with _started(launch, fence) as running:
        stdout, stderr, report = (
            TruncatedOutput(launch.most_bytes),
            TruncatedOutput(launch.most_bytes),
            TruncatedOutput(CHUNK_BYTES),
        )
        streams = {_descriptor(running.process.stdout): stdout, _descriptor(running.process.stderr): stderr}
        reason = _watched(running, {**streams, running.report: report}, started + launch.seconds, is_left)
    lines = dict(line.partition(" ")[::2] for line in report.text().splitlines())
    code, number = _exit_status(lines)
    name = None if number is None else _name(number)
    confinement = cast(Confinement, lines["confinement"])
    return Outcome(code, name, stdout, stderr, time.monotonic() - started, reason, confinement)


@contextmanager
def _started(launch: Launch, fence: SandboxFence) -> Iterator[_Running]:
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
            controlling.close()  # makes the supervisor kill everything
            _close(process)


def _process(
    launch: Launch, fence: SandboxFence, stdin: IO[bytes], control: int, report: int
) -> subprocess.Popen[bytes]:
    numbers = (control, report, LARGEST_FILE, MAX_PROCESSES)
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
            pass_fds=(control, report, *launch.descriptors),
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise failure(
                "shell.too_long", "args_list: expected arguments within the limits of the system, got longer ones"
            ) from None
        if isinstance(error, PermissionError):  # as in a worker, which may execute nothing but what its call names
            text = "cannot be isolated; add it to exclude of isolation, and set programs = true there"
            raise failure("shell.isolated", text, "host") from None
        raise failure("shell.lost", "the supervisor of the program could not be started", "later") from None


def _supervisor(fence: SandboxFence) -> tuple[str, ...]:
    try:
        return fence.resolved(sys.executable), "-I", "-S", "-X", "utf8", fence.resolved(str(SUPERVISOR))
    except InsideSandbox:
        raise failure(
            "shell.in_sandbox", "expected Python and neuroscript-shell to be installed outside the sandbox", "host"
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


def _watched(
    running: _Running, heads: Mapping[int, TruncatedOutput], end: float, is_left: Callable[[], bool]
) -> Reason:
    """Read until all streams or the supervisor have ended, and return why the program was stopped."""
    reason: Reason = ""
    over = float("inf")
    with selectors.DefaultSelector() as selector:
        for descriptor in heads:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < over:
            for key, _ in selector.select(POLL_SECONDS):
                _read_chunk(key.fd, heads[key.fd], selector)
            if running.report not in selector.get_map():  # a process that escaped can hold a stream open
                over = min(over, time.monotonic() + DRAIN_SECONDS)
            elif reason:
                running.wake()
            elif reason := _reason(end, is_left):
                running.ask_to_end()
                over = time.monotonic() + STOP_TIMEOUT_SECONDS
    return reason


def _read_chunk(descriptor: int, head: TruncatedOutput, selector: selectors.BaseSelector) -> None:
    data = os.read(descriptor, CHUNK_BYTES)
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


def _exit_status(lines: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the exit code of a program or the number of the signal that ended it, as its supervisor reported."""
    match lines:
        case {"exec": number}:
            if int(number) == errno.E2BIG:
                raise failure(
                    "shell.too_long", "args_list: expected arguments within the limits of the system, got longer ones"
                )
            raise failure("shell.not_runnable", "command: the file or its interpreter cannot be run", "host")
        case {"crowd": _}:
            raise failure(
                "shell.too_many", f"the program was stopped because it started more than {MAX_PROCESSES} processes"
            )
        case {"exit": code}:
            return int(code), None
        case {"signal": number}:
            return None, int(number)
    _kill(lines.get("pid", ""))
    raise failure("shell.lost", "the supervisor of the program was killed", "later")


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
