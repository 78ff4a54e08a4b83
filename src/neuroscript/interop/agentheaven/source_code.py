"""A tool as Python source code: its docstring in Google style, its definition, and a call."""

from __future__ import annotations

import inspect
import re
from array import array
from collections.abc import Iterator, Mapping
from keyword import iskeyword
from typing import Final

from neuroscript.coercion.constraints import coerce
from neuroscript.coercion.context import type_name
from neuroscript.coercion.types import TYPES, ArgType
from neuroscript.errors import UNSET, ArgumentError, Problem, SpecError
from neuroscript.interop import functions
from neuroscript.io.text import escape, one_line
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec

IMPORTED: Final = {"Any": "typing", "Literal": "typing", "array": "array"}
"""Names in annotations that must be imported, and their modules."""

HIDDEN: Final = "..."
"""The placeholder for a value that is secret or too long."""


def annotation(arg: ArgSpec) -> str:
    """Return the annotation of an argument.

    >>> annotation(ArgSpec("mode", ArgType.STRING, choices=("r", "w"), nullable=True))
    "Literal['r', 'w'] | None"
    """
    text = _type_text(arg)
    is_empty = not arg.required and arg.default in (UNSET, None)
    return f"{text} | None" if (arg.nullable or is_empty) and text != "None" else text


def type_text(kind: ArgType) -> str:
    """Return the annotation of an exact value; Python 3.11 cannot subscript `array`."""
    return TYPES[kind].annotation.replace("array[float]", "array")


def _type_text(arg: ArgSpec) -> str:
    """Return the annotation of the exact plain value of a spec, without null."""
    if arg.any_of:
        return " | ".join(dict.fromkeys(map(_type_text, arg.any_of)))
    if arg.prefix_items:
        return f"list[{' | '.join(dict.fromkeys(map(_inner_text, arg.prefix_items)))}]"
    if arg.items is not None:
        return f"list[{_inner_text(arg.items)}]"
    if arg.value_spec is not None and not arg.keys:
        key = "str" if arg.key_spec is None else _type_text(arg.key_spec)
        return f"dict[{key}, {_inner_text(arg.value_spec)}]"
    if arg.choices and arg.element is not ArgType.FLOAT:  # Literal does not support floats
        literal = f"Literal[{', '.join(map(repr, arg.choices))}]"
        return literal if arg.element is arg.type else f"list[{literal}]"
    return type_text(arg.type)


def _inner_text(arg: ArgSpec) -> str:
    return f"{_type_text(arg)} | None" if arg.nullable else _type_text(arg)


def docstring(spec: ToolSpec, *, defaults: bool = True) -> str:
    """Return the documentation of a spec as a docstring in Google style.

    Args:
        defaults: Include the defaults of arguments.
    """
    texts = (spec.description, spec.when_to_use)
    paragraphs = ["\n".join(map(escape, text.strip().splitlines())) for text in texts if text.strip()]
    sections = [
        ("Args", [f"{arg.name}: {_described(arg, defaults)}".rstrip() for arg in spec.args]),
        ("Returns", [f"{_returned(spec)}: {one_line(spec.return_help)}"] if spec.return_help.strip() else []),
        ("Raises", [one_line(spec.error_conditions)] if spec.error_conditions else []),
    ]
    for title, lines in sections:
        if lines:
            paragraphs.append("\n".join([f"{title}:", *(f"    {line}" for line in lines)]))
    return "\n\n".join(paragraphs)


def _described(arg: ArgSpec, defaults: bool) -> str:
    description = one_line(arg.description)
    if not defaults or arg.default is UNSET:
        return description
    description = f"{description.rstrip('.')}. " if description else ""
    return f"{description}Defaults to {_shown(arg, arg.default)}."


def _returned(spec: ToolSpec) -> str:
    text = type_text(spec.return_type) if spec.returns is None else _type_text(spec.returns)
    return f"{text} | None" if spec.return_nullable and text not in ("Any", "None") else text


def definition(name: str, spec: ToolSpec) -> str:
    """Return a function stub for a spec as source code, with the imports it needs.

    Required arguments after an optional one are keyword-only, because handles pass all arguments by name.

    Raises:
        SpecError: The name of an argument is not a valid Python name.
    """
    odd = [arg.name for arg in spec.args if not _is_name(arg.name)]
    if odd:
        raise SpecError(
            spec.full_name, [f"cannot write a definition: {name} is not a valid Python name" for name in odd]
        )
    result = _returned(spec)
    result = {True: f"Iterator[{result}]", MAYBE: f"{result} | Iterator[{result}]"}.get(spec.stream, result)
    head = f"def {name}({', '.join(_parameters(spec))}) -> {result}:"
    lines = [*_quoted(docstring(spec, defaults=False)), "..."]
    return "\n".join([*_imports(head), head, *(f"    {line}".rstrip() for line in lines)]) + "\n"


def _parameters(spec: ToolSpec) -> Iterator[str]:
    is_optional = False
    has_star = False
    for index, arg in enumerate(spec.args):
        if spec.variadic and index == len(spec.args) - 1:
            yield f"*{arg.name}: {annotation(arg).removesuffix(' | None')}"
            return
        if arg.required and is_optional and not has_star:
            has_star = True
            yield "*"
        is_optional = is_optional or not arg.required
        yield f"{arg.name}: {annotation(arg)}" if arg.required else f"{arg.name}: {annotation(arg)} = {_default(arg)}"


def _default(arg: ArgSpec) -> str:
    if arg.default is UNSET:
        return "None"
    return _shown(arg, arg.default)


def _shown(arg: ArgSpec, value: object) -> str:
    return HIDDEN if arg.holds_secret else repr(value)


def _imports(head: str) -> Iterator[str]:
    """Yield the import lines for the annotations in a function head."""
    words = set(re.findall(r"\w+", re.sub(r"'[^']*'", "", head)))
    homes = {**IMPORTED, "Iterator": "collections.abc"}
    found = [f"from {home} import {name}" for name, home in homes.items() if name in words]
    yield from sorted(found)
    if found:
        yield from ("", "")


def _quoted(text: str) -> list[str]:
    """Return the lines of a docstring, escaped so that its content cannot end it."""
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    safe = f'{safe[:-1]}\\"' if safe.endswith('"') else safe
    lines = f'"""{safe}'.split("\n") if text else []
    if len(lines) == 1:
        return [f'{lines[0]}"""']
    return [*lines, '"""'] if lines else []


def call_text(name: str, spec: ToolSpec, arguments: Mapping[str, object]) -> str:
    """Return a call with named arguments as source code: with exact values and with defaults.

    A missing required argument is shown as its name alone. Secrets are not shown.

    Raises:
        ArgumentError: An argument is unknown or invalid.
    """
    known = [arg.name for arg in spec.args]
    unknown = [each for each in arguments if each not in known]
    if unknown:
        expected = f"only {', '.join(known)}" if known else "none"
        got = {each: f"an unknown name of type {type_name(arguments[each])}" for each in unknown}
        raise ArgumentError([Problem(each, "arg.unknown", expected, got[each]) for each in unknown], spec.full_name)
    parts = (_argument_source(arg, arguments.get(arg.name, UNSET)) for arg in spec.args)
    return f"{name}({', '.join(filter(None, parts))})"


def _argument_source(arg: ArgSpec, value: object) -> str:
    if value is UNSET and arg.default is UNSET:
        return arg.name if arg.required else ""
    text = _shown(arg, arg.default if value is UNSET else coerce(value, arg))
    return f"{arg.name}={text}" if _is_name(arg.name) else f"**{{{arg.name!r}: {text}}}"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def signature_of(spec: ToolSpec) -> inspect.Signature:
    """Return the signature of a spec with real types; optional arguments without a default get None.

    Raises:
        ValueError: The name of an argument is not a valid Python name.
    """
    kinds = inspect.Parameter
    last = len(spec.args) - 1
    found: list[inspect.Parameter] = []
    is_optional = False
    for index, arg in enumerate(spec.args):
        many = spec.variadic and index == last
        kind = kinds.POSITIONAL_OR_KEYWORD if not (arg.required and is_optional) else kinds.KEYWORD_ONLY
        kind = kinds.KEYWORD_ONLY if found and found[-1].kind is kinds.KEYWORD_ONLY else kind
        default = kinds.empty if arg.required or many else None if arg.default is UNSET else arg.default
        is_optional = is_optional or not arg.required
        annotated = functions.annotation(arg)
        found.append(kinds(arg.name, kinds.VAR_POSITIONAL if many else kind, default=default, annotation=annotated))
    exact = {ArgType.BLOB: bytes, ArgType.EMBEDDING: array}.get(spec.return_type)
    return inspect.Signature(found, return_annotation=exact or functions.result_annotation(spec))
