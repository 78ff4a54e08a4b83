"""The processes of one engine's isolated tools: they start when they are needed, are reused, and can be killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet, ref

import attrs

from neuroscript.errors import ToolFailed, shorten_text
from neuroscript.isolation import processes
from neuroscript.isolation.confinement import read_list
from neuroscript.isolation.frames import Channel, ProtocolError
from neuroscript.isolation.processes import (
    END_SECONDS,
    MAX_ANSWER_BYTES,
    TICK_SECONDS,
    ProcessHandle,
    Role,
    Spawner,
    ZygoteGone,
    ZygoteHandle,
    absolute,
    acquired,
    end_launcher,
    launched,
    never,
    patiently,
    unavailable,
)
from neuroscript.isolation.rules import FileRule
from neuroscript.isolation.tool_source import ToolSource
from neuroscript.isolation.zygote import START_ERROR

if TYPE_CHECKING:
    from neuroscript.calls.steps import CallFrame
    from neuroscript.isolation.host_runtime import HostRuntime
    from neuroscript.policy.isolation import IsolationOf

EXIT_SECONDS: Final = 0.05
"""Seconds to wait for the end of a process that has closed its connection, before it is killed."""

LOST_SECONDS: Final = 5.0
"""Seconds after which a worker is forgotten that has ended, although no call has reported that it is over."""

IDLE_SECONDS: Final = 5.0
"""Seconds that a worker waits longer than the host before it ends, so that no call reaches it at that moment."""

MAX_STARTS: Final = 3
"""How often a call starts a worker if the zygote ends meanwhile."""

MAX_REASON_CHARS: Final = 1_000
"""Maximum length of the reason why a worker cannot import a toolset."""

ENDED_EARLY: Final = "the worker ended before its first call"

IN_WORKERS: Final = "threads"
"""Why each worker must load its toolset itself: the toolset starts threads, which a fork does not copy."""


@attrs.frozen
class WorkerRules:
    """What a worker may do; it is fixed before the first call, so other rules need another worker.

    Attributes:
        source: Where the worker finds its tools.
        loads_confined: Whether it confines itself before it loads them.
        reuse: Whether it serves more than one call.
        files: Files that it may use, besides those that each worker may read; they are open while it starts.
        network: Whether it may use the network.
        execute: Whether it may start programs.
        memory_bytes: How much memory it may use.
        cpu_seconds: How much time of a processor it may use, or None.
        open_files: How many descriptors it may have.
        file_bytes: How large a file it may write.
        require: The layers without which it does not start.
    """

    source: ToolSource = attrs.field(eq=lambda source: source.key)
    loads_confined: bool
    reuse: bool
    files: tuple[FileRule, ...] = ()
    network: bool = False
    execute: bool = False
    memory_bytes: int = 1 << 30
    cpu_seconds: int | None = None
    open_files: int = 256
    file_bytes: int = 1 << 30
    require: tuple[str, ...] = ()


@attrs.frozen
class WorkerInfo:
    """A worker process of an engine.

    Attributes:
        toolset: What it runs: the name of an entry point, a file or a module.
        layers: The layers that confine it, from those that ``neuroscript isolation check`` lists.
        calls: How many calls it has completed.
        is_busy: Whether it carries out a call.
    """

    toolset: str
    layers: tuple[str, ...]
    calls: int
    is_busy: bool


class Worker:
    """The host's side of one worker.

    Attributes:
        rules: What it may do.
        channel: The connection to it.
        layers: What confines it.
        calls: How many calls it has served.
        stored: The objects behind handles that it holds, by number.
        idle_since: When its last call ended, on the clock of `time.monotonic`.
        is_alive: Whether it may be used.
    """

    def __init__(self, rules: WorkerRules, channel: Channel, process: ProcessHandle, zygote: ZygoteHandle) -> None:
        self.rules = rules
        self.channel = channel
        self.layers: tuple[str, ...] = ()
        self.calls = 0
        self.stored: set[int] = set()
        self.idle_since = 0.0
        self.is_alive = True
        self.is_busy = True
        self._frame: Callable[[], CallFrame | None] = never
        self._ended_since = 0.0
        self._process = process
        self._zygote = zygote
        self._later: list[int] = []
        self._host: HostRuntime | None = None
        self._thread = 0

    @property
    def frame(self) -> CallFrame | None:
        """The call that it serves. A call that was interrupted by a signal handler may not have given it back."""
        return self._frame()

    def serve(self, frame: CallFrame) -> None:
        """Reserve it for a call."""
        self._frame = ref(frame)
        self.is_busy = True

    def free(self) -> None:
        """Make it available for another call."""
        self.is_busy = False
        self._frame = never
        self.idle_since = monotonic()

    @contextmanager
    def serving(self, host: HostRuntime, tick: Callable[[], object]) -> Iterator[None]:
        """Serve one call in this thread, and call *tick* regularly while a message is awaited."""
        self._host, self.channel.tick, self._thread = host, tick, threading.get_ident()
        try:
            yield
        finally:
            self._host = self.channel.tick = None

    def release(self, key: int) -> None:
        """Release an object that it holds: at once, or before its next call if another thread uses the worker."""
        self.stored.discard(key)
        if self._host is not None and self._thread == threading.get_ident():
            self._host.asked("release", key)
        else:
            self._later.append(key)

    def flush(self) -> None:
        """Release the objects that were released since the last call."""
        while self._later:
            self.channel.send("release", self._later.pop(0))
            if self.channel.receive() != ["ok", None]:
                raise ProtocolError("it did not release an object")

    def kill(self) -> None:
        """Kill it with every process that it has started."""
        self.is_alive = False
        self._process.kill()

    def has_ended(self) -> bool:
        """Return whether its process has ended."""
        return self._process.wait(0)

    def is_quiet(self) -> bool:
        """Return whether it still runs, and has sent nothing since its last call."""
        return self.is_alive and self.channel.is_idle and not self._process.has_news(self.channel.socket.fileno())

    def is_lost(self) -> bool:
        """Return whether it ended a while ago; a call notices that at once, unless its thread was interrupted."""
        if not self.has_ended():
            return False
        self._ended_since = self._ended_since or monotonic()
        return monotonic() > self._ended_since + LOST_SECONDS

    @property
    def has_lost_its_zygote(self) -> bool:
        """Whether the zygote, whose end is also that of the worker, was found to have ended."""
        return self._zygote.is_gone

    def end(self, seconds: float) -> str:
        """Return how it has ended, after at most `END_SECONDS`.

        Args:
            seconds: How long to wait before it is killed.
        """
        self.is_alive = False
        if not self._process.wait(seconds):
            self._process.kill()
        self._process.wait(END_SECONDS)
        return self._zygote.end_of(self._process.pid)

    def close(self) -> None:
        """Kill it if it still runs, and release what belongs to it."""
        self.is_alive = False
        self._process.kill()
        self._process.close()
        self.channel.close()

    def __del__(self) -> None:
        self.channel.close()  # it is not killed, because this may be a fork of the host


class Pool:
    """The workers of one engine.

    Attributes:
        confines: Whether workers confine themselves. Tests set it to False, to prove that it is what stops an attack.
        namespaces: Whether workers have namespaces of their own.
    """

    def __init__(self) -> None:
        self.confines = self.namespaces = True
        self._lock = threading.RLock()  # a condition that is entered itself is not safe from signal handlers
        self._condition = threading.Condition(self._lock)
        self._launching = threading.Lock()
        self._launcher: subprocess.Popen[bytes] | None = None
        self._root: ZygoteHandle | None = None
        self._layers: tuple[str, ...] = ()
        self._zygotes: dict[tuple[Any, ...], ZygoteHandle | str] = {}
        self._workers: set[Worker] = set()
        self._starting: WeakSet[CallFrame] = WeakSet()
        self._readable: dict[bool, tuple[str, ...]] = {}
        self._is_closed = False
        self._process = os.getpid()

    # Workers

    @property
    def workers(self) -> tuple[WorkerInfo, ...]:
        """The workers that run."""
        with self._lock:
            running = [each for each in self._workers if each.layers and each.is_alive and not each.has_ended()]
            return tuple(WorkerInfo(each.rules.source.name, each.layers, each.calls, each.is_busy) for each in running)

    def take(
        self,
        rules: WorkerRules,
        settings: IsolationOf,
        wanted: Worker | None,
        frame: CallFrame,
        tick: Callable[[], object],
    ) -> Worker:
        """Return a worker with these rules for one call. A nested call does not wait until a worker is free.

        Args:
            settings: How the host isolates the tool.
            wanted: The worker that holds an object that the call needs, or None.
            frame: The call.
            tick: Called regularly; it may raise.

        Raises:
            ToolFailed: No worker can be started, or none became free.
        """
        if self._process != os.getpid():
            self._forget()
        if wanted is not None and wanted.rules != rules:
            wanted = (
                None  # it never becomes usable for this call; the tool may need only what the host knows of the handle
            )
        end = monotonic() + settings.start_seconds
        with self._lock:
            while True:
                if self._is_closed:
                    raise unavailable("the engine was closed")
                found = self._idle(rules, settings, wanted)
                if found is not None:
                    found.serve(frame)
                    return found
                is_held = wanted is not None and wanted.is_alive
                if not is_held and (frame.depth > 1 or self._has_room(settings)):
                    break
                if monotonic() > end:
                    text = f"no worker became free within {settings.start_seconds:g} s"
                    raise ToolFailed(text, code="isolation.busy", retry="later")
                self._condition.wait(TICK_SECONDS)
                tick()
            self._starting.add(frame)
        try:
            return self._start(rules, settings, frame, tick)
        finally:
            with self._lock:
                self._starting.discard(frame)
                self._condition.notify()

    def _forget(self) -> None:
        """Begin again in a process that was forked from the host: the processes belong to the other one."""
        self._lock, self._launching = threading.RLock(), threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._process = os.getpid()
        self._workers, self._zygotes, self._root, self._launcher = set(), {}, None, None

    def _idle(self, rules: WorkerRules, settings: IsolationOf, wanted: Worker | None) -> Worker | None:
        for each in list(self._workers):
            if each.is_busy:
                if each.frame is None:
                    self._remove(each)
                elif each.is_lost():
                    self._workers.discard(each)  # its thread, if there still is one, may use what belongs to it
                continue
            if wanted is not None and each is not wanted and wanted.is_alive:
                continue
            is_over = not each.stored and monotonic() > each.idle_since + settings.idle_seconds
            if is_over or not each.is_quiet():
                self._remove(each)
            elif each.rules == rules and each.rules.reuse:
                return each
        return None

    def _has_room(self, settings: IsolationOf) -> bool:
        """Return whether a worker may be started, if necessary after the end of one that has been idle.

        Workers that hold objects end only if all others do too, so that they do not keep other tools from running.
        """
        if len(self._workers) + len(self._starting) < settings.workers:
            return True
        idle = [each for each in self._workers if not each.is_busy]
        free = [each for each in idle if not each.stored] or (idle if len(idle) == len(self._workers) else [])
        if not free:
            return False
        self._remove(min(free, key=lambda each: each.idle_since))
        return True

    def give_back(self, worker: Worker, settings: IsolationOf) -> None:
        """Take back a worker after its call."""
        with self._lock:
            worker.calls += 1
            is_used_up = worker.calls >= settings.max_calls and not worker.stored
            if self._is_closed or not worker.is_alive or not worker.rules.reuse or is_used_up:
                self._remove(worker)
            else:
                worker.free()
            end = monotonic() - settings.idle_seconds
            for each in list(self._workers):
                if not each.is_busy and not each.stored and each.idle_since < end:
                    self._remove(each)
            self._condition.notify()

    def discard(self, worker: Worker, seconds: float = 0) -> str:
        """Return how a worker has ended, which is killed if it does not end within some seconds."""
        try:
            return worker.end(seconds)
        finally:
            with self._lock:
                self._remove(worker)
                self._condition.notify()

    def _remove(self, worker: Worker) -> None:
        self._workers.discard(worker)
        worker.close()

    def describe(self, rules: WorkerRules, settings: IsolationOf) -> list[Any]:
        """Return the message in which a new process says what a source contains; the process is ended.

        Raises:
            ToolFailed: No process could be started.
            TimeoutError: It did not answer in time.
            EOFError: It ended before; the error has the signal or the exit code.
            ProtocolError: It sent something else than a message.
        """
        if self._process != os.getpid():
            self._forget()
        end = monotonic() + settings.start_seconds

        def waiting() -> None:
            if monotonic() > end:
                raise TimeoutError

        worker = self._forked_worker(rules, settings, waiting)
        channel = worker.channel
        try:
            channel.tick = waiting
            channel.send("setup", {**self._setup(rules, settings), "describes": True})
            _started(channel, rules.source)
            return channel.receive()
        except (EOFError, ConnectionError):
            raise EOFError(worker.end(EXIT_SECONDS)) from None
        finally:
            worker.close()

    def _start(self, rules: WorkerRules, settings: IsolationOf, frame: CallFrame, tick: Callable[[], object]) -> Worker:
        """Start a worker. It is started again if its zygote has ended in the meantime, and the worker with it."""
        for attempt in range(1, MAX_STARTS + 1):
            worker = self._forked_worker(rules, settings, tick)
            try:
                self._set_up(worker, settings, frame, tick)
            except BaseException as error:
                self.discard(worker)
                if not (isinstance(error, ToolFailed) and worker.has_lost_its_zygote and attempt < MAX_STARTS):
                    raise
            else:
                return worker
        raise AssertionError("unreachable")

    def _set_up(self, worker: Worker, settings: IsolationOf, frame: CallFrame, tick: Callable[[], object]) -> None:
        worker.serve(frame)
        channel = worker.channel
        with self._lock:
            self._workers.add(worker)
            if self._is_closed:
                worker.kill()
        end = monotonic() + settings.start_seconds

        def waiting() -> None:
            tick()
            if monotonic() > end:
                raise unavailable(f"the worker did not start within {settings.start_seconds:g} s")

        channel.tick = waiting
        with suppress(ConnectionError):  # it has ended already, which the first message would say
            channel.send("setup", self._setup(worker.rules, settings))
        worker.layers = tuple(_started(channel, worker.rules.source))
        _loaded(channel, worker.rules.source)
        channel.tick = None

    def _forked_worker(self, rules: WorkerRules, settings: IsolationOf, tick: Callable[[], object]) -> Worker:
        """Return a worker that waits for its setup. If a zygote has ended, a new one is started."""
        files = [each.descriptor for each in rules.files]
        for _ in range(MAX_STARTS):
            try:
                zygote = self._zygote_for(rules, settings, tick)
                process, channel = _forked(zygote, "worker", files, self.namespaces, tick)
            except ZygoteGone as gone:
                self._lose(gone.zygote)
            else:
                return Worker(rules, channel, process, zygote)
        raise unavailable("the processes that start workers have ended repeatedly")

    def _setup(self, rules: WorkerRules, settings: IsolationOf) -> dict[str, Any]:
        source = rules.source
        return {
            "kind": source.kind,
            "data": source.data,
            "path": absolute(sys.path),
            "own": list(source.paths),
            "describes": False,
            "files": [[place, ["list", "read"]] for place in self.readable(rules)],
            "words": [list(each.words) for each in rules.files],
            "network": rules.network,
            "execute": rules.execute,
            "memory_bytes": rules.memory_bytes,
            "cpu_seconds": rules.cpu_seconds,
            "open_files": rules.open_files,
            "file_bytes": rules.file_bytes,
            "require": list(rules.require),
            "idle_seconds": settings.idle_seconds + IDLE_SECONDS,
            "reuse": rules.reuse,
            "confine": self.confines,
            "namespaces": self.namespaces and processes.FORKS,
        }

    def readable(self, rules: WorkerRules) -> tuple[str, ...]:
        """Return the files and directories that a worker may read besides those of its call."""
        known = self._readable.get(rules.network)
        if known is None:
            known = self._readable[rules.network] = read_list(network=rules.network)
        return (*known, *rules.source.paths)

    # Zygotes

    def _zygote_for(self, rules: WorkerRules, settings: IsolationOf, tick: Callable[[], object]) -> ZygoteHandle:
        root = self._started_root(tick)
        if rules.loads_confined or isinstance(root, Spawner):
            return root
        key = rules.source.key
        with self._lock:
            found = self._zygotes.get(key)
        if found is None:
            made = self._new_zygote(root, rules.source, settings, tick)
            with self._lock:
                found = self._zygotes.setdefault(key, made)
                if isinstance(made, ZygoteHandle) and (found is not made or self._is_closed):
                    made.close()
                if self._is_closed:
                    raise unavailable("the engine was closed")
        return root if isinstance(found, str) else found

    def _new_zygote(
        self, root: ZygoteHandle, source: ToolSource, settings: IsolationOf, tick: Callable[[], object]
    ) -> ZygoteHandle | str:
        """Start a zygote that has loaded a toolset, or return why workers must load it themselves."""
        end = monotonic() + settings.start_seconds

        def waiting() -> None:
            tick()
            if monotonic() > end:
                raise unavailable(f"the toolset was not imported within {settings.start_seconds:g} s")

        control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with other:
                process, channel = _forked(root, "zygote", [other.fileno()], True, tick)
        except BaseException:
            control.close()
            raise
        try:
            channel.tick = waiting
            setup = {"kind": source.kind, "data": source.data, "path": absolute(sys.path), "own": list(source.paths)}
            channel.send("setup", setup)
            if _first_message(channel, source)[:2] == [START_ERROR, "threads"]:
                raise _LoadedInWorkers
            control.settimeout(TICK_SECONDS)
            if not patiently(waiting, control.recv, MAX_ANSWER_BYTES):  # it reports that it serves
                raise unavailable(ENDED_EARLY)
        except BaseException as error:
            process.kill()
            process.close()
            control.close()
            if isinstance(error, _LoadedInWorkers):
                return IN_WORKERS
            raise
        finally:
            channel.close()
        return ZygoteHandle(control, process)

    def _started_root(self, tick: Callable[[], object] = never) -> ZygoteHandle:
        """Return the zygote of this engine, which is started if necessary."""
        attempts: list[bool] = []
        try:
            while not acquired(self._launching, attempts):
                tick()
            with self._lock:
                if self._is_closed:
                    raise unavailable("the engine was closed")
                if not processes.FORKS and self._root is None:
                    self._root = Spawner()
                if self._root is not None:
                    return self._root
            launcher, control, layers = launched(self.namespaces, tick)
            root = ZygoteHandle(control, None)
            with self._lock:
                self._layers = layers
                if not self._is_closed:
                    self._root, self._launcher = root, launcher
                    return root
            root.close()
            end_launcher(launcher)
            raise unavailable("the engine was closed")
        finally:
            if any(attempts):
                self._launching.release()

    def _lose(self, zygote: ZygoteHandle) -> None:
        """Forget a zygote that has ended or does not answer, with all that it has started."""
        with self._lock:
            lost, launcher = [zygote], None
            if zygote is self._root:
                lost += [each for each in self._zygotes.values() if isinstance(each, ZygoteHandle)]
                launcher, self._root, self._launcher, self._zygotes = self._launcher, None, None, {}
            else:
                self._zygotes = {key: each for key, each in self._zygotes.items() if each is not zygote}
        for each in lost:
            each.close()
        end_launcher(launcher)

    def close(self) -> None:
        """Kill all processes."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._is_closed = True
            workers = list(self._workers)
            for each in workers:
                each.kill()  # the calls notice it and close the worker
            idle = [each for each in workers if not each.is_busy]
            self._workers.clear()  # a busy one belongs to the thread of its call, unless that was interrupted
            zygotes = [each for each in (*self._zygotes.values(), self._root) if isinstance(each, ZygoteHandle)]
            launcher, self._root, self._launcher, self._zygotes = self._launcher, None, None, {}
            self._condition.notify_all()
        for worker in idle:
            worker.close()
        for zygote in zygotes:
            zygote.close()
        end_launcher(launcher)


class _LoadedInWorkers(Exception):
    """A toolset cannot be loaded once for all of its workers."""


def _forked(
    zygote: ZygoteHandle, role: Role, further: Sequence[int], has_namespace: bool, tick: Callable[[], object]
) -> tuple[ProcessHandle, Channel]:
    """Return a new process of a zygote and the connection to it."""
    own, other = socket.socketpair()
    try:
        with other:
            process = zygote.fork(role, other, further, has_namespace, tick)
    except BaseException:
        own.close()
        raise
    own.settimeout(TICK_SECONDS)
    return process, Channel(own)


def _started(channel: Channel, source: ToolSource) -> list[str]:
    """Wait until a process has started, and return the layers that confine it."""
    match _first_message(channel, source):
        case ["ready", list(layers)]:
            return [str(each) for each in layers]
        case [str(word), "unavailable", str(missing)] if word == START_ERROR:
            raise unavailable(f"this system does not provide what the policy requires: {missing}")
    raise unavailable("the worker sent something unexpected when it started")


def _loaded(channel: Channel, source: ToolSource) -> None:
    """Wait until a worker has loaded its toolset; what it reports from then on is not trusted."""
    if _first_message(channel, source) != ["loaded"]:
        raise unavailable("the worker sent something unexpected when it started")


def _first_message(channel: Channel, source: ToolSource) -> list[Any]:
    try:
        message = channel.receive()
    except (EOFError, ConnectionError, ProtocolError):
        raise unavailable(ENDED_EARLY) from None
    match message:
        case [str(word), "import", str(reason)] if word == START_ERROR:
            error = ToolFailed("the toolset cannot be imported in a worker", code="isolation.import", retry="host")
            text = shorten_text(reason, MAX_REASON_CHARS)
            error.remedy = f"{source.name}: cannot be imported in a worker: {text}"
            raise error
    return message
