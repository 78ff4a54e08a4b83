"""The Runtime that a tool sees in a worker: each member asks the host, which uses the real Runtime of the call."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from logging import LogRecord
from threading import RLock
from typing import IO, Any

import attrs

from neuroscript.coercion.scalars import Handle
from neuroscript.errors import CallError, ToolFailed
from neuroscript.isolation.exceptions import MAX_RAISED, rebuilt
from neuroscript.isolation.frames import Channel
from neuroscript.isolation.turns import turn_from_data, turn_to_data
from neuroscript.policy.capabilities import Capability
from neuroscript.runtime.interfaces import DirEntry, Entries, Launch, ToolInfo, Turn
from neuroscript.runtime.state import handle_id
from neuroscript.spec.tool_spec import ToolSpec
from neuroscript.tools.serialization import policy_from_data, spec_from_data, spec_to_data


class HostLink:
    """The worker's side of the requests of one call.

    Attributes:
        objects: The objects behind handles that tools of this worker have stored, with what releases them.
        raised: The last exceptions that the host has raised during the call; a tool may let one of them pass.
    """

    def __init__(self, channel: Channel, objects: dict[int, tuple[Any, Any]]) -> None:
        self.objects = objects
        self.raised: list[tuple[BaseException, int]] = []
        self._channel = channel
        self._lock = RLock()  # one request at a time, and `update_var` may ask again within one
        self._own: BaseException | None = None
        self._is_over = False

    def end(self) -> None:
        """Refuse further requests, because the call has ended."""
        with self._lock:
            self._is_over = True

    def ask(self, member: str, *arguments: Any, apply: Callable[[Any], Any] | None = None) -> Any:
        """Return what a member of the real Runtime returns, or raise what it raises.

        Args:
            apply: Called by the host with a value, for `update_var`.
        """
        with self._lock:
            if self._is_over:
                raise CallError("the call has ended, so its Runtime no longer works", code="runtime.closed")
            self._channel.send("rt", member, list(arguments))
            while True:
                message = self._channel.receive()
                match message:
                    case ["ok", value]:
                        return value
                    case ["raise", index, kind, state]:
                        error = rebuilt(kind, state)
                        self.raised.append((error, index))
                        del self.raised[:-MAX_RAISED]
                        raise error
                    case ["reraise"]:
                        assert self._own is not None
                        raise self._own
                    case ["apply", value]:
                        assert apply is not None
                        self._answer(apply, value)
                    case ["release", key]:
                        self._answer(self.release, key)

    def _answer(self, func: Callable[[Any], Any], value: Any) -> None:
        try:
            found = func(value)
        except BaseException as error:
            self._own = error
            self._channel.send("raised")
        else:
            self._channel.send("ok", found)

    def release(self, key: int) -> None:
        """Release an object that a tool of this worker has stored."""
        release_object(self.objects, key)

    def host_error(self, error: BaseException) -> int | None:
        """Return the number of an exception that the host has raised recently, or None."""
        return next((index for each, index in self.raised if each is error), None)


def release_object(objects: dict[int, tuple[Any, Any]], key: int) -> None:
    """Remove an object, and call what releases it."""
    _, release = objects.pop(key, (None, None))
    if release is not None:
        release()


class WorkerRuntime:
    """The `Runtime` of one call in a worker."""

    def __init__(self, link: HostLink, reuses_worker: bool) -> None:
        self._link = link
        self._reuses_worker = reuses_worker

    def println(self, *values: object) -> None:
        """Write one line to the host's output, in one piece."""
        self._link.ask("println", " ".join(map(str, values)))

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return the user's answer to a prompt, one line."""
        answer: str = self._link.ask("prompt_user", prompt, secret)
        return answer

    @property
    def logger(self) -> WorkerLogger:
        """The host's logger of this tool."""
        return WorkerLogger(self._link)

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the variable *name*, or *default*."""
        found = self._link.ask("get_var", name)
        return found[0] if found else default

    def set_var(self, name: str, value: Any) -> None:
        """Set the variable *name* to a copy of *value*."""
        self._link.ask("set_var", name, value)

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set the variable *name* to what *change* returns for its value, and return that."""
        if not callable(change):  # the host would receive a function of its own
            return self._link.ask("update_var", name, False)
        return self._link.ask("update_var", name, True, apply=change)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the caller's variables and of the host's constants, in order."""
        return tuple(self._link.ask("variables"))

    @property
    def sandbox_dir(self) -> str:
        """The absolute path of the sandbox; only tools with ``raw_files`` can open files below it."""
        path: str = self._link.ask("sandbox_dir")
        return path

    @property
    def fs(self) -> WorkerFiles:
        """The files of the sandbox, as far as this tool may use them."""
        self._link.ask("fs")
        return WorkerFiles(self._link)

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool with arguments in order."""
        return self._link.ask("call_tool", name, list(args) if isinstance(args, tuple) else args)

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool with arguments by name."""
        return self._link.ask("call_tool_named", name, dict(mapping) if isinstance(mapping, Mapping) else mapping)

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that may be called, by canonical name."""
        return WorkerTools(self._link, tuple(self._link.ask("tools")))

    @property
    def llm(self) -> WorkerModel:
        """The model that the host provides."""
        self._link.ask("llm")
        return WorkerModel(self._link)

    @property
    def handles(self) -> WorkerHandles:
        """Resources that tools store for the caller."""
        self._link.ask("handles")
        return WorkerHandles(self._link, self._reuses_worker)

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` unless this call has *capability*."""
        self._link.ask("require", str(capability) if isinstance(capability, Capability) else capability)

    def spend(self, what: str, amount: object) -> WorkerReservation:
        """Reserve what the tool is about to take of a limit."""
        return WorkerReservation(self._link, self._link.ask("spend", what, amount))

    def labels(self) -> tuple[str, ...]:
        """Return the labels of what this call has read."""
        return tuple(self._link.ask("labels"))

    def confine(
        self,
        program: str,
        *,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        execute: Sequence[str] = (),
        granted: bool = False,
    ) -> Launch:
        """Provide nothing to add to a command, because the confinement of this worker applies to its programs."""
        self._link.ask("deadline")  # fails after the end of the call
        return nullcontext(((), ()))

    def secret(self, name: str) -> str:
        """Return a value that the host provides under ``secret:read:NAME``."""
        value: str = self._link.ask("secret", name)
        return value

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report to the host how far this call is."""
        self._link.ask("progress", done, total, text)

    @property
    def cancelled(self) -> bool:
        """Whether the caller has stopped waiting for the result."""
        try:
            is_cancelled: bool = self._link.ask("cancelled")
        except CallError:
            return True
        return is_cancelled

    @property
    def deadline(self) -> float | None:
        """When the caller stops waiting for the result, on the clock of `time.monotonic`."""
        end: float | None = self._link.ask("deadline")
        return end

    def now(self) -> float:
        """Return the time by the host's clock, in seconds since 1970-01-01 UTC."""
        seconds: float = self._link.ask("now")
        return seconds

    @property
    def random(self) -> WorkerRandom:
        """The host's source of random numbers."""
        self._link.ask("random")
        return WorkerRandom(self._link)


@attrs.frozen(eq=False, repr=False)
class WorkerLogger:
    """The host's logger of the tool."""

    _link: HostLink

    def debug(self, msg: str, *args: object) -> None:
        """Log a message for debugging."""
        self._log("debug", msg, args)

    def info(self, msg: str, *args: object) -> None:
        """Log a message."""
        self._log("info", msg, args)

    def warning(self, msg: str, *args: object) -> None:
        """Log a warning."""
        self._log("warning", msg, args)

    def error(self, msg: str, *args: object) -> None:
        """Log an error."""
        self._log("error", msg, args)

    def _log(self, level: str, msg: str, args: tuple[object, ...]) -> None:
        """Send the formatted message: the host formats nothing for a worker, because a format can be expensive."""
        record = LogRecord("", 0, "", 0, msg, args, None)
        try:
            text = record.getMessage()
        except Exception:  # the host's logger would report a wrong format itself, and the call goes on
            text = str(msg)
        self._link.ask("log", level, text)


@attrs.frozen(eq=False, repr=False)
class WorkerReservation:
    """An amount of a limit that the tool has reserved."""

    _link: HostLink
    _number: int

    def settle(self, amount: object) -> None:
        """Replace the reserved amount by the actual one."""
        self._link.ask("settle", self._number, amount)


@attrs.frozen(eq=False, repr=False)
class WorkerRandom:
    """The host's source of random numbers."""

    _link: HostLink

    def random(self) -> float:
        """Return a float of at least 0 and below 1."""
        found: float = self._link.ask("random/random")
        return found

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of *k* random bits."""
        found: int = self._link.ask("random/getrandbits", k)
        return found

    def randrange(self, start: int, stop: int | None = None, /) -> int:
        """Return a random integer of a range."""
        found: int = self._link.ask("random/randrange", start, stop)
        return found


@attrs.frozen(eq=False, repr=False)
class WorkerModel:
    """The model that the host provides."""

    _link: HostLink

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn that follows *turns*."""
        return turn_from_data(self._link.ask("llm/ask", [turn_to_data(each) for each in turns]))

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may request calls of *tools*."""
        specs = [spec_to_data(each) for each in tools]
        return turn_from_data(self._link.ask("llm/ask_with_tools", [turn_to_data(each) for each in turns], specs))

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of a string."""
        found: Sequence[float] = self._link.ask("llm/embed", text)
        return found


class WorkerTools(Mapping[str, ToolInfo]):
    """The tools that may be called; each description is requested when it is used."""

    def __init__(self, link: HostLink, names: tuple[str, ...]) -> None:
        self._link = link
        self._names = names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> ToolInfo:
        if name not in self._names:
            raise KeyError(name)
        spec, policy, origin = self._link.ask("tool_info", name)
        return ToolInfo(spec_from_data(spec), policy_from_data(policy), origin)


@attrs.frozen(eq=False, repr=False)
class WorkerHandles:
    """The handles of a caller. The objects of tools in this worker stay in it."""

    _link: HostLink
    _reuses_worker: bool

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Store *thing* and return a handle of it."""
        if not self._reuses_worker:
            raise ToolFailed(
                "a tool whose worker is not reused cannot store objects behind handles",
                code="isolation.value",
                retry="host",
            )
        objects = self._link.objects
        key = max(objects, default=0) + 1
        objects[key] = (thing, release)
        try:
            handle: Handle = self._link.ask("handles/new", key, kind)
        except BaseException:
            del objects[key]
            raise
        return handle

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the stored object."""
        is_here, found = self._link.ask("handles/get", handle_id(handle), kind)
        return self._link.objects[found][0] if is_here else found

    def kind(self, handle: Handle | str) -> str | None:
        """Return the kind of a stored object, or None if it is no longer stored."""
        found: str | None = self._link.ask("handles/kind", handle_id(handle))
        return found

    def release(self, handle: Handle | str) -> bool:
        """Release an object, and return whether it was stored."""
        found: bool = self._link.ask("handles/release", handle_id(handle))
        return found


class WorkerFiles:
    """The files of the sandbox. The host opens, reads and writes them."""

    def __init__(self, link: HostLink) -> None:
        self._link = link

    def open(self, path: str, mode: str = "rb") -> IO[Any]:
        """Open a file for reading as bytes, or as UTF-8 with line endings unchanged."""
        number = self._link.ask("fs/open", path, mode)
        file = io.BufferedReader(RemoteFile(self._link, number))
        return file if mode == "rb" else io.TextIOWrapper(file, encoding="utf-8", newline="")

    def read_bytes(self, path: str, **options: Any) -> bytes:
        """Return the content of a file."""
        data: bytes = self._link.ask("fs/read_bytes", path, options)
        return data

    def read_text(self, path: str, **options: Any) -> str:
        """Return the content of a text file."""
        text: str = self._link.ask("fs/read_text", path, options)
        return text

    def stat(self, path: str) -> DirEntry:
        """Return the metadata of an entry."""
        return DirEntry(*self._link.ask("fs/stat", path))

    def exists(self, path: str) -> bool:
        """Return whether an entry exists."""
        found: bool = self._link.ask("fs/exists", path)
        return found

    def list(self, path: str = "") -> Entries:
        """Return the entries of a directory."""
        return [DirEntry(*each) for each in self._link.ask("fs/list", path)]

    def walk(self, path: str = "") -> Entries:
        """Return the entries of a directory at every depth."""
        return [DirEntry(*each) for each in self._link.ask("fs/walk", path)]

    def glob(self, pattern: str) -> Entries:
        """Return the entries that match a pattern."""
        return [DirEntry(*each) for each in self._link.ask("fs/glob", pattern)]

    def hash(self, path: str, algorithm: str = "sha256") -> str:
        """Return the digest of a file."""
        digest: str = self._link.ask("fs/hash", path, algorithm)
        return digest

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the content of a file."""
        self._link.ask("fs/write_bytes", path, _as_bytes(data))

    def write_text(self, path: str, text: str) -> None:
        """Replace the content of a file with a string as UTF-8."""
        self._link.ask("fs/write_text", path, text)

    def append(self, path: str, data: str | bytes) -> None:
        """Append to a file."""
        self._link.ask("fs/append", path, data if isinstance(data, str) else _as_bytes(data))

    def mkdir(self, path: str) -> bool:
        """Create a directory and its parents, and return whether it was missing."""
        created: bool = self._link.ask("fs/mkdir", path)
        return created

    def delete(self, path: str) -> bool:
        """Delete a file, a link or an empty directory, and return whether it existed."""
        existed: bool = self._link.ask("fs/delete", path)
        return existed

    def move(self, source: str, destination: str) -> None:
        """Move a file or a directory to a path that does not exist."""
        self._link.ask("fs/move", source, destination)

    def pinned(self, path: str) -> AbstractContextManager[str]:
        """Provide an absolute path, for tools with ``raw_files``; a worker has no descriptor of the host."""

        @contextmanager
        def provided() -> Iterator[str]:
            yield self._link.ask("fs/pinned", path)

        return provided()

    def resolve(self, path: str) -> str:
        """Return an absolute path; only tools with ``raw_files`` can open it."""
        found: str = self._link.ask("fs/resolve", path)
        return found


def _as_bytes(data: Any) -> Any:
    """Return a bytearray or memoryview as bytes; the host checks other types."""
    return bytes(data) if isinstance(data, (bytearray, memoryview)) else data


class RemoteFile(io.RawIOBase):
    """A file that the host has opened."""

    def __init__(self, link: HostLink, number: int) -> None:
        self._link = link
        self._number = number

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into *buffer* and return the number of bytes read."""
        with memoryview(buffer) as view:
            data: bytes = self._link.ask("file/read", self._number, len(view))
            view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change the position and return it."""
        place: int = self._link.ask("file/seek", self._number, offset, whence)
        return place

    def close(self) -> None:
        """Close the file; after the call the host has closed it already."""
        if not self.closed:
            super().close()
            with suppress(CallError):
                self._link.ask("file/close", self._number)
