"""The types of tools as a stub of Python: what `neuroscript.client` returns, written down for type checkers.

Source: issue "Authoring from Python, schemas, AgentHeaven", typed stubs; contract section 3 for what each type takes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from neuroscript.coercion.rule_text import described
from neuroscript.coercion.types import ELEMENTS, VALUES, ArgType
from neuroscript.errors import UNSET
from neuroscript.formats.python_names import attribute, free, parameters
from neuroscript.io.text import escaped, one_line
from neuroscript.spec.tool_spec import MAYBE, ArgSpec, ToolSpec

HEAD: Final = '''\
"""The tools of `neuroscript.client` and `neuroscript.aclient`, as types; written by ``neuroscript stubs``.

from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from <this file> import Tools
tools: "Tools" = neuroscript.client(engine)
"""

import builtins as _builtins
from array import array as _array
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, NotRequired, Protocol, TypedDict

from typing_extensions import deprecated as _deprecated

from neuroscript import Handle
'''
"""How a stub begins; ``typing_extensions`` is known to type checkers wherever they are, and nothing runs a stub."""

RESERVED: Final = frozenset(
    {"Any", "AsyncIterator", "AsyncTools", "Handle", "Iterator", "Literal", "NotRequired", "Protocol", "Tools"}
    | {"TypedDict"}
)
"""Names of a stub that no class of it is given."""

SHORT: Final = 40
"""How many characters of a default are written; a longer one is ``...``."""

WIDEST: Final = 100
"""How long a line may be before each parameter has one of its own."""

BUILTIN: Final = re.compile(r"\0(\w+)")
"""A name of the builtins, until it is known whether a tool of that name stands beside it; literals hold no NUL."""

SCALARS: Final = {
    ArgType.STRING: "\0str",
    ArgType.INT: "\0int",
    ArgType.FLOAT: "\0float",
    ArgType.BOOL: "\0bool",
    ArgType.BLOB: "\0bytes",
}
MAP: Final = "\0dict[\0str, Any]"
TAKEN: Final = {
    ArgType.EMBEDDING: "\0list[\0float] | _array[\0float]",
    ArgType.HANDLE: "\0str | Handle",
    ArgType.NODEID: f"\0str | {MAP}",
    ArgType.ENTITYID: f"\0str | {MAP}",
}
GIVEN: Final = {
    ArgType.EMBEDDING: "_array[\0float]",
    ArgType.HANDLE: "\0str",
    ArgType.NODEID: "\0str",
    ArgType.ENTITYID: f"\0str | {MAP}",
}
"""Types that are others as a result than as an argument."""


def stub(specs: Iterable[ToolSpec]) -> str:
    """Return a stub with the protocols ``Tools`` and ``AsyncTools``, which have each tool as a method of its group.

    The same specs give the same text, in whichever order they come.

    Args:
        specs: Of tools that have different names.
    """
    root = _grouped(sorted(specs, key=lambda spec: spec.full_name))
    writer = Writer()
    for is_async in (False, True):
        writer.group(root, is_async)
    return "\n\n".join([HEAD.rstrip("\n"), *writer.blocks]) + "\n"


@attrs.define
class Group:
    """A group of tools, or a tool, or both: ``a.b`` may be a tool, and ``a.b.c`` one too."""

    path: tuple[str, ...] = ()
    tool: ToolSpec | None = None
    members: dict[str, Group] = attrs.field(factory=dict)


def _grouped(specs: Iterable[ToolSpec]) -> Group:
    root = Group()
    for spec in specs:
        group = root
        for word in spec.full_name.split("."):
            group = group.members.setdefault(word, Group((*group.path, word)))
        group.tool = spec
    return root


class Writer:
    """The classes of one stub.

    Attributes:
        blocks: Their texts, in order.
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._names = set(RESERVED)
        self._maps: dict[tuple[str, ...], str] = {}

    def group(self, group: Group, is_async: bool) -> str:
        """Write the class of a group after those of the groups within it, and return its name."""
        members = sorted(group.members.items())
        inner = {word: self.group(each, is_async) for word, each in members if each.members}
        prefix = "Async" if is_async else ""
        name = self._name([prefix, *group.path]) if group.path else f"{prefix}Tools"
        scope = frozenset(map(attribute, group.members))
        lines = [f"class {name}(Protocol):"]
        if group.tool is not None:
            lines.append(self._method(group.tool, "__call__", is_async, scope))
        for word, each in members:
            if word in inner:
                lines.append(_property(attribute(word), inner[word], scope))
            elif each.tool is not None:
                lines.append(self._method(each.tool, attribute(word), is_async, scope))
        self.blocks.append("\n".join(lines if len(lines) > 1 else [f"{lines[0]} ..."]))
        return name

    def _method(self, spec: ToolSpec, name: str, is_async: bool, scope: Collection[str]) -> str:
        result = _with_none(_word(spec.return_type, GIVEN), spec.return_nullable)
        if spec.stream == MAYBE:
            result = f"{result} | list[{result}]"
        elif spec.stream:
            result = f"{'AsyncIterator' if is_async else 'Iterator'}[{result}]"
        head = f"{'async ' if is_async and spec.stream is not True else ''}def {name}"
        given = [_settled(each, scope) for each in self._parameters(spec)]
        end = f" -> {_settled(result, scope)}:"
        line = f"    {head}({', '.join(given)}){end}"
        if len(line) > WIDEST:
            line = "".join([f"    {head}(\n", *(f"        {each},\n" for each in given), f"    ){end}"])
        mark = [f"    @_deprecated({escaped(spec.deprecated)!r})"] if spec.deprecated else []
        return "\n".join([*mark, line, *_docstring(spec)])

    def _parameters(self, spec: ToolSpec) -> Iterator[str]:
        names = dict(zip(parameters(spec), spec.args, strict=True))
        taken = set(names)
        yield free("self", taken)
        if spec.variadic:
            yield from self._further(spec, names, taken)
            return
        first = _first_left_out(spec.args)
        for index, (name, arg) in enumerate(names.items()):
            if index == first:
                yield "*"
            yield self._parameter(spec, name, arg)

    def _further(self, spec: ToolSpec, names: dict[str, ArgSpec], taken: set[str]) -> Iterator[str]:
        """Yield the parameters of a variadic tool: its values come in order, so what stands before them is given."""
        *fixed, (last, arg) = names.items()
        must = max((index for index, (_, each) in enumerate(fixed) if each.required), default=-1)
        must = len(fixed) if arg.required else must
        for index, (name, each) in enumerate(fixed):
            if each.required or index > must:
                yield self._parameter(spec, name, each)
            else:
                yield f"{name}: {_with_none(self.type_of(spec, each), True)}"
        kind = self.type_of(spec, attrs.evolve(arg, required=True))
        if arg.required:
            yield f"{free(f'{last}_1', taken)}: {kind}"
            yield "/"
        yield f"*{last}: {kind}"

    def _parameter(self, spec: ToolSpec, name: str, arg: ArgSpec) -> str:
        kind = self.type_of(spec, arg)
        return f"{name}: {kind}" if arg.required else f"{name}: {kind} = {_default(arg)}"

    def type_of(self, spec: ToolSpec, arg: ArgSpec, *above: str) -> str:
        """Return the type of an argument, or of a key below the names *above*; the types of its keys are written."""
        is_empty = not arg.required and (arg.default is UNSET or arg.default is None)
        return _with_none(self._taken(spec, arg, above), arg.nullable or is_empty)

    def _taken(self, spec: ToolSpec, arg: ArgSpec, above: tuple[str, ...]) -> str:
        if arg.choices and arg.element is not ArgType.FLOAT:  # of floats there are no literals
            kind = f"Literal[{', '.join(map(ascii, arg.choices))}]"
            return f"\0list[{kind}]" if arg.type in ELEMENTS else kind
        if not arg.keys or arg.extra_keys:
            return _word(arg.type, TAKEN)
        kind = self._map(spec, arg, above)
        return f"\0list[{kind}]" if arg.type in ELEMENTS else kind

    def _map(self, spec: ToolSpec, arg: ArgSpec, above: tuple[str, ...]) -> str:
        """Return the name of the type of a map with keys; it is written as a call, in which every name may be a key."""
        path = (spec.full_name, *above, arg.name)
        if path not in self._maps:
            keys = [f"    {key.name!r}: {self._key(spec, key, (*above, arg.name))}," for key in arg.keys]
            name = self._maps[path] = self._name([*spec.full_name.split("."), *path[1:]])
            lines = [f"{name} = TypedDict(", f"    {name!r},", "    {", *_in(keys), "    },", ")"]
            self.blocks.append(_settled("\n".join(lines), ()))
        return self._maps[path]

    def _key(self, spec: ToolSpec, key: ArgSpec, above: tuple[str, ...]) -> str:
        kind = self.type_of(spec, key, *above)
        return kind if key.required else f"NotRequired[{kind}]"

    def _name(self, words: Sequence[str]) -> str:
        """Return a name for a class, made of words, that no other one has."""
        parts = [part for word in words for part in _ascii_words(word)]
        name = start = "".join(f"{part[0].upper()}{part[1:]}" for part in parts)
        count = 1
        while free(name, self._names) != name:
            count += 1
            name = f"{start}_{count}"
        self._names.add(name)
        return name


def _in(lines: Iterable[str]) -> Iterator[str]:
    yield from (f"    {line}" for line in lines)


def _ascii_words(text: str) -> list[str]:
    return "".join(each if each.isascii() and each.isalnum() else " " for each in text).split()


def _first_left_out(args: Sequence[ArgSpec]) -> int | None:
    """Return the index of the first argument that may be left out before one that may not, or None."""
    last = max((index for index, arg in enumerate(args) if arg.required), default=-1)
    return next((index for index, arg in enumerate(args[: last + 1]) if not arg.required), None)


def _word(kind: ArgType, others: dict[ArgType, str]) -> str:
    if kind in SCALARS:
        return SCALARS[kind]
    if kind in ELEMENTS:
        element = MAP if kind is ArgType.SLICE_MAP else SCALARS.get(ELEMENTS[kind], "Any")
        return f"\0list[{element}]"
    if kind is ArgType.MAP_ANY_ANY:
        return "\0dict[Any, Any]"
    if kind in VALUES:
        return f"\0dict[\0str, {SCALARS.get(VALUES[kind], 'Any')}]"
    return others.get(kind, "Any" if kind is ArgType.ANY else "None")


def _with_none(kind: str, is_nullable: bool) -> str:
    return f"{kind} | None" if is_nullable and kind not in ("Any", "None") else kind


def _default(arg: ArgSpec) -> str:
    """Return a default as Python has it, if it is short and nothing in it can be changed."""
    if arg.default is UNSET:
        return "None"
    text = ascii(arg.default)
    is_plain = type(arg.default) in (str, int, float, bool, bytes, type(None))
    return text if is_plain and len(text) <= SHORT else "..."


def _property(name: str, kind: str, scope: Collection[str]) -> str:
    return _settled(f"    @\0property\n    def {name}(self) -> {kind}: ...", scope)


def _settled(text: str, scope: Collection[str]) -> str:
    """Return a text in which each name of the builtins is one, also where a tool in *scope* is called so."""
    return BUILTIN.sub(lambda match: f"_builtins.{match[1]}" if match[1] in scope else match[1], text)


def _docstring(spec: ToolSpec) -> Iterator[str]:
    """Yield the lines of what is said of a tool; nothing in it can end the string."""
    paragraphs = [one_line(text) for text in (spec.description, spec.when_to_use) if text.strip()]
    told = [f"    {arg.name}: {one_line(f'{described(arg)}. {arg.description}')}" for arg in spec.args]
    lines = "\n\n".join(paragraphs).split("\n") if paragraphs else [f"Call {spec.full_name}."]
    if told:
        lines += ["", "Args:", *told]
    if spec.return_help.strip():
        lines += ["", "Returns:", f"    {one_line(spec.return_help)}"]
    safe = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    if len(safe) == 1:
        yield f'        """{safe[0]}"""'
        return
    yield f'        """{safe[0]}'
    yield from (f"        {line}".rstrip() for line in safe[1:])
    yield '        """'
