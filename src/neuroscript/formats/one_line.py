"""Specs in one readable line: ``(number: float, digits: int = 0) -> float``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from neuroscript.coercion.plain_data import to_plain
from neuroscript.coercion.rule_text import expected_type
from neuroscript.coercion.rule_text import rule_phrase as type_rule_phrase
from neuroscript.coercion.types import ArgType, type_phrase
from neuroscript.errors import UNSET
from neuroscript.io.text import json_text
from neuroscript.policy.labels import sinks_of, sources_of
from neuroscript.policy.tool_policy import ToolPolicy
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
    kind = _kind(arg, arg.nullable)
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
    if spec.returns is None:
        kind = _with_none(_type_word(spec.return_type), spec.return_nullable)
    else:
        kind = _kind(spec.returns, spec.return_nullable)
    if spec.stream == MAYBE:
        return f"{kind} or stream of {kind}"
    return f"stream of {kind}" if spec.stream else kind


def _kind(arg: ArgSpec, nullable: bool) -> str:
    if arg.is_refined:
        return _with_none(type_rule_phrase(arg), nullable)
    return _with_none(_type_word(arg.type), nullable and arg.type is not ArgType.NIL)


def _type_word(type: ArgType) -> str:
    return str(type) if type in (ArgType.ANY, ArgType.NIL, ArgType.VOID) else type_phrase(type)


def _with_none(word: str, nullable: bool) -> str:
    return f"{word} | None" if nullable and word != "nil" else word


def inner_rules(arg: ArgSpec, path: str) -> Iterator[tuple[str, ArgSpec]]:
    """Yield each key at any depth within an argument, with its path.

    A list adds nothing to the path, the values of a map add ``.*``, a place in a tuple its index, and one of several
    alternatives with keys its number or the value of its discriminator.

    >>> from neuroscript import ArgSpec
    >>> size = ArgSpec("size", "map", keys=(ArgSpec("cm", "int"),))
    >>> [path for path, _ in inner_rules(ArgSpec("sizes", "map", value_spec=size), "sizes")]
    ['sizes.*.cm']
    """
    for key in arg.keys:
        yield f"{path}.{key.name}", key
        yield from inner_rules(key, f"{path}.{key.name}")
    if arg.items is not None:
        yield from inner_rules(arg.items, path)
    for index, each in enumerate(arg.prefix_items):
        yield from inner_rules(each, f"{path}[{index}]")
    if arg.value_spec is not None:
        yield from inner_rules(arg.value_spec, f"{path}.*")
    parts = [each for each in arg.any_of if any(True for _ in inner_rules(each, ""))]
    for index, each in enumerate(parts, 1):
        tag = next((key.choices for key in each.keys if key.name == arg.discriminator), (index,))
        yield from inner_rules(each, path if len(parts) == 1 else f"{path} ({', '.join(map(str, tag))})")


def label_phrases(policy: ToolPolicy) -> Iterator[tuple[str, str]]:
    """Yield what a tool reads and where it sends arguments, each with a title, but nothing for neither.

    Labels that the tool does not declare are marked as assumed.

    >>> from neuroscript import ToolPolicy
    >>> dict(label_phrases(ToolPolicy(effects=("net",), sinks=("people", "outside:crm"))))
    {'reads': 'untrusted (assumed)', 'sends to': 'people, outside:crm'}
    """
    for title, declared, labels in (
        ("reads", policy.sources, sources_of(policy)),
        ("sends to", policy.sinks, sinks_of(policy)),
        ("declassifies", policy.declassifies, policy.declassifies),
    ):
        if labels:
            yield title, ", ".join(labels) + (" (assumed)" if declared is None else "")


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
    if arg.extra_keys or (arg.keys and arg.value_spec is not None):
        parts.append("other keys allowed")
    return parts
