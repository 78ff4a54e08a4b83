"""The interfaces that tools see, and the data of a call: its request and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Protocol, overload

import attrs

from neuroscript.coercion.parameters import BY_NAME, STRING, instance, one_of, optional, require_fields, sequence
from neuroscript.coercion.scalars import Handle
from neuroscript.errors import CallError
from neuroscript.policy.capabilities import Capability
from neuroscript.policy.tool_policy import ToolPolicy
from neuroscript.spec.binding import Repair
from neuroscript.spec.tool_spec import ToolSpec

if TYPE_CHECKING:
    from neuroscript.calls.spill import SpilledResult


@attrs.frozen
class DirEntry:
    """One entry in the sandbox. The entry of a link describes the link itself, never its target.

    Attributes:
        path: Relative to the sandbox's root, with ``/``; ``.`` is the root. A name that is not a valid path is shown
            with backslash escapes, so that it can be listed but not opened.
        kind: ``"file"``, ``"dir"``, ``"symlink"`` or ``"other"``.
        size: Size in bytes; 0 unless it is a file.
        modified: Last modification, in seconds since 1970-01-01 UTC.
    """

    path: str
    kind: Literal["file", "dir", "symlink", "other"]
    size: int
    modified: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.kind == "dir"


Entries = list[DirEntry]
"""An alias of ``list`` for annotations after `Files.list`, which shadows the built-in."""


class Files(Protocol):
    """Files in the sandbox. No path or link leads out of it.

    A path is a relative string with ``/`` between its parts. Each operation requires ``fs:read:PATH``,
    ``fs:write:PATH`` or ``fs:delete:PATH``, which the calling tool must declare and the host must grant.

    Raises:
        PolicyError: If the tool, or a tool above it in the chain of calls, lacks a permission.
        SandboxError: If the path is invalid or unsuitable for the operation.
        LimitError: If a limit of the host would be exceeded.
    """

    @overload
    def open(self, path: str, mode: Literal["rb"] = "rb") -> IO[bytes]: ...

    @overload
    def open(self, path: str, mode: Literal["r"]) -> IO[str]: ...

    def open(self, path: str, mode: str = "rb") -> IO[Any]:
        """Open a file for reading. Mode ``r`` reads UTF-8."""

    def read_bytes(self, path: str) -> bytes:
        """Return the contents of a file."""

    def read_text(self, path: str) -> str:
        """Return the contents of a UTF-8 file as a string."""

    def stat(self, path: str) -> DirEntry:
        """Return the metadata of an entry."""

    def exists(self, path: str) -> bool:
        """Return whether an entry exists."""

    def list(self, path: str = "") -> Entries:
        """Return the entries of a directory by name, except those that may not be read."""

    def walk(self, path: str = "") -> Entries:
        """Return the entries of a directory at every depth; a directory comes before its entries."""

    def glob(self, pattern: str) -> Entries:
        """Return the entries that match a pattern; ``*`` and ``?`` stay in a path segment, ``**`` crosses segments."""

    def hash(self, path: str, algorithm: str = "sha256") -> str:
        """Return the digest of a file in lower-case hexadecimal digits."""

    def write_bytes(self, path: str, data: bytes) -> None:
        """Replace the contents of a file atomically. Missing directories are created."""

    def write_text(self, path: str, text: str) -> None:
        """Write a string as UTF-8, like `write_bytes`."""

    def append(self, path: str, data: str | bytes) -> None:
        """Append to a file, which is created if it does not exist."""

    def mkdir(self, path: str) -> bool:
        """Create a directory and its parents, and return whether it was missing."""

    def delete(self, path: str) -> bool:
        """Delete a file, a link or an empty directory, and return whether it existed."""

    def move(self, source: str, destination: str) -> None:
        """Move a file or a directory to a path that does not exist."""

    def pinned(self, path: str) -> AbstractContextManager[str]:
        """Provide a path for libraries that open files by name; on Linux it always refers to the same file."""

    def resolve(self, path: str) -> str:
        """Return an absolute path. It may become invalid at any time; use `pinned` to keep it valid."""


class Handles(Protocol):
    """Objects that tools store for their caller between calls; the caller only receives their handles."""

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Store *thing* and return a handle to it; *release* is called once, when the object is released."""

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the object, or raise a `ToolFailed` with ``handle.unknown`` or ``handle.kind``."""

    def kind(self, handle: Handle | str) -> str | None:
        """Return the kind of an object, or None if it is no longer stored."""

    def release(self, handle: Handle | str) -> bool:
        """Release an object, and return whether it was stored."""


def _calls(given: list[ToolCall] | tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Convert a list, so that a turn never changes. Other types pass, so that the check of the fields rejects them."""
    return tuple(given) if isinstance(given, list) else given


def _results(given: list[ToolResult] | tuple[ToolResult, ...]) -> tuple[ToolResult, ...]:
    """Do what `_calls` does, with results."""
    return tuple(given) if isinstance(given, list) else given


@attrs.frozen
class Turn:
    """One turn of a conversation with a model.

    Attributes:
        role: The role of the speaker.
        content: The text of the turn.
        tool_calls: The calls that a model requests.
        tool_results: The results of requested calls.
        native: The turn in the format of the model's own API, as plain data keyed by the name of that API, to be sent
            back unchanged; None if it was not retained. It contains data without a field here, such as signed thoughts.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = attrs.field(default=(), converter=_calls)
    tool_results: tuple[ToolResult, ...] = attrs.field(default=(), converter=_results)
    native: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        require_fields("turn", self, role=ROLE, content=STRING, tool_calls=CALLS, tool_results=RESULTS, native=NATIVE)


class LLM(Protocol):
    """A model provided by the host. Every failure is an `LLMError`."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn that follows *turns*."""

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may request calls of *tools*."""

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of a string."""


class AskedModel(Protocol):
    """The method that a model needs in order to answer without tools."""

    def ask(self, turns: Sequence[Turn], /) -> Turn:
        """Return the model's turn that follows *turns*."""


class ToolCallingModel(Protocol):
    """The method that a model needs in order to call tools."""

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec], /) -> Turn:
        """Return the model's turn, which may request calls of *tools*."""


AnyModel = AskedModel | ToolCallingModel
"""What a host may provide as a model: a method that is missing fails when it is called. Every `LLM` is one."""


@attrs.frozen
class ToolInfo:
    """The description of a tool that other tools can see; use ``rt.call_tool`` to call it.

    Attributes:
        origin: The distribution or file that provides it, or ``host``.
    """

    spec: ToolSpec
    policy: ToolPolicy
    origin: str

    def __attrs_post_init__(self) -> None:
        require_fields("tool info", self, spec=instance(ToolSpec), policy=instance(ToolPolicy), origin=STRING)


class Logger(Protocol):
    """The part of `logging.Logger` that tools can rely on."""

    def debug(self, msg: str, *args: object) -> None: ...
    def info(self, msg: str, *args: object) -> None: ...
    def warning(self, msg: str, *args: object) -> None: ...
    def error(self, msg: str, *args: object) -> None: ...


class Random(Protocol):
    """The part of `random.Random` that tools can rely on."""

    def random(self) -> float: ...
    def getrandbits(self, k: int, /) -> int: ...
    def randrange(self, start: int, stop: int | None = None, /) -> int: ...


class Reservation(Protocol):
    """An amount of a limit that a tool has reserved."""

    def settle(self, amount: object) -> None:
        """Replace the reserved amount by the actual one, once. Unused amounts are returned; excess is counted."""


Launch = AbstractContextManager[tuple[tuple[str, ...], tuple[int, ...]]]
"""Provides words to put before a command, and descriptors to pass to its process."""


class Runtime(Protocol):
    """The first argument of every tool. After the call has ended, its methods raise ``runtime.closed``."""

    def println(self, *values: object) -> None:
        """Write one line to the host's output atomically, with control characters escaped."""

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return a user's one-line answer, or raise a `PromptError` if there is no user to ask."""

    @property
    def logger(self) -> Logger:
        """The host's logger for this tool."""

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the caller's variable *name*, or *default*."""

    def set_var(self, name: str, value: Any) -> None:
        """Set the caller's variable *name* to a copy of *value*, which must be plain data."""

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set a variable to ``change(value)`` atomically and return it; the value is None if the variable is unset."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the caller's variables and of the host's constants, sorted."""

    @property
    def sandbox_dir(self) -> str:
        """The absolute path of the sandbox, which exists and is writable. Use `fs` to access it safely."""

    @property
    def fs(self) -> Files:
        """The files in the sandbox."""

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool with positional arguments, like ``Engine.call``, within the limit on depth."""

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool with named arguments, like ``Engine.call_named``."""

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that the host permits to be called, by canonical name."""

    @property
    def llm(self) -> LLM:
        """The model provided by the host; requires ``model:use``. Raises an `LLMError` if the host has no model."""

    @property
    def handles(self) -> Handles:
        """Objects that tools store for the caller."""

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` unless this call has a capability that is known only at run time."""

    def spend(self, what: str, amount: object) -> Reservation:
        """Reserve an amount of a resource before using it.

        Operations of `fs` count automatically.

        Args:
            what: ``fs_bytes``, ``fs_entries``, ``net_bytes``, ``net_calls``, ``sleep`` (seconds), or a currency.
            amount: An integer; for sleep and money also a decimal, a float or a string such as ``0.10``.

        Raises:
            LimitError: If the limit would be exceeded. Nothing is reserved then.
        """

    def labels(self) -> tuple[str, ...]:
        """Return the labels of everything that this call has read so far, such as ``untrusted``.

        They are tracked only under a policy with flow rules.
        """

    def confine(
        self,
        program: str,
        *,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        execute: Sequence[str] = (),
        granted: bool = False,
    ) -> Launch:
        """Provide the words to put before a command, and the descriptors to pass, so that its program runs confined.

        Both are empty if the policy confines no programs, and in a worker, whose confinement applies to its programs.
        They are valid in the ``with`` block, in which the tool starts the command. The program can use the files that
        the ``fs`` needs of the call name, the network if the policy permits it, and nothing else but software.

        Args:
            program: The absolute path of the program.
            read: Further files and directories that it may read.
            write: Further files and directories that it may read, write and delete.
            execute: Further files and directories that it may execute.
            granted: Whether it may use all files, and execute all programs, that the host grants to the caller.

        Raises:
            ToolFailed: The system does not provide what the policy requires.
        """

    def secret(self, name: str) -> str:
        """Return a secret of the host; requires ``secret:read:NAME``. Raises a `ToolFailed` if it is not defined."""

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Report the progress of this call to the host."""

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits for the result."""

    @property
    def deadline(self) -> float | None:
        """The time at which the caller stops waiting, on the clock of `time.monotonic`, or None."""

    def now(self) -> float:
        """Return the time of the host's clock, in seconds since 1970-01-01 UTC."""

    @property
    def random(self) -> Random:
        """The host's source of random numbers, by default that of the operating system."""


@attrs.frozen
class ToolCall:
    """A call as requested by a model, a script or a user. Its content has not been validated.

    Attributes:
        name: The name of the tool, in any accepted spelling.
        arguments: A sequence, a mapping by name, or JSON of either.
        id: The requester's id of this call.
    """

    name: str
    arguments: Sequence[Any] | Mapping[str, Any] | str = ()
    id: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class ToolResult:
    """The outcome of a `ToolCall`.

    Attributes:
        id: The id of the call.
        tool: The canonical name of the tool, or the requested name if the tool is unknown.
        value: The result, exact in the declared type, or None if the call failed.
        error: The error, or None.
        repairs: One entry for each value that was converted.
        seconds: The duration, including checks.
        spilled: The file that contains a result that was too large, as a `SpilledResult`, or None. The value is then a
            string with the beginning of the result and the location of the file.
    """

    id: str
    tool: str
    value: Any = None
    error: CallError | None = attrs.field(default=None, kw_only=True)
    repairs: tuple[Repair, ...] = attrs.field(default=(), kw_only=True)
    seconds: float = attrs.field(default=0.0, kw_only=True)
    spilled: SpilledResult | None = attrs.field(default=None, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    @property
    def labels(self) -> tuple[str, ...]:
        """What the value or the error carries, such as ``untrusted``; empty without flow rules."""
        return ()


@attrs.frozen
class LabelledToolResult(ToolResult):
    """The outcome of a call under flow rules. Its class differs, so that other results need not store labels."""

    labels: tuple[str, ...] = attrs.field(default=(), kw_only=True)


# Requirements on the fields of a turn

ROLE: Final = one_of("system", "user", "assistant", "tool")


CALLS: Final = sequence(instance(ToolCall), "ToolCalls")


RESULTS: Final = sequence(instance(ToolResult), "ToolResults")


NATIVE: Final = optional(BY_NAME)
