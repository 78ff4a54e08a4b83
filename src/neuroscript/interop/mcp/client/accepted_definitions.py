"""Tool definitions of a server, and the file with the ones that the host has accepted.

The file contains whole definitions, so that models see exactly what was accepted, even if the server changes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.schema_inspection import size_faults
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_path, quote_untrusted
from neuroscript.io.text_files import read_text_file, write_atomically

FORMAT: Final = 2
"""The version of the file format that is written; it and version 1 are read."""

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a file, in bytes."""

STRING_KEYS: Final = ("name", "title", "description")
OBJECT_KEYS: Final = ("inputSchema", "outputSchema", "annotations")
LATER_KEYS: Final = ("execution", "icons", "_meta")
"""The parts of a definition: strings, JSON objects, and those that files of format 1 do not contain."""

KEYS: Final = {1: (*STRING_KEYS, *OBJECT_KEYS), 2: (*STRING_KEYS, *OBJECT_KEYS, *LATER_KEYS)}
"""The parts of a definition, by the format of the file."""


@attrs.frozen
class Definition:
    """A server's definition of one of its tools; untrusted.

    Attributes:
        name: The name on the server.
        data: The definition as plain data with the key names of the protocol; it must not be changed.
        format: The format of the file that contains it; only the parts of that format were accepted.
    """

    name: str
    data: Mapping[str, Any] = attrs.field(repr=False)
    format: int = FORMAT

    @classmethod
    def of_data(cls, data: object, format: int = FORMAT) -> Definition:
        """Return the definition in plain data, or raise a `SpecError` with every problem found."""
        faults = list(_faults(data))
        if faults or not isinstance(data, dict):
            raise SpecError("definition", faults)
        return cls(data["name"], {key: data[key] for key in KEYS[format] if data.get(key) is not None}, format)

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the definition, in hexadecimal."""
        return hashlib.sha256(_text(self.data).encode()).hexdigest()

    def accepts(self, other: Definition) -> bool:
        """Return whether another definition is the same in all parts that the format of this one has."""
        return not changed_parts(self, other)


def _faults(data: object) -> Iterator[str]:
    if not isinstance(data, dict):
        yield "expected a JSON object"
        return
    if not isinstance(data.get("name"), str) or not 0 < len(data["name"]) <= 128:
        yield "name: expected a string of 1 to 128 characters"
    for key in STRING_KEYS:
        if not isinstance(data.get(key, ""), (str, type(None))):
            yield f"{key}: expected a string"
    if data.get("inputSchema") is None:
        yield "inputSchema: expected a JSON object"
    for key in (*OBJECT_KEYS, *LATER_KEYS):
        kind, words = (list, "list") if key == "icons" else (dict, "JSON object")
        if not isinstance(data.get(key), (kind, type(None))):
            yield f"{key}: expected a {words}"
        yield from (f"{key}{fault.removeprefix('#')}" for fault in size_faults(data.get(key)))


Definitions = Mapping[str, Definition]
"""Definitions by their names on the server."""


@attrs.frozen
class Listing:
    """The tools that a server lists.

    Attributes:
        definitions: By name on the server.
        faults: Why other tools cannot be used, by name on the server.
    """

    definitions: Definitions = attrs.field(factory=dict)
    faults: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Difference:
    """A tool of a server that differs from what was accepted.

    Attributes:
        name: The name on the server.
        kind: How it differs.
        parts: The parts that differ if it has changed, such as ``description``.
    """

    name: str
    kind: Literal["new", "changed", "removed"]
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f": {', '.join(self.parts)}" if self.parts else ""
        return f"{quote_untrusted(self.name)} {WORDS[self.kind]}{what}"


WORDS: Final = {"new": "is new", "changed": "has changed", "removed": "was removed"}


def differences(old: Definitions, new: Definitions) -> tuple[Difference, ...]:
    """Return what has changed, sorted by name."""
    found: list[Difference] = []
    for name in sorted({*old, *new}):
        if name not in new:
            found.append(Difference(name, "removed"))
        elif name not in old:
            found.append(Difference(name, "new"))
        elif parts := changed_parts(old[name], new[name]):
            found.append(Difference(name, "changed", parts))
    return tuple(found)


def changed_parts(old: Definition, new: Definition) -> tuple[str, ...]:
    """Return the names of the parts that differ between two definitions, among those that both formats have."""
    keys = KEYS[min(old.format, new.format)]
    return tuple(key for key in keys if _text(old.data.get(key)) != _text(new.data.get(key)))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


# The file


def read(path: str | os.PathLike[str]) -> dict[str, Definition]:
    """Return the definitions in a file.

    Raises:
        SpecError: The file cannot be read, or is invalid; with every problem found.
    """
    name = quote_path(os.fspath(path))
    try:
        data = parse_json(read_text_file(path, name, MAX_FILE_BYTES))
    except NotJSON as error:
        raise SpecError(name, [error.hint]) from None
    if not isinstance(data, dict) or type(data.get("mcp")) is not int or data["mcp"] not in KEYS:
        raise SpecError(name, ["mcp: expected 1 or 2, the supported versions of the file format"])
    tools = data.get("tools")
    if not isinstance(tools, dict):
        raise SpecError(name, ["tools: expected a JSON object"])
    faults: list[str] = []
    found = {key: _read(key, each, data["mcp"], faults) for key, each in tools.items()}
    if faults:
        raise SpecError(name, faults)
    return {key: each for key, each in found.items() if each is not None}


def _read(name: str, data: object, format: int, faults: list[str]) -> Definition | None:
    """Return one definition of a file, or record what is wrong with it and return None."""
    place = f"tools.{quote_untrusted(name)}"
    if not isinstance(data, dict) or data.keys() != {"digest", "definition"}:
        faults.append(f"{place}: expected an object with the keys digest and definition")
        return None
    try:
        found = Definition.of_data(data["definition"], format)
    except SpecError as error:
        faults.extend(f"{place}: {problem}" for problem in error.problems)
        return None
    if found.name != name:
        faults.append(f"{place}: contains the definition of a different tool")
    elif data["digest"] != found.digest:
        faults.append(f"{place}: the digest does not match the definition; one of them was edited")
    return found


def write(path: str | os.PathLike[str], definitions: Definitions) -> None:
    """Write a file atomically; equal definitions produce identical ASCII text.

    Raises:
        OSError: The file cannot be written; an existing file is unchanged.
    """
    tools = {name: {"digest": each.digest, "definition": each.data} for name, each in sorted(definitions.items())}
    data = {"mcp": FORMAT, "tools": tools}
    text = json.dumps(data, indent=1)
    if len(text) >= MAX_FILE_BYTES:  # indentation adds much to a deeply nested definition
        text = json.dumps(data)
    write_atomically(path, f"{text}\n")
