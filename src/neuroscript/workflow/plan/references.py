"""References in the texts of a plan: ``${node.path}`` stands for what a node gave.

A text that is one reference and nothing else is the value itself; within other text a reference becomes text, and what
holds several values becomes JSON. ``$${`` is a plain ``${``, and ``$$${node}`` a dollar before a reference. A path goes
by keys and indexes: ``${fetch.items[0].id}``, ``${fetch["a key"]}``.

Source: issue "Plans", references to earlier results, by path; Smith's ``{{STEPS.n.path}}``, rows SM-58 and SM-59.
"""

from __future__ import annotations

import datetime
import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.plain_data import plain
from neuroscript.coercion.scalars import Handle
from neuroscript.io.text import shown

INPUT: Final = "input"
RESERVED: Final = frozenset({INPUT, "item", "index", "trace"})
"""What a reference may begin with besides a node: the inputs of the plan, the item of a map and its number, and what
the nodes before have done."""

OPENING: Final = re.compile(r"(?<!\$)(\$+)\{")
ROOT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
STEP: Final = re.compile(r'\.([A-Za-z0-9_-]+)|\[(-?[0-9]{1,9})\]|\["((?:[^"\\]|\\.)*)"\]')

INDEX: Final = re.compile(r"[0-9]{1,9}")

DEEPEST: Final = 100
"""How many containers of a plan may stand in each other."""

PLAIN: Final = (type(None), bool, int, float, bytes, datetime.datetime, array, Handle)
"""What a plan may hold besides texts, lists and tables."""

Step = str | int


class Lost(LookupError):
    """A reference has no value; the text names steps of the plan, never a value."""


@attrs.frozen
class Reference:
    """A place in what the plan was given or in what a node gave.

    Attributes:
        root: A node, or one of `RESERVED`.
        path: Keys and indexes that lead from there.
    """

    root: str
    path: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(map(_written, self.path))

    def within(self, value: Any) -> Any:
        """Return what stands at the path within a value.

        Raises:
            Lost: Nothing does.
        """
        for number, step in enumerate(self.path):
            value = _member(value, step, self, number)
        return value


def _written(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if ROOT.fullmatch(step) or INDEX.fullmatch(step) else f"[{json.dumps(step)}]"


def is_index(step: Step) -> bool:
    """Tell whether a step may lead into a list."""
    return isinstance(step, int) or INDEX.fullmatch(step) is not None


def _member(value: Any, step: Step, reference: Reference, number: int) -> Any:
    if isinstance(value, Mapping):
        for key in (step, str(step)):  # of a map with any keys one may be a number
            if key in value:
                return value[key]
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        index = int(step) if is_index(step) else None
        if index is not None and -len(value) <= index < len(value):
            return value[index]
    before = Reference(reference.root, reference.path[:number])
    raise Lost(f"{shown(str(before))} has no {shown(_written(step).removeprefix('.'))}")


@attrs.frozen
class Mixed:
    """A text with references in it: plain texts and references by turns."""

    parts: tuple[str | Reference, ...]


@attrs.frozen(eq=False, repr=False)
class Template:
    """A plain value with references in its texts.

    Attributes:
        value: It, with a `Reference` or a `Mixed` in the place of each text that has references.
        references: Where each stands, and what it is.
        held: Of a dict, the keys under which there are any.
    """

    value: Any
    references: tuple[tuple[str, Reference], ...] = ()
    held: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any, where: str, faults: list[str]) -> Template:
        """Return a plain value with its references read; those that can not be read are noted.

        Args:
            where: What it is called in *faults*, and before each path in it.
        """
        found: list[tuple[str, Reference]] = []
        read, held = {}, []
        try:
            if not isinstance(value, Mapping):
                return cls(_read(value, where, found, faults), tuple(found))
            for key, each in value.items():
                before = len(found)
                read[key] = _read(each, _under(where, key, faults), found, faults, 1)
                held += [key] * (len(found) > before)
        except TooDeep:
            faults.append(f"{where}: nests more than {DEEPEST} deep")
        return cls(read, tuple(found), tuple(held))

    def filled(self, lookup: Callable[[Reference], Any]) -> Any:
        """Return the value with what *lookup* gives in the place of each reference.

        Raises:
            Lost: One of them has no value.
        """
        return _filled(self.value, lookup) if self.references else self.value


class TooDeep(Exception):
    """More than `DEEPEST` containers stand in each other, or one holds itself."""


def owned(value: Any) -> Any:
    """Return a plain value whose tables and lists nobody else can change; one that nests too deeply as it is."""
    try:
        return _owned(value, 0)
    except TooDeep:
        return value


def _owned(value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise TooDeep
    match value:
        case Mapping():
            return {key: _owned(each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [_owned(each, depth + 1) for each in value]
        case _:
            return value


def _read(value: Any, where: str, found: list[tuple[str, Reference]], faults: list[str], depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise TooDeep
    match value:
        case str():
            return _read_text(value, where, found, faults)
        case Mapping():
            return {
                key: _read(each, _under(where, key, faults), found, faults, depth + 1) for key, each in value.items()
            }
        case list() | tuple():
            return [_read(each, f"{where}[{index}]", found, faults, depth + 1) for index, each in enumerate(value)]
        case float() if not isfinite(value):
            faults.append(f"{where}: expected a finite number")
        case _ if not isinstance(value, PLAIN):
            faults.append(f"{where}: expected a plain value, got {type_name(value)}")
    return value


def _under(where: str, key: object, faults: list[str]) -> str:
    """Return what is called by a key, which is a text."""
    if isinstance(key, str):
        return f"{where}.{shown(key)}"
    faults.append(f"{where}: expected string keys, got {type_name(key)}")
    return where


def _read_text(text: str, where: str, found: list[tuple[str, Reference]], faults: list[str]) -> Any:
    if "${" not in text:
        return text
    try:
        parts = list(parts_of(text))
    except ValueError as error:
        faults.append(f"{where}: {error}")
        return text
    references = [part for part in parts if isinstance(part, Reference)]
    found.extend((where, reference) for reference in references)
    if not references:
        return "".join(map(str, parts))
    return references[0] if len(parts) == 1 else Mixed(tuple(parts))


def parts_of(text: str) -> Iterator[str | Reference]:
    """Yield the plain texts and the references of a text, in order.

    Raises:
        ValueError: A reference in it can not be read.

    >>> [str(part) for part in parts_of("in ${fetch.cities[0]}: $${x}")]
    ['in ', 'fetch.cities[0]', ': ${x}']
    """
    plain_text, at = "", 0
    while (opening := OPENING.search(text, at)) is not None:
        dollars = len(opening[1])
        plain_text += text[at : opening.start()] + "$" * (dollars // 2)
        at = opening.end()
        if dollars % 2 == 0:
            plain_text += "{"
            continue
        reference, at = _reference(text, at)
        if plain_text:
            yield plain_text
            plain_text = ""
        yield reference
    plain_text += text[at:]
    if plain_text:
        yield plain_text


def _reference(text: str, at: int) -> tuple[Reference, int]:
    """Return the reference that begins at a place, and where what follows it begins."""
    root = ROOT.match(text, at)
    if root is None:
        raise ValueError("a reference is ${node}, ${node.key}, ${node[0]} or ${input.name}; write $${ for a plain ${")
    at, path = root.end(), []
    while (step := STEP.match(text, at)) is not None:
        path.append(_step(step))
        at = step.end()
    if text[at : at + 1] != "}":
        raise ValueError(f"the reference to {shown(root[0])} does not end as one; write $${{ for a plain ${{")
    return Reference(root[0], tuple(path)), at + 1


def _step(step: re.Match[str]) -> Step:
    name, index, quoted = step.groups()
    if name is not None:
        return str(name)
    if index is not None:
        return int(index)
    try:
        key: str = json.loads(f'"{quoted}"')
    except ValueError:
        raise ValueError("a key in quotes is written as JSON writes a text") from None
    return key


def _filled(value: Any, lookup: Callable[[Reference], Any]) -> Any:
    kind = type(value)
    if kind is Reference:
        return lookup(value)
    if kind is Mixed:
        return "".join([part if type(part) is str else as_text(lookup(part)) for part in value.parts])
    if kind is dict:
        return {key: _filled(each, lookup) for key, each in value.items()}
    if kind is list:
        return [_filled(each, lookup) for each in value]
    return value


def as_text(value: Any) -> str:
    """Return a result as it stands within a text: a text as it is, anything else as JSON."""
    return value if type(value) is str else json.dumps(plain(value), ensure_ascii=False)
