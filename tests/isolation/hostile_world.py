"""What hostile tools aim at: files, servers, processes and secrets, which notice when they are reached."""

from __future__ import annotations

import ctypes
import io
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from tests.isolation.neighbour_tools import neighbour

from neuroscript import Engine, ExecutionPolicy, Host, Isolation, Limits, Toolset, ToolSpec, Turn

MEMORY_BYTES: Final = 400 << 20

VICTIM: Final = """
import ctypes, os, signal, sys
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
token = os.environ["VICTIM_TOKEN"].encode()
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_long(-1), 0, 0, 0)
buffer = ctypes.create_string_buffer(token, 64)
file = os.memfd_create("victim")
os.write(file, token)
os.setpriority(os.PRIO_PROCESS, 0, 0)
print(ctypes.addressof(buffer), file, flush=True)
sys.stdin.read()
print(buffer.value.decode(), flush=True)
"""
"""A process that holds a secret in its environment, in its memory and in a memory file."""


class Model:
    """A model that answers with a secret."""

    def __init__(self, token: str) -> None:
        self._token = token

    def ask(self, turns: Sequence[Turn]) -> Turn:
        return Turn("assistant", self._token)

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        return self.ask(turns)

    def embed(self, text: str) -> Sequence[float]:
        return [0.0]


class World:
    """Everything that an attack can aim at.

    Attributes:
        token: A secret that is in everything that can be read.
        target: The arguments of the tools, which describe it.
        signals: The signals that this process has received.
    """

    def __init__(self, directory: Path) -> None:
        self.token = secrets.token_hex(16)
        self.signals: list[int] = []
        self.directory = directory
        self.target: dict[str, Any] = {}
        self._stack = ExitStack()
        self._make_files()
        self._serve()
        self._share_memory()
        self._former = signal.signal(signal.SIGUSR1, lambda number, _: self.signals.append(number))
        self._victim: subprocess.Popen[str] | None = None
        self._neighbour = engine(self.host(), neighbour, ("neighbour.*",))
        self._stack.enter_context(self._neighbour)
        self._start_victim()
        self._ask_neighbour()
        self.before = self._files()

    def host(self) -> Host:
        """Return a host with a secret and a sandbox."""
        return Host(
            sandbox_dir=str(self.directory / "sandbox"),
            secrets={"key": self.token},
            stdin=io.StringIO(),
            stdout=io.StringIO(),
            stderr=io.StringIO(),
            llm=Model(self.token),
        )

    # Targets

    def _make_files(self) -> None:
        inside, other, outside = (self.directory / each for each in ("sandbox/inside", "sandbox/other", "outside"))
        for each in (inside / "directory", inside / "mounted", other, outside):
            each.mkdir(parents=True)
        (self.directory / "secret").write_text(self.token)
        for place in (inside / "private", other / "token", outside / "token"):
            place.write_text(self.token)
        (outside / "file").write_text("unchanged")
        (inside / "file").write_text("unchanged")
        (inside / "link").symlink_to(self.directory / "secret")
        (inside / "links").symlink_to(outside)
        self.target |= {
            "secret": str(self.directory / "secret"),
            "inside": str(inside),
            "outside": str(outside),
            "memory_bytes": MEMORY_BYTES,
            "host": os.getpid(),
            "launcher": 0,
            "name": f"neuroscript-{secrets.token_hex(6)}",
            "seconds": f"{secrets.randbelow(10**6) + 10**6}",
            "confined": True,
            "handle": "",
        }

    def _serve(self) -> None:
        """Wait for connections and datagrams of every kind; the kernel accepts them without a thread."""
        names = {each: f"neuroscript-{secrets.token_hex(8)}" for each in ("abstract", "abstract_datagram")}
        place = f"/tmp/{names['abstract']}"
        addresses: dict[str, tuple[int, int, Any]] = {
            "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "unix": (socket.AF_UNIX, socket.SOCK_STREAM, place),
            "abstract": (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + names["abstract"]),
            "abstract_datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + names["abstract_datagram"]),
        }
        self._servers = []
        for name, (family, kind, address) in addresses.items():
            server = self._stack.enter_context(socket.socket(family, kind))
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen()
            self._servers.append(server)
            self.target[name] = server.getsockname()[1] if family == socket.AF_INET else names.get(name, place)
        self._stack.callback(os.unlink, place)

    def _share_memory(self) -> None:
        """Provide a file in memory and a segment of shared memory, as processes use them that exchange data."""
        name = f"neuroscript-{secrets.token_hex(8)}"
        Path("/dev/shm", name).write_text(self.token)
        self._stack.callback(os.unlink, f"/dev/shm/{name}")
        libc = ctypes.CDLL(None)
        libc.shmat.restype = ctypes.c_void_p
        key = secrets.randbelow(2**30) + 1
        segment = libc.shmget(key, 4096, 0o1600)
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, self.token.encode(), 32)
        libc.shmdt(ctypes.c_void_p(address))
        self._stack.callback(libc.shmctl, segment, 0, None)
        self.target |= {"shared_name": name, "shared_key": key}

    def _start_victim(self) -> None:
        self._victim = victim = subprocess.Popen(
            [sys.executable, "-I", "-c", VICTIM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"VICTIM_TOKEN": self.token},
        )
        assert victim.stdout is not None
        address, file = map(int, victim.stdout.readline().split())
        self._priority = os.getpriority(os.PRIO_PROCESS, victim.pid)
        self._processors = os.sched_getaffinity(victim.pid)
        self.target |= {"victim": victim.pid, "address": address, "memory_file": file}

    def _ask_neighbour(self) -> None:
        address = self._neighbour.call("neighbour.hold", [self.token])
        (worker,) = self._neighbour._shared.pool._workers
        self.target |= {"neighbour": pid_of(worker), "neighbour_address": address}

    # What was reached

    def reached(self, result: object = "") -> set[str]:
        """Return what an attack has reached, and repair it."""
        found = {"token"} if self.token in str(result) else set()
        if select.select(self._servers, [], [], 0)[0]:
            found.add("server")
            self._accept()
        if self.signals:
            found.add("signal")
            self.signals.clear()
        found |= self._victim_is_changed() | self._neighbour_is_changed()
        (self.directory / "sandbox/inside/file").write_text("unchanged")
        if self._files() != self.before:
            found.add("files")
            self._repair_files()
        for place in ("/dev/shm", "/tmp"):
            with suppress(FileNotFoundError):
                os.unlink(f"{place}/{self.target['name']}")
                found.add("filled")
        return found | ({"daemon"} if self.daemons(kill=True) else set())

    def _accept(self) -> None:
        for each in select.select(self._servers, [], [], 0)[0]:
            if each.type == socket.SOCK_STREAM:
                each.accept()[0].close()
            else:
                each.recv(100)

    def _victim_is_changed(self) -> set[str]:
        victim = self._victim
        assert victim is not None
        if victim.poll() is not None:
            self._end_victim()
            self._start_victim()
            return {"victim"}
        is_slowed = os.getpriority(os.PRIO_PROCESS, victim.pid) > self._priority
        is_bound = os.sched_getaffinity(victim.pid) != self._processors
        if is_slowed or is_bound or self._victim_memory() != self.token:
            self._end_victim()
            self._start_victim()
            return {"victim"}
        return set()

    def _victim_memory(self) -> str:
        try:
            with open(f"/proc/{self.target['victim']}/mem", "rb") as file:
                file.seek(self.target["address"])
                return file.read(32).decode(errors="replace")
        except OSError:  # it has just ended
            return ""

    def _end_victim(self) -> None:
        assert self._victim is not None
        self._victim.kill()
        self._victim.communicate()

    def _neighbour_is_changed(self) -> set[str]:
        try:
            address = self._neighbour.call("neighbour.hold", [self.token])
        except Exception:
            self._ask_neighbour()
            return {"neighbour"}
        if address == self.target["neighbour_address"]:
            return set()
        self._ask_neighbour()
        return {"neighbour"}

    def _files(self) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        for place in sorted(self.directory.rglob("*")):
            if self.directory / "sandbox/inside" in place.parents:
                continue
            status = place.lstat()
            content = place.read_bytes() if place.is_file() else b""
            is_file = place.is_file()
            found.append(
                (place, status.st_mode, status.st_uid, is_file and (status.st_nlink, int(status.st_mtime)), content)
            )
        return found

    def _repair_files(self) -> None:
        before = {each[0]: each for each in self.before}
        for place in sorted(self.directory.rglob("*"), reverse=True):
            inside = self.directory / "sandbox/inside"
            if place not in before and place != inside and inside not in place.parents:
                place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()
        for each in ("linked", "moved", "created", "program"):
            (self.directory / "sandbox/inside" / each).unlink(missing_ok=True)
        (self.directory / "sandbox/inside/directory").mkdir(exist_ok=True)
        outside = self.directory / "outside"
        for name, text in (("token", self.token), ("file", "unchanged")):
            (outside / name).unlink(missing_ok=True)
            (outside / name).write_text(text)
        self.before = self._files()

    def daemons(self, *, kill: bool = False) -> list[int]:
        """Return the programs that tools have left behind."""
        wanted = f"sleep\0{self.target['seconds']}\0".encode()
        found = [each for each in map(int, filter(str.isdigit, os.listdir("/proc"))) if _command(each) == wanted]
        for each in found if kill else ():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        return found

    def close(self) -> None:
        """End and remove everything."""
        self._end_victim()
        signal.signal(signal.SIGUSR1, self._former)
        self._stack.close()


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def engine(
    host: Host,
    toolset: Toolset,
    isolate: tuple[str, ...] = ("hostile.*", "forging.*", "permitted.*", "working.*"),
    grants: tuple[str, ...] = (),
    allow: tuple[str, ...] = (),
    **settings: Any,
) -> Engine:
    """Return an engine with isolated tools."""
    policy = ExecutionPolicy(
        allow=("hostile.*", "forging.*", "permitted.*", "neighbour.*", "working.count", *allow),
        grants=("fs:*:inside/**", "shell:exec:sleep", *grants),
        limits=Limits(money={"USD": "10.00"}),
        isolate=Isolation(tools=isolate, memory_bytes=MEMORY_BYTES, **settings),
    )
    return Engine(toolsets=toolset, plugins="none", policy=policy, host=host)


def pid_of(worker: Any) -> int:
    """Return the process of a worker as this process sees it."""
    lines = Path(f"/proc/self/fdinfo/{worker._process._descriptor}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
