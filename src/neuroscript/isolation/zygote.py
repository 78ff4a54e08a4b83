"""The processes that start workers: a launcher, a zygote, and a zygote for each toolset that the host also imports.

This file is a program: ``python -I zygote.py CONTROL``. The launcher ends everything when the host is gone. The zygote
is single-threaded and has imported this project, so that a fork of it is a process that can run tools at once.

CONTROL is a descriptor of a Unix socket that keeps messages apart. The first message is the search path of modules.
Each further one asks the zygote to fork a process, or how a process has ended; descriptors are passed along. A forked
process reads its setup from the socket that was passed to it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from neuroscript.isolation.frames import Channel
    from neuroscript.isolation.tool_source import LoadedSource

MAX_MESSAGE_BYTES = 1 << 16

MAX_DESCRIPTORS = 250
"""Maximum number of descriptors in one message."""

START_ERROR = "start"
"""The first word of the message of a process that could not be set up."""


def main() -> NoReturn:
    """Run the launcher: enter namespaces, fork the zygote, and end it together with the host."""
    control = socket.socket(fileno=int(sys.argv[1]))
    host = os.getppid()
    setup = json.loads(control.recv(MAX_MESSAGE_BYTES))
    sys.path[:] = setup["path"]
    from neuroscript.isolation import namespaces
    from neuroscript.isolation.confinement import try_layers

    missing = try_layers()  # once, for all workers
    layers = namespaces.enter(("pidns",)) if setup["namespaces"] and not missing["pidns"] else ()
    if not layers:
        namespaces.adopt_orphans()
    own = os.pidfd_open(os.getpid())
    child = os.fork()
    if not child:
        try:
            namespaces.end_with_parent(own)
            _serve_zygote(control, layers, None)
        finally:
            os._exit(1)
    control.close()
    _supervise(child, host)
    os._exit(0)


def _supervise(child: int, host: int) -> None:
    """Wait until the zygote or the host has ended, and end the zygote.

    With it the kernel ends everything in its PID namespace; elsewhere, its workers end because their parent does.
    """
    from neuroscript.isolation.namespaces import kill_children

    poll = select.poll()
    try:
        poll.register(os.pidfd_open(host), select.POLLIN)
        poll.register(os.pidfd_open(child), select.POLLIN)
        if os.getppid() == host:  # otherwise the host ended before its descriptor was opened
            poll.poll()
    except OSError:
        pass
    os.kill(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:  # without a PID namespace, what workers have left behind belongs to this process now
            os.waitpid(-1, 0)
            kill_children()


class Zygote:
    """Forks processes on request.

    Attributes:
        source: The tools that it has loaded, or None.
    """

    def __init__(self, control: socket.socket, layers: tuple[str, ...], source: LoadedSource | None) -> None:
        self.source = source
        self._control = control
        self._layers = layers
        self._ends: dict[int, int] = {}
        self._children: set[int] = set()
        self._own = os.pidfd_open(os.getpid())

    def serve(self) -> NoReturn:
        """Answer requests until the host closes the socket."""
        while True:
            data, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, MAX_DESCRIPTORS)
            if not data:
                os._exit(0)
            self._reap()
            match json.loads(data):
                case [number, "fork", role, has_namespace]:
                    self._fork(number, role, has_namespace, descriptors)
                case [number, "end", pid]:
                    self._answer(number, self._end_of(pid))

    def _answer(self, *message: Any, descriptors: tuple[int, ...] = ()) -> None:
        socket.send_fds(self._control, [json.dumps(message).encode()], descriptors)

    def _fork(self, number: int, role: str, has_namespace: bool, descriptors: list[int]) -> None:
        """Fork a worker, in a PID namespace of its own if possible, or a zygote.

        Args:
            number: The number of the request.
            descriptors: Its channel; further ones are the control socket of a zygote, or the files of a worker's rules.
        """
        from neuroscript.isolation import namespaces

        child = -1
        try:
            is_first = has_namespace and role == "worker" and "pidns" in self._layers
            child = namespaces.fork_into_pid_namespace() if is_first else os.fork()
        except OSError as error:
            self._answer(number, 0, error.errno)
            return
        finally:
            if child:
                for each in descriptors:
                    os.close(each)
        if not child:
            try:
                namespaces.end_with_parent(self._own)
                run_process(role, descriptors, self._layers, self.source)
            finally:
                os._exit(1)
        self._children.add(child)
        handle = os.pidfd_open(child)
        self._answer(number, child, 0, descriptors=(handle,))
        os.close(handle)

    def _reap(self) -> None:
        """Store how processes have ended, and kill those that they have left behind."""
        if not self._layers:
            from neuroscript.isolation.namespaces import kill_children

            kill_children(self._children)
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self._children.discard(found[0])
                self._ends[found[0]] = found[1]
        while len(self._ends) > 1000:
            del self._ends[next(iter(self._ends))]

    def _end_of(self, pid: int) -> int | None:
        """Return the wait status of a process that has ended, or None if it is not known."""
        self._reap()
        return self._ends.pop(pid, None)


def _serve_zygote(control: socket.socket, layers: tuple[str, ...], source: LoadedSource | None) -> NoReturn:
    """Load what a worker needs, report that, and serve."""
    import gc

    from neuroscript.isolation import namespaces, worker  # noqa: F401  # so that workers need not import it

    if not layers:
        namespaces.adopt_orphans()
    gc.freeze()
    control.send(json.dumps({"layers": list(layers)}).encode())
    Zygote(control, layers, source).serve()


def run_process(role: str, descriptors: list[int], layers: tuple[str, ...], source: LoadedSource | None) -> None:
    """Run a forked process: read its setup, and be a worker or a zygote."""
    from neuroscript.isolation import namespaces
    from neuroscript.isolation.frames import Channel

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    namespaces.close_all_but((0, 1, 2, *descriptors))
    channel = Channel(socket.socket(fileno=descriptors[0]), is_lenient=True)
    try:
        _, setup = channel.receive()
        if role == "zygote":
            loaded = _load_reporting(channel, setup)
            if len(os.listdir("/proc/self/task")) > 1:
                channel.send(START_ERROR, "threads", "")
                os._exit(0)
            channel.send("ready", [])
            channel.close()
            _serve_zygote(socket.socket(fileno=descriptors[1]), layers, loaded)
        run_worker(channel, setup, descriptors[1:], layers, source)
    except EOFError:
        os._exit(0)


def run_worker(
    channel: Channel,
    setup: dict[str, Any],
    descriptors: list[int],
    layers: tuple[str, ...],
    source: LoadedSource | None,
) -> None:
    """Confine this process, load a toolset unless that has happened, and serve calls until the process ends."""
    from neuroscript.isolation import worker
    from neuroscript.isolation.confinement import TEMPORARY_BYTES, Rules, confine

    os.environ.clear()
    os.environ["LANG"] = "C.UTF-8"
    paths = [(place, frozenset(words)) for place, words in setup["files"]]
    opened = zip(descriptors, map(frozenset, setup["words"]), strict=True)
    rules = Rules(
        files=(*paths, *opened),
        network=setup["network"],
        execute=setup["execute"],
        memory_bytes=setup["memory_bytes"],
        cpu_seconds=setup["cpu_seconds"],
        open_files=setup["open_files"],
        file_bytes=setup["file_bytes"],
        temporary_bytes=min(TEMPORARY_BYTES, setup["memory_bytes"]),
    )
    has_own = "pidns" in layers and setup["namespaces"]
    found = (
        (*layers, *confine(rules, namespaces=setup["namespaces"], in_pid_namespace=has_own))
        if setup["confine"]
        else layers
    )
    for each in descriptors:
        os.close(each)
    missing = [each for each in setup["require"] if each not in found]
    if missing:
        channel.send(START_ERROR, "unavailable", ", ".join(missing))
        os._exit(0)
    channel.send("ready", list(found))
    if setup["describes"]:
        _describe(channel, setup)
    loaded = source or _load_reporting(channel, setup)
    channel.send("loaded")
    worker.serve(channel, loaded, setup["idle_seconds"], setup["reuse"])
    os._exit(0)


def _describe(channel: Channel, setup: dict[str, Any]) -> NoReturn:
    """Import a toolset, report what it contains, and end."""
    from neuroscript.isolation.description import describe

    _find_modules(setup)
    channel.send("described", *describe(setup["kind"], setup["data"]))
    os._exit(0)


def _find_modules(setup: dict[str, Any]) -> None:
    """Let this process find the modules that the host finds, even if it cannot list the directories."""
    from neuroscript.isolation.tool_source import OwnFinder

    sys.path[:] = setup["path"]
    sys.meta_path.insert(0, OwnFinder(setup["own"]))


def _load(setup: dict[str, Any]) -> LoadedSource:
    from neuroscript.isolation.tool_source import LoadedSource

    _find_modules(setup)
    return LoadedSource(setup["kind"], setup["data"])


def _load_reporting(channel: Channel, setup: dict[str, Any]) -> LoadedSource:
    from neuroscript.io.tracebacks import error_summary

    try:
        return _load(setup)
    except BaseException as error:
        channel.send(START_ERROR, "import", error_summary(error))
        os._exit(0)


if __name__ == "__main__":
    main()
