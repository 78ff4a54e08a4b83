"""``neuroscript call`` of a tool that streams: each item is written when it comes, and nothing is kept.

Source: issue "neurosurfer and Smith run here", streams to their ends.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from typing import Any

import attrs

from neuroscript.cli.env.engine import meant
from neuroscript.cli.terminal.output import Output
from neuroscript.coercion.plain_data import plain
from neuroscript.engine.engine import Engine
from neuroscript.engine.session import Sent
from neuroscript.errors import CallError
from neuroscript.runtime.interfaces import ToolCall, ToolResult
from neuroscript.runtime.redacting_proxies import redacted_result
from neuroscript.spec.binding import Repair


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
        repairs: Which of its arguments were converted.
    """

    tool: str
    items: int
    seconds: float
    repairs: tuple[Repair, ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The line that stands below the items."""
        data: dict[str, Any] = {"id": "", "tool": self.tool, "ok": True, "items": self.items}
        if self.repairs:
            data["repairs"] = [attrs.asdict(repair) for repair in self.repairs]
        return {**data, "seconds": round(self.seconds, 6)}


def streamed(engine: Engine, tool: str, call: ToolCall, options: Namespace, output: Output) -> Streamed | ToolResult:
    """Write each item of a stream as it comes, and return how many there were, or the result that is an error.

    Raises:
        OutputClosed: Nobody reads the items any more; the tool has ended.
    """
    sent, count = Sent(call), 0
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
    return Streamed(tool, count, result.seconds, result.repairs)


def _json(output: Output) -> Callable[[Any], None]:
    return lambda item: output.json({"item": plain(item)})


def _text(output: Output) -> Callable[[Any], None]:
    def write(item: Any) -> None:
        if type(item) is str:
            output.text(item.removesuffix("\n"))
        else:
            output.json(plain(item))

    return write
