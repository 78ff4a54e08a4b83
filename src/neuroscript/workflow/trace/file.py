"""Traces as plain data and as JSON files: written atomically, and read completely or rejected with every problem.

Values are restored exactly, including bytes and times. Values that exist only in one process are not: a handle is
stored as its id, and a value that is not plain data as the name of its type.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from array import array
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.audit.recording import Unwritable, encode
from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.scalars import AnyContent, Handle
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_path
from neuroscript.io.text_files import read_text_file, write_atomically
from neuroscript.workflow.trace.reader import FORMAT_VERSION, read_trace
from neuroscript.workflow.trace.trace import NodeTrace, Trace

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""Maximum bytes of a trace file."""

MAX_INT_BITS: Final = 10_000
"""Maximum bits of an integer; Python does not convert longer ones to text."""


def save_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace to a file atomically; an existing file is replaced.

    Raises:
        OSError: If the file cannot be written; an existing file is unchanged.
        ValueError: If the path contains a NUL character.
    """
    write_atomically(path, f"{json.dumps(trace_to_data(trace), indent=1)}\n")


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Return the trace in a file that `save_trace` wrote.

    Raises:
        SpecError: If the file cannot be read, or with every problem and its path.
    """
    name = quote_path(os.fspath(path))
    return trace_of_json(read_text_file(path, name, MAX_FILE_BYTES), source=name)


def trace_of_json(text: str, *, source: str = "trace") -> Trace:
    """Return the trace in JSON text, or raise a `SpecError` with every problem.

    Args:
        source: The name to use in errors.
    """
    try:
        data = parse_json(text)
    except NotJSON as error:
        raise SpecError(source, [f"invalid JSON: {error.hint}"]) from None
    return trace_from_data(data, source=source)


def trace_from_data(data: Any, *, source: str = "trace") -> Trace:
    """Return the trace in data of `trace_to_data`.

    Raises:
        SpecError: With every problem and its path.
    """
    if not isinstance(data, Mapping):
        raise SpecError(source, [f"expected a JSON object, got {type_name(data)}"])
    try:
        return read_trace(data, source)
    except RecursionError:
        raise SpecError(source, ["nests too deeply"]) from None


def trace_to_data(trace: Trace) -> dict[str, Any]:
    """Return a trace as JSON-compatible data; default values of nodes are left out."""
    data = attrs.asdict(trace, recurse=False)
    data |= {name: _encode_value(data[name]) for name in ("inputs", "output", "error")}
    return {"trace": FORMAT_VERSION, **data, "nodes": [_node_data(node) for node in trace.nodes]}


def _node_data(node: NodeTrace) -> dict[str, Any]:
    data = attrs.asdict(node, recurse=False, filter=lambda field, value: _is_written(field.default, value))
    data |= {name: _encode_value(data[name]) for name in ("arguments", "result", "error") if name in data}
    data |= {name: [*data[name]] for name in ("needs", "labels") if name in data}
    if node.attempts:
        data["attempts"] = [attrs.asdict(each) for each in node.attempts]
    return data


def _is_written(usual: Any, value: Any) -> bool:
    return value is not None if usual is None else bool(value != usual)


def _encode_value(value: Any) -> Any:
    """Return a value as data from which it can be restored, as far as possible."""
    return encode(_writable(value))


def _writable(value: Any) -> Any:
    """Return a value with each part that cannot be written replaced."""
    match value:
        case dict() | Mapping():
            return {str(key): _writable(each) for key, each in value.items()}
        case list() | tuple():
            return [_writable(each) for each in value]
        case bool() | None:
            return value
        case str() | bytes() if type(value) in (str, bytes):
            return value
        case int() if value.bit_length() <= MAX_INT_BITS:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case array() | datetime.datetime() | AnyContent():
            return value if _is_exact(value) else to_plain(value)
        case Handle():
            return to_plain(value)
        case _:
            return f"<{type_name(value)}>"


def _is_exact(value: Any) -> bool:
    try:
        encode(value)
    except Unwritable:
        return False
    return True
