"""The parameters of an operation: where each stands in a request, how it is written, and the argument that it becomes.

Source: OpenAPI Specification 3.1.1, "Parameter Object".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, cast

import attrs

from neuroscript.interop.openapi.document import Document, Notes, Unfit, at
from neuroscript.interop.openapi.names import Operation, argument_name
from neuroscript.interop.openapi.parameter_styles import STYLES, Style, Where
from neuroscript.interop.openapi.schemas import LONGEST, Schemas, kinds_of
from neuroscript.interop.openapi.security import CLIENTS, TOKEN, Credential
from neuroscript.interop.openapi.servers import has_dots
from neuroscript.io.text import one_line, shown

IGNORED: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that no parameter describes, see "Fixed Fields" of "Parameter Object"."""

SLOT: Final = re.compile(r"\{([^{}]*)\}")
LITERAL: Final = re.compile(r"[A-Za-z0-9/:@!$&'()*+,;=~._%-]*")
"""What may stand in a path beside the places of parameters."""


@attrs.frozen
class Parameter:
    """One parameter.

    Attributes:
        where: What part of a request it stands in.
        style: How it is written there.
        required: Whether it must be given.
        schema: That of its argument.
    """

    where: Where
    style: Style
    required: bool
    schema: dict[str, Any] = attrs.field(eq=False)

    @property
    def arg(self) -> str:
        """The name of the argument."""
        return self.style.arg


def parameters_of(
    document: Document,
    operation: Operation,
    schemas: Schemas,
    credentials: tuple[Credential, ...],
    notes: Notes,
) -> tuple[Parameter, ...]:
    """Return the parameters of an operation, those of its path item too; what is wrong with them is noted.

    What a credential of the host says is no parameter.
    """
    given = {(each.where, each.name.lower() if each.where == "header" else each.name) for each in credentials}
    found = []
    for path, data in _merged(document, operation, notes):
        where, name = data["in"], data["name"]
        key = name.lower() if where == "header" else name
        if (where == "header" and key in IGNORED) or (where, key) in given:
            continue
        try:
            found.append(_parameter(document, data, path, schemas))
        except Unfit as error:
            notes.add(error.path, error.text)
    named = tuple(_told_apart(found, operation.path, notes))
    _hold_to_route(operation, named, notes)
    return named


def _merged(document: Document, operation: Operation, notes: Notes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each parameter with its path; one of the operation stands for one of its path item of the same name."""
    merged: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
    levels = (operation.item, operation.path.rpartition(".")[0]), (operation.data, operation.path)
    for holder, path in levels:
        listed = holder.get("parameters", [])
        if not isinstance(listed, list):
            notes.add(at(path, "parameters"), "expected a list")
            continue
        seen = set()
        for index, each in enumerate(listed):
            place = at(path, "parameters", index)
            try:
                data = document.followed(each, place)
            except Unfit as error:
                notes.add(error.path, error.text)
                continue
            where, name = data.get("in"), data.get("name")
            if not isinstance(where, str) or where not in STYLES or not isinstance(name, str) or not name:
                notes.add(place, "expected a name, and in: path, query, header or cookie")
                continue
            key = where, name.lower() if where == "header" else name
            if key in seen:
                notes.add(place, "the same parameter stands there twice")
            seen.add(key)
            merged[key] = place, data
    yield from merged.values()


def _parameter(document: Document, data: dict[str, Any], path: str, schemas: Schemas) -> Parameter:
    where = cast(Where, data["in"])
    name = data["name"]
    if where in ("header", "cookie") and TOKEN.fullmatch(name) is None:
        raise Unfit(path, f"no {where} can have its name")
    if where == "header" and name.lower() in CLIENTS:
        raise Unfit(path, "the client itself says this header")
    arg = argument_name(name)
    if not arg:
        raise Unfit(path, "its name can be no argument's")
    content = data.get("content")
    if content is None:
        schema, style = data.get("schema", {}), _style(document, data, arg, path)
    else:
        schema, style = _as_json(content, path), Style(name, arg, "json", False)
    taken = schemas.taken(schema, at(path, "schema"))
    taken = dict(taken) if isinstance(taken, dict) else {} if taken is True else {"not": {}}
    text = one_line(data.get("description"), LONGEST)
    told = {"description": text} if text else {}
    if data.get("deprecated") is True:
        told["description"] = f"{told.get('description') or taken.get('description', '')} (deprecated)".strip()
    if where == "path" and taken.get("type") == "string":
        taken["minLength"] = max(1, taken.get("minLength", 1) if type(taken.get("minLength", 1)) is int else 1)
    return Parameter(where, style, where == "path" or data.get("required") is True, {**taken, **told})


def _style(document: Document, data: dict[str, Any], arg: str, path: str) -> Style:
    known = STYLES[data["in"]]
    style = data.get("style", known[0])
    if style not in known:
        raise Unfit(path, f"style: expected {' or '.join(known)}, got another one")
    explode = data.get("explode", style in ("form", "deepObject"))
    if type(explode) is not bool:
        raise Unfit(at(path, "explode"), "expected true or false")
    kinds, _ = kinds_of(document, data.get("schema", {}), path)
    if data["in"] == "cookie" and explode and kinds & {"array", "object"}:
        raise Unfit(path, "explode: a cookie has one value; only explode: false can be written")
    if style == "deepObject" and kinds and kinds != {"object"}:
        raise Unfit(path, "style: deepObject is for objects")
    _hold_to_scalars(document, data.get("schema", {}), path)
    return Style(data["name"], arg, style, explode)


def _hold_to_scalars(document: Document, schema: Any, path: str) -> None:
    """Refuse lists and maps within lists and maps, for which no style has a way."""
    head = document.followed(schema, path) if isinstance(schema, dict) else {}
    properties = head.get("properties")
    inner = [head.get("items"), *(properties.values() if isinstance(properties, dict) else ())]
    for each in inner:
        if isinstance(each, dict) and kinds_of(document, each, path)[0] & {"array", "object"}:
            raise Unfit(path, "no style says how a list or a map within it is written; write content: application/json")


def _as_json(content: Any, path: str) -> Any:
    """Return the schema of a parameter that is written as JSON."""
    if not isinstance(content, dict) or list(content) != ["application/json"]:
        raise Unfit(at(path, "content"), "only application/json is understood there")
    media = content["application/json"]
    return media.get("schema", {}) if isinstance(media, dict) else {}


def _told_apart(parameters: list[Parameter], path: str, notes: Notes) -> Iterator[Parameter]:
    """Yield the parameters with a name each: of those of one name, all but that of the path say where they stand."""
    counted = Counter(each.arg for each in parameters)
    taken: dict[str, Parameter] = {}
    for each in parameters:
        arg = each.arg if counted[each.arg] == 1 or each.where == "path" else f"{each.where}_{each.arg}"
        if arg in taken:
            text = f"two of them would be called {shown(arg)}: {shown(taken[arg].style.name)}, {shown(each.style.name)}"
            notes.add(at(path, "parameters"), text)
            continue
        taken[arg] = attrs.evolve(each, style=attrs.evolve(each.style, arg=arg))
        yield taken[arg]


def _hold_to_route(operation: Operation, parameters: tuple[Parameter, ...], notes: Notes) -> None:
    """Note where a path and its parameters do not name the same places, or leads elsewhere."""
    slots = Counter(SLOT.findall(operation.route))
    names = dict.fromkeys(each.style.name for each in parameters if each.where == "path")
    for name, count in slots.items():
        if name not in names:
            notes.add(operation.path, f"no parameter says what {shown(name)} in its path is")
        if count > 1:
            notes.add(operation.path, f"{shown(name)} stands in its path twice")
    for name in names:
        if name not in slots:
            notes.add(operation.path, f"its path has no place for {shown(name)}")
    bare = SLOT.sub("x", operation.route)
    if LITERAL.fullmatch(bare) is None or has_dots(bare):
        notes.add(operation.path, "its path has characters that must be written as %XX, or segments of dots")
