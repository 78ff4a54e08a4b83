"""``neuroscript call`` of a streaming tool: each item is printed when it arrives, and none is stored."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from typing import Any

import attrs

from neuroscript.cli.env.engine import find_tool
from neuroscript.cli.terminal.output import Output
from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.engine.engine import Engine
from neuroscript.engine.session import SentCall
from neuroscript.errors import CallError
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.redacting_proxies import redacted_result
from neuroscript.spec.binding import Repair


def streaming_tool_name(engine: Engine, name: str) -> str | None:
    """Return the canonical name of a tool if it streams, or None."""
    tool = find_tool(engine, name)
    return tool.name if tool is not None and tool.spec.stream else None


@attrs.frozen
class StreamSummary:
    """A completed stream.

    Attributes:
        tool: The canonical name of the tool.
        items: The number of items.
        seconds: The duration, including the time to print the items.
        repairs: The arguments that were converted.
    """

    tool: str
    items: int
    seconds: float
    repairs: tuple[Repair, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The JSON object that follows the items."""
        data: dict[str, Any] = {"id": "", "tool": self.tool, "ok": True, "items": self.items}
        if self.repairs:
            data["repairs"] = [attrs.asdict(repair) for repair in self.repairs]
        return {**data, "seconds": round(self.seconds, 6)}


def print_stream(
    engine: Engine, tool: str, call: ToolCall, options: Namespace, output: Output
) -> StreamSummary | ToolResult:
    """Print each item of a stream when it arrives, and return a summary, or the result with its error.

    Raises:
        OutputClosed: The reader of the items has gone; the tool has been stopped.
    """
    sent, count = SentCall(call), 0
    write = _json(output) if options.json else _text(output)
    try:
        items: Any = engine._sent_stream(sent, options.timeout)
        with closing(items):
            for item in items:
                write(item)
                count += 1
    except CallError as error:
        return attrs.evolve(sent.failed(error), tool=tool)
    result = sent.result(None)
    if engine.secrets is not None:
        result = redacted_result(engine.secrets, result)
    return StreamSummary(tool, count, result.seconds, result.repairs)


def _json(output: Output) -> Callable[[Any], None]:
    return lambda item: output.json({"item": to_plain(item)})


def _text(output: Output) -> Callable[[Any], None]:
    def write(item: Any) -> None:
        text = readable_text(item)
        if text is not None:
            output.text(text.removesuffix("\n"))
        else:
            output.json(to_plain(item))

    return write
