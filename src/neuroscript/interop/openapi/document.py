"""A private copy of a description as plain data, and the resolution of its references.

Only references within the document are followed. See the OpenAPI Specification 3.1.1, "Reference Object".
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from neuroscript.coercion.context import type_name
from neuroscript.coercion.schema_inspection import resolve_pointer
from neuroscript.errors import SpecError
from neuroscript.io.text import NotJSON, parse_json, quote_untrusted

SUBJECT: Final = "OpenAPI description"

MAX_DEPTH: Final = 100
MAX_VALUES: Final = 500_000
MAX_CHARS: Final = 2**24
"""Maximum nesting depth, number of values and number of characters of a description."""

MAX_REFERENCE_CHARS: Final = 2_000
"""Maximum length of a reference, in characters."""

MAX_CHAIN_REFERENCES: Final = 64
"""Maximum length of a chain of references."""

VERSION: Final = re.compile(r"3\.([01])(?:\.[0-9]+)?(?:-[a-z0-9.]+)?")
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

DIALECTS: Final = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://spec.openapis.org/oas/3.1/dialect/base",
)
"""The supported schema dialects; formats and other additions of the second one do not restrict values."""


MOVED: Final[dict[str, Any]] = {}
"""Replaces a parameter of version 2.0 that describes the body, so that the others keep their indexes."""


class InvalidPart(Exception):
    """A part of a description that cannot be used.

    Attributes:
        path: Its path in the document, such as ``paths['/pets'].get``.
        text: The reason.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.path = path
        self.text = text

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


@attrs.frozen(eq=False)
class Problems:
    """The problems found so far, as strings with paths."""

    texts: list[str] = attrs.field(factory=list)

    def add(self, path: str, text: str) -> None:
        """Record a problem at a path."""
        self.texts.append(str(InvalidPart(path, text)))


def try_call(notes: Problems, function: Any, *values: Any) -> Any:
    """Return the result of a function; if it raises `InvalidPart`, record the problem and return None."""
    try:
        return function(*values)
    except InvalidPart as error:
        notes.add(error.path, error.text)
        return None


@attrs.frozen(eq=False)
class Document:
    """An OpenAPI description.

    Attributes:
        root: The whole description.
        is_old: Whether it is version 3.0 or 2.0, which write null and exclusive bounds in their own way.
        problems: What is wrong with operations of version 2.0, by their paths.
        read: Schemas already read through a reference, for requests and for responses, shared by the operations.
        results: The specs of results, by the JSON text of their schema in the description.
    """

    root: dict[str, Any]
    is_old: bool
    problems: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    read: dict[tuple[str, bool], Any] = attrs.field(factory=dict, repr=False)
    results: dict[str, Any] = attrs.field(factory=dict, repr=False)

    def followed(self, node: Any, path: str) -> dict[str, Any]:
        """Return an object, following any reference in its place.

        Raises:
            Unfit: The reference leads out of the document, to nothing, or back to itself; the chain of references is
                too long; or the target is not an object.
        """
        seen: list[str] = []
        while isinstance(node, dict) and "$ref" in node:
            reference = node["$ref"]
            if reference in seen:
                raise InvalidPart(path, f"$ref: {quote_untrusted(reference)} refers back to itself")
            if len(seen) == MAX_CHAIN_REFERENCES:
                raise InvalidPart(
                    path, f"$ref: more than {MAX_CHAIN_REFERENCES} references in a chain; refer to the last"
                )
            node = self.named(reference, path)
            seen.append(reference)
            if node is None:
                raise InvalidPart(path, f"$ref: {quote_untrusted(reference)} not found in the document")
        if not isinstance(node, dict):
            raise InvalidPart(path, f"expected an object, got {type_name(node)}")
        return node

    def named(self, reference: Any, path: str) -> Any:
        """Return the target of a reference, or None if it does not exist.

        Raises:
            Unfit: The reference leads out of the document, or is too long.
        """
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise InvalidPart(path, "$ref: only references within the document are followed")
        if len(reference) > MAX_REFERENCE_CHARS:
            raise InvalidPart(path, f"$ref: expected at most {MAX_REFERENCE_CHARS} characters")
        return resolve_pointer(self.root, reference)


def document_of(source: object) -> Document:
    """Return a description from a mapping or from JSON text.

    Raises:
        SpecError: It is neither of them, it is too large, or its version is not 2.0, 3.0 or 3.1.
    """
    root = _Copying().copied(_data(source), 1)
    if not isinstance(root, dict):
        raise SpecError(SUBJECT, [f"expected an object, got {type_name(root)}"])
    if root.get("swagger") == "2.0" and "openapi" not in root:
        from neuroscript.interop.openapi.swagger import upgrade  # which imports this module

        root, problems = upgrade(root)
        return Document(root, True, problems)
    version = root.get("openapi")
    found = VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        raise SpecError(SUBJECT, ["openapi: expected version 3.1 or 3.0, or swagger: expected version 2.0"])
    dialect = root.get("jsonSchemaDialect", DIALECTS[0])
    if dialect not in DIALECTS:
        raise SpecError(SUBJECT, ["jsonSchemaDialect: expected the dialect of OpenAPI or JSON Schema 2020-12"])
    return Document(root, found[1] == "0")


def _data(source: object) -> Any:
    if not isinstance(source, str):
        return dict(source) if isinstance(source, Mapping) else source
    if len(source) > MAX_CHARS:
        raise SpecError(SUBJECT, [f"more than {MAX_CHARS} characters"])
    try:
        return parse_json(source)
    except NotJSON as error:
        text = f"{error.hint}; parse a YAML description first and pass the resulting mapping"
        raise SpecError(SUBJECT, [text]) from None


@attrs.define(eq=False)
class _Copying:
    """A copy of plain data, within limits; keys that YAML read as integers become strings again."""

    nodes: int = 0
    text: int = 0

    def copied(self, value: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_VALUES or self.text > MAX_CHARS or depth > MAX_DEPTH:
            raise SpecError(SUBJECT, [f"more than {MAX_VALUES} values, {MAX_CHARS} characters or {MAX_DEPTH} levels"])
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
                raise SpecError(SUBJECT, ["contains a number that is not finite"])
            case None | bool() | int() | float():
                return value
            case _:
                raise SpecError(SUBJECT, [f"contains a {type_name(value)}, which JSON cannot represent"])

    def key(self, key: Any) -> str:
        if type(key) is int:
            return str(key)
        if not isinstance(key, str):
            raise SpecError(SUBJECT, [f"has a key of type {type_name(key)}; expected a string"])
        self.text += len(key)
        return str(key)


def at(path: str, *steps: str | int) -> str:
    """Return the path of a nested part.

    >>> at("paths", "/pets", "get", "parameters", 0)
    "paths['/pets'].get.parameters[0]"
    """
    for step in steps:
        if isinstance(step, int):
            path = f"{path}[{step}]"
        elif NAME.fullmatch(step):
            path = f"{path}.{step}" if path else step
        else:
            path = f"{path}['{quote_untrusted(step)}']"
    return path
