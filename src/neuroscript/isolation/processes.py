"""The host's side of the processes that workers come from: how they start, answer, and are killed."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal, TypeVar

from neuroscript.errors import ToolFailed

PROGRAM: Final = str(Path(__file__).with_name("zygote.py"))
SPAWNED: Final = str(Path(__file__).with_name("spawned.py"))

FORKS: Final = sys.platform == "linux"
"""Whether workers are forked from a zygote; elsewhere each is started as a process of its own."""

KEPT_VARIABLES: Final = ("SYSTEMROOT",)
"""Variables without which Python does not start on Windows."""

TICK_SECONDS: Final = 0.05
"""Seconds between two checks whether the caller of a call in a worker still waits."""

END_SECONDS: Final = 1.0
"""Seconds to wait for the end of a process that was killed or has closed its connection."""

LAUNCH_SECONDS: Final = 30.0
"""Seconds that the first process of an engine gets to start."""

ANSWER_SECONDS: Final = 10.0
"""Seconds after which a zygote that does not answer is killed."""

MAX_ANSWER_BYTES: Final = 1 << 16

Role = Literal["worker", "zygote"]

T = TypeVar("T")


def unavailable(text: str) -> ToolFailed:
    """Return the error of a call for which no worker could be started."""
    return ToolFailed(text, code="isolation.unavailable", retry="host")


def never() -> None:
    """Wait without a check whether a caller still waits."""


def acquired(lock: threading.Lock, attempts: list[bool]) -> bool:
    """Wait for a lock for a moment, and return whether this thread has it now, which *attempts* also contains.

    An exception from a signal handler, such as KeyboardInterrupt, may come between two steps of Python code. A caller
    that releases the lock if an attempt was successful does so then too, because both are stored in one step.
    """
    attempts.extend(map(lock.acquire, (True,), (TICK_SECONDS,)))
    return attempts[-1]


class ProcessHandle:
    """A process of the isolation, which can be killed but never confused with another one.

    Attributes:
        pid: Its number as its zygote sees it.
    """

    def __init__(self, pid: int, descriptor: int | None) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._lock = threading.Lock()

    @property
    def descriptor(self) -> int:
        """Its pidfd, or -1 if it was closed."""
        return -1 if self._descriptor is None else self._descriptor

    def kill(self) -> None:
        """Kill it with every process that it has started."""
        with self._lock, suppress(ProcessLookupError):
            if self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Wait for its end and return whether it has ended."""
        descriptor = self._descriptor
        return descriptor is None or bool(readable(seconds, descriptor))

    def has_news(self, connection: int) -> bool:
        """Return whether it has ended, or something can be read from a descriptor."""
        return bool(readable(0, self.descriptor, connection))

    def close(self) -> None:
        """Close the descriptor."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __del__(self) -> None:
        self.close()


def readable(seconds: float, *descriptors: int) -> list[int]:
    """Wait until one of some descriptors can be read, and return those; a process can be read when it has ended."""
    if sys.platform == "win32":
        return select.select(descriptors, (), (), seconds)[0]
    poll = select.poll()
    for each in descriptors:
        poll.register(each, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(seconds * 1000)]


class ZygoteGone(Exception):
    """A zygote has ended, or does not answer."""

    def __init__(self, zygote: ZygoteHandle) -> None:
        super().__init__()
        self.zygote = zygote
        zygote.is_gone = True


class Answers:
    """The messages of a zygote, with the descriptors of processes.

    A signal handler can raise an exception between two steps of Python code, such as KeyboardInterrupt. No descriptor
    is lost then, because a message is received and stored in one step.

    Args:
        process: Gets the descriptor that comes with the answer, or None.
    """

    def __init__(self, process: ProcessHandle | None) -> None:
        self._process = process
        self._received: list[Any] = []

    def receive(self, control: socket.socket) -> bytes:
        """Return the next message; its descriptors are stored."""
        self._received.extend(map(control.recvmsg, (MAX_ANSWER_BYTES,), (socket.CMSG_SPACE(array("i").itemsize),)))
        data: bytes = self._received[-1][0]
        return data

    def pass_on(self) -> None:
        """Pass the descriptor of the last message, if there is one, to the process."""
        for each in _descriptors(self._received[-1]):
            if self._process is not None:
                self._process._descriptor = each

    def kill(self) -> None:
        """Kill the processes of the last message."""
        for each in _descriptors(self._received[-1]):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptors that were not passed on."""
        owned = None if self._process is None else self._process.descriptor
        while self._received:
            for each in _descriptors(self._received.pop()):
                if each != owned:
                    os.close(each)


def _descriptors(message: Any) -> list[int]:
    """Return the descriptors that came with a message."""
    found = array("i")
    for level, kind, data in message[1]:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return found.tolist()


class ZygoteHandle:
    """The host's side of a zygote.

    Args:
        process: The zygote, or None if the launcher ends it.

    Attributes:
        is_gone: Whether it was found to have ended, or not to answer.
    """

    is_gone = False

    def __init__(self, control: socket.socket, process: ProcessHandle | None) -> None:
        self._control = control
        self._process = process
        self._lock = threading.Lock()
        self._number = 0
        control.settimeout(TICK_SECONDS)

    def fork(
        self,
        role: Role,
        connection: socket.socket,
        descriptors: Sequence[int],
        has_namespace: bool,
        tick: Callable[[], object],
    ) -> ProcessHandle:
        """Fork a process that gets a connection and further descriptors.

        Raises:
            ToolFailed: With the code ``isolation.unavailable``.
            ZygoteGone: The zygote has ended, or does not answer.
        """
        process = ProcessHandle(0, None)
        passed = (connection.fileno(), *descriptors)
        process.pid, error = self._asked(["fork", role, has_namespace], passed, ANSWER_SECONDS, tick, process)
        if error:
            raise unavailable(f"no worker could be started ({os.strerror(error)})")
        return process

    def end_of(self, pid: int) -> str:
        """Return how a process has ended, such as ``SIGSEGV`` or ``exit code 1``, or ``""``."""
        try:
            (status,) = self._asked(["end", pid], (), END_SECONDS, never)
        except (ZygoteGone, ValueError):
            return ""
        return "" if status is None else _end_text(os.waitstatus_to_exitcode(status))

    def _asked(
        self,
        request: list[Any],
        descriptors: Sequence[int],
        seconds: float,
        tick: Callable[[], object],
        process: ProcessHandle | None = None,
    ) -> list[Any]:
        """Send a request, and return the answer; *process* gets the descriptor that comes with it.

        A request may be given up, because its caller no longer waits. Requests are numbered, so that its late answer is
        not taken for that of the next one.
        """
        end = monotonic() + seconds

        def waiting() -> None:
            tick()
            if monotonic() > end:
                raise ZygoteGone(self)

        def patient(func: Callable[..., T], *arguments: Any) -> T:
            while True:
                try:
                    return func(self._control, *arguments)
                except TimeoutError:
                    pass
                except OSError:
                    raise ZygoteGone(self) from None
                waiting()

        answers, attempts = Answers(process), list[bool]()
        try:
            while not acquired(self._lock, attempts):
                waiting()
            self._number += 1
            patient(socket.send_fds, [json.dumps([self._number, *request]).encode()], descriptors)
            while True:
                data = patient(answers.receive)
                if not data:
                    raise ZygoteGone(self)
                answer: list[Any]
                number, *answer = json.loads(data)
                if number == self._number:
                    answers.pass_on()
                    return answer
                answers.kill()
        finally:
            answers.close()
            if any(attempts):
                self._lock.release()

    def close(self) -> None:
        """Let it end, or kill it if it cannot."""
        self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.close()


def _end_text(code: int) -> str:
    """Return how a process has ended, whose exit code is negative after a signal."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


class SpawnedProcess(ProcessHandle):
    """A worker that this process has started itself.

    Processes that it has started are killed with it, except on Windows and in another process group.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(process.pid, None)
        self._popen = process

    def kill(self) -> None:
        """Kill it, and every process of its group."""
        with self._lock, suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._popen.kill()
            elif self._popen.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Wait for its end and return whether it has ended."""
        if self._popen.poll() is None and seconds:
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
        return self._popen.poll() is not None

    def has_news(self, connection: int) -> bool:
        """Return whether it has ended, or something can be read from a descriptor."""
        return self.wait(0) or bool(readable(0, connection))

    def end_text(self) -> str:
        """Return how it has ended, or ``""``."""
        code = self._popen.poll()
        return "" if code is None else _end_text(code)

    def close(self) -> None:
        """Let it end."""
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        self.wait(END_SECONDS)

    def __del__(self) -> None:
        pass  # its standard input is closed with this object, so that it ends


class Spawner(ZygoteHandle):
    """Starts each worker as a process of its own, where nothing can be forked from a zygote."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[int, SpawnedProcess] = {}

    def fork(
        self,
        role: Role,
        connection: socket.socket,
        descriptors: Sequence[int],
        has_namespace: bool,
        tick: Callable[[], object],
    ) -> ProcessHandle:
        """Start a worker that gets a connection and further descriptors.

        Raises:
            ToolFailed: With the code ``isolation.unavailable``.
        """
        setup: dict[str, Any] = {"path": absolute(sys.path), "descriptors": list(descriptors)}
        options: dict[str, Any] = {}
        if sys.platform == "win32":
            options["creationflags"] = subprocess.CREATE_NO_WINDOW
        else:
            setup["socket"] = connection.fileno()
            options |= {"pass_fds": (connection.fileno(), *descriptors), "start_new_session": True}
        try:
            process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", SPAWNED],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ},
                cwd=os.sep,
                **options,
            )
        except OSError as error:
            raise unavailable(f"no worker could be started ({error.strerror})") from None
        if sys.platform == "win32":
            setup["share"] = connection.share(process.pid).hex()
        assert process.stdin is not None
        with suppress(OSError):  # it has ended already, which its connection says
            process.stdin.write(json.dumps(setup).encode() + b"\n")
        with self._lock:
            self._started = {pid: each for pid, each in self._started.items() if not each.wait(0)}
            made = self._started[process.pid] = SpawnedProcess(process)
        return made

    def end_of(self, pid: int) -> str:
        """Return how a process has ended, such as ``SIGSEGV`` or ``exit code 1``, or ``""``."""
        with self._lock:
            found = self._started.pop(pid, None)
        return "" if found is None else found.end_text()

    def close(self) -> None:
        """Forget the workers, which the pool kills."""
        self._started = {}


def patiently(waiting: Callable[[], object], func: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function of a socket, which is called again when its timeout has passed."""
    while True:
        try:
            return func(*arguments)
        except TimeoutError:
            waiting()


def launched(
    has_namespaces: bool, tick: Callable[[], object]
) -> tuple[subprocess.Popen[bytes], socket.socket, tuple[str, ...]]:
    """Start a launcher, and return it, the control socket of its zygote, and the layers that they have entered."""
    end = monotonic() + LAUNCH_SECONDS

    def waiting() -> None:
        tick()
        if monotonic() > end:
            raise TimeoutError

    control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(TICK_SECONDS)
    with other:
        launcher = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", PROGRAM, str(other.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd=os.sep,
            pass_fds=(other.fileno(),),
            start_new_session=True,
        )
    try:
        control.send(json.dumps({"path": absolute(sys.path), "namespaces": has_namespaces}).encode())
        layers = json.loads(patiently(waiting, control.recv, MAX_ANSWER_BYTES))["layers"]
    except BaseException as error:
        control.close()
        end_launcher(launcher)
        if isinstance(error, (OSError, ValueError)):
            raise unavailable("the process that starts workers could not be started") from None
        raise
    return launcher, control, tuple(layers)


def end_launcher(launcher: subprocess.Popen[bytes] | None) -> None:
    """Kill a launcher; the kernel kills what it has started."""
    if launcher is not None:
        launcher.kill()
        launcher.wait()


def absolute(path: Sequence[str]) -> list[str]:
    return [each if each.endswith(".zip") else str(Path(each).absolute()) for each in path]
