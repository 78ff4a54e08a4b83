"""A spec in one line, in the words of a person: ``(number: float, digits: int = 0) -> float``."""

from __future__ import annotations

from typing import Any, Final

from neuroscript.coercion.plain_data import plain
from neuroscript.coercion.rule_text import described
from neuroscript.coercion.types import ArgType, worded
from neuroscript.errors import UNSET
from neuroscript.io.text import json_text
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec

SHORT: Final = 24
"""How many characters of a default a signature shows; a longer one stands with its argument alone."""


def signature(spec: ToolSpec) -> str:
    """Return the arguments and the result of a tool in one line.

    >>> from neuroscript import ArgSpec, ArgType, ToolSpec
    >>> signature(ToolSpec("pick", "x", (ArgSpec("from", ArgType.INT, default=1),), return_type=ArgType.STRING))
    '(from: int = 1) -> string'
    """
    last = len(spec.args) - 1
    arguments = [_parameter(arg, spec.variadic and index == last) for index, arg in enumerate(spec.args)]
    return f"({', '.join(arguments)}) -> {returned(spec)}"


def _parameter(arg: ArgSpec, further: bool) -> str:
    kind = _kind(arg.type, arg.nullable)
    if further:
        return f"*{arg.name}: {kind}"
    if arg.default is not UNSET:
        default = _default(arg)
        return f"{arg.name}: {kind} = {default if len(default) <= SHORT else '…'}"
    return f"{arg.name}: {kind}" if arg.required else f"{arg.name}?: {kind}"


def returned(spec: ToolSpec) -> str:
    """Return the type of a tool's result, or of each item of its stream.

    >>> returned(ToolSpec("lines", "x", return_type=ArgType.STRING, stream=True))
    'stream of string'
    """
    kind = _kind(spec.return_type, spec.return_nullable)
    if spec.stream == MAYBE:
        return f"{kind} or stream of {kind}"
    return f"stream of {kind}" if spec.stream else kind


def _kind(type: ArgType, nullable: bool) -> str:
    word = str(type) if type in (ArgType.ANY, ArgType.NIL, ArgType.VOID) else worded(type)
    return f"{word} | None" if nullable and type is not ArgType.NIL else word


def written(value: Any) -> str:
    """Return a value of a spec as it is written in JSON."""
    return json_text(plain(value))


def _default(arg: ArgSpec) -> str:
    return "[secret]" if arg.holds_secret else written(arg.default)


def asked(arg: ArgSpec, further: bool = False) -> str:
    """Return all that is asked of an argument: its type and bounds, and whether it may be left out.

    Args:
        further: Whether it stands for each further value of a variadic tool.
    """
    return ", ".join([described(arg), *given(arg, further)])


def given(arg: ArgSpec, further: bool = False) -> list[str]:
    """Return in words whether an argument has to be given, what it is where it is not, and what else is to be known."""
    parts: list[str] = []
    if further:
        parts.append("any number of them" if not arg.required else "at least one of them")
    elif arg.default is not UNSET:
        parts.append(f"default {_default(arg)}")
    else:
        parts.append("required" if arg.required else "may be left out")
    if arg.nullable:
        parts.append("may be null")
    if arg.secret:
        parts.append("secret")
    if arg.extra_keys:
        parts.append("any other keys too")
    return parts
