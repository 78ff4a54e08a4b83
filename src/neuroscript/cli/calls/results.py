"""Lines of tool calls into what became of each, one after the other.

Source: issue "The contract runs", command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from neuroscript.cli.terminal.inputs import LONGEST, Input, Line, lines
from neuroscript.coercion.context import type_name
from neuroscript.engine.engine import Engine
from neuroscript.errors import ArgumentError, Problem
from neuroscript.io.text import NotJSON, parsed
from neuroscript.llm.wire import detect as interop
from neuroscript.runtime.interfaces import ToolCall, ToolResult


@attrs.frozen
class Asked:
    """What one line asks for.

    Attributes:
        line: Its number, from 1.
        shape: Which API writes calls that way, or ``""`` where that can not be told.
        call: The call, or, where it is none, a result that says what is wrong with the line.
    """

    line: int
    shape: str
    call: ToolCall | ToolResult


@attrs.frozen
class Outcome:
    """What became of one line.

    Attributes:
        line: Its number, from 1.
        shape: Which API writes calls that way, or ``""`` where that can not be told.
        is_call: Whether it is a call at all.
        result: The result of the call, or what is wrong with the line.
    """

    line: int
    shape: str
    is_call: bool
    result: ToolResult


def outcomes(engine: Engine, source: Input, timeout: float | None = None) -> Iterator[Outcome]:
    """Run the call of each line that is not blank, one after the other, and yield what became of it.

    Args:
        timeout: The seconds that each call may take.
    """
    for each in calls(source):
        if isinstance(each.call, ToolCall):
            yield Outcome(each.line, each.shape, True, engine.execute(each.call, timeout))
        else:
            yield Outcome(each.line, each.shape, False, each.call)


def calls(source: Input) -> Iterator[Asked]:
    """Yield what each line asks for that is not blank."""
    return map(_asked, lines(source))


def _asked(line: Line) -> Asked:
    title = id = ""
    try:
        data = _object(line)
        id = interop.call_id(data)
        shape = interop.shape_of(data)
        title = shape.title
        return Asked(line.number, title, shape.read(data))
    except ArgumentError as error:
        problems = [each._replace(where=_place(line, each.where)) for each in error.problems]
        return Asked(line.number, title, ToolResult(id, "", error=ArgumentError(problems, found=error.total)))


def _place(line: Line, where: str) -> str:
    return f"line {line.number}: {where}" if where else f"line {line.number}"


def _object(line: Line) -> Any:
    """Return the object that a line holds; a problem with it says nothing yet of the line's number."""
    if line.data is None:
        raise ArgumentError([Problem("", "limit.text", f"at most {LONGEST} bytes", "more")])
    try:
        data = parsed(line.data.decode("utf-8-sig" if line.number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise ArgumentError([Problem("", "coercion.encoding", "UTF-8 text", "other bytes")]) from None
    except NotJSON as error:
        hint = error.hint.removeprefix("line 1, ")
        raise ArgumentError([Problem("", error.code, "a tool call as JSON", "other text", hint)]) from None
    if not isinstance(data, dict):
        raise ArgumentError([Problem("", "arg.type", "a JSON object that is a tool call", type_name(data))])
    return data
