"""Replay of recordings: calls of pure tools run again until the first difference.

A recording is not trusted. Only tools that the engine itself defines as pure are run, and every call takes the engine's
call pipeline.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import attrs

from neuroscript.audit.recording import FORM, MAX_LINE_BYTES, decode
from neuroscript.coercion.context import Where, place, type_name
from neuroscript.engine.engine import Engine
from neuroscript.io.text import NotJSON, parse_json, quote_untrusted
from neuroscript.io.text_files import open_at_once
from neuroscript.runtime.interfaces import ToolCall
from neuroscript.tools.fingerprints import fingerprint
from neuroscript.tools.tool import ToolImplementation

OK: Final = "ok"
CHUNK_BYTES: Final = 64 * 1024
"""Number of bytes of an overlong line that are read, and discarded, at a time."""

Kind = Literal["tool", "definition", "code", "type", "size", "key", "value"]


@attrs.frozen
class Difference:
    """A difference between a recorded call and its replay, described by types and sizes without values.

    Attributes:
        line: The number of its line in the recording, from 1.
        tool: The canonical name of the tool.
        kind: What differs: the tool is unknown, its definition changed, the error code differs, or in the result the
            type, the size or the value of an item, or a key that exists only once.
        where: The path in the result, such as ``result['names'][1]``, or ``""``.
        was: What was recorded, such as ``str of 5``.
        now: What it is now.
    """

    line: int
    tool: str
    kind: Kind
    where: str = ""
    was: str = ""
    now: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "tool":
                change = "unknown tool"
            case "definition":
                change = "its definition differs from the recorded one"
            case "value":
                change = f"was {self.was}, is a different value"
            case _:
                change = f"was {self.was}, is {self.now}"
        return ": ".join(each for each in (f"line {self.line}", self.tool, self.where, change) if each)


@attrs.frozen
class Replayed:
    """The result of a replay.

    Attributes:
        run: The number of calls that were run again.
        skipped: The number of calls of tools that are not pure.
        not_recorded: The number of calls that were left out of the recording.
        unreadable: The number of lines that are not recorded calls.
        error: The problem of the first of these, or ``""``.
        difference: The first difference, which ended the replay, or None.
    """

    run: int = 0
    skipped: int = 0
    not_recorded: int = 0
    unreadable: int = 0
    error: str = ""
    difference: Difference | None = None

    @property
    def ok(self) -> bool:
        """Whether every line was readable and every call had the recorded outcome."""
        return self.difference is None and not self.unreadable


def replay(path: str | os.PathLike[str], engine: Engine) -> Replayed:
    """Run the recorded calls of pure tools again, until the first difference.

    Raises:
        OSError: If the file cannot be read or is a named pipe.
    """
    with open(path, "rb", opener=open_at_once) as file:
        return replay_lines(file.readline, engine)


def replay_lines(readline: Callable[[int], bytes], engine: Engine) -> Replayed:
    """Replay an open recording.

    Args:
        readline: Returns the next bytes up to the end of a line, at most a number of bytes, or nothing at the end.
    """
    so_far = Replayed()
    again = _Again(engine)
    for number, line in _lines(readline):
        try:
            call = _call(line)
            difference = None if isinstance(call, str) else again.difference(number, call)
        except _Unreadable as fault:
            message = so_far.error or f"line {number} {fault}"
            so_far = attrs.evolve(so_far, unreadable=so_far.unreadable + 1, error=message)
            continue
        count = call if isinstance(call, str) else "run"
        if difference is None or difference.kind not in ("tool", "definition"):
            so_far = attrs.evolve(so_far, **{count: getattr(so_far, count) + 1})
        if difference is not None:
            return attrs.evolve(so_far, difference=difference)
    return so_far


def _lines(readline: Callable[[int], bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines that are not blank, with their numbers, and None for a line that is too long."""
    number = 0
    while line := readline(MAX_LINE_BYTES):
        number += 1
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = readline(CHUNK_BYTES)
            yield number, None
        elif not line.isspace():
            yield number, line


class _Unreadable(Exception):
    """A line that is not a recorded call; the message continues the text "line 3"."""


@attrs.frozen
class _Call:
    """A recorded call of a tool that was pure at the time."""

    tool: str
    fingerprint: str
    args: list[Any]
    code: str
    result: Any


def _call(line: bytes | None) -> _Call | Literal["skipped", "not_recorded"]:
    """Return the call in a line, or the counter that the line belongs to.

    Raises:
        _Unreadable: If the line is not a recorded call.
    """
    if line is None:
        raise _Unreadable(f"has more than {MAX_LINE_BYTES} bytes")
    try:
        return _call_of(parse_json(line.decode()))
    except UnicodeDecodeError:
        raise _Unreadable("is not UTF-8 text") from None
    except NotJSON as error:
        if error.code != "arg.not_json":
            raise _Unreadable(f"cannot be read: {error.hint}") from None
        raise _Unreadable("is not JSON" if line.endswith(b"\n") else "is truncated") from None
    except (ValueError, RecursionError):
        raise _Unreadable("contains a value that cannot be read") from None


def _call_of(data: Any) -> _Call | Literal["skipped", "not_recorded"]:
    match data:
        case {"recording": int(form), "tool": str(), **rest} if form != FORM and type(form) is int:
            raise _Unreadable(f"has format version {quote_untrusted(str(form))}, but only {FORM} is supported")
        case {"recording": int(), "tool": str(), "not_recorded": str(), **rest} if not rest:
            return "not_recorded"
        case {"recording": int(), "tool": str(tool), "effects": list(effects), "args": list(args), **rest}:
            pass
        case _:
            raise _Unreadable("is not a recorded call")
    match rest:
        case {"fingerprint": str(mark), "result": result} if len(rest) == 2:
            code = OK
        case {"fingerprint": str(mark), "code": str(code)} if len(rest) == 2:
            result = None
        case _:
            raise _Unreadable("is not a recorded call")
    return _Call(tool, mark, decode(args), code, decode(result)) if "pure" in effects else "skipped"


class _Again:
    """Runs recorded calls again with one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._fingerprints: dict[str, str] = {}

    def difference(self, line: int, call: _Call) -> Difference | None:
        """Run a call again and return the difference, if any.

        Raises:
            _Unreadable: If the recording declares its tool as pure, but the engine does not.
        """
        tool: ToolImplementation | None = self._engine.tools.get(call.tool)
        if tool is None:
            return Difference(line, quote_untrusted(call.tool), "tool")
        if self._fingerprint_of(tool) != call.fingerprint:
            return Difference(line, tool.name, "definition")
        if "pure" not in tool.policy.effects:
            raise _Unreadable(f"declares {tool.name} as pure, which it is not")
        result = self._engine.execute(ToolCall(tool.name, call.args))
        code = OK if result.error is None else result.error.code
        if code != call.code:
            return Difference(line, tool.name, "code", "", quote_untrusted(call.code), code)
        found = next(_differences((None, "result"), call.result, result.value), None)
        if found is None:
            return None
        kind, where, was, now = found
        return Difference(line, tool.name, kind, place(where), was, now)

    def _fingerprint_of(self, tool: ToolImplementation) -> str:
        known = self._fingerprints.get(tool.name)
        return known or self._fingerprints.setdefault(tool.name, fingerprint(tool))


def _differences(where: Where, was: Any, now: Any) -> Iterator[tuple[Kind, Where, str, str]]:
    """Yield the differences between two values and their paths; maps and lists of equal length are compared by item."""
    if type(was) is not type(now):
        yield "type", where, _type_and_size(was), _type_and_size(now)
    elif isinstance(was, dict):
        for key in sorted({*was, *now}):
            if key not in was or key not in now:
                old, new = (_type_and_size(each[key]) if key in each else "nothing" for each in (was, now))
                yield "key", (where, key), old, new
            else:
                yield from _differences((where, key), was[key], now[key])
    elif _type_and_size(was) != _type_and_size(now):
        yield "size", where, _type_and_size(was), _type_and_size(now)
    elif isinstance(was, list):
        for index, (old, new) in enumerate(zip(was, now, strict=True)):
            yield from _differences((where, index), old, new)
    elif repr(was) != repr(now):  # -0.0 equals 0.0, and equal times may be in two time zones
        yield "value", where, _type_and_size(was), _type_and_size(now)


def _type_and_size(value: Any) -> str:
    """Return the type of a value, and its size if it has one."""
    name = type_name(value)
    return f"{name} of {len(value)}" if hasattr(value, "__len__") else name
