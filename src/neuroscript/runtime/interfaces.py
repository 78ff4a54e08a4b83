"""What a tool sees of the world, and the facts of a call: who asks for what, and what came of it.

Source: contract sections 1 and 4.
"""

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
    from neuroscript.calls.spill import Spilled


@attrs.frozen
class Entry:
    """One name in the sandbox; of a link the link itself, never what it points to.

    Attributes:
        path: Relative to the sandbox's root, with ``/``; ``.`` is the root. A name that no path can spell stands here
            escaped, with backslashes, so that it can be seen and not be opened.
        kind: ``"file"``, ``"dir"``, ``"symlink"`` or ``"other"``.
        size: In bytes; 0 for what is no file.
        modified: When it was written last, in seconds since 1970-01-01 UTC.
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


Entries = list[Entry]
"""A list, by a name that `Files.list` does not hide."""


class Files(Protocol):
    """Files below the sandbox, which no path leaves and no link leads out of.

    A path is a relative text with ``/`` between its parts. Each operation asks for what it needs, ``fs:read:PATH``,
    ``fs:write:PATH`` or ``fs:delete:PATH``, which the calling tool must have declared and the host granted.

    Raises:
        PolicyError: The tool, or one above it in the chain of calls, may not.
        SandboxError: The path can not be used, or what it names is not what the operation is for.
        LimitError: There is more than the host permits.
    """

    @overload
    def open(self, path: str, mode: Literal["rb"] = "rb") -> IO[bytes]: ...

    @overload
    def open(self, path: str, mode: Literal["r"]) -> IO[str]: ...

    def open(self, path: str, mode: str = "rb") -> IO[Any]:
        """Return a file to read from; the text of mode ``r`` is UTF-8."""

    def read_bytes(self, path: str) -> bytes:
        """Return what a file holds."""

    def read_text(self, path: str) -> str:
        """Return what a file holds as a text of UTF-8."""

    def stat(self, path: str) -> Entry:
        """Return what is known of a name."""

    def exists(self, path: str) -> bool:
        """Tell whether there is something of that name."""

    def list(self, path: str = "") -> Entries:
        """Return what a directory holds, by name, as far as it may be read."""

    def walk(self, path: str = "") -> Entries:
        """Return what a directory holds, at every depth; a directory comes before its entries."""

    def glob(self, pattern: str) -> Entries:
        """Return the entries that match: ``*`` and ``?`` stay in a part of the path, ``**`` crosses."""

    def hash(self, path: str, algorithm: str = "sha256") -> str:
        """Return the digest of a file, in lower-case hexadecimal digits."""

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make *data* what a file holds: all of it, or nothing has changed. Missing directories are made."""

    def write_text(self, path: str, text: str) -> None:
        """Write a text as UTF-8, as `write_bytes` does."""

    def append(self, path: str, data: str | bytes) -> None:
        """Add to the end of a file, which is made where it is missing."""

    def mkdir(self, path: str) -> bool:
        """Make a directory, and those above it, and tell whether it was missing."""

    def delete(self, path: str) -> bool:
        """Delete a file, a link or an empty directory, and tell whether it was there."""

    def move(self, source: str, destination: str) -> None:
        """Give a file or a directory another path, which must be free."""

    def pinned(self, path: str) -> AbstractContextManager[str]:
        """Lend a path for libraries that open files by name; on Linux it stays on that very file or directory."""

    def resolve(self, path: str) -> str:
        """Return an absolute path. It was right when it was looked at, and no longer than that: `pinned` holds it."""


class Handles(Protocol):
    """Things that tools keep for their caller from one call to the next; the caller holds their names alone."""

    def new(self, thing: object, kind: str, release: Callable[[], object] | None = None) -> Handle:
        """Keep *thing* and return a handle of it; *release* is called once, when it is given up."""

    def get(self, handle: Handle | str, kind: str) -> Any:
        """Return the thing itself; `ToolFailed` with ``handle.unknown`` or ``handle.kind`` where it is none of that."""

    def kind(self, handle: Handle | str) -> str | None:
        """Return what kind of thing it is, or None if it is kept no longer."""

    def release(self, handle: Handle | str) -> bool:
        """Give a thing up, and tell whether it was kept."""


@attrs.frozen
class Turn:
    """One turn of a conversation with a model.

    Attributes:
        role: Who speaks.
        content: What is said.
        tool_calls: What a model asks to be called.
        tool_results: What came of what it asked for.
        native: The turn as the model's own API wrote it, plain data by the key of that API, to be sent back to it as it
            was; None where nothing was kept. It tells what the other fields have no word for, such as signed thoughts.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    native: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True, repr=False)

    def __attrs_post_init__(self) -> None:
        require_fields("turn", self, role=ROLE, content=STRING, tool_calls=CALLS, tool_results=RESULTS, native=NATIVE)


class LLM(Protocol):
    """A model that a host lends; whatever goes wrong is an `LLMError`."""

    def ask(self, turns: Sequence[Turn]) -> Turn:
        """Return the model's turn after *turns*."""

    def ask_with_tools(self, turns: Sequence[Turn], tools: Sequence[ToolSpec]) -> Turn:
        """Return the model's turn, which may ask for calls of *tools*."""

    def embed(self, text: str) -> Sequence[float]:
        """Return the embedding of a text."""


@attrs.frozen
class ToolInfo:
    """What one tool may know of another; to call it there is ``rt.call_tool``.

    Attributes:
        origin: The distribution or file that brought it, or ``host``.
    """

    spec: ToolSpec
    policy: ToolPolicy
    origin: str

    def __attrs_post_init__(self) -> None:
        require_fields("tool info", self, spec=instance(ToolSpec), policy=instance(ToolPolicy), origin=STRING)


class Logger(Protocol):
    """The part of `logging.Logger` that tools may count on."""

    def debug(self, msg: str, *args: object) -> None: ...
    def info(self, msg: str, *args: object) -> None: ...
    def warning(self, msg: str, *args: object) -> None: ...
    def error(self, msg: str, *args: object) -> None: ...


class Random(Protocol):
    """The part of `random.Random` that tools may count on."""

    def random(self) -> float: ...
    def getrandbits(self, k: int, /) -> int: ...
    def randrange(self, start: int, stop: int | None = None, /) -> int: ...


class Reservation(Protocol):
    """What a tool has reserved of a limit."""

    def settle(self, amount: object) -> None:
        """Say what was really taken, once: less gives the difference back, more is counted too, for it has happened."""


class Runtime(Protocol):
    """The first argument of every tool; it ends with the call, and then refuses with ``runtime.closed``."""

    def println(self, *values: object) -> None:
        """Write one line to the host's output, in one piece, control characters escaped."""

    def prompt_user(self, prompt: str, *, secret: bool = False) -> str:
        """Return what a user answers, one line; `PromptError` where nobody can."""

    @property
    def logger(self) -> Logger:
        """The host's logger of this tool."""

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the caller's variable *name*, or *default*."""

    def set_var(self, name: str, value: Any) -> None:
        """Set the caller's variable *name* to a copy of *value*, which is made of plain values."""

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set a variable to what *change* makes of its value, None at first, and return it; nobody comes in between."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the caller's variables and of the host's constants, in order."""

    @property
    def sandbox_dir(self) -> str:
        """The absolute path of the sandbox, which exists and can be written; `fs` is the safe way into it."""

    @property
    def fs(self) -> Files:
        """The files below the sandbox."""

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool by position, as ``Engine.call`` does; no deeper than the engine permits."""

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool by name, as ``Engine.call_named`` does."""

    @property
    def tools(self) -> Mapping[str, ToolInfo]:
        """The tools that this host lets be called, by canonical name."""

    @property
    def llm(self) -> LLM:
        """The model that the host lends, under ``model:use``; `LLMError` where it lends none."""

    @property
    def handles(self) -> Handles:
        """What tools keep for the caller."""

    def require(self, capability: str | Capability) -> None:
        """Raise a `PolicyError` unless this call may do what *capability* says; for needs known only while running."""

    def spend(self, what: str, amount: object) -> Reservation:
        """Reserve what is about to be taken of a limit; `LimitError` where there is no more, and nothing is reserved.

        Args:
            what: ``fs_bytes``, ``fs_entries``, ``net_bytes``, ``net_calls``, ``sleep`` (seconds), or a currency.
            amount: A whole number; of sleep and money also a decimal, a float or a text such as ``0.10``.

        What goes through `fs` is counted there.
        """

    def secret(self, name: str) -> str:
        """Return a value that the host lends under ``secret:read:NAME``; `ToolFailed` where it lends none."""

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Tell the host how far this call is."""

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more."""

    @property
    def deadline(self) -> float | None:
        """When nobody will wait for the result any more, on the clock of `time.monotonic`."""

    def now(self) -> float:
        """Return the time by the host's clock, in seconds since 1970-01-01 UTC."""

    @property
    def random(self) -> Random:
        """The host's source of random numbers, by default that of the operating system."""


@attrs.frozen
class ToolCall:
    """One call as a model, a script or a user asks for it; nothing in it has been looked at yet.

    Attributes:
        name: The tool, in any spelling that a wire or a person uses.
        arguments: In order, by name, or the JSON text of either.
        id: What the asker calls this call.
    """

    name: str
    arguments: Sequence[Any] | Mapping[str, Any] | str = ()
    id: str = attrs.field(default="", kw_only=True)


@attrs.frozen
class ToolResult:
    """What came of a `ToolCall`.

    Attributes:
        id: The call's own id.
        tool: The tool's canonical name, or the name as asked for where there is no such tool.
        value: The result, exact in the declared type; None where there is an error.
        error: Why there is no result.
        repairs: One for each value that was converted.
        seconds: How long it took, gates included.
        spilled: The file that holds the whole of a result that was too large, a `Spilled`, or None; the value is a text
            then: its beginning, and where the whole is.
    """

    id: str
    tool: str
    value: Any = None
    error: CallError | None = attrs.field(default=None, kw_only=True)
    repairs: tuple[Repair, ...] = attrs.field(default=(), kw_only=True)
    seconds: float = attrs.field(default=0.0, kw_only=True)
    spilled: Spilled | None = attrs.field(default=None, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.error is None


# What the fields of a turn have to be

ROLE: Final = one_of("system", "user", "assistant", "tool")


CALLS: Final = sequence(instance(ToolCall), "ToolCalls")


RESULTS: Final = sequence(instance(ToolResult), "ToolResults")


NATIVE: Final = optional(BY_NAME)
