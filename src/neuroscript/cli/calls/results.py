"""Parse and run lines of tool calls, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from neuroscript.cli.terminal.inputs import MAX_LINE_BYTES, Input, Line, lines
from neuroscript.coercion.context import type_name
from neuroscript.engine.engine import Engine
from neuroscript.errors import ArgumentError, Problem
from neuroscript.io.text import NotJSON, parse_json
from neuroscript.llm.wire import detect as interop
from neuroscript.runtime.interfaces import ToolCall, ToolResult


@attrs.frozen
class ParsedLine:
    """A parsed line.

    Attributes:
        line: Its number, from 1.
        shape: The API whose format the line has, or ``""`` if it is unknown.
        call: The call, or an error result if the line is not a call.
    """

    line: int
    shape: str
    call: ToolCall | ToolResult


@attrs.frozen
class Outcome:
    """The outcome of one line.

    Attributes:
        line: Its number, from 1.
        shape: The API whose format the line has, or ``""`` if it is unknown.
        is_call: Whether the line is a call.
        result: The result of the call, or the error in the line.
    """

    line: int
    shape: str
    is_call: bool
    result: ToolResult


def outcomes(engine: Engine, source: Input, timeout: float | None = None) -> Iterator[Outcome]:
    """Run the call in each non-blank line, one after the other, and yield its outcome.

    Args:
        timeout: The time limit of each call in seconds.
    """
    for each in calls(source):
        if isinstance(each.call, ToolCall):
            yield Outcome(each.line, each.shape, True, engine.execute(each.call, timeout))
        else:
            yield Outcome(each.line, each.shape, False, each.call)


def calls(source: Input) -> Iterator[ParsedLine]:
    """Yield each non-blank line, parsed."""
    return map(_parse_line, lines(source))


def _parse_line(line: Line) -> ParsedLine:
    title = id = ""
    try:
        data = _object(line)
        id = interop.call_id(data)
        shape = interop.shape_of(data)
        title = shape.title
        return ParsedLine(line.number, title, shape.read(data))
    except ArgumentError as error:
        problems = [each._replace(where=_location(line, each.where)) for each in error.problems]
        return ParsedLine(line.number, title, ToolResult(id, "", error=ArgumentError(problems, found=error.total)))


def _location(line: Line, where: str) -> str:
    return f"line {line.number}: {where}" if where else f"line {line.number}"


def _object(line: Line) -> Any:
    """Return the JSON object in a line; the caller adds the line number to errors."""
    if line.data is None:
        raise ArgumentError([Problem("", "limit.text", f"at most {MAX_LINE_BYTES} bytes", "more")])
    try:
        data = parse_json(line.data.decode("utf-8-sig" if line.number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise ArgumentError([Problem("", "coercion.encoding", "UTF-8 text", "other bytes")]) from None
    except NotJSON as error:
        hint = error.hint.removeprefix("line 1, ")
        raise ArgumentError([Problem("", error.code, "a tool call as JSON", "invalid JSON", hint)]) from None
    if not isinstance(data, dict):
        raise ArgumentError([Problem("", "arg.type", "a JSON object that is a tool call", type_name(data))])
    return data
