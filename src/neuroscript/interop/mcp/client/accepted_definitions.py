"""What a server says its tools are, and what a host has looked at and takes, as a file.

The file holds each definition whole, so that what is offered is what was accepted, whatever a server says today.

Source: issue "MCP", fingerprint check; peers.md part 2, row 2.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import attrs

from neuroscript.coercion.json_schema import size_faults
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parsed, shown, shown_path
from neuroscript.io.text_files import text_of, write_whole

FORMAT: Final = 1
"""The version of the file; another one is refused."""

LONGEST: Final = 16 * 1024 * 1024
"""How many bytes a file may have."""

TEXTS: Final = ("name", "title", "description")
MAPS: Final = ("inputSchema", "outputSchema", "annotations")
"""What makes a definition: texts, and JSON objects. Icons and what stands under ``_meta`` is shown to nobody."""


@attrs.frozen
class Definition:
    """What a server says one of its tools is: text from outside.

    Attributes:
        name: What the server calls it.
        data: All of it as plain data, under the names of the protocol; nobody may change it.
    """

    name: str
    data: Mapping[str, Any] = attrs.field(repr=False)

    @classmethod
    def of_data(cls, data: object) -> Definition:
        """Return the definition that plain data are; `SpecError` with all that is wrong with them."""
        faults = list(_faults(data))
        if faults or not isinstance(data, dict):
            raise SpecError("definition", faults)
        return cls(data["name"], {key: data[key] for key in (*TEXTS, *MAPS) if data.get(key) is not None})

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it, as hexadecimal digits."""
        return hashlib.sha256(_text(self.data).encode()).hexdigest()


def _faults(data: object) -> Iterator[str]:
    if not isinstance(data, dict):
        yield "must be a JSON object"
        return
    if not isinstance(data.get("name"), str) or not 0 < len(data["name"]) <= 128:
        yield "name: must be a text of 1 to 128 characters"
    for key in TEXTS:
        if not isinstance(data.get(key, ""), (str, type(None))):
            yield f"{key}: must be a text"
    if data.get("inputSchema") is None:
        yield "inputSchema: must be a JSON object"
    for key in MAPS:
        if not isinstance(data.get(key, {}), (dict, type(None))):
            yield f"{key}: must be a JSON object"
        yield from (f"{key}{fault.removeprefix('#')}" for fault in size_faults(data.get(key)))


Definitions = Mapping[str, Definition]
"""By the name that their server has for each."""


@attrs.frozen
class Listing:
    """What a server lists.

    Attributes:
        definitions: By the server's names.
        faults: Why its other tools cannot be used, by the server's names.
    """

    definitions: Definitions = attrs.field(factory=dict)
    faults: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Difference:
    """One tool of a server that is not what was accepted.

    Attributes:
        name: What the server calls it.
        kind: What became of it.
        parts: Of one that changed, the names of what is different, such as ``description``.
    """

    name: str
    kind: Literal["new", "changed", "gone"]
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f": {', '.join(self.parts)}" if self.parts else ""
        return f"{shown(self.name)} {WORDS[self.kind]}{what}"


WORDS: Final = {"new": "is new", "changed": "has changed", "gone": "is gone"}


def differences(old: Definitions, new: Definitions) -> tuple[Difference, ...]:
    """Return what is not as it was, in the order of the names."""
    found: list[Difference] = []
    for name in sorted({*old, *new}):
        if name not in new:
            found.append(Difference(name, "gone"))
        elif name not in old:
            found.append(Difference(name, "new"))
        elif parts := changed_parts(old[name], new[name]):
            found.append(Difference(name, "changed", parts))
    return tuple(found)


def changed_parts(old: Definition, new: Definition) -> tuple[str, ...]:
    """Return the names of what is different between two definitions."""
    return tuple(key for key in (*TEXTS, *MAPS) if _text(old.data.get(key)) != _text(new.data.get(key)))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


# The file


def read(path: str | os.PathLike[str]) -> dict[str, Definition]:
    """Return the definitions that a file holds.

    Raises:
        SpecError: It can not be read, or with everything that is wrong with it.
    """
    name = shown_path(os.fspath(path))
    try:
        data = parsed(text_of(path, name, LONGEST))
    except NotJSON as error:
        raise SpecError(name, [error.hint]) from None
    if not isinstance(data, dict) or type(data.get("mcp")) is not int or data["mcp"] != FORMAT:
        raise SpecError(name, [f"mcp: must be {FORMAT}, the version of the format that is read here"])
    tools = data.get("tools")
    if not isinstance(tools, dict):
        raise SpecError(name, ["tools: must be a JSON object"])
    faults: list[str] = []
    found = {key: _read(key, each, faults) for key, each in tools.items()}
    if faults:
        raise SpecError(name, faults)
    return {key: each for key, each in found.items() if each is not None}


def _read(name: str, data: object, faults: list[str]) -> Definition | None:
    """Return one definition of a file, or None, and note what is wrong with it."""
    place = f"tools.{shown(name)}"
    if not isinstance(data, dict) or data.keys() != {"digest", "definition"}:
        faults.append(f"{place}: must hold a digest and a definition")
        return None
    try:
        found = Definition.of_data(data["definition"])
    except SpecError as error:
        faults.extend(f"{place}: {problem}" for problem in error.problems)
        return None
    if found.name != name:
        faults.append(f"{place}: holds the definition of another tool")
    elif data["digest"] != found.digest:
        faults.append(f"{place}: its definition does not have this digest; one of the two was edited")
    return found


def write(path: str | os.PathLike[str], definitions: Definitions) -> None:
    """Write a file anew, whole or not at all; equal definitions have one text, which is ASCII.

    Raises:
        OSError: It can not be written; what was there is there still.
    """
    tools = {name: {"digest": each.digest, "definition": each.data} for name, each in sorted(definitions.items())}
    data = {"mcp": FORMAT, "tools": tools}
    text = json.dumps(data, indent=1)
    if len(text) >= LONGEST:  # for what nests deep
        text = json.dumps(data)
    write_whole(path, f"{text}\n")
