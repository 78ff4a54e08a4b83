"""What a tool sees of the world, and the facts of a call: who asks for what, and what came of it.

Source: contract sections 1 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from neuroscript.errors import CallError

RUNTIME_API: Final = (1, 0)
"""The version of `Runtime`: a new member raises the second number, a changed one the first."""


class Runtime(Protocol):
    """The first argument of every tool; it ends with the call, and then refuses with ``runtime.closed``."""

    def println(self, *values: object) -> None:
        """Write one line to the host's output, in one piece, control characters escaped."""

    def get_var(self, name: str, default: Any = None) -> Any:
        """Return a copy of the caller's variable *name*, or *default*."""

    def set_var(self, name: str, value: Any) -> None:
        """Set the caller's variable *name* to a copy of *value*, which is made of plain values."""

    def update_var(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Set a variable to what *change* makes of its value, None at first, and return it; nobody comes in between."""

    def call_tool(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Call another tool by position, as ``Engine.call`` does; no deeper than the engine permits."""

    def call_tool_named(self, name: str, mapping: Mapping[str, Any]) -> Any:
        """Call another tool by name, as ``Engine.call_named`` does."""


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
class Repair:
    """A value that was not of the declared type and could be converted without loss.

    Attributes:
        where: Its place, as in an error: ``tags[1]``.
        got: The name of the type that was given.
        became: The name of the type that the tool received.
    """

    where: str
    got: str
    became: str


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
    """

    id: str
    tool: str
    value: Any = None
    error: CallError | None = attrs.field(default=None, kw_only=True)
    repairs: tuple[Repair, ...] = attrs.field(default=(), kw_only=True)
    seconds: float = attrs.field(default=0.0, kw_only=True)

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.error is None
