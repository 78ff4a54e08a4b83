"""Answers to the requests of a worker: each one is made to the Runtime of the call, which checks it as always."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

from neuroscript.calls.steps import CallerGone
from neuroscript.coercion.context import type_name
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import ToolFailed, is_interrupt
from neuroscript.isolation.exceptions import MAX_RAISED, described
from neuroscript.isolation.frames import Channel, ProtocolError, UnsendableValue
from neuroscript.isolation.turns import turn_to_data, turns_from_data
from neuroscript.runtime.interfaces import DirEntry, Files
from neuroscript.tools.serialization import policy_to_data, spec_from_data, spec_to_data

if TYPE_CHECKING:
    from neuroscript.isolation.pool import Worker

MAX_OPEN_FILES: Final = 256
"""Maximum number of files that a call in a worker may have open at once."""

MAX_READ_BYTES: Final = 1 << 20
"""Maximum number of bytes that one request reads; a file in a worker asks again."""

MAX_RANDOM_BITS: Final = 1 << 16

MAX_STORED: Final = 10_000
"""How many objects behind handles a worker may hold, because the host stores the handles."""

MAX_RESERVATIONS: Final = 10_000
"""How many reservations of a call can still be settled."""

MAX_CHANGES: Final = 50
"""How deeply changes of variables may be nested in each other."""

LOG_LEVELS: Final = ("debug", "info", "warning", "error")

UNSET: Final = object()


class WorkerObject:
    """An object behind a handle that lives in a worker.

    Attributes:
        worker: The worker.
        key: Its number there.
    """

    def __init__(self, worker: Worker, key: int) -> None:
        self.worker = worker
        self.key = key

    def release(self) -> None:
        """Release the object, if the worker still runs."""
        self.worker.release(self.key)


class RaisedInWorker(Exception):
    """The worker's part of a request has raised an exception, which the worker raises again."""


class WorkerGone(Exception):
    """The worker has ended, or its connection, while the host asked it for something."""


class AnyRuntime(Protocol):
    """The Runtime of a call, which has more members than the interface says."""

    def __getattr__(self, name: str) -> Any: ...


class HostRuntime:
    """The host's side of the requests of one call.

    Args:
        rt: The Runtime of the call.
        opens_raw_files: Whether the tool declares ``raw_files``.

    Attributes:
        raised: The last exceptions that have been raised in the worker, by number.
    """

    def __init__(self, rt: AnyRuntime, worker: Worker, *, opens_raw_files: bool) -> None:
        self.raised: dict[int, BaseException] = {}
        self._count = 0
        self._changes = 0
        self._rt = rt
        self._worker = worker
        self._opens_raw_files = opens_raw_files
        self._files: dict[int, IO[Any]] = {}
        self._reservations: dict[int, Any] = {}

    def answer(self, member: str, arguments: list[Any]) -> None:
        """Carry out one request, and send its result or what it raised.

        Raises:
            ProtocolError: There is no such member, or the worker has sent something else than an answer meanwhile.
            WorkerGone: The worker has ended meanwhile.
        """
        func = MEMBERS.get(member)
        if func is None:
            raise ProtocolError("it asked for an unknown member of the Runtime")
        try:
            self._channel.send(*self._outcome(func, arguments))
        except UnsendableValue as error:
            failed = ToolFailed(f"a value cannot be sent to the worker ({error})", code="isolation.value")
            self._channel.send(*self._raised(failed))

    def _outcome(self, func: Callable[..., Any], arguments: list[Any]) -> tuple[Any, ...]:
        """Return the message about what a member returns or raises."""
        try:
            return "ok", func(self, *arguments)
        except RaisedInWorker:
            return ("reraise",)
        except (ProtocolError, WorkerGone, CallerGone, GeneratorExit):
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            return self._raised(error)

    def end(self) -> None:
        """Close the files that the tool has left open."""
        for file in self._files.values():
            file.close()

    @property
    def _channel(self) -> Channel:
        return self._worker.channel

    def _raised(self, error: BaseException) -> tuple[Any, ...]:
        """Return the message about an exception; only the last ones are stored, because each may hold much memory."""
        self.raised[self._count] = error
        self.raised.pop(self._count - MAX_RAISED, None)
        self._count += 1
        return "raise", self._count - 1, *described(error)

    # Members

    def println(self, line: str) -> None:
        self._rt.println(line)

    def prompt_user(self, prompt: str, secret: bool) -> str:
        answer: str = self._rt.prompt_user(prompt, secret=secret)
        return answer

    def log(self, level: str, text: str) -> None:
        if level not in LOG_LEVELS or type(text) is not str:
            raise ProtocolError("it logged something in an unknown form")
        getattr(self._rt.logger, level)("%s", text)

    def get_var(self, name: str) -> list[Any]:
        found = self._rt.get_var(name, UNSET)
        return [] if found is UNSET else [found]

    def set_var(self, name: str, value: Any) -> None:
        self._rt.set_var(name, value)

    def update_var(self, name: str, is_callable: bool) -> Any:
        return self._rt.update_var(name, self._apply if is_callable is True else None)

    def _apply(self, value: Any) -> Any:
        """Let the worker change the value of a variable."""
        if self._changes >= MAX_CHANGES:
            raise RecursionError("changes of variables are nested too deeply")
        self._changes += 1
        try:
            return self.asked("apply", value)
        finally:
            self._changes -= 1

    def asked(self, *message: Any) -> Any:
        """Ask the worker for something during a request of it, and return its answer; it may make requests before."""
        try:
            self._channel.send(*message)
            while True:
                match self._channel.receive():
                    case ["ok", value]:
                        return value
                    case ["raised"]:
                        raise RaisedInWorker
                    case ["rt", str(member), list(arguments)]:
                        self.answer(member, arguments)
                    case _:
                        raise ProtocolError("it answered something else")
        except (EOFError, ConnectionError):
            raise WorkerGone from None

    def variables(self) -> list[str]:
        return list(self._rt.variables)

    def sandbox_dir(self) -> str:
        directory: str = self._rt.sandbox_dir
        return directory

    def call_tool(self, name: Any, args: Any) -> Any:
        return self._rt.call_tool(name, args)

    def call_tool_named(self, name: Any, mapping: Any) -> Any:
        return self._rt.call_tool_named(name, mapping)

    def tools(self) -> list[str]:
        return list(self._rt.tools)

    def tool_info(self, name: str) -> list[Any]:
        info = self._rt.tools[name]
        return [spec_to_data(info.spec), policy_to_data(info.policy), info.origin]

    def llm(self) -> None:
        _ = self._rt.llm

    def ask_model(self, turns: Any) -> Any:
        return turn_to_data(self._rt.llm.ask(turns_from_data(turns)))

    def ask_model_with_tools(self, turns: Any, specs: Any) -> Any:
        found = [spec_from_data(each) for each in _as_list(specs)]
        return turn_to_data(self._rt.llm.ask_with_tools(turns_from_data(turns), found))

    def embed(self, text: str) -> Any:
        return list(self._rt.llm.embed(text))

    def handles(self) -> None:
        _ = self._rt.handles

    def new_handle(self, key: int, kind: str) -> Handle:
        if type(key) is not int:
            raise ProtocolError("it stored an object without a number")
        if len(self._worker.stored) >= MAX_STORED:
            raise ToolFailed(
                f"no object can be stored, because its worker holds {MAX_STORED} already", code="isolation.value"
            )
        thing = WorkerObject(self._worker, key)
        handle: Handle = self._rt.handles.new(thing, kind, thing.release)
        self._worker.stored.add(key)
        return handle

    def get_object(self, handle: str, kind: str) -> list[Any]:
        thing = self._rt.handles.get(handle, kind)
        if not isinstance(thing, WorkerObject):
            return [False, thing]
        if thing.worker is self._worker:
            return [True, thing.key]
        if not thing.worker.is_alive:
            raise ToolFailed("this handle is unknown or was released", code="handle.unknown", retry="model")
        raise ToolFailed("the object of this handle is in another worker", code="isolation.value", retry="host")

    def handle_kind(self, handle: str) -> str | None:
        kind: str | None = self._rt.handles.kind(handle)
        return kind

    def release_handle(self, handle: str) -> bool:
        was_stored: bool = self._rt.handles.release(handle)
        return was_stored

    def require(self, capability: Any) -> None:
        self._rt.require(capability)

    def spend(self, what: str, amount: Any) -> int:
        number = max(self._reservations, default=-1) + 1
        self._reservations[number] = self._rt.spend(what, amount)
        self._reservations.pop(number - MAX_RESERVATIONS, None)
        return number

    def settle(self, number: int, amount: Any) -> None:
        reservation = self._reservations.get(number) if type(number) is int else None
        if reservation is None:
            raise ProtocolError("it used a number that it did not get")
        reservation.settle(amount)

    def labels(self) -> list[str]:
        return list(self._rt.labels())

    def secret(self, name: str) -> str:
        value: str = self._rt.secret(name)
        return value

    def progress(self, done: float, total: float | None, text: str) -> None:
        self._rt.progress(done, total, text)

    def cancelled(self) -> bool:
        is_cancelled: bool = self._rt.cancelled
        return is_cancelled

    def deadline(self) -> float | None:
        end: float | None = self._rt.deadline
        return end

    def now(self) -> float:
        seconds: float = self._rt.now()
        return seconds

    def has_random(self) -> None:
        _ = self._rt.random

    def random(self) -> float:
        number: float = self._rt.random.random()
        return number

    def random_bits(self, count: int) -> int:
        if type(count) is int and count > MAX_RANDOM_BITS:
            raise ValueError(f"at most {MAX_RANDOM_BITS} bits at once")
        number: int = self._rt.random.getrandbits(count)
        return number

    def random_range(self, start: int, stop: int | None) -> int:
        number: int = self._rt.random.randrange(start, stop)
        return number

    # Files

    def fs(self) -> None:
        _ = self._rt.fs

    def read_bytes(self, path: Any, options: Any) -> bytes:
        data: bytes = self._rt.fs.read_bytes(path, **_options(options, "limit"))
        return data

    def read_text(self, path: Any, options: Any) -> str:
        text: str = self._rt.fs.read_text(path, **_options(options, "encoding"))
        return text

    def open(self, path: Any, mode: Any) -> int:
        if len(self._files) >= MAX_OPEN_FILES:
            raise ToolFailed(f"more than {MAX_OPEN_FILES} files are open", code="isolation.files")
        file = self._rt.fs.open(path, mode)
        number = max(self._files, default=0) + 1
        self._files[number] = file
        return number

    def read_file(self, number: int, size: int) -> bytes:
        if type(size) is not int or size < 0:
            raise ProtocolError("it read a file with an invalid size")
        return self._file(number).read1(min(size, MAX_READ_BYTES))

    def seek_file(self, number: int, offset: int, whence: int) -> int:
        return self._file(number).seek(offset, whence)

    def close_file(self, number: int) -> None:
        self._file(number).close()
        self._files.pop(number).close()

    def _file(self, number: Any) -> io.BufferedReader:
        file = self._files.get(number) if type(number) is int else None
        if file is None:
            raise ProtocolError("it used a file that is not open")
        return cast(io.BufferedReader, file.buffer if isinstance(file, io.TextIOWrapper) else file)

    def stat(self, path: Any) -> list[Any]:
        return _entry(self._rt.fs.stat(path))

    def entries(self, path: Any) -> list[Any]:
        return [_entry(each) for each in self._rt.fs.list(path)]

    def walk(self, path: Any) -> list[Any]:
        return [_entry(each) for each in self._rt.fs.walk(path)]

    def glob(self, pattern: Any) -> list[Any]:
        return [_entry(each) for each in self._rt.fs.glob(pattern)]

    def pinned(self, path: Any) -> str:
        self._require_raw_files()
        files: Files = self._rt.fs
        with files.pinned(path):  # checks that it is a plain file or directory
            return files.resolve(path)

    def resolve(self, path: Any) -> str:
        found: str = self._rt.fs.resolve(path)
        return found

    def _require_raw_files(self) -> None:
        if not self._opens_raw_files:
            raise ToolFailed(
                "a tool that opens files by path must declare ToolPolicy(raw_files=True) to be isolated",
                code="isolation.raw_files",
                retry="host",
            )


def _simple(name: str) -> Callable[..., Any]:
    """Return a member that calls the same method of the sandbox's files."""

    def called(runtime: HostRuntime, *arguments: Any) -> Any:
        return getattr(runtime._rt.fs, name)(*arguments)

    return called


MEMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    "println": HostRuntime.println,
    "prompt_user": HostRuntime.prompt_user,
    "log": HostRuntime.log,
    "get_var": HostRuntime.get_var,
    "set_var": HostRuntime.set_var,
    "update_var": HostRuntime.update_var,
    "variables": HostRuntime.variables,
    "sandbox_dir": HostRuntime.sandbox_dir,
    "call_tool": HostRuntime.call_tool,
    "call_tool_named": HostRuntime.call_tool_named,
    "tools": HostRuntime.tools,
    "tool_info": HostRuntime.tool_info,
    "llm": HostRuntime.llm,
    "llm/ask": HostRuntime.ask_model,
    "llm/ask_with_tools": HostRuntime.ask_model_with_tools,
    "llm/embed": HostRuntime.embed,
    "handles": HostRuntime.handles,
    "handles/new": HostRuntime.new_handle,
    "handles/get": HostRuntime.get_object,
    "handles/kind": HostRuntime.handle_kind,
    "handles/release": HostRuntime.release_handle,
    "require": HostRuntime.require,
    "spend": HostRuntime.spend,
    "settle": HostRuntime.settle,
    "labels": HostRuntime.labels,
    "secret": HostRuntime.secret,
    "progress": HostRuntime.progress,
    "cancelled": HostRuntime.cancelled,
    "deadline": HostRuntime.deadline,
    "now": HostRuntime.now,
    "random": HostRuntime.has_random,
    "random/random": HostRuntime.random,
    "random/getrandbits": HostRuntime.random_bits,
    "random/randrange": HostRuntime.random_range,
    "fs": HostRuntime.fs,
    "fs/open": HostRuntime.open,
    "fs/read_bytes": HostRuntime.read_bytes,
    "fs/read_text": HostRuntime.read_text,
    "fs/stat": HostRuntime.stat,
    "fs/list": HostRuntime.entries,
    "fs/walk": HostRuntime.walk,
    "fs/glob": HostRuntime.glob,
    "fs/pinned": HostRuntime.pinned,
    "fs/resolve": HostRuntime.resolve,
    **{f"fs/{name}": _simple(name) for name in ("exists", "hash", "write_bytes", "write_text", "append")},
    **{f"fs/{name}": _simple(name) for name in ("mkdir", "delete", "move")},
    "file/read": HostRuntime.read_file,
    "file/seek": HostRuntime.seek_file,
    "file/close": HostRuntime.close_file,
}
"""What a worker may ask for: the members of the Runtime, and of what they return."""


def _as_list(value: Any) -> Sequence[Any]:
    if type(value) is not list:
        raise ProtocolError(f"it sent {type_name(value)} in place of a list")
    return value


def _options(options: Any, name: str) -> dict[str, Any]:
    if type(options) is not dict or not options.keys() <= {name}:
        raise TypeError(f"expected no option besides {name}")
    return options


def _entry(entry: DirEntry) -> list[Any]:
    return [entry.path, entry.kind, entry.size, entry.modified]
