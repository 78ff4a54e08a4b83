"""``neuroscript call`` of a tool that streams: each item is written when it comes, and nothing is kept.

Source: issue "neurosurfer and Smith run here", streams to their ends.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from time import perf_counter
from typing import Any

import attrs

from neuroscript.cli.opening import meant
from neuroscript.cli.output import Output
from neuroscript.engine import Engine
from neuroscript.errors import CallError
from neuroscript.jsonable import plain
from neuroscript.runtime import ToolCall, ToolResult


def streaming(engine: Engine, name: str) -> str | None:
    """Return the canonical name of the tool that a name means, if it gives items, or None."""
    tool = meant(engine, name)
    return tool.name if tool is not None and tool.spec.stream else None


@attrs.frozen
class Streamed:
    """A stream that came to its end.

    Attributes:
        tool: The canonical name of the tool.
        items: How many items it gave.
        seconds: How long it took, with the writing.
    """

    tool: str
    items: int
    seconds: float

    @property
    def data(self) -> dict[str, Any]:
        """The line that stands below the items."""
        return {"id": "", "tool": self.tool, "ok": True, "items": self.items, "seconds": round(self.seconds, 6)}


def streamed(engine: Engine, tool: str, call: ToolCall, options: Namespace, output: Output) -> Streamed | ToolResult:
    """Write each item of a stream as it comes, and return how many there were, or the result that is an error.

    Raises:
        OutputClosed: Nobody reads the items any more; the tool has ended.
    """
    started, count = perf_counter(), 0
    write = _json(output) if options.json else _text(output)
    try:
        items: Any = engine.stream(call)
        with closing(items):
            for item in items:
                write(item)
                count += 1
    except CallError as error:
        return ToolResult(call.id, tool, error=error, seconds=perf_counter() - started)
    return Streamed(tool, count, perf_counter() - started)


def _json(output: Output) -> Callable[[Any], None]:
    return lambda item: output.json({"item": plain(item)})


def _text(output: Output) -> Callable[[Any], None]:
    def write(item: Any) -> None:
        if type(item) is str:
            output.text(item.removesuffix("\n"))
        else:
            output.json(plain(item))

    return write
