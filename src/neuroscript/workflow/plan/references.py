"""References in the strings of a plan: ``${node.path}`` stands for the result of a node, or a part of it.

A string that is only a reference becomes the value itself. Within other text, a reference becomes text, and a list or a
map becomes JSON. ``$${`` is a literal ``${``, and ``$$${node}`` a dollar sign before a reference. A path consists of
keys and indexes: ``${fetch.items[0].id}``, ``${fetch["a key"]}``.
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
from neuroscript.coercion.plain_data import readable_text, to_plain
from neuroscript.coercion.scalars import AnyContent, Handle
from neuroscript.io.text import quote_untrusted

INPUT: Final = "input"
RESERVED: Final = frozenset({INPUT, "item", "index", "trace"})
"""The names that a reference may start with besides a node.

They are the inputs of the plan, the item of a map and its index, and the trace of the nodes before.
"""

OPENING: Final = re.compile(r"(?<!\$)(\$+)\{")
ROOT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
STEP: Final = re.compile(r'\.([A-Za-z0-9_-]+)|\[(-?[0-9]{1,9})\]|\["((?:[^"\\]|\\.)*)"\]')

INDEX: Final = re.compile(r"[0-9]{1,9}")

MAX_DEPTH: Final = 100
"""Maximum nesting of the containers of a plan."""

PLAIN: Final = (type(None), bool, int, float, bytes, datetime.datetime, array, Handle)
"""The types that a plan may contain besides strings, lists and tables."""

Step = str | int


class UnresolvedReference(LookupError):
    """A reference without a value; the message names steps of the plan, never a value."""


@attrs.frozen
class Reference:
    """A place in the inputs of the plan or in the result of a node.

    Attributes:
        root: A node, or one of `RESERVED`.
        path: The keys and indexes from there.
    """

    root: str
    path: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return self.root + "".join(map(_format_step, self.path))

    def within(self, value: Any) -> Any:
        """Return the part of *value* at the path.

        Raises:
            Lost: If the path does not exist.
        """
        for number, step in enumerate(self.path):
            value = _member(value, step, self, number)
        return value


def _format_step(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if ROOT.fullmatch(step) or INDEX.fullmatch(step) else f"[{json.dumps(step)}]"


def is_index(step: Step) -> bool:
    """Return whether a step can be an index of a list."""
    return isinstance(step, int) or INDEX.fullmatch(step) is not None


def _member(value: Any, step: Step, reference: Reference, number: int) -> Any:
    if isinstance(value, AnyContent):
        value = value.data.get("structuredContent")
    if isinstance(value, Mapping):
        for key in (step, str(step)):  # maps may have numbers as keys
            if key in value:
                return value[key]
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        index = int(step) if is_index(step) else None
        if index is not None and -len(value) <= index < len(value):
            return value[index]
    before = Reference(reference.root, reference.path[:number])
    raise UnresolvedReference(
        f"{quote_untrusted(str(before))} has no {quote_untrusted(_format_step(step).removeprefix('.'))}"
    )


@attrs.frozen
class MixedString:
    """A string with references: literal parts and references in order."""

    parts: tuple[str | Reference, ...]


@attrs.frozen(eq=False, repr=False)
class Template:
    """A plain value with references in its strings.

    Attributes:
        value: The value, with a `Reference` or a `MixedString` in the place of each string that has references.
        references: Each reference with its path.
        referring_keys: The keys of a dict whose values contain references; empty for other values.
    """

    value: Any
    references: tuple[tuple[str, Reference], ...] = ()
    referring_keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any, where: str, faults: list[str]) -> Template:
        """Return a plain value with its references parsed; problems are added to *faults*.

        Args:
            where: The name of the value in *faults*, in front of each path.
        """
        found: list[tuple[str, Reference]] = []
        read, referring = {}, []
        try:
            if not isinstance(value, Mapping):
                return cls(_read(value, where, found, faults), tuple(found))
            for key, each in value.items():
                before = len(found)
                read[key] = _read(each, _key_path(where, key, faults), found, faults, 1)
                referring += [key] * (len(found) > before)
        except TooDeep:
            faults.append(f"{where}: nests deeper than {MAX_DEPTH} levels")
        return cls(read, tuple(found), tuple(referring))

    def fill(self, lookup: Callable[[Reference], Any]) -> Any:
        """Return the value with each reference replaced by the result of *lookup*.

        Raises:
            Lost: If a reference has no value.
        """
        return _substitute(self.value, lookup) if self.references else self.value


class TooDeep(Exception):
    """Raised for containers that nest deeper than `MAX_DEPTH`, or that contain themselves."""


def private_copy(value: Any) -> Any:
    """Return a private copy of a plain value; a value that nests too deeply is returned as it is."""
    try:
        return _owned(value, 0)
    except TooDeep:
        return value


def _owned(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    match value:
        case Mapping():
            return {key: _owned(each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [_owned(each, depth + 1) for each in value]
        case _:
            return value


def _read(value: Any, where: str, found: list[tuple[str, Reference]], faults: list[str], depth: int = 0) -> Any:
    if depth > MAX_DEPTH:
        raise TooDeep
    match value:
        case str():
            return _read_text(value, where, found, faults)
        case Mapping():
            return {
                key: _read(each, _key_path(where, key, faults), found, faults, depth + 1) for key, each in value.items()
            }
        case list() | tuple():
            return [_read(each, f"{where}[{index}]", found, faults, depth + 1) for index, each in enumerate(value)]
        case float() if not isfinite(value):
            faults.append(f"{where}: expected a finite number")
        case _ if not isinstance(value, PLAIN):
            faults.append(f"{where}: expected a plain value, got {type_name(value)}")
    return value


def _key_path(where: str, key: object, faults: list[str]) -> str:
    """Return the path of *key*, which must be a string."""
    if isinstance(key, str):
        return f"{where}.{quote_untrusted(key)}"
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
    return references[0] if len(parts) == 1 else MixedString(tuple(parts))


def parts_of(text: str) -> Iterator[str | Reference]:
    """Yield the literal parts and the references of a string, in order.

    Raises:
        ValueError: If a reference in it is invalid.

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
    """Return the reference that begins at *at*, and the position after it."""
    root = ROOT.match(text, at)
    if root is None:
        raise ValueError(
            "expected a reference ${node}, ${node.key}, ${node[0]} or ${input.name}; write $${ for a literal ${"
        )
    at, path = root.end(), []
    while (step := STEP.match(text, at)) is not None:
        path.append(_step(step))
        at = step.end()
    if text[at : at + 1] != "}":
        raise ValueError(f"the reference to {quote_untrusted(root[0])} is invalid; write $${{ for a literal ${{")
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
        raise ValueError("expected a quoted key to be a JSON string") from None
    return key


def _substitute(value: Any, lookup: Callable[[Reference], Any]) -> Any:
    kind = type(value)
    if kind is Reference:
        return lookup(value)
    if kind is MixedString:
        return "".join([part if type(part) is str else as_text(lookup(part)) for part in value.parts])
    if kind is dict:
        return {key: _substitute(each, lookup) for key, each in value.items()}
    if kind is list:
        return [_substitute(each, lookup) for each in value]
    return value


def as_text(value: Any) -> str:
    """Return a value as it appears within text: a string unchanged, anything else as JSON."""
    text = readable_text(value)
    return json.dumps(to_plain(value), ensure_ascii=False) if text is None else text
