"""Specs in one readable line: ``(number: float, digits: int = 0) -> float``."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.rule_text import expected_type
from neuroscript.coercion.types import ArgType, type_phrase
from neuroscript.errors import UNSET
from neuroscript.io.text import json_text
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec

MAX_DEFAULT_CHARS: Final = 24
"""The maximum length of a default in a signature; longer ones are shown only with their argument."""


def signature(spec: ToolSpec) -> str:
    """Return the arguments and the result of a tool in one line.

    >>> from neuroscript import ArgSpec, ArgType, ToolSpec
    >>> signature(ToolSpec("pick", "x", (ArgSpec("from", ArgType.INT, default=1),), return_type=ArgType.STRING))
    '(from: int = 1) -> string'
    """
    last = len(spec.args) - 1
    arguments = [_parameter(arg, spec.variadic and index == last) for index, arg in enumerate(spec.args)]
    return f"({', '.join(arguments)}) -> {return_text(spec)}"


def _parameter(arg: ArgSpec, further: bool) -> str:
    kind = _kind(arg.type, arg.nullable)
    if further:
        return f"*{arg.name}: {kind}"
    if arg.default is not UNSET:
        default = _default(arg)
        return f"{arg.name}: {kind} = {default if len(default) <= MAX_DEFAULT_CHARS else '…'}"
    return f"{arg.name}: {kind}" if arg.required else f"{arg.name}?: {kind}"


def return_text(spec: ToolSpec) -> str:
    """Return the type of a tool's result, or of each item of its stream.

    >>> return_text(ToolSpec("lines", "x", return_type=ArgType.STRING, stream=True))
    'stream of string'
    """
    kind = _kind(spec.return_type, spec.return_nullable)
    if spec.stream == MAYBE:
        return f"{kind} or stream of {kind}"
    return f"stream of {kind}" if spec.stream else kind


def _kind(type: ArgType, nullable: bool) -> str:
    word = str(type) if type in (ArgType.ANY, ArgType.NIL, ArgType.VOID) else type_phrase(type)
    return f"{word} | None" if nullable and type is not ArgType.NIL else word


def to_json(value: Any) -> str:
    """Return a value of a spec as JSON text."""
    return json_text(to_plain(value))


def _default(arg: ArgSpec) -> str:
    return "[secret]" if arg.holds_secret else to_json(arg.default)


def rule_phrase(arg: ArgSpec, further: bool = False) -> str:
    """Return the full rule of an argument: type, bounds, and whether it is required.

    Args:
        further: Whether it describes each trailing value of a variadic tool.
    """
    return ", ".join([expected_type(arg), *presence_phrases(arg, further)])


def presence_phrases(arg: ArgSpec, further: bool = False) -> list[str]:
    """Return whether an argument is required, its default, and its other properties, as a list of phrases."""
    parts: list[str] = []
    if further:
        parts.append("any number of values" if not arg.required else "at least one value")
    elif arg.default is not UNSET:
        parts.append(f"default {_default(arg)}")
    else:
        parts.append("required" if arg.required else "optional")
    if arg.nullable:
        parts.append("may be null")
    if arg.secret:
        parts.append("secret")
    if arg.extra_keys:
        parts.append("other keys allowed")
    return parts
