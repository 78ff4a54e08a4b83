"""A description as plain data of our own, and what its references name; nothing beyond it is ever looked at.

Source: OpenAPI Specification 3.1.1, "Reference Object"; contract section 3, limits of containers.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.json_schema import pointed
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parsed, shown

SUBJECT: Final = "OpenAPI description"

DEPTH: Final = 100
NODES: Final = 500_000
TEXT: Final = 2**24
"""How deep a description may nest, how many values it may have, and how many characters of text."""

MAX_REFERENCE_CHARS: Final = 2_000
"""Characters of a reference."""

MAX_CHAIN_REFERENCES: Final = 64
"""How many references may follow each other before one names a value that is no reference."""

VERSION: Final = re.compile(r"3\.([01])(?:\.[0-9]+)?(?:-[a-z0-9.]+)?")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://spec.openapis.org/oas/3.1/dialect/base",
)
"""The dialects of schemas that are understood; formats and the like of the second ask nothing of a value."""


class Unfit(Exception):
    """A part of a description that can not be taken.

    Attributes:
        path: Where it stands, as in ``paths['/pets'].get``.
        text: Why.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


@attrs.frozen(eq=False)
class Notes:
    """What is wrong so far, as texts with paths."""

    texts: list[str] = attrs.field(factory=list)

    def add(self, path: str, text: str) -> None:
        """Note what is wrong with a place."""
        self.texts.append(str(Unfit(path, text)))


def tried(notes: Notes, function: Any, *values: Any) -> Any:
    """Return what a function gives; what it finds unfit is noted, and None is given."""
    try:
        return function(*values)
    except Unfit as error:
        notes.add(error.path, error.text)
        return None


@attrs.frozen(eq=False)
class Document:
    """A description.

    Attributes:
        root: The whole of it.
        is_old: Whether it is one of 3.0, whose schemas say null and exclusive bounds in words of their own.
        read: What was read of it by reference, for its operations to share.
    """

    root: dict[str, Any]
    is_old: bool
    read: dict[str, Any] = attrs.field(factory=dict, repr=False)

    def followed(self, node: Any, path: str) -> dict[str, Any]:
        """Return an object, with a reference that stands in its place replaced by what that names.

        Raises:
            Unfit: It leads out of the document, to nothing, or back to itself; too many references follow each other;
                or there is no object.
        """
        seen: list[str] = []
        while isinstance(node, dict) and "$ref" in node:
            reference = node["$ref"]
            if reference in seen:
                raise Unfit(path, f"$ref: {shown(reference)} comes back to itself")
            if len(seen) == MAX_CHAIN_REFERENCES:
                raise Unfit(path, f"$ref: more than {MAX_CHAIN_REFERENCES} references follow each other; name the last")
            node = self.named(reference, path)
            seen.append(reference)
            if node is None:
                raise Unfit(path, f"$ref: {shown(reference)} names nothing in the document")
        if not isinstance(node, dict):
            raise Unfit(path, f"expected an object, got {type_name(node)}")
        return node

    def named(self, reference: Any, path: str) -> Any:
        """Return what a reference names, or None where it names nothing.

        Raises:
            Unfit: It leads out of the document, or is too long.
        """
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise Unfit(path, "$ref: only references into the document itself are followed")
        if len(reference) > MAX_REFERENCE_CHARS:
            raise Unfit(path, f"$ref: expected at most {MAX_REFERENCE_CHARS} characters")
        return pointed(self.root, reference)


def document_of(given: object) -> Document:
    """Return a description that is given as a mapping, or as JSON text.

    Raises:
        SpecError: It is neither, too large, or of another version than 3.0 and 3.1.
    """
    root = _Copying().copied(_data(given), 1)
    if not isinstance(root, dict):
        raise SpecError(SUBJECT, [f"expected an object, got {type_name(root)}"])
    version = root.get("openapi")
    found = VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        raise SpecError(SUBJECT, ["openapi: expected version 3.1 or 3.0, got another one, or none"])
    dialect = root.get("jsonSchemaDialect", DIALECTS[0])
    if dialect not in DIALECTS:
        raise SpecError(SUBJECT, ["jsonSchemaDialect: only that of OpenAPI and JSON Schema 2020-12 are understood"])
    return Document(root, found[1] == "0")


def _data(given: object) -> Any:
    if not isinstance(given, str):
        return dict(given) if isinstance(given, Mapping) else given
    if len(given) > TEXT:
        raise SpecError(SUBJECT, [f"more than {TEXT} characters"])
    try:
        return parsed(given)
    except NotJSON as error:
        text = f"{error.hint}; a description in YAML is given as what a YAML parser made of it"
        raise SpecError(SUBJECT, [text]) from None


@attrs.define(eq=False)
class _Copying:
    """One copy of plain data, within limits; a key that YAML read as a number is a text again."""

    nodes: int = 0
    text: int = 0

    def copied(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > NODES or self.text > TEXT or depth > DEPTH:
            raise SpecError(SUBJECT, [f"more than {NODES} values, {TEXT} characters or {DEPTH} levels"])
        match value:
            case dict():
                return {self.key(key): self.copied(each, depth + 1) for key, each in value.items()}
            case list():
                return [self.copied(each, depth + 1) for each in value]
            case str():
                self.text += len(value)
                return str(value)
            case datetime.date():
                return value.isoformat()
            case float() if not math.isfinite(value):
                raise SpecError(SUBJECT, ["holds a number that is none"])
            case None | bool() | int() | float():
                return value
            case _:
                raise SpecError(SUBJECT, [f"holds a {type_name(value)}, for which JSON has no word"])

    def key(self, key: Any) -> str:
        if type(key) is int:
            return str(key)
        if not isinstance(key, str):
            raise SpecError(SUBJECT, [f"has a key that is no text but a {type_name(key)}"])
        self.text += len(key)
        return str(key)


def at(path: str, *steps: str | int) -> str:
    """Return the path of a part.

    >>> at("paths", "/pets", "get", "parameters", 0)
    "paths['/pets'].get.parameters[0]"
    """
    for step in steps:
        if isinstance(step, int):
            path = f"{path}[{step}]"
        elif NAME.fullmatch(step):
            path = f"{path}.{step}" if path else step
        else:
            path = f"{path}['{shown(step)}']"
    return path
